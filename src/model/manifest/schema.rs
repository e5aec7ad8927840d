//! Shapes of manifests, checked field by field, so that every mistake is reported at once and in its place.

use std::collections::BTreeSet;
use std::ops::Bound;

use serde_json::{Map, Value};

use super::tree::{Content, FieldEntry, Node};
use crate::model::common::{Blob, Duration};
use crate::model::field::{FieldPath, Remark, Step};
use crate::model::text::closest;

/// Shape of a field's value. Nulls count as absent, as for an API server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// Any JSON, not checked.
    Any,
    /// Bytes as base64.
    Base64,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
    /// A field of old API versions that has no counterpart; holds what to do instead.
    Gone(&'static str),
    /// A length of time in Go's form.
    Length,
    /// A list.
    List(&'static Self),
    /// An object with keys of the user's choice.
    Map(&'static Self),
    /// An object with the given fields.
    Object(&'static [Field]),
    /// Old name of the field that is named here.
    Renamed(&'static str),
    /// Text.
    Text,
    /// A whole number, 32 bits, at least the given number.
    Whole(i64),
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// Builds a field that may be left out.
pub(crate) const fn may(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: false }
}

/// Builds a field that must be there.
pub(crate) const fn must(name: &'static str, shape: Shape) -> Field {
    Field { name, shape, required: true }
}

/// Faults that were found in one object.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) errors: Vec<Remark>,
    pub(crate) warnings: Vec<Remark>,
    /// Fields with an error, and fields whose names were misspelt: faults that follow from them are not reported as well.
    reported: BTreeSet<Vec<Step>>,
}

impl Findings {
    /// Adds an error about a field, unless there is a complaint about the field already.
    pub(crate) fn error(&mut self, path: &FieldPath, message: impl Into<String>) {
        self.refuse(Remark::new(path.clone(), message));
    }

    /// Adds an error, unless there is a complaint about the field already, about a field around it, or its misspelt name.
    pub(crate) fn refuse(&mut self, remark: Remark) {
        let steps = remark.path.steps();
        if !(0..=steps.len()).any(|depth| self.reported.contains(&steps[..depth])) {
            self.reported.insert(steps.to_vec());
            self.errors.push(remark);
        }
    }

    /// Reports whether there is a complaint about something in a field already.
    fn has_error_within(&self, path: &FieldPath) -> bool {
        let from = (Bound::Included(path.steps()), Bound::Unbounded);
        self.reported
            .range::<[Step], _>(from)
            .next()
            .is_some_and(|reported| reported.starts_with(path.steps()))
    }

    /// Records that a field was meant by another name.
    fn record_meant(&mut self, path: &FieldPath) {
        self.reported.insert(path.steps().to_vec());
    }
}

/// Checks a value and returns it as JSON, nulls left out.
///
/// If something is wrong, the JSON holds an empty value of the right kind, so that the rest can still be read.
///
/// An unknown field is an error if its name is spelt much like a known one, or is an old name: the field would silently
/// do nothing. Any other unknown field is kept with a warning, since a newer cert-manager may know the field.
pub(crate) fn check(node: &Node, shape: Shape, path: &FieldPath, found: &mut Findings) -> Value {
    match (shape, &node.content) {
        (Shape::Any, _) => return node.to_value(),
        (Shape::Text, Content::Text(_)) | (Shape::Flag, Content::Bool(_)) => {
            return node.to_value();
        }
        (Shape::Base64, Content::Text(text)) => return base64(text, path, found),
        (Shape::Choice(words), Content::Text(text)) => return choice(text, words, path, found),
        (Shape::Length, Content::Text(text)) => return length(text, path, found),
        (Shape::List(item), Content::List(nodes)) => {
            let items = nodes.iter().enumerate();
            return items.map(|(i, node)| check(node, *item, &path.index(i), found)).collect();
        }
        (Shape::Map(value), Content::Map(entries)) => {
            let pairs = entries.iter().map(|entry| {
                (entry.key.clone(), check(&entry.value, *value, &path.key(&*entry.key), found))
            });
            return pairs.collect::<Map<_, _>>().into();
        }
        (Shape::Object(fields), Content::Map(entries)) => {
            return object(entries, fields, path, found);
        }
        (Shape::Whole(least), Content::Number(number)) => {
            if number.as_i64().is_some_and(|n| (least..=i64::from(i32::MAX)).contains(&n)) {
                return node.to_value();
            }
            found.error(path, format!("expected a whole number, at least {least}"));
            return neutral(shape);
        }
        _ => {}
    }
    let mut remark =
        Remark::new(path.clone(), format!("expected {}, found {}", words(shape), node.describe()));
    remark.hint = wrong_kind_hint(shape, node);
    found.refuse(remark);
    neutral(shape)
}

fn object(
    entries: &[FieldEntry],
    fields: &'static [Field],
    path: &FieldPath,
    found: &mut Findings,
) -> Value {
    let mut object = Map::new();
    for entry in entries {
        let at = path.key(&*entry.key);
        match fields.iter().find(|field| field.name == entry.key) {
            Some(Field { shape: Shape::Renamed(now), .. }) => {
                found.refuse(Remark::on_name(at, format!("was renamed: write {now}")));
                found.record_meant(&path.below(now));
            }
            // Conversion may have reported a fault below already.
            Some(Field { shape: Shape::Gone(_), .. }) if found.has_error_within(&at) => {}
            Some(Field { shape: Shape::Gone(instead), .. }) => {
                found.refuse(Remark::on_name(at, "is gone since v1alpha2").hint(*instead));
            }
            Some(_) if entry.value.is_null() => {}
            Some(field) => {
                object.insert(entry.key.clone(), check(&entry.value, field.shape, &at, found));
            }
            None => {
                unknown(&at, &entry.key, fields, path, found);
                object.insert(entry.key.clone(), entry.value.to_value());
            }
        }
    }
    for field in fields.iter().filter(|field| field.required) {
        let at = path.key(field.name);
        if object.contains_key(field.name) {
            continue;
        }
        found.error(&at, "is required");
        object.insert(field.name.to_owned(), neutral(field.shape));
    }
    object.into()
}

fn unknown(
    at: &FieldPath,
    key: &str,
    fields: &'static [Field],
    parent: &FieldPath,
    found: &mut Findings,
) {
    let known =
        fields.iter().filter(|field| !matches!(field.shape, Shape::Gone(_) | Shape::Renamed(_)));
    match closest(key, known.map(|field| field.name)) {
        Some(meant) => {
            let message = format!("unknown field, did you mean {meant}?");
            found.refuse(Remark::on_name(at.clone(), message));
            found.record_meant(&parent.key(meant));
        }
        None => {
            found.warnings.push(Remark::on_name(at.clone(), "unknown field, kept but not read"));
        }
    }
}

fn base64(text: &str, path: &FieldPath, found: &mut Findings) -> Value {
    let value = Value::String(text.to_owned());
    if serde_json::from_value::<Blob>(value.clone()).is_ok() {
        return value;
    }
    let hint = if path.to_string().starts_with("data.") {
        "put plain text under stringData, or encode it with base64 -w0"
    } else {
        "encode it with base64 -w0"
    };
    found.refuse(Remark::new(path.clone(), "is not base64").hint(hint));
    neutral(Shape::Base64)
}

fn choice(text: &str, words: &[&str], path: &FieldPath, found: &mut Findings) -> Value {
    if text.is_empty() || words.contains(&text) {
        return text.into();
    }
    let remark =
        Remark::new(path.clone(), format!("\"{text}\" is not one of {}", words.join(", ")));
    found.refuse(match closest(text, words.iter().copied()) {
        Some(meant) => remark.hint(format!("did you mean {meant}?")),
        None => remark,
    });
    neutral(Shape::Text)
}

fn length(text: &str, path: &FieldPath, found: &mut Findings) -> Value {
    if Duration::parse(text).is_some() {
        return text.into();
    }
    let remark = Remark::new(path.clone(), format!("\"{text}\" is not a length of time"));
    let days = text.strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    found.refuse(match days {
        Some(days) => {
            remark.hint(format!("days have no unit here: write {}h", u64::from(days) * 24))
        }
        None => remark.hint("write hours, minutes and seconds, such as 2160h or 1h30m"),
    });
    neutral(Shape::Length)
}

/// Returns an empty value of the right kind.
fn neutral(shape: Shape) -> Value {
    match shape {
        Shape::Any | Shape::Gone(_) | Shape::Renamed(_) => Value::Null,
        Shape::Base64 | Shape::Choice(_) | Shape::Text => "".into(),
        Shape::Flag => false.into(),
        Shape::Length => "0s".into(),
        Shape::List(_) => Value::Array(Vec::new()),
        Shape::Map(_) => Value::Object(Map::new()),
        Shape::Object(fields) => {
            let required = fields.iter().filter(|field| field.required);
            required
                .map(|field| (field.name.to_owned(), neutral(field.shape)))
                .collect::<Map<_, _>>()
                .into()
        }
        Shape::Whole(least) => least.into(),
    }
}

fn words(shape: Shape) -> &'static str {
    match shape {
        Shape::Any | Shape::Gone(_) | Shape::Renamed(_) => "a value",
        Shape::Base64 => "base64 text",
        Shape::Choice(_) | Shape::Text => "text",
        Shape::Flag => "true or false",
        Shape::Length => "a length of time such as 2160h",
        Shape::List(_) => "a list",
        Shape::Map(_) | Shape::Object(_) => "an object",
        Shape::Whole(_) => "a whole number",
    }
}

fn wrong_kind_hint(shape: Shape, node: &Node) -> Option<String> {
    let hint = match (shape, &node.content) {
        (Shape::Text | Shape::Choice(_) | Shape::Base64, Content::Bool(_) | Content::Number(_)) => {
            "put it in quotes"
        }
        (Shape::Length, Content::Number(_)) => "add a unit: 2160h, 90m, 30s",
        (Shape::List(_), Content::Text(_) | Content::Map(_)) => "begin the item with \"- \"",
        (Shape::Whole(_) | Shape::Flag, Content::Text(_)) => "leave the quotes out",
        (Shape::Object(_) | Shape::Map(_), Content::List(_)) => "leave the \"- \" out",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::yaml;
    use super::*;

    const TEST: Shape = Shape::Object(&[
        must("name", Shape::Text),
        may("kind", Shape::Choice(&["Issuer", "ClusterIssuer"])),
        may("duration", Shape::Length),
        may("size", Shape::Whole(0)),
        may("ca", Shape::Base64),
        may("isCA", Shape::Flag),
        may("names", Shape::List(&Shape::Text)),
        may("labels", Shape::Map(&Shape::Text)),
        may("below", Shape::Object(&[must("key", Shape::Text)])),
        may("config", Shape::Gone("write solvers")),
        may("old", Shape::Renamed("below.key")),
        may("any", Shape::Any),
    ]);

    /// Errors (with hints) and warnings about a YAML text.
    fn remarks(text: &str) -> (Value, Vec<String>) {
        let node = yaml::documents(text).remove(0).unwrap();
        let mut found = Findings::default();
        let value = check(&node, TEST, &FieldPath::default(), &mut found);
        let show = |remark: &Remark| match &remark.hint {
            Some(hint) => format!("{remark} | {hint}"),
            None => remark.to_string(),
        };
        (value, found.errors.iter().chain(&found.warnings).map(show).collect())
    }

    #[test]
    fn every_mistake_is_told_with_its_field() {
        for (text, expected) in [
            ("kind: Issuer", vec!["name: is required"]),
            ("name: 1", vec!["name: expected text, found a number | put it in quotes"]),
            (
                "{name: a, kind: issuer}",
                vec!["kind: \"issuer\" is not one of Issuer, ClusterIssuer | did you mean Issuer?"],
            ),
            (
                "{name: a, duration: 90d}",
                vec![
                    "duration: \"90d\" is not a length of time | days have no unit here: write 2160h",
                ],
            ),
            (
                "{name: a, duration: 90}",
                vec![
                    "duration: expected a length of time such as 2160h, found a number | add a unit: 2160h, 90m, 30s",
                ],
            ),
            (
                "{name: a, duration: three months}",
                vec![
                    "duration: \"three months\" is not a length of time | write hours, minutes and seconds, such as 2160h or 1h30m",
                ],
            ),
            (
                "{name: a, size: '1'}",
                vec!["size: expected a whole number, found text | leave the quotes out"],
            ),
            ("{name: a, size: -1}", vec!["size: expected a whole number, at least 0"]),
            ("{name: a, size: 1.5}", vec!["size: expected a whole number, at least 0"]),
            ("{name: a, ca: '-----BEGIN'}", vec!["ca: is not base64 | encode it with base64 -w0"]),
            (
                "{name: a, isCA: 'true'}",
                vec!["isCA: expected true or false, found text | leave the quotes out"],
            ),
            (
                "{name: a, names: b}",
                vec!["names: expected a list, found text | begin the item with \"- \""],
            ),
            (
                "{name: a, names: [b, 1]}",
                vec!["names[1]: expected text, found a number | put it in quotes"],
            ),
            (
                "{name: a, labels: {x/y: true}}",
                vec!["labels.x/y: expected text, found a boolean | put it in quotes"],
            ),
            (
                "{name: a, below: [{key: b}]}",
                vec!["below: expected an object, found a list | leave the \"- \" out"],
            ),
            ("{nmae: a}", vec!["nmae: unknown field, did you mean name?"]),
            ("{name: a, old: b}", vec!["old: was renamed: write below.key"]),
            ("{name: a, config: []}", vec!["config: is gone since v1alpha2 | write solvers"]),
            ("{name: a, future: b}", vec!["future: unknown field, kept but not read"]),
            (
                "{duration: 1, size: a}",
                vec![
                    "duration: expected a length of time such as 2160h, found a number | add a unit: 2160h, 90m, 30s",
                    "size: expected a whole number, found text | leave the quotes out",
                    "name: is required",
                ],
            ),
        ] {
            assert_eq!(remarks(text).1, expected, "{text}");
        }
    }

    #[test]
    fn nulls_count_as_absent_and_unknown_fields_are_kept() {
        let (value, found) = remarks("{name: a, kind: ~, below: ~, any: {x: ~}, future: {w: ~}}");
        assert_eq!(
            value,
            serde_json::json!({"name": "a", "any": {"x": null}, "future": {"w": null}})
        );
        assert_eq!(found, ["future: unknown field, kept but not read"]);
    }
}
