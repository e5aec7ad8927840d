//! Result of a command, in the formats that CI systems read.
//!
//! Names and sentences in a report are foreign texts, of a CA, a provider or the author of the manifests. Each format
//! treats foreign texts as text alone, so that none can begin a command, an element, a field or a line of its own.

pub mod github;
pub mod junit;
pub mod markdown;
pub mod sarif;

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::model::order_report::{ErrorReport, InputFault, InputPlace, OrderReport, ResultOutcome};
use crate::model::{Key, Kind, ObjectName};

/// Kind of error for faults of the manifests themselves.
const USAGE: &str = "usage";

/// Report, with all facts that its formats need.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelinePage {
    /// Result of each Certificate.
    pub report: OrderReport,
    /// Object that stopped the whole command, if the command had several objects.
    pub about: Option<Key>,
    /// Faults of manifests, which kept the command from beginning anything.
    pub faults: Vec<InputFault>,
    /// Parts of manifests that are allowed, but hardly do what was meant.
    pub warnings: Vec<InputFault>,
    /// Causes that `diagnose` has found; `None` if `diagnose` did not run.
    pub causes: Option<Vec<FoundCause>>,
    /// Paths of manifests in the repository, by their names in the report; an input that is no file has no path.
    pub paths: BTreeMap<String, String>,
    /// Types of errors, with their meanings.
    pub meanings: Vec<(String, String)>,
    /// Time of the report.
    pub now: Timestamp,
}

/// Cause that `diagnose` has found.
#[derive(Clone, Debug, PartialEq)]
pub struct FoundCause {
    /// Severity of the cause.
    pub level: FindingLevel,
    /// Id of the cause in the catalogue.
    pub id: String,
    /// Title of the cause in the catalogue.
    pub title: String,
    /// Object or name that the cause concerns.
    pub subject: String,
    /// Description of the fault, in one sentence.
    pub message: String,
    /// Hints, one step each.
    pub hints: Vec<String>,
    /// Start of the manifest of the cause's object.
    pub place: Option<InputPlace>,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingLevel {
    /// The user has to act.
    Error,
    /// The finding may block progress.
    Warning,
    /// The finding is good to know.
    Note,
}

/// Fault, failure or warning for the user's attention.
#[derive(Clone, Debug, PartialEq)]
struct Finding<'a> {
    level: FindingLevel,
    /// Type of the error.
    kind: &'a str,
    /// Kind and name of the object concerned; empty if the finding concerns the command.
    object: String,
    message: &'a str,
    hints: &'a [String],
    place: Option<&'a InputPlace>,
}

impl Finding<'_> {
    /// Returns the message, with each hint on a line of its own.
    fn text(&self) -> String {
        let hints = self.hints.iter().map(|hint| format!("\nhint: {hint}"));
        hints.fold(self.message.to_owned(), |text, hint| text + &hint)
    }
}

impl PipelinePage {
    /// Returns the path of a manifest in the repository; `None` if the input is no file.
    fn path(&self, place: &InputPlace) -> Option<&str> {
        self.paths.get(&place.file).map(String::as_str)
    }

    /// Returns the kind of error for faults of manifests, which a cluster may have found.
    fn fault_kind(&self) -> &str {
        self.report.error.as_ref().map_or(USAGE, |error| error.kind)
    }

    /// Returns all findings: faults and failures, then warnings. The error that stopped the whole command is listed once.
    fn findings(&self) -> Vec<Finding<'_>> {
        if let Some(causes) = &self.causes {
            return causes.iter().map(of_cause).collect();
        }
        let kind = self.fault_kind();
        let faults = self.faults.iter().map(|it| of_fault(FindingLevel::Error, kind, it));
        let mut found: Vec<Finding<'_>> = faults.collect();
        let ended = self.ended_objects();
        let stopped = self.report.error.as_ref();
        let (by_it, own): (Vec<_>, Vec<_>) =
            ended.into_iter().partition(|it| Some(it.error) == stopped);
        let (count, outcome) = (by_it.len(), by_it.first().map(|it| it.outcome));
        let of_one =
            by_it.into_iter().find(|it| count == 1 || self.about.as_ref() == Some(&it.key));
        match (stopped, of_one) {
            // The error counts the faults, which are listed already.
            (Some(_), _) if !found.is_empty() => {}
            (Some(_), Some(one)) => found.push(one.finding()),
            (Some(error), None) if count > 0 => {
                found.push(of_error(error, level(outcome), format!("{count} objects")));
            }
            (Some(error), None) => {
                found.push(of_error(error, level(outcome), String::new()));
            }
            (None, _) => {}
        }
        found.extend(own.iter().map(EndedObject::finding));
        found.extend(self.warnings.iter().map(|it| of_fault(FindingLevel::Warning, USAGE, it)));
        // Findings of one level keep their order.
        found.sort_by_key(|finding| finding.level);
        found
    }

    /// Returns the objects with an error of their own, and the places of their manifests.
    fn ended_objects(&self) -> Vec<EndedObject<'_>> {
        let certificates = self.report.certificates.iter().filter_map(|it| {
            let kind = Kind::parse(it.kind).unwrap_or(Kind::Certificate);
            let key = Key::new(kind, ObjectName::new(&it.namespace, &it.name));
            let (outcome, error, place) = (it.outcome, it.error.as_ref()?, it.source.as_ref());
            Some(EndedObject { key, outcome, error, place })
        });
        let issuers = self.report.issuers.iter().filter_map(|it| {
            let kind = Kind::parse(it.kind).unwrap_or(Kind::Issuer);
            let key = Key::new(kind, ObjectName::new(&it.namespace, &it.name));
            let (outcome, error, place) = (it.outcome, it.error.as_ref()?, it.source.as_ref());
            Some(EndedObject { key, outcome, error, place })
        });
        certificates.chain(issuers).collect()
    }
}

/// Object with an error, and the place of its manifest.
struct EndedObject<'a> {
    key: Key,
    outcome: ResultOutcome,
    error: &'a ErrorReport,
    place: Option<&'a InputPlace>,
}

impl<'a> EndedObject<'a> {
    fn finding(&self) -> Finding<'a> {
        let found = of_error(self.error, level(Some(self.outcome)), self.key.to_string());
        Finding { place: self.place, ..found }
    }
}

fn of_cause(cause: &FoundCause) -> Finding<'_> {
    let FoundCause { level, id, subject, message, hints, place, .. } = cause;
    let (object, place) = (subject.clone(), place.as_ref());
    Finding { level: *level, kind: id, object, message, hints, place }
}

fn of_fault<'a>(level: FindingLevel, kind: &'a str, fault: &'a InputFault) -> Finding<'a> {
    let InputFault { message, hints, object, place } = fault;
    let (object, place) = (object.clone(), place.as_ref());
    Finding { level, kind, object, message, hints, place }
}

fn of_error(error: &ErrorReport, level: FindingLevel, object: String) -> Finding<'_> {
    let ErrorReport { kind, message, hints, .. } = error;
    Finding { level, kind, object, message, hints, place: None }
}

/// Returns the severity of an outcome. A signal is no mistake, and a person who has to make a record already knows.
fn level(outcome: Option<ResultOutcome>) -> FindingLevel {
    match outcome {
        None | Some(ResultOutcome::Failed | ResultOutcome::Waiting) => FindingLevel::Error,
        Some(ResultOutcome::WaitsForPerson) => FindingLevel::Warning,
        Some(
            ResultOutcome::Interrupted
            | ResultOutcome::Issued
            | ResultOutcome::Rehearsed
            | ResultOutcome::UpToDate
            | ResultOutcome::Ready,
        ) => FindingLevel::Note,
    }
}

/// Returns the word for an outcome, for people.
fn word(outcome: ResultOutcome) -> &'static str {
    match outcome {
        ResultOutcome::Issued => "issued",
        ResultOutcome::Rehearsed => "rehearsed",
        ResultOutcome::UpToDate => "up to date",
        ResultOutcome::Ready => "ready",
        ResultOutcome::Failed => "failed",
        ResultOutcome::Waiting => "waiting",
        ResultOutcome::WaitsForPerson => "waits for a person",
        ResultOutcome::Interrupted => "interrupted",
    }
}

/// Names and sentences that try to be more than text, and a report that is made of them.
#[cfg(test)]
mod sample {
    use serde_json::json;

    use super::{FindingLevel, FoundCause, PipelinePage};
    use crate::model::order_report::{
        CertificateResult, ErrorReport, InputFault, InputPlace, NameResult, NamedIssuer,
        OrderReport, ReportedProblem, ResultOutcome,
    };

    /// Text that would steer each of the formats.
    pub(super) const HOSTILE: &str = "no\n::error::x\r\n::stop-commands::y\n##[error]z | <b>&\"'`]]>--> ``` \u{1b}[2J\u{0}\u{ffff} 100%\t*[a](b)*\n\n# end";

    pub(super) fn place(file: &str, line: usize) -> InputPlace {
        InputPlace { file: file.to_owned(), line, column: 1 }
    }

    pub(super) fn problem(detail: &str) -> ReportedProblem {
        let kind = "urn:ietf:params:acme:error:unauthorized".to_owned();
        ReportedProblem { kind, detail: detail.to_owned(), status: 403 }
    }

    pub(super) fn error(kind: &'static str, exit_code: u8, message: &str) -> ErrorReport {
        ErrorReport {
            kind,
            exit_code,
            message: message.to_owned(),
            hints: vec!["look at the name: dig www.example.com".to_owned()],
            problem: None,
            retry_after: None,
        }
    }

    /// A Certificate that ended with this error, or well.
    pub(super) fn certificate(
        name: &str,
        outcome: ResultOutcome,
        error: Option<ErrorReport>,
    ) -> CertificateResult {
        let time = |text: &str| Some(text.parse::<jiff::Timestamp>().unwrap().into());
        let is_there = error.is_none();
        let domain = format!("{name}.example.com");
        CertificateResult {
            kind: "Certificate",
            left_out: Vec::new(),
            namespace: "web".to_owned(),
            name: name.to_owned(),
            secret_name: format!("{name}-tls"),
            issuer: NamedIssuer { kind: "Issuer".to_owned(), name: "acme".to_owned() },
            source: Some(place("deploy/web.yaml", 3)),
            changed: outcome == ResultOutcome::Issued,
            outcome,
            exit_code: error.as_ref().map_or(0, |error| error.exit_code),
            names: vec![NameResult {
                name: domain,
                kind: Some("http-01"),
                state: if is_there { "valid" } else { "invalid" },
                reason: (!is_there).then(|| "the answer is not there".to_owned()),
                problem: (!is_there).then(|| problem("Invalid response")),
            }],
            not_after: time("2027-02-22T12:00:00Z").filter(|_| is_there),
            renewal_time: time("2027-01-23T12:00:00Z").filter(|_| is_there),
            revision: Some(1),
            duration_seconds: Some(5.903),
            files: None,
            order: None,
            error,
        }
    }

    pub(super) fn page(report: OrderReport) -> PipelinePage {
        let paths = [("deploy/web.yaml".to_owned(), "ci/deploy/web.yaml".to_owned())];
        PipelinePage {
            report,
            about: None,
            faults: Vec::new(),
            warnings: Vec::new(),
            causes: None,
            paths: paths.into(),
            meanings: [("usage", "Wrong usage."), ("validation", "Validation failed.")]
                .map(|(id, meaning)| (id.to_owned(), meaning.to_owned()))
                .to_vec(),
            now: "2026-11-24T12:00:00Z".parse().unwrap(),
        }
    }

    /// Page with an issued Certificate and a failed one.
    pub(super) fn mixed() -> PipelinePage {
        let failed = error("validation", 4, "Certificate web/bad: the CA refused it, 50%");
        let mut report = OrderReport::new(4, false);
        report.certificates = vec![
            certificate("good", ResultOutcome::Issued, None),
            certificate("bad", ResultOutcome::Failed, Some(failed)),
        ];
        page(report)
    }

    /// Page of `diagnose` with this cause for these objects.
    pub(super) fn diagnosed(message: &str, subjects: &[(&str, FindingLevel)]) -> PipelinePage {
        let mut page = page(OrderReport::new(10, false));
        let found = |(subject, level): &(&str, FindingLevel)| FoundCause {
            level: *level,
            id: "HTTP-05".to_owned(),
            title: "Nothing listens".to_owned(),
            subject: (*subject).to_owned(),
            message: message.to_owned(),
            hints: vec!["Let port 80 lead there.".to_owned()],
            place: Some(place("deploy/web.yaml", 3)),
        };
        page.causes = Some(subjects.iter().map(found).collect());
        page.meanings = vec![("HTTP-05".to_owned(), "Nothing listens".to_owned())];
        page
    }

    /// Page with faults of manifests.
    pub(super) fn faulty(message: &str) -> PipelinePage {
        let mut page = page(OrderReport::new(2, false));
        page.report.error = Some(error("usage", 2, message));
        let fault = |file: &str, line| InputFault {
            message: message.to_owned(),
            hints: vec!["did you mean dnsNames?".to_owned()],
            object: "Certificate a".to_owned(),
            place: Some(place(file, line)),
        };
        page.faults = vec![fault("deploy/web.yaml", 6), fault("stdin", 2)];
        page
    }

    /// A page on which every text of others is hostile.
    pub(super) fn hostile() -> PipelinePage {
        let mut failed = error("validation", 4, HOSTILE);
        failed.hints = vec![HOSTILE.to_owned()];
        failed.problem = Some(problem(HOSTILE));
        let mut certificate = certificate(HOSTILE, ResultOutcome::Failed, Some(failed));
        certificate.names[0].reason = Some(HOSTILE.to_owned());
        certificate.names[0].problem = Some(problem(HOSTILE));
        certificate.source = Some(place(HOSTILE, 3));
        let mut report = OrderReport::new(4, false);
        report.certificates = vec![certificate];
        let mut page = page(report);
        page.faults = faulty(HOSTILE).faults;
        page.faults[0].object = HOSTILE.to_owned();
        page.paths.insert(HOSTILE.to_owned(), HOSTILE.to_owned());
        assert!(json!(page.report).to_string().contains("stop-commands"));
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Level, object and line of each finding.
    fn found(page: &PipelinePage) -> Vec<(FindingLevel, String, Option<usize>)> {
        let told = |it: &Finding<'_>| (it.level, it.object.clone(), it.place.map(|at| at.line));
        page.findings().iter().map(told).collect()
    }

    #[test]
    fn what_stopped_the_whole_command_is_told_once() {
        let stopped = sample::error("usage", 2, "no issuer");
        let certificate =
            |name| sample::certificate(name, ResultOutcome::Failed, Some(stopped.clone()));
        let mut page = sample::page(OrderReport::new(2, false));
        page.report.error = Some(stopped.clone());
        assert_eq!(found(&page), [(FindingLevel::Error, String::new(), None)]);
        page.report.certificates = vec![certificate("a")];
        let alone = (FindingLevel::Error, "Certificate web/a".to_owned(), Some(3));
        assert_eq!(found(&page), [alone]);
        page.report.certificates.push(certificate("b"));
        assert_eq!(found(&page), [(FindingLevel::Error, "2 objects".to_owned(), None)]);
        page.about = Some(Key::new(Kind::Certificate, ObjectName::new("web", "b")));
        assert_eq!(found(&page), [(FindingLevel::Error, "Certificate web/b".to_owned(), Some(3))]);
        let other = sample::error("validation", 4, "refused");
        let other = sample::certificate("c", ResultOutcome::Failed, Some(other));
        page.report.certificates.push(other);
        assert_eq!(found(&page)[1].1, "Certificate web/c");
    }

    #[test]
    fn faults_stand_for_the_error_that_counts_them_and_warnings_come_last() {
        let mut page = sample::faulty("unknown field");
        page.warnings = page.faults.clone();
        let stopped = page.report.error.clone();
        page.report.certificates = vec![sample::certificate("a", ResultOutcome::Failed, stopped)];
        let levels: Vec<_> = found(&page).into_iter().map(|(level, ..)| level).collect();
        let expected = [[FindingLevel::Error; 2], [FindingLevel::Warning; 2]].concat();
        assert_eq!(levels, expected);
    }
}
