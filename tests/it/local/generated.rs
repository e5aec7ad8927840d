//! Man pages and completions are what the program would write now; `just generate` writes them anew.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kubectl_acme::cli::completion::{self, Shell};
use kubectl_acme::model::own_solver::provider::{ALL, Field, Provider};

use super::causes;
use super::lab;
use super::man::pages;
use crate::cluster::side_by_side;
use crate::support::reports;

/// What kubectl runs for `kubectl acme <TAB>`.
const KUBECTL_COMPLETE: &str = "#!/bin/sh\n\
    # kubectl runs this for `kubectl acme <TAB>`: put it beside kubectl-acme in PATH.\n\
    exec kubectl-acme __complete \"$@\"\n";

/// Compares the files of a folder with what they should be, or writes them where `UPDATE` is set.
fn check(folder: &str, expected: &BTreeMap<String, String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    if std::env::var_os("UPDATE").is_some() {
        return write(&folder, expected);
    }
    let found = read(&folder);
    let names = |files: &BTreeMap<String, String>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(expected), "{}: `just generate`", folder.display());
    for (name, text) in expected {
        assert_eq!(&found[name], text, "{name} is stale: `just generate`");
    }
}

fn write(folder: &Path, files: &BTreeMap<String, String>) {
    fs::create_dir_all(folder).unwrap();
    for name in read(folder).keys().filter(|name| !files.contains_key(*name)) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    for (name, text) in files {
        fs::write(folder.join(name), text).unwrap();
    }
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    let named = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.map(|path| (named(&path), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn man_pages_tell_of_every_command() {
    let pages = pages();
    assert!(pages.contains_key("kubectl-acme.1") && pages.contains_key("kubectl-acme-order.1"));
    for (name, page) in &pages {
        let bare = page.split(".TP\n").find(|entry| {
            entry.starts_with("\\fB\\-\\-") && entry.lines().nth(1).is_none_or(str::is_empty)
        });
        assert_eq!(bare, None, "{name} has a flag without a description");
    }
    check("man", &pages);
}

#[test]
fn the_schema_of_a_diagnosis_tells_what_the_page_of_reports_does() {
    let text = serde_json::to_string_pretty(&reports::schema()).unwrap() + "\n";
    check("docs/schemas", &[("diagnosis.json".to_owned(), text)].into());
}

#[test]
fn the_pages_of_causes_tell_what_the_catalogue_does() {
    check("docs/causes", &causes::pages());
}

#[test]
fn the_page_of_the_lab_tells_every_cause() {
    let head = "| cause | rule | made to happen in |\n| --- | --- | --- |\n";
    check_table("docs/lab.md", head, &lab::rows());
}

/// A provider's fields as the example's page shows them: those that may be left out stand in brackets.
fn row(listed: &Provider) -> String {
    let shown = |field: &Field| {
        let key = field.key();
        if field.required { format!("`{key}`") } else { format!("[`{key}`]") }
    };
    let fields: Vec<String> = listed.fields.iter().map(shown).collect();
    format!("| `{}` | {} | {} |", listed.name, listed.title, fields.join(", "))
}

/// Compares the table below a head, in a page that people write, with what it should be, or writes it where `UPDATE` is set.
fn check_table(path: &str, head: &str, rows: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let page = fs::read_to_string(&path).unwrap();
    let (before, after) = page.split_once(head).expect("the page has the head of the table");
    let rest: String =
        after.split_inclusive('\n').skip_while(|line| line.starts_with("| ")).collect();
    let expected = format!("{before}{head}{rows}{rest}");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert_eq!(page, expected, "{} is stale: `just generate`", path.display());
}

#[test]
fn the_page_of_the_many_providers_tells_the_fields_of_each() {
    let head = "| `solverName` | provider | `config` |\n| --- | --- | --- |\n";
    let rows: String = ALL.iter().map(|listed| row(listed) + "\n").collect();
    check_table("examples/dns01-many/README.md", head, &rows);
}

#[test]
fn the_page_of_differences_tells_every_reason_that_the_tests_list() {
    let mut by_reason = BTreeMap::<&str, BTreeSet<&str>>::new();
    for difference in side_by_side::listed() {
        let seen = match difference.about.split(' ').next() {
            Some("") | None => "any message",
            Some("events" | "solver") => "Events",
            Some("creation") => "what is made first",
            Some("kubectl") => "what kubectl prints",
            Some(kind) => kind,
        };
        by_reason.entry(difference.why).or_default().insert(seen);
    }
    let row = |(why, seen): (&&str, &BTreeSet<&str>)| {
        let seen: Vec<&str> = seen.iter().copied().collect();
        format!("| {why} | {} |\n", seen.join(", "))
    };
    let rows: String = by_reason.iter().map(row).collect();
    check_table("docs/differences.md", "| why | where it is seen |\n| --- | --- |\n", &rows);
}

#[test]
fn completions_are_those_that_the_program_prints() {
    let named = [
        ("kubectl-acme.bash", Shell::Bash),
        ("_kubectl-acme", Shell::Zsh),
        ("kubectl-acme.fish", Shell::Fish),
        ("kubectl-acme.ps1", Shell::Powershell),
    ];
    let scripts = named.map(|(name, shell)| (name.to_owned(), completion::script(shell).unwrap()));
    let mut files = BTreeMap::from(scripts);
    files.insert("kubectl_complete-acme".to_owned(), KUBECTL_COMPLETE.to_owned());
    check("completions", &files);
}
