//! JUnit's XML, as most systems read results of tests: a case for each Certificate.

use std::fmt::Write as _;

use super::{FindingLevel, FoundCause, PipelinePage, word};
use crate::model::order_report::{
    CertificateResult, ErrorReport, InputFault, InputPlace, IssuerResult, NameResult,
};
use crate::print::escape::escape;

/// Name of the suite, and class of cases without an object.
const SUITE: &str = "kubectl-acme";
/// Name of the case if `diagnose` has found nothing.
const DIAGNOSE: &str = "diagnose";
/// The class of faults of manifests.
const MANIFEST: &str = "manifest";

/// Test case, with the reason if the case failed.
struct TestCase {
    class: String,
    name: String,
    seconds: Option<f64>,
    place: Option<InputPlace>,
    failure: Option<TestFailure>,
}

struct TestFailure {
    kind: String,
    message: String,
    text: String,
}

/// Renders one suite.
pub fn document(page: &PipelinePage) -> String {
    let report = &page.report;
    let faults = page.faults.iter().map(|fault| of_fault(page.fault_kind(), fault));
    let mut cases: Vec<TestCase> = faults.collect();
    cases.extend(report.certificates.iter().map(of_certificate));
    cases.extend(report.issuers.iter().map(of_issuer));
    if let Some(causes) = &page.causes {
        cases = if causes.is_empty() {
            vec![of_nothing()]
        } else {
            causes.iter().map(of_cause).collect()
        };
    }
    if let (true, Some(error)) = (cases.is_empty(), &report.error) {
        cases.push(of_command(error));
    }
    let failures = cases.iter().filter(|case| case.failure.is_some()).count();
    // Certificates are worked on side by side.
    let seconds = cases.iter().filter_map(|case| case.seconds).fold(0.0, f64::max);
    let counts = format!(
        "name=\"{SUITE}\" tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"0\" time=\"{seconds:.3}\"",
        cases.len()
    );
    // The schema allows no time zone.
    let now = page.now.strftime("%Y-%m-%dT%H:%M:%S");
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    // Writing into memory cannot fail.
    let _written =
        write!(xml, "<testsuites {counts}>\n  <testsuite {counts} timestamp=\"{now}\">\n");
    for case in &cases {
        push(&mut xml, case, page);
    }
    xml + "  </testsuite>\n</testsuites>\n"
}

fn push(xml: &mut String, case: &TestCase, page: &PipelinePage) {
    let mut open = format!(
        "    <testcase{}{}{}",
        attribute("classname", &case.class),
        attribute("name", &case.name),
        attribute("time", &format!("{:.3}", case.seconds.unwrap_or_default()))
    );
    if let Some(place) = &case.place {
        open += &attribute("file", page.path(place).unwrap_or(&place.file));
        open += &attribute("line", &place.line.to_string());
    }
    let Some(failure) = &case.failure else {
        xml.push_str(&(open + "/>\n"));
        return;
    };
    let head = attribute("type", &failure.kind) + &attribute("message", &failure.message);
    let text = escape_xml(&failure.text);
    let element = format!("{open}>\n      <failure{head}>{text}</failure>\n    </testcase>\n");
    xml.push_str(&element);
}

/// Returns the case for a `diagnose` that has found nothing wrong.
fn of_nothing() -> TestCase {
    let (class, name) = (SUITE.to_owned(), DIAGNOSE.to_owned());
    TestCase { class, name, seconds: None, place: None, failure: None }
}

/// Returns the case for a cause; only a cause on which the user has to act is a failure.
fn of_cause(cause: &FoundCause) -> TestCase {
    let FoundCause { level, id, title, subject, message, hints, place } = cause;
    let text = with_hints(message.clone(), hints);
    let failure = TestFailure { kind: id.clone(), message: message.clone(), text };
    TestCase {
        class: subject.clone(),
        // The name stays the same from one run to the next.
        name: format!("{id} {title}"),
        seconds: None,
        place: place.clone(),
        failure: (*level == FindingLevel::Error).then_some(failure),
    }
}

fn of_fault(kind: &str, fault: &InputFault) -> TestCase {
    let at = fault.place.as_ref().map(|at| format!("{}:{}:{}", at.file, at.line, at.column));
    let parts = [at.unwrap_or_default(), fault.object.clone()];
    let name: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let name = if name.is_empty() { MANIFEST.to_owned() } else { name.join(" ") };
    let text = with_hints(fault.message.clone(), &fault.hints);
    let failure = TestFailure { kind: kind.to_owned(), message: fault.message.clone(), text };
    TestCase {
        class: MANIFEST.to_owned(),
        name,
        seconds: None,
        place: fault.place.clone(),
        failure: Some(failure),
    }
}

fn of_certificate(certificate: &CertificateResult) -> TestCase {
    let state = word(certificate.outcome);
    TestCase {
        class: certificate.namespace.clone(),
        name: certificate.name.clone(),
        seconds: certificate.duration_seconds,
        place: certificate.source.clone(),
        failure: certificate.error.as_ref().map(|error| failure(error, state, &certificate.names)),
    }
}

fn of_issuer(issuer: &IssuerResult) -> TestCase {
    let class = if issuer.namespace.is_empty() { SUITE } else { &issuer.namespace };
    TestCase {
        class: class.to_owned(),
        name: format!("{} {}", issuer.kind, issuer.name),
        seconds: None,
        place: issuer.source.clone(),
        failure: issuer.error.as_ref().map(|error| failure(error, word(issuer.outcome), &[])),
    }
}

/// Returns the case for a command that failed before there was any result.
fn of_command(error: &ErrorReport) -> TestCase {
    let (class, name) = (SUITE.to_owned(), "command".to_owned());
    let failure = Some(failure(error, "failed", &[]));
    TestCase { class, name, seconds: None, place: None, failure }
}

fn failure(error: &ErrorReport, state: &str, names: &[NameResult]) -> TestFailure {
    let mut text = format!("{state}: {}", error.message);
    for name in names {
        let reason = name.reason.iter().map(|reason| format!(": {reason}"));
        let problem = name.problem.iter().map(|it| format!(": {} ({})", it.detail, it.kind));
        let more: String = reason.chain(problem).collect();
        let _written = write!(text, "\n{}: {}{more}", name.name, name.state);
    }
    if let Some(problem) = &error.problem {
        let _written = write!(text, "\nthe CA said: {} ({})", problem.detail, problem.kind);
    }
    if let Some(moment) = error.retry_after {
        let _written = write!(text, "\nnot before {moment}");
    }
    let text = with_hints(text, &error.hints);
    TestFailure { kind: error.kind.to_owned(), message: error.message.clone(), text }
}

fn with_hints(text: String, hints: &[String]) -> String {
    hints.iter().fold(text, |text, hint| text + "\nhint: " + hint)
}

fn attribute(name: &str, value: &str) -> String {
    format!(" {name}=\"{}\"", escape_xml(value))
}

/// Escapes a text for an element or an attribute. A line break in an attribute would be read as a blank, and
/// on standard output could begin a workflow command of GitHub. XML allows few control characters.
fn escape_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in escape(text).chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    // A runner of GitHub takes `##[` for the start of a command, anywhere in a line.
    out.replace("##[", "#&#35;[")
}

#[cfg(test)]
mod tests {
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use super::super::sample;
    use super::*;
    use crate::model::order_report::{OrderReport, ResultOutcome};

    /// Names of elements with their attributes, and the texts in them, as a parser reads them.
    fn read(xml: &str) -> (Vec<String>, Vec<(String, String)>) {
        let mut reader = Reader::from_str(xml);
        let (mut elements, mut attributes) = (Vec::new(), Vec::new());
        loop {
            match reader.read_event().unwrap() {
                Event::Start(tag) | Event::Empty(tag) => {
                    elements.push(tag.name().as_ref().to_owned());
                    for attribute in tag.attributes() {
                        let attribute = attribute.unwrap();
                        let value = quick_xml::escape::unescape(&attribute.value).unwrap();
                        attributes.push((attribute.key.as_ref().to_owned(), value.into_owned()));
                    }
                }
                Event::Eof => return (elements, attributes),
                _ => {}
            }
        }
    }

    #[test]
    fn a_certificate_is_a_case_with_its_place_and_its_failure() {
        insta::assert_snapshot!(document(&sample::mixed()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="kubectl-acme" tests="2" failures="1" errors="0" skipped="0" time="5.903">
          <testsuite name="kubectl-acme" tests="2" failures="1" errors="0" skipped="0" time="5.903" timestamp="2026-11-24T12:00:00">
            <testcase classname="web" name="good" time="5.903" file="ci/deploy/web.yaml" line="3"/>
            <testcase classname="web" name="bad" time="5.903" file="ci/deploy/web.yaml" line="3">
              <failure type="validation" message="Certificate web/bad: the CA refused it, 50%">failed: Certificate web/bad: the CA refused it, 50%&#10;bad.example.com: invalid: the answer is not there: Invalid response (urn:ietf:params:acme:error:unauthorized)&#10;hint: look at the name: dig www.example.com</failure>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn a_fault_is_a_failed_case_and_so_is_a_command_that_had_nothing_to_tell_of() {
        insta::assert_snapshot!(document(&sample::faulty("unknown field")), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="kubectl-acme" tests="2" failures="2" errors="0" skipped="0" time="0.000">
          <testsuite name="kubectl-acme" tests="2" failures="2" errors="0" skipped="0" time="0.000" timestamp="2026-11-24T12:00:00">
            <testcase classname="manifest" name="deploy/web.yaml:6:1 Certificate a" time="0.000" file="ci/deploy/web.yaml" line="6">
              <failure type="usage" message="unknown field">unknown field&#10;hint: did you mean dnsNames?</failure>
            </testcase>
            <testcase classname="manifest" name="stdin:2:1 Certificate a" time="0.000" file="stdin" line="2">
              <failure type="usage" message="unknown field">unknown field&#10;hint: did you mean dnsNames?</failure>
            </testcase>
          </testsuite>
        </testsuites>
        "#);
        let mut page = sample::page(OrderReport::new(8, false));
        page.report.error = Some(sample::error("cluster", 8, "nobody answers"));
        let (elements, attributes) = read(&document(&page));
        assert_eq!(elements, ["testsuites", "testsuite", "testcase", "failure"]);
        assert!(attributes.contains(&("type".to_owned(), "cluster".to_owned())));
    }

    #[test]
    fn what_is_up_to_date_has_passed() {
        let mut page = sample::page(OrderReport::new(0, false));
        page.report.certificates = vec![sample::certificate("a", ResultOutcome::UpToDate, None)];
        assert_eq!(read(&document(&page)).0, ["testsuites", "testsuite", "testcase"]);
    }

    #[test]
    fn no_text_begins_an_element_or_an_attribute_of_its_own() {
        let xml = document(&sample::hostile());
        let (elements, attributes) = read(&xml);
        let expected = [["testsuites", "testsuite"].as_slice(), &["testcase", "failure"].repeat(3)];
        assert_eq!(elements, expected.concat());
        let shown = escape(sample::HOSTILE).replace('\u{ffff}', "\u{fffd}");
        assert_eq!(attributes.iter().filter(|(_, value)| *value == shown).count(), 5, "{xml}");
        assert!(!xml.contains("##["), "{xml}");
    }

    #[test]
    fn a_cause_that_was_found_is_a_case_and_only_errors_fail() {
        let subjects = [(sample::HOSTILE, FindingLevel::Error), ("b", FindingLevel::Warning)];
        let text = document(&sample::diagnosed(sample::HOSTILE, &subjects));
        assert!(text.contains("tests=\"2\" failures=\"1\""), "{text}");
        assert!(text.contains("classname=\"b\" name=\"HTTP-05 Nothing listens\""), "{text}");
        assert!(!text.contains("<b>"), "{text}");
        let text = document(&sample::diagnosed("", &[]));
        assert!(text.contains("tests=\"1\" failures=\"0\""), "{text}");
    }
}
