//! Every page of `tests/cli` shows what the user sees; `TRYCMD=overwrite` writes what is new.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::program;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::local::{Access, LocalStore};
use serde_json::Value;

/// A little after the last thing that happens in the recordings of the state.
const NOW: &str = "2026-11-21T04:54:20Z";
/// The page that runs without any state.
const STATELESS: &str = "errors.md";
/// Recorded moments that make up the state: a self-check that fails, and two challenges of one name.
const MOMENTS: [&str; 2] =
    ["03-http01-self-check-fails/waiting", "21-same-name-twice/one-held-back"];

/// Runs one page on a state of its own, with nothing of our environment.
fn check(page: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    write_state(&state);
    let local = match page.file_name() {
        Some(name) if name == STATELESS => String::new(),
        _ => format!("KUBECTL_ACME_LOCAL='{}'", state.display()),
    };
    let binary = program::PATH;
    let ours = format!(
        "exec env -i COLUMNS=100 KUBECTL_ACME_NOW={NOW} KUBECTL_ACME_OFFLINE=1 {local} '{binary}' \"$@\""
    );
    let program = folder.path().join("kubectl-acme");
    write_script(&program, &ours);
    // A page shows both streams as one; `stdout-of COMMAND` leaves out what is said on stderr.
    let quiet = folder.path().join("stdout-of");
    write_script(&quiet, &format!("shift\n{ours} 2>/dev/null"));
    trycmd::TestCases::new()
        .register_bin("kubectl-acme", program.as_path())
        .register_bin("stdout-of", quiet.as_path())
        .case(page);
}

fn write_script(path: &Path, lines: &str) {
    fs::write(path, format!("#!/bin/sh\n{lines}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Writes recorded objects as they are, UIDs and times included: a store that is asked to create them would give its own.
fn write_state(folder: &Path) {
    drop(LocalStore::open(folder, Access::ReadWrite).unwrap());
    let database = rusqlite::Connection::open(folder.join("state.db")).unwrap();
    for path in MOMENTS.iter().flat_map(|moment| recorded(moment)) {
        let text = fs::read_to_string(&path).unwrap();
        let text = text.replace("trace-03", "default").replace("trace-21", "default");
        let objects = match serde_json::from_str(&text).unwrap() {
            Value::Array(events) => events,
            object => vec![object],
        };
        for object in objects {
            insert(&database, &Record::new(object).unwrap());
        }
    }
}

fn recorded(moment: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pairs").join(moment);
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_state = |path: &PathBuf| {
        let name = path.to_string_lossy().into_owned();
        name.ends_with(".object.json") || name.ends_with(".events.json")
    };
    let mut files: Vec<PathBuf> = files.filter(is_state).collect();
    files.sort();
    files
}

fn insert(database: &rusqlite::Connection, record: &Record) {
    let involved = record.text("/involvedObject/uid");
    let is_event = record.key.kind == Kind::Event;
    let row = database.query_row(
        "INSERT INTO object(kind, namespace, name, uid, involved, body)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6) RETURNING id",
        (
            record.key.kind.as_str(),
            &record.key.name.namespace,
            &record.key.name.name,
            record.uid(),
            is_event.then_some(involved),
            record.object.to_string(),
        ),
        |row| row.get::<_, i64>(0),
    );
    for owner in record.metadata().owner_references {
        let manages = owner.controller == Some(true);
        database
            .execute(
                "INSERT INTO owner VALUES(?1, ?2, ?3)",
                (row.as_ref().unwrap(), owner.uid, manages),
            )
            .unwrap();
    }
    row.unwrap();
}

#[test]
fn every_page_shows_what_the_user_sees() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli");
    let pages = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<PathBuf> =
        pages.filter(|page| page.extension().is_some_and(|e| e == "md")).collect();
    pages.sort();
    assert!(!pages.is_empty());
    for page in pages {
        check(&page);
    }
}
