//! `-o`: formats of results: of resources, of reports of our own, and of streams of changes.

use clap_complete::engine::{ArgValueCandidates, CompletionCandidate};

use crate::print::format::{Format, FormatError};

/// Formats of documents, as they are offered at TAB; a template follows `=`.
pub const DOCUMENT_FORMATS: [&str; 5] = ["json", "yaml", "jsonl", "jsonpath=", "jsonpath-as-json="];
/// Formats of a report with a table in it.
pub const TABLE_FORMATS: [&str; 7] =
    ["wide", "json", "yaml", "jsonl", "csv", "jsonpath=", "jsonpath-as-json="];
/// Formats of streams.
const STREAM_FORMATS: [&str; 1] = ["jsonl"];
/// Formats of resources, beside the formats of documents.
const RESOURCE_FORMATS: [&str; 3] = ["wide", "name", "custom-columns="];

/// Offers formats at TAB.
pub fn offered(formats: &[&'static str]) -> ArgValueCandidates {
    let formats = formats.to_vec();
    ArgValueCandidates::new(move || formats.iter().map(CompletionCandidate::new).collect())
}

/// Output flags of a report.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct ReportArgs {
    /// Format: json, yaml, jsonl or jsonpath=TEMPLATE
    ///
    /// jsonpath-as-json=TEMPLATE writes the result of a template as JSON.
    #[arg(long, short, value_name = "FORMAT", value_parser = of_report, add = offered(&DOCUMENT_FORMATS))]
    pub output: Option<Format>,
    /// Leave the headings of tables out
    #[arg(long)]
    pub no_headers: bool,
}

/// Reads the format of definitions, which have no table.
///
/// # Errors
/// Fails for any other format.
pub fn of_documents(text: &str) -> Result<Format, FormatError> {
    match of_report(text)? {
        Format::Table | Format::Wide => {
            Err(refusal(text, "definition", "yaml, json, jsonl, jsonpath= or jsonpath-as-json="))
        }
        format => Ok(format),
    }
}

/// Output flags of a stream of changes.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct StreamArgs {
    /// Format: jsonl, which is one JSON document for each change
    #[arg(long, short, value_name = "FORMAT", value_parser = of_stream, add = offered(&STREAM_FORMATS))]
    pub output: Option<Format>,
    /// Leave the headings of tables out
    #[arg(long)]
    pub no_headers: bool,
}

impl From<&ReportArgs> for OutputArgs {
    fn from(args: &ReportArgs) -> Self {
        Self { output: args.output.clone(), no_headers: args.no_headers }
    }
}

impl From<&StreamArgs> for OutputArgs {
    fn from(args: &StreamArgs) -> Self {
        Self { output: args.output.clone(), no_headers: args.no_headers }
    }
}

/// Reads the format of a report.
///
/// # Errors
/// Fails for any other format.
pub fn of_report(text: &str) -> Result<Format, FormatError> {
    match text.parse()? {
        Format::CustomColumns(_) | Format::Name => {
            Err(refusal(text, "report", "json, yaml, jsonl, jsonpath= or jsonpath-as-json="))
        }
        format => Ok(format),
    }
}

/// Reads the format of a report with a table in it, which may also be CSV.
///
/// # Errors
/// Fails for any other format.
pub fn of_table(text: &str) -> Result<Format, FormatError> {
    if text == "csv" { Ok(Format::Csv) } else { of_report(text) }
}

fn of_stream(text: &str) -> Result<Format, FormatError> {
    match text.parse()? {
        format @ (Format::Jsonl | Format::Table | Format::Wide) => Ok(format),
        _ => Err(refusal(text, "stream of changes", "jsonl")),
    }
}

fn refusal(text: &str, what: &str, others: &str) -> FormatError {
    let name = text.split('=').next().unwrap_or(text);
    FormatError {
        message: format!("a {what} cannot be written as {name}"),
        hint: format!("use {others}"),
    }
}

/// Choice whether the timeline of the work is shown at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum TimelineChoice {
    /// If the timeline fits 25 lines; else one line as a summary
    #[default]
    Auto,
    /// The whole timeline, however long
    Always,
    /// Not at all
    Never,
}

/// Output flags of resources.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format: wide, name, json, yaml, jsonl and others
    ///
    /// The others are jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE and custom-columns=SPEC.
    #[arg(long, short, value_name = "FORMAT", add = offered(&[&RESOURCE_FORMATS[..], &DOCUMENT_FORMATS].concat()))]
    pub output: Option<Format>,
    /// Leave the headings of tables out
    #[arg(long)]
    pub no_headers: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_written_as_something_else_is_refused() {
        let report = |text: &str| of_report(text).map_err(|error| error.to_string());
        assert_eq!(report("yaml"), Ok(Format::Yaml));
        assert_eq!(report("wide"), Ok(Format::Wide));
        assert_eq!(
            report("custom-columns=A:.a").unwrap_err(),
            "a report cannot be written as custom-columns; use json, yaml, jsonl, jsonpath= or jsonpath-as-json="
        );
        assert!(report("name").is_err() && report("jason").is_err());
        let stream = |text: &str| of_stream(text).map_err(|error| error.to_string());
        assert_eq!(stream("jsonl"), Ok(Format::Jsonl));
        assert_eq!(
            stream("yaml").unwrap_err(),
            "a stream of changes cannot be written as yaml; use jsonl"
        );
        assert!(stream("json").is_err());
        assert_eq!(of_documents("json"), Ok(Format::Json));
        for format in ["wide", "name", "table", "custom-columns=A:.a"] {
            assert!(of_documents(format).is_err(), "{format}");
        }
    }

    #[test]
    fn what_is_offered_is_taken() {
        let whole = |format: &str| match format {
            "custom-columns=" => format!("{format}A:.a"),
            format if format.ends_with('=') => format!("{format}{{.a}}"),
            format => format.to_owned(),
        };
        for format in DOCUMENT_FORMATS.map(whole) {
            assert!(of_documents(&format).is_ok() && of_report(&format).is_ok(), "{format}");
        }
        for format in RESOURCE_FORMATS.map(whole) {
            assert!(format.parse::<Format>().is_ok(), "{format}");
        }
        assert!(STREAM_FORMATS.into_iter().all(|format| of_stream(format).is_ok()));
    }
}
