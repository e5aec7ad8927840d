//! Sheets and tables equal what kubectl printed (`tests/fixtures/pairs/README.md`).
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::model::{Event, Kind};
use kubectl_acme::print::columns::{self, ColumnStyle, Width};
use kubectl_acme::print::describe;
use serde_json::Value;

fn moments() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pairs");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.is_dir()).collect()
    };
    let mut moments: Vec<PathBuf> = folders(&root).iter().flat_map(|s| folders(s)).collect();
    moments.sort();
    moments
}

fn files(moment: &Path, suffix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(moment).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.to_string_lossy().ends_with(suffix)).collect();
    files.sort();
    files
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn printed_at(path: &Path) -> Timestamp {
    let meta = json(&path.with_file_name("meta.json"));
    meta["now"][path.file_name().unwrap().to_str().unwrap()].as_str().unwrap().parse().unwrap()
}

fn sibling(path: &Path, ending: &str) -> PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap();
    path.with_file_name(name.replace(".describe.txt", ending))
}

/// Compares with a recording. `meta.json` holds the moment kubectl was started; it read its clock a little later.
fn check(path: &Path, started: Timestamp, render: impl Fn(Timestamp) -> String) {
    let expected = fs::read_to_string(path).unwrap();
    let moments = (0..=15).map(|tenth| started + SignedDuration::from_millis(100 * tenth));
    let texts: Vec<String> = moments.map(render).collect();
    if !texts.contains(&expected) {
        assert_eq!(texts[0], expected, "{}", path.display());
    }
}

#[test]
fn every_recorded_sheet_is_printed_byte_for_byte() {
    let mut checked = 0;
    for path in moments().iter().flat_map(|moment| files(moment, ".describe.txt")) {
        let object = json(&sibling(&path, ".object.json"));
        let events: Vec<Event> =
            serde_json::from_value(json(&sibling(&path, ".events.json"))).unwrap();
        check(&path, printed_at(&path), |now| describe::sheet(&object, Some(&events), now));
        checked += 1;
    }
    assert_eq!(checked, 188);
}

/// A table without one of its columns, of which each cell is one word.
fn without_column(table: &str, title: &str) -> String {
    let start = table.lines().next().and_then(|headings| headings.find(title)).unwrap();
    let cut = |line: &str| {
        let (before, rest) = line.split_at(start);
        let cell = rest.find(' ').unwrap();
        let next = cell + rest[cell..].find(|c| c != ' ').unwrap();
        format!("{before}{}\n", &rest[next..])
    };
    table.lines().map(cut).collect()
}

#[test]
fn every_recorded_table_is_printed_byte_for_byte() {
    let mut checked = 0;
    for (ending, width) in [(".get.txt", Width::Narrow), (".wide.txt", Width::Wide)] {
        for path in moments().iter().flat_map(|moment| files(moment, ending)) {
            let kind = path.file_name().unwrap().to_str().unwrap().strip_suffix(ending).unwrap();
            let folder = path.parent().unwrap();
            let objects: Vec<Value> = files(folder, ".object.json")
                .iter()
                .filter(|file| {
                    file.file_name().unwrap().to_str().unwrap().starts_with(&format!("{kind}."))
                })
                .map(|file| json(file))
                .collect();
            let started = printed_at(&path.with_file_name(format!("{kind}.get.txt")));
            let kind = Kind::parse(kind).unwrap();
            let look = ColumnStyle { width, ..ColumnStyle::default() };
            check(&path, started, |now| {
                let table = columns::table(kind, &objects, &look, now);
                // kubectl has no such columns.
                let ours: &[&str] = match (kind, width) {
                    (Kind::Certificate, Width::Narrow) => &["EXPIRES"],
                    (Kind::Certificate, Width::Wide) => &["EXPIRES", "RENEWAL"],
                    _ => &[],
                };
                ours.iter().fold(table, |table, column| without_column(&table, column))
            });
            checked += 1;
        }
    }
    assert_eq!(checked, 160);
}
