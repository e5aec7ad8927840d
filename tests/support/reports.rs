//! The page of reports, `docs/reports.md`, beside reports as they are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Type and whether it may be absent, of every field that the page tells of a report.
pub fn rows(report: &str) -> BTreeMap<String, (String, bool)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reports.md");
    let page = fs::read_to_string(page).unwrap();
    let heading = format!("\n## {report}\n");
    let (_, section) = page.split_once(&heading).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &str| {
        let (path, rest) = row.split_once("` | ").unwrap();
        let (kind, _) = rest.split_once(" | ").unwrap();
        let bare = kind.strip_suffix(", or absent");
        (path.to_owned(), (bare.unwrap_or(kind).to_owned(), bare.is_some()))
    };
    rows.map(row).collect()
}

/// Every field of a report with its type; no type for an empty list.
pub fn fields(report: &Value) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    collect(report, "", &mut found);
    found
}

fn collect(value: &Value, path: &str, found: &mut BTreeSet<(String, String)>) {
    let kind = match value {
        Value::Object(fields) => {
            let dot = if path.is_empty() { "" } else { "." };
            for (name, value) in fields {
                collect(value, &format!("{path}{dot}{name}"), found);
            }
            return;
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for item in items {
                collect(item, &format!("{path}[]"), found);
            }
            return;
        }
        Value::Array(items) if items.is_empty() => "",
        Value::Array(_) => "strings",
        Value::String(_) => "string",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) | Value::Null => "unknown",
    };
    found.insert((path.to_owned(), kind.to_owned()));
}

/// Compares the page with a report that has every field, and one that lacks those that may be absent.
pub fn is_told(name: &str, [whole, bare]: &[Value; 2]) {
    let rows = rows(name);
    let (whole, bare) = (fields(whole), fields(bare));
    let plain = |(path, (kind, _)): (&String, &(String, bool))| {
        let kind = if kind == "time" { "string" } else { kind };
        (path.clone(), kind.to_owned())
    };
    // Lists without any entry have no type of their own.
    let typed = |(path, kind): (String, String)| match kind.as_str() {
        "" => (path, "strings".to_owned()),
        _ => (path, kind),
    };
    let told: BTreeSet<_> = rows.iter().map(plain).collect();
    assert_eq!(whole.into_iter().map(typed).collect::<BTreeSet<_>>(), told);
    let always = rows.iter().filter(|(_, (_, may_be_absent))| !may_be_absent);
    let always: BTreeSet<&String> = always.map(|(path, _)| path).collect();
    assert_eq!(bare.iter().map(|(path, _)| path).collect::<BTreeSet<_>>(), always);
}
