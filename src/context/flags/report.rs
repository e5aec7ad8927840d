//! `--report`: forms of the reports for the CI system, and the places of the reports.

use std::path::PathBuf;
use std::str::FromStr;

/// Forms as they are offered at TAB; a file follows `=`.
pub const REPORT_FORMS: [&str; 5] = ["github", "junit=", "sarif=", "markdown=", "none"];

/// A form of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReportForm {
    /// Commands of a workflow of GitHub Actions.
    Github,
    /// JUnit's XML.
    Junit,
    /// SARIF 2.1.0.
    Sarif,
    /// A page in Markdown.
    Markdown,
}

impl ReportForm {
    /// Returns the form of that name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "github" => Some(Self::Github),
            "junit" => Some(Self::Junit),
            "sarif" => Some(Self::Sarif),
            "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }
}

/// Place of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportPlace {
    /// Usual place of the form: workflow commands go to standard error, the other forms to standard output.
    Unsaid,
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

/// A report that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReportChoice {
    /// No report, even if the CI system has one by default.
    Nothing,
    /// Report in this form, at this place.
    Wanted(ReportForm, ReportPlace),
}

/// Reason why a text does not name a report.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReportChoiceError {
    /// There is no such form.
    #[error(
        "there is no report {0:?}: use github, junit, sarif, markdown or none, with =FILE after all but the last"
    )]
    Unknown(String),
    /// There is no file after `=`.
    #[error("{0}= names no file")]
    NoFile(String),
}

impl FromStr for ReportChoice {
    type Err = ReportChoiceError;

    fn from_str(text: &str) -> Result<Self, ReportChoiceError> {
        let (form, place) = match text.split_once('=') {
            Some((form, "")) => return Err(ReportChoiceError::NoFile(form.to_owned())),
            Some((form, "-")) => (form, ReportPlace::Stdout),
            Some((form, file)) => (form, ReportPlace::File(file.into())),
            None => (text, ReportPlace::Unsaid),
        };
        match ReportForm::parse(form) {
            Some(form) => Ok(Self::Wanted(form, place)),
            None if form == "none" && place == ReportPlace::Unsaid => Ok(Self::Nothing),
            None => Err(ReportChoiceError::Unknown(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_and_a_place_are_read() {
        for (text, expected) in [
            ("github", Ok(ReportChoice::Wanted(ReportForm::Github, ReportPlace::Unsaid))),
            (
                "junit=a=b",
                Ok(ReportChoice::Wanted(ReportForm::Junit, ReportPlace::File("a=b".into()))),
            ),
            ("sarif=-", Ok(ReportChoice::Wanted(ReportForm::Sarif, ReportPlace::Stdout))),
            ("none", Ok(ReportChoice::Nothing)),
            ("none=a", Err(ReportChoiceError::Unknown("none=a".to_owned()))),
            ("xunit", Err(ReportChoiceError::Unknown("xunit".to_owned()))),
            ("junit=", Err(ReportChoiceError::NoFile("junit".to_owned()))),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_offered_is_taken() {
        for offered in REPORT_FORMS {
            let whole =
                if offered.ends_with('=') { format!("{offered}a") } else { offered.to_owned() };
            assert!(whole.parse::<ReportChoice>().is_ok(), "{offered}");
        }
    }
}
