//! Plain names and plain comments, as counts that only shrink.

use super::{Source, check, identifier, sources};

/// First words of comments that point instead of naming.
const POINTING: [&str; 5] = ["It ", "Its ", "Those ", "The same", "What "];
/// Most lines of doc comments with such a first word.
const POINTING_LINES: usize = 200;

/// Functions named for what happened to an argument, and the most of each.
const PARTICIPLES: [&str; 5] = ["told", "heard", "look", "seen", "asked"];
const PARTICIPLE_FUNCTIONS: usize = 10;

/// Names of constants that do not say of what.
const BARE: [&str; 11] = [
    "FEW", "GRACE", "LONG", "LONGEST", "LOOK", "MOST", "OFTEN", "PATIENCE", "PAUSE", "SHORT",
    "SOON",
];

/// Files with fewer lines are small; the most of these, `mod.rs` apart.
const SMALL_FILE: usize = 60;
const SMALL_FILES: usize = 60;

/// Most places that make a printer; 25 are wanted, one for each command.
const PRINTERS: usize = 66;

fn at(source: &Source, number: usize, what: &str) -> String {
    format!("{}:{number}: {what}", source.path.display())
}

/// Fails with every fault if there are more than so many.
fn check_count(faults: impl Iterator<Item = String>, most: usize) {
    let faults: Vec<String> = faults.collect();
    let count = faults.len();
    assert!(count <= most, "{count}, {most} at most:\n{}\n", faults.join("\n"));
}

#[test]
fn comments_name_their_subject() {
    let lines = sources("src").into_iter().flat_map(|source| {
        let points = |line: &str| {
            let comment = line.trim_start();
            let text = comment.strip_prefix("///").or_else(|| comment.strip_prefix("//!"));
            let text = text.map(str::trim_start).unwrap_or_default();
            POINTING.iter().any(|word| text.starts_with(word))
        };
        let lines = source.text.lines().zip(1..).filter(|(line, _)| points(line));
        lines.map(|(line, number)| at(&source, number, line.trim())).collect::<Vec<_>>()
    });
    check_count(lines, POINTING_LINES);
}

#[test]
fn functions_are_named_for_what_they_do() {
    for name in PARTICIPLES {
        let found = sources("src").into_iter().flat_map(|source| {
            let lines = source.code().filter(|(_, line)| {
                line.split_once("fn ").is_some_and(|(_, rest)| identifier(rest) == name)
            });
            lines.map(|(number, line)| at(&source, number, line.trim())).collect::<Vec<_>>()
        });
        check_count(found, PARTICIPLE_FUNCTIONS);
    }
}

#[test]
fn constants_say_of_what() {
    check(sources("src").iter().flat_map(|source| {
        let lines = source.code().filter(|(_, line)| {
            ["const ", "static "].iter().any(|keyword| {
                let name = line.split_once(keyword).map(|(_, rest)| identifier(rest));
                name.is_some_and(|name| BARE.contains(&name.as_str()))
            })
        });
        lines.map(|(number, line)| at(source, number, line.trim())).collect::<Vec<_>>()
    }));
}

#[test]
fn an_idea_is_no_crumb() {
    let small = sources("src").into_iter().filter(|source| {
        !source.path.ends_with("mod.rs") && source.text.lines().count() < SMALL_FILE
    });
    check_count(small.map(|source| source.path.display().to_string()), SMALL_FILES);
}

#[test]
fn few_places_make_a_printer() {
    let made = sources("src").into_iter().flat_map(|source| {
        let lines = source.code().filter(|(_, line)| line.contains("context.printer("));
        lines.map(|(number, line)| at(&source, number, line.trim())).collect::<Vec<_>>()
    });
    check_count(made, PRINTERS);
}
