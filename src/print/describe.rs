//! The sheet of one resource, byte for byte what `kubectl describe` prints.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::age::age;
use super::document::{plain, text};
use super::escape::escape;
use super::label::heading;
use super::tabs;
use crate::model::{Event, Severity, Time};

/// Parts of the metadata that stand at the top of the sheet, or nowhere.
const SHOWN_ABOVE: [&str; 5] = ["annotations", "labels", "managedFields", "name", "namespace"];
/// Annotation with a copy of the whole manifest, which adds nothing new.
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
    tabs::align(&escape(&out))
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

/// Returns the lines of an annotation; a long annotation, or one of several lines, stands below its key and is cut.
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
        let seen = describe_age(event, now);
        line(out, 1, &format!("{severity}\t{reason}\t{seen}\t{source}\t{message}"));
    }
}

/// Describes the age of an event: `5s`, or `5s (x3 over 2m)` if the event was seen more than once.
fn describe_age(event: &Event, now: Timestamp) -> String {
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
    out.push_str(&"  ".repeat(level));
    out.push_str(text);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: &Value, events: &Value) -> String {
        let events: Vec<Event> = serde_json::from_value(events.clone()).unwrap();
        sheet(object, Some(&events), "2026-11-21T04:32:25Z".parse().unwrap())
    }

    #[test]
    fn long_annotations_stand_below_their_key() {
        let object = json!({"metadata": {
            "name": "web",
            "labels": {"b": "2", "a": "1"},
            "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
                "lines": "one\ntwo\n",
                "long": "ü".repeat(100),
                "short": "text",
            },
        }});
        insta::assert_snapshot!(check(&object, &json!([])), @"
        Name:         web
        Namespace:    
        Labels:       a=1
                      b=2
        Annotations:  lines:
                        one
                        two
                      long:
                        üüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüüü...
                      short: text
        Metadata:
        Events:  <none>
        ");
    }

    #[test]
    fn lists_of_lists_and_empty_values_are_written_as_go_writes_them() {
        let object = json!({"spec": {"list": [["a", 1], null, {"x": []}], "empty": {}, "none": null, "half": 0.5}});
        insta::assert_snapshot!(check(&object, &json!([])), @"
        Name:         
        Namespace:    
        Labels:       <none>
        Annotations:  <none>
        Spec:
          Empty:
          Half:  0.5
          List:
            [a 1]
            <nil>
            X:
          None:  <nil>
        Events:  <none>
        ");
    }

    #[test]
    fn events_stand_in_the_order_they_were_seen_last() {
        let events = json!([
            {"metadata": {"name": "web.1"}, "type": "Warning", "reason": "Repeated", "message": " said\u{1b}[2J often ", "count": 3,
             "firstTimestamp": "2026-11-21T04:30:20Z", "lastTimestamp": "2026-11-21T04:32:20Z", "source": {"component": "one"}},
            {"metadata": {"name": "web.2"}, "type": "Normal", "reason": "Once", "message": "said once", "count": 1,
             "firstTimestamp": "2026-11-21T04:30:20Z", "lastTimestamp": "2026-11-21T04:30:20Z", "reportingComponent": "two"},
            {"metadata": {"name": "web.3"}, "type": "Normal", "reason": "Series", "message": "the newer form",
             "eventTime": "2026-11-21T04:22:25.000000Z", "firstTimestamp": null, "lastTimestamp": null,
             "series": {"count": 7, "lastObservedTime": "2026-11-21T04:32:24.000000Z"}, "reportingComponent": "three"},
        ]);
        insta::assert_snapshot!(check(&json!({}), &events), @"
        Name:         
        Namespace:    
        Labels:       <none>
        Annotations:  <none>
        Events:
          Type     Reason    Age                From   Message
          ----     ------    ----               ----   -------
          Normal   Series    1s (x7 over 10m)   three  the newer form
          Normal   Once      2m5s               two    said once
          Warning  Repeated  5s (x3 over 2m5s)  one    said^[[2J often
        ");
    }

    #[test]
    fn a_secret_shows_sizes_and_never_values() {
        let secret = json!({
            "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {"name": "web-tls", "namespace": "web"},
            "data": {"token": "aHVudGVyMg==", "empty": "", "one": "YQ=="},
        });
        insta::assert_snapshot!(check(&secret, &json!([])), @"
        Name:         web-tls
        Namespace:    web
        Labels:       <none>
        Annotations:  <none>

        Type:  kubernetes.io/service-account-token

        Data
        ====
        empty:  0 bytes
        one:    1 bytes
        token:  7 bytes
        ");
    }

    #[test]
    fn events_can_be_left_out() {
        let text = sheet(&json!({"kind": "Order"}), None, Timestamp::UNIX_EPOCH);
        assert!(text.ends_with("Kind:         Order\n"), "{text}");
    }
}
