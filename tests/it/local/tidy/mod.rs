//! Order in the tree: the floors, the size wall, words that may not stay, and files that somebody forgot.

mod circles;
mod documents;
mod language;
mod names;
mod rooms;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::difference::fits;

/// Lines that a file may have above its test module.
const WALL: usize = 400;

/// The upper floors, from the top. A room imports any room of a floor below its own.
const UPPER: [&[&str]; 11] = [
    &["main", "lib", "process"],
    &["cli"],
    &["commands"],
    &["evidence"],
    &["issue"],
    &["known"],
    &["account", "inspect", "listing"],
    &["input", "lead"],
    &["engine", "objects", "permissions"],
    &["context"],
    &["hints"],
];

/// Rooms of the same upper floor of which the first may import the second.
const BESIDE: [(&str, &str); 1] = [("permissions", "objects")];

/// Lower rooms that only these upper rooms may import; all others stand open to every upper room.
const FEW: [(&str, &[&str]); 4] =
    [("ca", &["commands", "issue"]), ("keystores", &[]), ("programs", &["issue"]), ("serve", &[])];

/// The lower rooms, and the rooms that each may import.
const LOWER: [(&str, &[&str]); 21] = [
    ("diagnosis", &["model", "reconcile", "store", "acme", "ca", "solvers", "controllers"]),
    ("print", &["model"]),
    ("controllers", &["model", "reconcile", "store", "acme", "keystores", "solvers", "probes"]),
    ("solvers", &["model", "disk", "dns", "http", "programs", "serve"]),
    (IN_CLUSTER[0], &["model", "solvers", "store"]),
    (IN_CLUSTER[1], &["model", "probes", "store"]),
    (IN_CLUSTER[2], &["model", "store"]),
    ("probes", &["model", "dns", "fetch", "acme"]),
    ("ca", &["model", "dns", "fetch", "serve", "surroundings"]),
    ("fetch", &["model", "dns", "http"]),
    ("store", &["model", "disk", "http", "surroundings"]),
    ("keystores", &["model", "acme"]),
    ("acme", &["model", "http"]),
    ("disk", &[]),
    ("dns", &["model", "http"]),
    ("http", &[]),
    ("programs", &[]),
    ("serve", &[]),
    ("surroundings", &[]),
    ("reconcile", &["model"]),
    ("model", &[]),
];

/// Solvers and probes that work in a cluster, and what helps against its refusals: rooms of their own, because they alone need a
/// store.
const IN_CLUSTER: [&str; 3] = ["solvers/http01/cluster", "probes/cluster", "solvers/remedy.rs"];

/// Outside crates that are named in one place only.
const ONE_ROOM: [(&str, &str); 6] = [
    ("dns_update", "src/solvers/dns01/many/"),
    ("kube", "src/store/cluster/"),
    ("instant_acme", "src/acme/"),
    ("rusqlite", "src/store/local"),
    ("comfy_table", "src/print/"),
    ("indicatif", "src/print/"),
];

/// Most places that ask for the cluster itself.
const ASKING: usize = 11;

/// Words that show something unfinished.
const UNFINISHED: [&str; 6] = ["todo!", "unimplemented!", "dbg!", "TODO", "FIXME", "XXX"];

/// A source file, its path relative to the root.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    /// The name of its room: the first folder or file below `src/`.
    fn room(&self) -> String {
        let is_in = |room: &&str| self.path.starts_with(Path::new("src").join(room));
        if let Some(room) = IN_CLUSTER.into_iter().find(is_in) {
            return room.to_owned();
        }
        let below = self.path.components().nth(1).unwrap();
        below.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    }

    /// Its lines of code, numbered from 1, without comments.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.map(|(index, line)| (index + 1, line.split("//").next().unwrap_or_default()))
    }

    /// How many lines stand above its test module; none in a file that is one.
    fn height(&self) -> usize {
        let is_tests = |part: &str| ["tests", "tests.rs", "testing.rs"].contains(&part);
        if self.path.starts_with("src")
            && self.path.iter().any(|p| p.to_str().is_some_and(is_tests))
        {
            return 0;
        }
        let lines: Vec<&str> = self.text.lines().collect();
        let begins = |at: &usize| lines[*at] == "#[cfg(test)]" && opens_module(&lines[at + 1..]);
        (0..lines.len()).find(begins).unwrap_or(lines.len())
    }

    /// The rooms it imports, with the line: every name after `crate::`, and those in braces after it.
    fn imports(&self) -> Vec<(usize, String)> {
        let code: Vec<_> = self.code().collect();
        let mut imports = Vec::new();
        for (index, (number, line)) in code.iter().enumerate() {
            for (at, _) in line.match_indices("crate::") {
                let path = &line[at + "crate::".len()..];
                if let Some(rest) = path.strip_prefix('{') {
                    let more: String = code[index + 1..].iter().map(|(_, line)| *line).collect();
                    let names = first_names(&format!("{rest}{more}"));
                    imports.extend(names.into_iter().map(|name| (*number, name)));
                } else {
                    imports.push((*number, identifier(path)));
                }
            }
        }
        imports
    }
}

/// Tells whether lines begin with a module that stands here, whatever attributes it has; one of a file of its own does not.
fn opens_module(lines: &[&str]) -> bool {
    let module = lines.iter().find(|line| !line.starts_with("#["));
    module.is_some_and(|line| line.split(' ').any(|word| word == "mod") && line.ends_with('{'))
}

/// The identifier at the start of a text.
fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// The first name of every path in a list that stands in braces, up to the closing one: `a::{b, c}, d}` gives a and d.
fn first_names(list: &str) -> Vec<String> {
    let (mut names, mut depth, mut fresh) = (Vec::new(), 0, true);
    for (at, character) in list.char_indices() {
        match character {
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            '{' => depth += 1,
            ',' if depth == 0 => fresh = true,
            _ if fresh && !character.is_whitespace() => {
                names.push(identifier(&list[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    names
}

/// Lists the files that git knows or would take in, so that build products and ignored files stay out.
fn files(under: &str) -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard", "--", under])
        .current_dir(root())
        .output()
        .expect("git is installed");
    assert!(output.status.success(), "git: {}", String::from_utf8_lossy(&output.stderr));
    let listed = String::from_utf8(output.stdout).unwrap();
    let present = |path: &PathBuf| root().join(path).exists();
    listed.lines().map(PathBuf::from).filter(present).collect::<BTreeSet<_>>().into_iter().collect()
}

fn sources(under: &str) -> Vec<Source> {
    let rust = files(under).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| Source { text: fs::read_to_string(root().join(&path)).unwrap(), path })
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Fails with every fault found.
fn check(faults: impl IntoIterator<Item = String>) {
    let faults: Vec<_> = faults.into_iter().collect();
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

/// Says what is wrong with one import, if anything is.
fn judge(room: &str, imported: &str) -> Option<String> {
    let floor = |name: &str| UPPER.iter().position(|rooms| rooms.contains(&name));
    if room == imported || floor(room) == Some(0) {
        return None;
    }
    let allowed = match (floor(room), LOWER.iter().find(|(name, _)| *name == room)) {
        (Some(above), _) => match floor(imported) {
            Some(below) => above < below || BESIDE.contains(&(room, imported)),
            None => FEW.iter().all(|(name, by)| *name != imported || by.contains(&room)),
        },
        (None, Some((_, rooms))) => rooms.contains(&imported),
        (None, None) => {
            return Some(format!("{room} has no floor: give it one in tests/it/local/tidy/mod.rs"));
        }
    };
    (!allowed).then(|| format!("{room} imports {imported}, which stands above it or beside it"))
}

#[test]
fn no_floor_is_crowded() {
    let rows = LOWER.iter().map(|(_, rooms)| rooms.len()).chain(UPPER.iter().map(|r| r.len()));
    assert!(rows.max() <= Some(8));
}

#[test]
fn imports_go_down_the_floors() {
    check(sources("src").iter().flat_map(|source| {
        let room = source.room();
        let at = |number, fault| format!("{}:{number}: {fault}", source.path.display());
        let fault = |(number, name): (usize, String)| judge(&room, &name).map(|f| at(number, f));
        source.imports().into_iter().filter_map(fault).collect::<Vec<_>>()
    }));
}

/// Files below that name flags: of processes in Pods, of kubectl, and one of cert-manager's in its words.
const OTHER_FLAGS: [&str; 4] = [
    "src/probes/cluster/mod.rs",
    "src/probes/cluster/pod.rs",
    "src/solvers/dns01/hosted.rs",
    "src/solvers/http01/cluster/pod.rs",
];

#[test]
fn flags_are_named_at_the_top_alone() {
    let names_a_flag = |line: &str| {
        ["\"--", " --", "(--", "`--"].iter().any(|start| {
            let mut after = line.match_indices(start).map(|(at, start)| &line[at + start.len()..]);
            after.any(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()))
        })
    };
    check(sources("src").iter().flat_map(|source| {
        let is_exempt = UPPER.iter().any(|rooms| rooms.contains(&source.room().as_str()))
            || OTHER_FLAGS.iter().any(|path| source.path == Path::new(path));
        let code = source.code().take(if is_exempt { 0 } else { source.height() });
        let found = code.filter(|(_, line)| line.contains('"') && names_a_flag(line));
        let at = |(number, _)| format!("{}:{number}: a flag, below hints/", source.path.display());
        found.map(at).collect::<Vec<_>>()
    }));
}

/// Lower rooms that judge, where words are no facts, as in every upper room.
const JUDGES: [&str; 2] = ["diagnosis", "reconcile"];
/// Files that read what others have written: a CA's and cert-manager's sentences, and conditions that cert-manager may have
/// written before we drove.
const READERS: [&str; 7] = [
    "src/diagnosis/words/controller.rs",
    "src/diagnosis/words/foreign.rs",
    "src/diagnosis/words/issuer.rs",
    "src/diagnosis/words/provider.rs",
    "src/diagnosis/words/refusal.rs",
    "src/reconcile/certificate/issuing.rs",
    "src/reconcile/request.rs",
];

#[test]
fn prose_is_read_in_one_place() {
    const PROSE: [&str; 5] = ["reason", "message", "why", "detail", "said"];
    const READINGS: [&str; 6] =
        ["contains", "starts_with", "ends_with", "split_once", "strip_prefix", "strip_suffix"];
    check(sources("src").iter().flat_map(|source| {
        let room = source.room();
        let is_judge = JUDGES.contains(&room.as_str())
            || UPPER.iter().any(|rooms| rooms.contains(&room.as_str()));
        let is_exempt = !is_judge || READERS.iter().any(|path| source.path == Path::new(path));
        let code = source.code().take(if is_exempt { 0 } else { source.height() });
        let reads = |line: &str| {
            PROSE.iter().any(|text| {
                READINGS.iter().any(|reading| line.contains(&format!("{text}.{reading}(\"")))
            })
        };
        let found = code.filter(|(_, line)| reads(line));
        let at = |(number, _)| format!("{}:{number}: reads prose", source.path.display());
        found.map(at).collect::<Vec<_>>()
    }));
}

#[test]
fn no_verb_imports_another_one() {
    check(sources("src/commands").iter().flat_map(|source| {
        let below = source.path.strip_prefix("src/commands").unwrap();
        let verb = below.iter().next().unwrap().to_string_lossy();
        let own = format!("crate::commands::{}", verb.trim_end_matches(".rs"));
        let others = source.code().filter(|(_, line)| line.contains("crate::commands"));
        let others = others.filter(|(_, line)| !line.contains(&own)).map(|(number, _)| number);
        let fault = |number| format!("{}:{number}: another verb", source.path.display());
        others.map(fault).collect::<Vec<_>>()
    }));
}

#[test]
fn the_check_of_imports_sees_every_form() {
    let source =
        |text: &str| Source { path: PathBuf::from("src/model/x.rs"), text: text.to_owned() };
    let names =
        |text: &str| -> Vec<_> { source(text).imports().into_iter().map(|i| i.1).collect() };
    assert_eq!(names("use crate::store::Store;"), ["store"]);
    assert_eq!(names("use crate::{acme::{A, B}, dns};\nuse crate::ca;"), ["acme", "dns", "ca"]);
    assert_eq!(names("use crate::{\n    store::X,\n    print::{\n  Y },\n};"), ["store", "print"]);
    assert_eq!(
        names("let x = crate::print::text(crate::acme::A); // crate::ca"),
        ["print", "acme"]
    );
    assert!(judge("model", "store").is_some() && judge("nowhere", "model").is_some());
    assert!(judge("solvers", "store").is_some() && judge("controllers", "commands").is_some());
    assert!(judge(IN_CLUSTER[0], "store").is_none() && judge(IN_CLUSTER[0], "acme").is_some());
    assert!(judge("commands", "print").is_none() && judge("probes", "fetch").is_none());
}

#[test]
fn nobody_climbs_out_of_a_room_by_super() {
    check(sources("src").iter().flat_map(|source| {
        // From src/room/mod.rs one `super` is the crate's root; from src/room/file.rs two are. A module inside a file,
        // such as its tests, stands one deeper.
        let depth = source.path.components().count() - 1;
        let is_mod = source.path.ends_with("mod.rs");
        let above = "super::".repeat(depth - usize::from(is_mod));
        source
            .code()
            .take(source.height())
            .filter(move |(_, line)| line.contains(&above))
            .map(|(number, _)| format!("{}:{number}: say crate:: instead", source.path.display()))
    }));
}

#[test]
fn a_file_is_as_high_as_the_line_above_its_own_test_module() {
    let height = |path: &str, text: &str| {
        Source { path: PathBuf::from(path), text: text.to_owned() }.height()
    };
    for (text, expected) in [
        ("fn a() {}\n", 1),
        ("fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n", 1),
        ("fn a() {}\n#[cfg(test)]\npub(super) mod tests {\n}\n", 1),
        ("#[cfg(test)]\nmod fake;\nmod real;\nfn a() {}\n", 4),
        ("#[cfg(test)]\nmod fake;\n#[cfg(test)]\nmod tests {\n}\n", 2),
        ("impl A {\n    #[cfg(test)]\n    fn a() {}\n    fn b() {}\n}\n", 5),
        ("#[cfg(test)]\nimpl A {\n}\nfn a() {}\n", 4),
        ("fn a() {}\n#[cfg(test)]\n#[expect(lint, reason = \"…\")]\nmod tests {\n}\n", 1),
    ] {
        assert_eq!(height("src/model/x.rs", text), expected, "{text}");
    }
    assert_eq!(height("src/model/tests/x.rs", "fn a() {}\n"), 0);
}

#[test]
fn no_file_is_higher_than_the_wall() {
    let files = sources("src").into_iter().chain(sources("tests/support"));
    let tall = files.filter(|source| source.height() > WALL);
    check(tall.map(|s| format!("{}: {} lines above its tests", s.path.display(), s.height())));
}

#[test]
fn every_file_is_part_of_a_program() {
    let roots = [("src", ["lib.rs", "main.rs"]), ("tests/it", ["main.rs"; 2])];
    check(roots.into_iter().flat_map(|(root, crates)| {
        sources(root).into_iter().filter_map(move |source| {
            let path = &source.path;
            let is_mod = path.ends_with("mod.rs");
            let own = if is_mod { path.parent().unwrap() } else { path };
            let name = own.file_stem().unwrap().to_string_lossy().into_owned();
            let folder = own.parent().unwrap();
            let is_top = folder == Path::new(root);
            if is_top && !is_mod && ["main", "lib"].contains(&name.as_str()) {
                return None;
            }
            let parents = if is_top { crates } else { ["mod.rs"; 2] };
            let declared = parents.iter().any(|parent| declares(&folder.join(parent), &name));
            (!declared).then(|| format!("{}: no `mod {name};` leads here", path.display()))
        })
    }));
}

/// Says whether a file has a line `mod NAME;`, public or not.
fn declares(file: &Path, name: &str) -> bool {
    let text = fs::read_to_string(root().join(file)).unwrap_or_default();
    let declaration = format!("mod {name};");
    text.lines().any(|line| line == declaration || line.ends_with(&format!(" {declaration}")))
}

#[test]
fn every_pattern_of_the_groups_fits_a_test() {
    let listed = Command::new(std::env::current_exe().unwrap())
        .args(["--list", "--ignored", "--format=terse"])
        .output()
        .unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let tests: Vec<&str> = listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let groups = fs::read_to_string(root().join("tests/bed/groups")).unwrap();
    let lines = groups.lines().filter(|line| !line.starts_with('#'));
    let patterns = lines.flat_map(|line| line.split_whitespace().skip(2));
    let idle = patterns.filter(|pattern| !tests.iter().any(|test| fits(pattern, test)));
    check(idle.map(|pattern| format!("tests/bed/groups: {pattern} fits no test")));
}

#[test]
fn outside_crates_are_named_in_one_room() {
    check(sources("src").iter().flat_map(|source| {
        let strangers = ONE_ROOM
            .into_iter()
            .filter(|(_, home)| !source.path.to_string_lossy().starts_with(home));
        let lines: Vec<_> = source.code().take(source.height()).collect();
        strangers.filter_map(move |(name, home)| {
            let path = format!("{name}::");
            let (number, _) = lines.iter().find(|(_, line)| line.contains(&path))?;
            Some(format!("{}:{number}: {name} belongs to {home}", source.path.display()))
        })
    }));
}

#[test]
fn no_globs_are_imported() {
    check(sources("src").iter().flat_map(|source| {
        let code = source.code().take(source.height());
        let globs = code.filter(|(_, line)| line.contains("use ") && line.contains("::*"));
        globs.map(|(number, _)| format!("{}:{number}: a glob", source.path.display()))
    }));
}

#[test]
fn few_places_ask_for_the_cluster() {
    let places = sources("src").into_iter().flat_map(|source| {
        let asks = |line: &str| line.contains(".cluster()") && !line.contains("global.cluster");
        let lines = source.code().filter(|(_, line)| asks(line)).map(|(number, _)| number);
        lines.map(|number| format!("{}:{number}", source.path.display())).collect::<Vec<_>>()
    });
    let places: Vec<String> = places.collect();
    assert!(
        places.len() <= ASKING,
        "the store, the claim or the venue knows it:\n{}",
        places.join("\n")
    );
}

#[test]
fn nothing_unfinished_stays() {
    // This file names the words that it looks for.
    let this = Path::new("tests/it/local/tidy/mod.rs");
    let all = ["src", "tests", "benches"].into_iter().flat_map(sources);
    check(all.filter(|source| source.path != this).flat_map(|source| {
        let numbered = source.text.lines().zip(1..);
        let marked = numbered.filter(|(line, _)| UNFINISHED.iter().any(|word| line.contains(word)));
        let fault =
            |(line, number): (&str, _)| format!("{}:{number}: {line}", source.path.display());
        marked.map(fault).collect::<Vec<_>>()
    }));
}

#[test]
fn the_changelog_has_a_place_for_the_next_change() {
    let changelog = fs::read_to_string(root().join("CHANGELOG.md")).expect("CHANGELOG.md is there");
    assert!(changelog.lines().any(|line| line.starts_with("## [Unreleased]")));
}
