//! `-o`: how results are written, be they resources, reports of our own, or streams of changes.

use crate::print::format::{Format, FormatError};

/// How a report is written.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct ReportArgs {
    /// Format: json, yaml, jsonl or jsonpath=TEMPLATE
    ///
    /// jsonpath-as-json=TEMPLATE writes what a template finds as JSON.
    #[arg(long, short, value_name = "FORMAT", value_parser = of_report)]
    pub output: Option<Format>,
    /// Leave the headings of tables out
    #[arg(long)]
    pub no_headers: bool,
}

/// Reads the format of definitions, which are documents alone.
///
/// # Errors
/// Fails when it is another one.
pub fn of_documents(text: &str) -> Result<Format, FormatError> {
    match of_report(text)? {
        Format::Table | Format::Wide => {
            Err(none(text, "definition", "yaml, json, jsonl, jsonpath= or jsonpath-as-json="))
        }
        format => Ok(format),
    }
}

/// How a stream of changes is written.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct StreamArgs {
    /// Format: jsonl, which is one JSON document for each change
    #[arg(long, short, value_name = "FORMAT", value_parser = of_stream)]
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

fn of_report(text: &str) -> Result<Format, FormatError> {
    match text.parse()? {
        Format::CustomColumns(_) | Format::Name => {
            Err(none(text, "report", "json, yaml, jsonl, jsonpath= or jsonpath-as-json="))
        }
        format => Ok(format),
    }
}

fn of_stream(text: &str) -> Result<Format, FormatError> {
    match text.parse()? {
        format @ (Format::Jsonl | Format::Table | Format::Wide) => Ok(format),
        _ => Err(none(text, "stream of changes", "jsonl")),
    }
}

fn none(text: &str, what: &str, others: &str) -> FormatError {
    let name = text.split('=').next().unwrap_or(text);
    FormatError {
        message: format!("a {what} cannot be written as {name}"),
        hint: format!("use {others}"),
    }
}

/// How results are written.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Format: wide, name, json, yaml, jsonl and others
    ///
    /// They are jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE and custom-columns=SPEC.
    #[arg(long, short, value_name = "FORMAT")]
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
}
