//! The page of reports, `docs/reports.md`, beside reports as they are printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

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

/// Fields of a Diagnosis that are not always there; of the others below a list, each entry has all.
const OPTIONAL: [&str; 4] = ["vantage", "commands", "run", "write"];

/// The JSON Schema of a Diagnosis, as the page tells of it.
pub fn schema() -> Value {
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Diagnosis",
        "description": "What `kubectl-acme diagnose -o json` prints. A field may be added.",
        "type": "object",
    });
    for (path, kind, what) in told("Diagnosis") {
        let mut place = &mut schema;
        let parts: Vec<&str> = path.split('.').collect();
        for (index, part) in parts.iter().enumerate() {
            let (name, is_list) = part.strip_suffix("[]").map_or((*part, false), |it| (it, true));
            if !OPTIONAL.contains(&name) {
                let required = place.as_object_mut().unwrap();
                let required = required.entry("required").or_insert(json!([]));
                let all = required.as_array_mut().unwrap();
                if !all.contains(&json!(name)) {
                    all.push(json!(name));
                }
            }
            let field = &mut place["properties"][name];
            if index + 1 == parts.len() {
                *field = field_schema(name, &kind, &what);
                break;
            }
            let object = json!("object");
            place = if is_list {
                field["type"] = json!("array");
                field["items"]["type"] = object;
                &mut place["properties"][name]["items"]
            } else {
                field["type"] = object;
                &mut place["properties"][name]
            };
        }
    }
    schema
}

fn field_schema(name: &str, kind: &str, what: &str) -> Value {
    let mut field = match kind {
        "strings" => json!({"type": "array", "items": {"type": "string"}}),
        "time" => json!({"type": "string", "format": "date-time"}),
        "string or object" => json!({"type": ["string", "object"]}),
        plain => json!({"type": plain}),
    };
    match name {
        "apiVersion" => field["const"] = json!("kubectl-acme/v1alpha1"),
        "kind" => field["const"] = json!("Diagnosis"),
        "exitCode" => field["enum"] = json!([0, 10, 11]),
        "severity" => field["enum"] = json!(["fatal", "error", "warning", "info"]),
        "grade" => field["enum"] = json!(["certain", "likely", "possible"]),
        "cause" => field["pattern"] = json!("^[A-Z0-9]+-[0-9]{2}$"),
        _ => {}
    }
    field["description"] = json!(what);
    field
}

/// Path, type and meaning of each field, in the order of the page.
fn told(report: &str) -> Vec<(String, String, String)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reports.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, section) = page.split_once(&format!("\n## {report}\n")).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
    let row = |row: &str| {
        let (path, rest) = row.split_once("` | ").unwrap();
        let (kind, what) = rest.split_once(" | ").unwrap();
        let kind = kind.strip_suffix(", or absent").unwrap_or(kind);
        let what = what.trim_end_matches([' ', '|']);
        (path.to_owned(), kind.to_owned(), what.to_owned())
    };
    rows.map(row).collect()
}

/// Why a document is not as a schema says, if it is not; as much of JSON Schema as ours have.
pub fn misfit(schema: &Value, value: &Value, at: &str) -> Option<String> {
    let is_of = |kind: &Value| match kind.as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        other => panic!("{other:?}"),
    };
    let fits = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(is_of),
        kind => is_of(kind),
    };
    let is_in = |field: &str| schema[field].as_array().is_none_or(|all| all.contains(value));
    if !fits || !is_in("enum") || schema.get("const").is_some_and(|only| only != value) {
        return Some(format!("{at} is {value}, and no {schema}"));
    }
    let required = schema["required"].as_array().into_iter().flatten();
    if let Some(lacks) = required.map(|it| it.as_str().unwrap()).find(|it| value.get(it).is_none())
    {
        return Some(format!("{at} has no {lacks}"));
    }
    let fields = schema["properties"].as_object().into_iter().flatten();
    let below = fields.filter_map(|(name, below)| Some((name, below, value.get(name)?)));
    let mut below = below.filter_map(|(name, of, it)| misfit(of, it, &format!("{at}.{name}")));
    let mut items = value.as_array().into_iter().flatten();
    below.next().or_else(|| items.find_map(|it| misfit(&schema["items"], it, &format!("{at}[]"))))
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
