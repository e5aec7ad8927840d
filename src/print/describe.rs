//! The sheet of one resource, byte for byte what `kubectl describe` prints.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::age::age;
use super::label::heading;
use super::tabs;
use super::value::{plain, text};
use crate::model::{Event, Severity, Time};

/// Parts of the metadata that stand at the top of the sheet, or nowhere.
const SHOWN_ABOVE: [&str; 5] = ["annotations", "labels", "managedFields", "name", "namespace"];
/// A copy of the whole manifest, which says nothing new.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// Bytes of an annotation, key included, that still stand on one line.
const ANNOTATION_WIDTH: usize = 140;

/// Renders the sheet of a resource and its events; `None` leaves the section Events out.
///
/// A Secret shows the size of each value, never the value, and no events.
pub fn sheet(object: &Value, events: Option<&[Event]>, now: Timestamp) -> String {
    let mut out = String::new();
    head(&mut out, object);
    if text(object, "/kind") == "Secret" {
        secret(&mut out, object);
    } else {
        if let Some(content) = object.as_object() {
            fields(&mut out, content, 0, &[]);
        }
        if let Some(events) = events {
            event_table(&mut out, events, now);
        }
    }
    tabs::align(&tabs::escape(&out))
}

fn head(out: &mut String, object: &Value) {
    line(out, 0, &format!("Name:\t{}", text(object, "/metadata/name")));
    line(out, 0, &format!("Namespace:\t{}", text(object, "/metadata/namespace")));
    let labels = pairs(object, "/metadata/labels").map(|(key, value)| format!("{key}={value}"));
    heading_with_list(out, "Labels", labels.collect());
    let annotations =
        pairs(object, "/metadata/annotations").filter(|(key, _)| *key != LAST_APPLIED);
    let lines = annotations.flat_map(|(key, value)| annotation(key, value));
    heading_with_list(out, "Annotations", lines.collect());
}

fn pairs<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = object.pointer(pointer).and_then(Value::as_object);
    map.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

fn heading_with_list(out: &mut String, title: &str, lines: Vec<String>) {
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_else(|| "<none>".to_owned());
    line(out, 0, &format!("{title}:\t{first}"));
    for text in lines {
        line(out, 0, &format!("\t{text}"));
    }
}

/// A long annotation, or one of several lines, stands below its key and is cut.
fn annotation(key: &str, value: &str) -> Vec<String> {
    let value = value.strip_suffix('\n').unwrap_or(value);
    if key.len() + value.len() + 2 <= ANNOTATION_WIDTH && !value.contains('\n') {
        return vec![format!("{key}: {value}")];
    }
    let shorten = |line: &str| {
        if line.len() <= ANNOTATION_WIDTH - 2 {
            return format!("  {line}");
        }
        format!("  {}...", &line[..line.floor_char_boundary(ANNOTATION_WIDTH - 2)])
    };
    std::iter::once(format!("{key}:")).chain(value.split('\n').map(shorten)).collect()
}

fn fields(out: &mut String, content: &Map<String, Value>, level: usize, path: &[&str]) {
    for (field, value) in content {
        if path == ["metadata"] && SHOWN_ABOVE.contains(&field.as_str()) {
            continue;
        }
        let path = [path, &[field.as_str()]].concat();
        let label = heading(field);
        match value {
            Value::Object(inner) => {
                line(out, level, &format!("{label}:"));
                fields(out, inner, level + 1, &path);
            }
            Value::Array(items) => {
                line(out, level, &format!("{label}:"));
                for item in items {
                    match item {
                        Value::Object(inner) => fields(out, inner, level + 1, &path),
                        other => line(out, level + 1, &plain(other)),
                    }
                }
            }
            other => line(out, level, &format!("{label}:\t{}", plain(other))),
        }
    }
}

fn secret(out: &mut String, object: &Value) {
    line(out, 0, &format!("\nType:\t{}", text(object, "/type")));
    line(out, 0, "\nData\n====");
    for (key, value) in pairs(object, "/data") {
        line(out, 0, &format!("{key}:\t{} bytes", decoded_length(value)));
    }
}

/// Counts the bytes that base64 text stands for.
fn decoded_length(base64: &str) -> usize {
    let digits = base64.bytes().filter(|b| !b.is_ascii_whitespace() && *b != b'=').count();
    digits * 3 / 4
}

fn event_table(out: &mut String, events: &[Event], now: Timestamp) {
    if events.is_empty() {
        line(out, 0, "Events:\t<none>");
        return;
    }
    line(out, 0, "Events:");
    line(out, 1, "Type\tReason\tAge\tFrom\tMessage");
    line(out, 1, "----\t------\t----\t----\t-------");
    let mut sorted: Vec<&Event> = events.iter().collect();
    sorted.sort_by(|a, b| {
        (a.last_timestamp, &a.metadata.name).cmp(&(b.last_timestamp, &b.metadata.name))
    });
    for event in sorted {
        let severity = match event.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        let source = match event.source.component.as_str() {
            "" => &event.reporting_component,
            component => component,
        };
        let (reason, message) = (&event.reason, event.message.trim());
        let seen = seen(event, now);
        line(out, 1, &format!("{severity}\t{reason}\t{seen}\t{source}\t{message}"));
    }
}

/// When an event was seen: `5s`, or `5s (x3 over 2m)` when more than once.
fn seen(event: &Event, now: Timestamp) -> String {
    let moment = |value: Option<&Value>| value?.as_str()?.parse::<Timestamp>().ok();
    let first =
        moment(event.other.get("eventTime")).or_else(|| event.first_timestamp.map(Time::timestamp));
    let first = age(first, now);
    if let Some(series) = event.other.get("series").filter(|s| s.is_object()) {
        let last = age(moment(series.get("lastObservedTime")), now);
        let count = series.get("count").and_then(Value::as_i64).unwrap_or(0);
        return format!("{last} (x{count} over {first})");
    }
    match event.count {
        Some(count) if count > 1 => {
            let last = age(event.last_timestamp.map(Time::timestamp), now);
            format!("{last} (x{count} over {first})")
        }
        _ => first,
    }
}

fn line(out: &mut String, level: usize, text: &str) {
    // Writing to a String cannot fail.
    let _ = writeln!(out, "{:indent$}{text}", "", indent = 2 * level);
}
