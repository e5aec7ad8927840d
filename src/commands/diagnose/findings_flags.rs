//! `-o` and `--report` of commands that find causes: both flags select the same reports.

use crate::context::flags::output::{DOCUMENT_FORMATS, OutputArgs, of_report, offered};
use crate::context::flags::report::{ReportChoice, ReportForm};
use crate::input::completers;
use crate::print::format::{Format, FormatError};

/// Format of findings on standard output: a page or a document, or one of the reports of `--report`.
#[derive(Clone, Debug, PartialEq)]
pub enum FindingsFormat {
    /// A page, or a document.
    Document(Format),
    /// A report for a CI system.
    Report(ReportForm),
}

/// Formats of findings beside the formats of documents.
const FINDINGS: [&str; 4] = ["github", "sarif", "junit", "markdown"];

/// Flags of the output of findings.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Output")]
pub struct FindingsArgs {
    /// Format: json, yaml, jsonl, github, sarif, junit, markdown or jsonpath=TEMPLATE
    ///
    /// jsonpath-as-json=TEMPLATE writes what a template finds as JSON.
    #[arg(
        long,
        short,
        value_name = "FORMAT",
        value_parser = of_findings,
        add = offered(&[&DOCUMENT_FORMATS[..], &FINDINGS].concat())
    )]
    pub output: Option<FindingsFormat>,
    /// Leave the headings of tables out
    #[arg(long, hide_short_help = true)]
    pub no_headers: bool,
    /// Also write a CI report: github, junit, sarif or markdown, each with =FILE to write to a file
    ///
    /// Repeatable, or with commas. On GitHub Actions the default is github; none switches the default off.
    #[arg(
        long,
        hide_short_help = true,
        value_name = "FORMAT",
        value_delimiter = ',',
        add = completers::reports()
    )]
    pub report: Vec<ReportChoice>,
}

impl From<&FindingsArgs> for OutputArgs {
    fn from(args: &FindingsArgs) -> Self {
        let output = match &args.output {
            Some(FindingsFormat::Document(format)) => Some(format.clone()),
            Some(FindingsFormat::Report(_)) | None => None,
        };
        Self { output, no_headers: args.no_headers }
    }
}

fn of_findings(text: &str) -> Result<FindingsFormat, FormatError> {
    match ReportForm::parse(text) {
        Some(form) => Ok(FindingsFormat::Report(form)),
        None => of_report(text).map(FindingsFormat::Document),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_offered_is_taken() {
        for form in FINDINGS {
            assert!(matches!(of_findings(form), Ok(FindingsFormat::Report(_))), "{form}");
        }
        assert_eq!(of_findings("json"), Ok(FindingsFormat::Document(Format::Json)));
        assert!(of_findings("sarif=file").is_err() && of_findings("name").is_err());
    }
}
