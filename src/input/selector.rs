//! Selectors: `-l` by labels and `--field-selector` by fields, in the syntax of the API server.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::model::Record;

/// Fields that a selector can name, for every kind, with the JSON pointer.
const FIELDS: [(&str, &str); 5] = [
    ("metadata.name", "/metadata/name"),
    ("metadata.namespace", "/metadata/namespace"),
    ("spec.issuerRef.group", "/spec/issuerRef/group"),
    ("spec.issuerRef.kind", "/spec/issuerRef/kind"),
    ("spec.issuerRef.name", "/spec/issuerRef/name"),
];

/// Requirements on the labels of objects; all have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector(Vec<(String, Requirement)>);

/// Requirements on the values of fields; all have to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector(Vec<(&'static str, Requirement)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Requirement {
    /// `key`
    Exists,
    /// `!key`
    Absent,
    /// `key=a`, `key in (a,b)`
    OneOf(Vec<String>),
    /// `key!=a`, `key notin (a,b)`; a missing label fits, too.
    NoneOf(Vec<String>),
}

/// A selector that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidSelector(String);

impl fmt::Display for InvalidSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidSelector {}

impl LabelSelector {
    /// Returns whether there is no requirement.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether an object's labels fit.
    pub fn fits(&self, record: &Record) -> bool {
        self.fit(&record.metadata().labels)
    }

    fn fit(&self, labels: &BTreeMap<String, String>) -> bool {
        self.0.iter().all(|(key, wanted)| wanted.holds(labels.get(key).map(String::as_str)))
    }
}

impl FieldSelector {
    /// Returns whether an object's fields fit.
    pub fn fits(&self, record: &Record) -> bool {
        self.0.iter().all(|(pointer, wanted)| wanted.holds(Some(record.text(pointer))))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let among =
            |values: &[String]| value.is_some_and(|value| values.iter().any(|v| v == value));
        match self {
            Self::Exists => value.is_some(),
            Self::Absent => value.is_none(),
            Self::OneOf(values) => among(values),
            Self::NoneOf(values) => !among(values),
        }
    }
}

impl FromStr for LabelSelector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let terms = terms(text).into_iter().filter(|term| !term.is_empty());
        terms.map(|term| label_term(term, text)).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for FieldSelector {
    type Err = InvalidSelector;

    fn from_str(text: &str) -> Result<Self, InvalidSelector> {
        let terms = text.split(',').map(str::trim).filter(|term| !term.is_empty());
        terms.map(field_term).collect::<Result<_, _>>().map(Self)
    }
}

/// Splits at commas outside of parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let split = text.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == ',' && depth == 0
    });
    split.map(str::trim).collect()
}

fn label_term(term: &str, whole: &str) -> Result<(String, Requirement), InvalidSelector> {
    let invalid = |why: &str| {
        InvalidSelector(format!("cannot read \"{term}\" in the selector \"{whole}\": {why}"))
    };
    let (key, wanted) = if let Some(found) = equality(term) {
        found
    } else if let Some(key) = term.strip_prefix('!') {
        (key.trim(), Requirement::Absent)
    } else if let Some((head, list)) = term.split_once('(') {
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace).unwrap_or_default();
        let list = list.strip_suffix(')').ok_or_else(|| invalid("a ) is missing"))?;
        let values = list.split(',').map(|value| value.trim().to_owned()).collect();
        match operator {
            "in" => (key.trim(), Requirement::OneOf(values)),
            "notin" => (key.trim(), Requirement::NoneOf(values)),
            _ => return Err(invalid("the operators are =, ==, !=, in and notin")),
        }
    } else {
        (term, Requirement::Exists)
    };
    if !is_label_text(key, &['/', '.', '-', '_']) || key.is_empty() {
        return Err(invalid(&format!("\"{key}\" is not the name of a label")));
    }
    let values = match &wanted {
        Requirement::OneOf(values) | Requirement::NoneOf(values) => values.as_slice(),
        Requirement::Exists | Requirement::Absent => &[],
    };
    if let Some(value) = values.iter().find(|value| !is_label_text(value, &['.', '-', '_'])) {
        return Err(invalid(&format!("\"{value}\" is not the value of a label")));
    }
    Ok((key.to_owned(), wanted))
}

fn field_term(term: &str) -> Result<(&'static str, Requirement), InvalidSelector> {
    let (name, wanted) = equality(term).ok_or_else(|| {
        InvalidSelector(format!("cannot read \"{term}\": the operators are =, == and !="))
    })?;
    let field = FIELDS.iter().find(|(field, _)| *field == name).ok_or_else(|| {
        let known = FIELDS.map(|(field, _)| field).join(", ");
        InvalidSelector(format!("cannot select by the field {name}, only by {known}"))
    })?;
    Ok((field.1, wanted))
}

/// Reads `key=value`, `key==value` and `key!=value`.
fn equality(term: &str) -> Option<(&str, Requirement)> {
    let (head, value) = term.split_once('=')?;
    let value = vec![value.strip_prefix('=').unwrap_or(value).trim().to_owned()];
    Some(match head.strip_suffix('!') {
        Some(key) => (key.trim(), Requirement::NoneOf(value)),
        None => (head.trim(), Requirement::OneOf(value)),
    })
}

fn is_label_text(text: &str, also: &[char]) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || also.contains(&c))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record() -> Record {
        Record::new(json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": "web", "labels": {"app": "shop", "example.com/tier": "front", "empty": ""}},
            "spec": {"issuerRef": {"name": "acme"}},
        }))
        .unwrap()
    }

    fn check(selector: &str, expected: bool) {
        let selector_read: LabelSelector = selector.parse().unwrap();
        assert_eq!(selector_read.fits(&record()), expected, "{selector}");
    }

    fn check_field(selector: &str, expected: bool) {
        let selector_read: FieldSelector = selector.parse().unwrap();
        assert_eq!(selector_read.fits(&record()), expected, "{selector}");
    }

    #[test]
    fn equal_labels_fit() {
        check("", true);
        check("app=shop", true);
        check("app==shop", true);
        check("app = shop , example.com/tier=front", true);
        check("app=shop,example.com/tier=back", false);
        check("empty=", true);
        check("missing=", false);
    }

    #[test]
    fn unequal_labels_fit_also_when_they_are_missing() {
        check("app!=shop", false);
        check("app!=mail", true);
        check("missing!=x", true);
    }

    #[test]
    fn sets_and_existence_are_read() {
        check("app in (shop, mail)", true);
        check("app in (mail)", false);
        check("app notin (shop,mail)", false);
        check("missing notin (shop)", true);
        check("app", true);
        check("missing", false);
        check("!app", false);
        check("!missing,app in (shop)", true);
    }

    #[test]
    fn fields_are_compared_by_value() {
        check_field("metadata.name=web", true);
        check_field("metadata.name!=web", false);
        check_field("spec.issuerRef.name==acme,metadata.name=web", true);
        check_field("spec.issuerRef.kind=", true);
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for text in ["app in (a", "app within (a)", "app=a b", "a b", "=x", "in (a)", "!"] {
            assert!(text.parse::<LabelSelector>().is_err(), "{text}");
        }
        for text in ["status.state=valid", "metadata.name"] {
            assert!(text.parse::<FieldSelector>().is_err(), "{text}");
        }
    }
}
