//! What documents and headers say of the tree: every file that they name is there, and the bird's-eye view is one.

use std::fs;
use std::path::{Path, PathBuf};

use super::{check, files, root, sources};

/// Most words of ARCHITECTURE.md.
const BIRDS_EYE: usize = 1_500;
/// Endings of what is taken for the name of a file of ours.
const ENDINGS: [&str; 6] = [".md", ".rs", ".sh", ".toml", ".yaml", ".json"];

/// The names of files in a text, as they stand between backticks and with a folder before them.
fn named(text: &str) -> Vec<&str> {
    let quoted = text.split('`').skip(1).step_by(2);
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let is_name = |word: &&str| {
        word.contains('/')
            && !word.starts_with('/')
            && word.chars().all(is_plain)
            && ENDINGS.iter().any(|ending| word.ends_with(ending))
    };
    quoted.filter(is_name).collect()
}

/// Whether a name leads to a file of the tree, from its root or from any folder of it.
fn leads_to(tree: &[PathBuf], name: &str) -> bool {
    let name = Path::new(name.trim_start_matches("./").trim_start_matches("../"));
    tree.iter().any(|path| path.ends_with(name))
}

#[test]
fn documents_and_headers_name_no_file_that_is_not_there() {
    let tree = files(".");
    let documents = tree.iter().filter(|path| path.extension().is_some_and(|e| e == "md"));
    // Pages of `tests/cli` name what their commands read and write.
    let documents = documents.filter(|path| !path.starts_with("tests"));
    let documents =
        documents.map(|path| (path.clone(), fs::read_to_string(root().join(path)).unwrap()));
    let comments = ["src", "tests"].into_iter().flat_map(sources).map(|source| {
        let lines = source.text.lines().map(str::trim_start);
        let comments: Vec<&str> = lines.filter(|line| line.starts_with("//")).collect();
        (source.path.clone(), comments.join("\n"))
    });
    check(documents.chain(comments).flat_map(|(path, text)| {
        let strangers = named(&text).into_iter().filter(|name| !leads_to(&tree, name));
        let strangers: Vec<String> = strangers.map(str::to_owned).collect();
        strangers.into_iter().map(move |name| format!("{}: there is no {name}", path.display()))
    }));
}

#[test]
fn the_architecture_is_a_birds_eye_view() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let words = text.split_whitespace().count();
    assert!(words <= BIRDS_EYE, "{words} words");
}
