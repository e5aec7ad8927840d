//! Workflow commands of GitHub Actions, which show faults beside the lines of the manifests with the faults.
//!
//! No value is masked, on purpose. `add-mask` has to print the value once, and this program prints no credential
//! anywhere: a mask would be the only line of its output with a secret in it. The runner removes that line if the
//! runner itself reads the stream, but `tee` or a redirection may have kept the line in a file that is uploaded
//! afterwards, and the program cannot find out which is the case. The runner masks values from `secrets` by itself.

use super::{Finding, FindingLevel, PipelinePage};
use crate::model::order_report::{CertificateResult, ResultOutcome};
use crate::model::text::shortened;
use crate::print::escape::escape;

/// Most notes; the runner shows no more of one step.
const MAX_NOTES: usize = 10;
/// Most characters of a message.
const MAX_MESSAGE_CHARS: usize = 4000;

/// Renders a command for each finding, and, if notes are wanted, a note for each issued Certificate.
pub fn commands(page: &PipelinePage, has_notes: bool) -> String {
    let found = page.findings();
    let found = found.iter().filter(|it| has_notes || it.level != FindingLevel::Note);
    let mut lines: Vec<String> = found.map(|finding| finding_command(page, finding)).collect();
    if has_notes {
        lines.extend(notes(page));
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

fn finding_command(page: &PipelinePage, finding: &Finding<'_>) -> String {
    let command = match finding.level {
        FindingLevel::Error => "error",
        FindingLevel::Warning => "warning",
        FindingLevel::Note => "notice",
    };
    let path = finding.place.and_then(|place| page.path(place));
    let mut properties = Vec::new();
    let mut message = finding.text();
    match (path, finding.place) {
        (Some(path), Some(place)) => {
            properties.push(("file", path.to_owned()));
            properties.push(("line", place.line.to_string()));
            properties.push(("col", place.column.to_string()));
        }
        (None, Some(at)) => message = format!("{}:{}:{}: {message}", at.file, at.line, at.column),
        (_, None) => {}
    }
    let object = if finding.object.is_empty() { "kubectl-acme" } else { &finding.object };
    properties.push(("title", format!("{object}: {}", finding.kind)));
    command_line(command, &properties, &message)
}

/// Renders a note for each issued certificate, or a note with the number if there are many.
fn notes(page: &PipelinePage) -> Vec<String> {
    let all = page.report.certificates.iter();
    let issued: Vec<_> = all.filter(|it| it.outcome == ResultOutcome::Issued).collect();
    if issued.len() > MAX_NOTES {
        let message = format!("{} certificates are there", issued.len());
        return vec![command_line("notice", &[("title", "issued".to_owned())], &message)];
    }
    issued.into_iter().map(|certificate| note(page, certificate)).collect()
}

fn note(page: &PipelinePage, certificate: &CertificateResult) -> String {
    let mut properties = Vec::new();
    if let Some(place) = &certificate.source
        && let Some(path) = page.path(place)
    {
        properties.push(("file", path.to_owned()));
        properties.push(("line", place.line.to_string()));
    }
    let CertificateResult { kind, namespace, name, names, .. } = certificate;
    properties.push(("title", format!("{kind} {namespace}/{name}: issued")));
    let names: Vec<&str> = names.iter().map(|name| &*name.name).collect();
    let mut message = names.join(", ");
    if let Some(end) = certificate.not_after {
        message = format!("{message}; valid until {end}");
    }
    command_line("notice", &properties, &message)
}

/// Renders a command on one line, whatever its properties and message contain.
fn command_line(command: &str, properties: &[(&str, String)], message: &str) -> String {
    let properties = properties.iter().map(|(name, value)| {
        let value = data(value).replace(':', "%3A").replace(',', "%2C");
        format!("{name}={value}")
    });
    let properties: Vec<String> = properties.collect();
    let message = data(&shortened(message, MAX_MESSAGE_CHARS));
    format!("::{command} {}::{message}", properties.join(","))
}

/// Encodes a value for the runner, with visible escapes for characters that would steer a terminal with the log.
fn data(text: &str) -> String {
    escape(text).replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::model::order_report::OrderReport;

    #[test]
    fn failures_faults_and_certificates_have_a_command_each() {
        insta::assert_snapshot!(commands(&sample::mixed(), true), @r"
        ::error file=ci/deploy/web.yaml,line=3,col=1,title=Certificate web/bad%3A validation::Certificate web/bad: the CA refused it, 50%25%0Ahint: look at the name: dig www.example.com
        ::notice file=ci/deploy/web.yaml,line=3,title=Certificate web/good%3A issued::good.example.com; valid until 2027-02-22T12:00:00Z
        ");
        insta::assert_snapshot!(commands(&sample::faulty("unknown field"), true), @r"
        ::error file=ci/deploy/web.yaml,line=6,col=1,title=Certificate a%3A usage::unknown field%0Ahint: did you mean dnsNames?
        ::error title=Certificate a%3A usage::stdin:2:1: unknown field%0Ahint: did you mean dnsNames?
        ");
    }

    #[test]
    fn without_notes_there_are_faults_alone() {
        assert_eq!(commands(&sample::mixed(), false).lines().count(), 1);
        let mut page = sample::page(OrderReport::new(0, false));
        assert_eq!(commands(&page, true), "");
        let issued = |at| sample::certificate(&format!("c{at}"), ResultOutcome::Issued, None);
        page.report.certificates = (0..11).map(issued).collect();
        assert_eq!(commands(&page, true), "::notice title=issued::11 certificates are there\n");
    }

    #[test]
    fn no_text_begins_a_command_or_a_property_of_its_own() {
        let page = sample::hostile();
        let lines = commands(&page, true);
        assert_eq!(lines.lines().count(), 3, "{lines}");
        for line in lines.lines() {
            let (head, _) = line.strip_prefix("::error ").unwrap().split_once("::").unwrap();
            let names: Vec<&str> =
                head.split(',').map(|it| it.split('=').next().unwrap()).collect();
            assert!(matches!(names[..], ["file", "line", "col", "title"] | ["title"]), "{line}");
            assert!(!line.contains(|c: char| c.is_control() && c != '\t'), "{line}");
        }
        // The runner reads the message back, except for characters that steer.
        let message = lines.lines().last().unwrap().rsplit_once("::").map(|(_, it)| it);
        assert!(message.is_some(), "{lines}");
        let read = data(sample::HOSTILE).replace("%0A", "\n").replace("%25", "%");
        assert_eq!(read, escape(sample::HOSTILE));
    }

    #[test]
    fn a_cause_that_was_found_stands_at_its_manifest_and_is_one_line() {
        let subjects = [(sample::HOSTILE, FindingLevel::Error), ("b", FindingLevel::Note)];
        let text = commands(&sample::diagnosed(sample::HOSTILE, &subjects), true);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert!(lines[0].starts_with("::error file=ci/deploy/web.yaml,line=3,"), "{text}");
        assert!(
            lines[1].starts_with("::notice ") && lines[1].contains("title=b%3A HTTP-05"),
            "{text}"
        );
    }
}
