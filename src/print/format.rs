//! Values of `-o`.

use std::fmt;
use std::str::FromStr;

use serde_json::Value;

use super::custom_columns::CustomColumns;
use super::document;
use super::jsonpath::Template;

/// Format of the results on stdout.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Format {
    /// Comma-separated values, for the one report that contains a table.
    Csv,
    /// Columns that the user names.
    CustomColumns(CustomColumns),
    /// One resource, or a List.
    Json,
    /// One JSON document a line.
    Jsonl,
    /// A template.
    JsonPath(Template),
    /// The values that a template finds, as a JSON list.
    JsonPathAsJson(Template),
    /// `certificate.cert-manager.io/web`, one a line.
    Name,
    /// The table for people.
    #[default]
    Table,
    /// The table for people, with all columns.
    Wide,
    /// One resource, or a List.
    Yaml,
}

impl Format {
    /// Returns whether the format is for people: only then are tables, colours and closing remarks of use.
    pub fn is_for_people(&self) -> bool {
        matches!(self, Self::Table | Self::Wide)
    }

    /// Returns whether the format is a document for programs.
    pub fn is_document(&self) -> bool {
        match self {
            Self::Json | Self::Jsonl | Self::JsonPath(_) | Self::JsonPathAsJson(_) | Self::Yaml => {
                true
            }
            Self::Csv | Self::CustomColumns(_) | Self::Name | Self::Table | Self::Wide => false,
        }
    }

    /// Renders one document; `None` for the formats that are no document (tables, names, columns).
    pub fn document(&self, value: &Value) -> Option<String> {
        match self {
            Self::Json => Some(document::json(value)),
            Self::Jsonl => Some(document::json_line(value)),
            Self::JsonPath(template) => Some(template.render(value)),
            Self::JsonPathAsJson(template) => {
                Some(document::json(&Value::Array(template.values(value))))
            }
            Self::Yaml => Some(document::yaml(value)),
            Self::Csv | Self::CustomColumns(_) | Self::Name | Self::Table | Self::Wide => None,
        }
    }
}

/// Error of an unusable `-o`, with a usable alternative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatError {
    /// Description of the fault.
    pub message: String,
    /// Format to write instead.
    pub hint: String,
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.hint)
    }
}

impl std::error::Error for FormatError {}

impl FromStr for Format {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<Self, FormatError> {
        let (name, argument) = match text.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let refuse = |message: String, hint: &str| Err(FormatError { message, hint: hint.into() });
        let path_hint = "an example: -o jsonpath='{.status.state}'";
        match (name, argument) {
            ("json", None) => Ok(Self::Json),
            ("jsonl", None) => Ok(Self::Jsonl),
            ("name", None) => Ok(Self::Name),
            ("table" | "", None) => Ok(Self::Table),
            ("wide", None) => Ok(Self::Wide),
            ("yaml", None) => Ok(Self::Yaml),
            ("jsonpath" | "jsonpath-as-json", Some(template)) if !template.is_empty() => {
                match Template::parse(template) {
                    Ok(parsed) if name == "jsonpath" => Ok(Self::JsonPath(parsed)),
                    Ok(parsed) => Ok(Self::JsonPathAsJson(parsed)),
                    Err(error) => refuse(error.to_string(), path_hint),
                }
            }
            ("jsonpath" | "jsonpath-as-json", _) => {
                refuse(format!("{name} needs a template"), path_hint)
            }
            ("custom-columns", Some(columns)) if !columns.is_empty() => {
                match CustomColumns::parse(columns) {
                    Ok(parsed) => Ok(Self::CustomColumns(parsed)),
                    Err(error) => refuse(
                        error.to_string(),
                        "an example: -o custom-columns=NAME:.metadata.name,STATE:.status.state",
                    ),
                }
            }
            ("custom-columns", _) => refuse(
                "custom-columns needs columns".to_owned(),
                "an example: -o custom-columns=NAME:.metadata.name,STATE:.status.state",
            ),
            ("go-template" | "go-template-file" | "template" | "templatefile", _) => refuse(
                "Go templates are not supported".to_owned(),
                "use -o jsonpath=, or -o json and a tool such as jq",
            ),
            ("jsonpath-file" | "custom-columns-file", _) => refuse(
                format!("{name} is not supported"),
                "give the text itself: -o jsonpath=\"$(cat FILE)\"",
            ),
            _ => refuse(
                format!("unknown output format \"{text}\""),
                "use wide, name, json, yaml, jsonl, jsonpath=, jsonpath-as-json= or custom-columns=",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str) -> Result<Format, String> {
        text.parse::<Format>().map_err(|error| error.to_string())
    }

    #[test]
    fn plain_names_are_read() {
        for (text, format) in [
            ("json", Format::Json),
            ("jsonl", Format::Jsonl),
            ("name", Format::Name),
            ("table", Format::Table),
            ("wide", Format::Wide),
            ("yaml", Format::Yaml),
        ] {
            assert_eq!(check(text), Ok(format), "{text}");
        }
    }

    #[test]
    fn templates_are_read_with_the_format() {
        let value = json!({"status": {"state": "valid"}});
        for (text, expected) in [
            ("jsonpath={.status.state}", "valid"),
            ("jsonpath-as-json={.status.state}", "[\n    \"valid\"\n]\n"),
        ] {
            assert_eq!(check(text).unwrap().document(&value).unwrap(), expected, "{text}");
        }
        assert!(matches!(check("custom-columns=A:.a"), Ok(Format::CustomColumns(_))));
    }

    #[test]
    fn what_cannot_be_used_is_refused_with_a_way_out() {
        for (text, expected) in [
            (
                "jason",
                "unknown output format \"jason\"; use wide, name, json, yaml, jsonl, jsonpath=, jsonpath-as-json= or custom-columns=",
            ),
            (
                "json=x",
                "unknown output format \"json=x\"; use wide, name, json, yaml, jsonl, jsonpath=, jsonpath-as-json= or custom-columns=",
            ),
            (
                "go-template={{.x}}",
                "Go templates are not supported; use -o jsonpath=, or -o json and a tool such as jq",
            ),
            ("jsonpath", "jsonpath needs a template; an example: -o jsonpath='{.status.state}'"),
            ("jsonpath={.a", "missing } after \"{.a\"; an example: -o jsonpath='{.status.state}'"),
        ] {
            assert_eq!(check(text), Err(expected.to_owned()), "{text}");
        }
    }
}
