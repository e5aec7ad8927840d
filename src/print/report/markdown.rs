//! A page in Markdown: a table of Certificates, and a section for each failure; the summary of a step on GitHub.

use std::fmt::Write as _;

use super::{FindingLevel, FoundCause, PipelinePage, word};
use crate::model::certificate_report::days_left;
use crate::model::order_report::{
    CertificateResult, ErrorReport, InputFault, InputPlace, IssuerResult, NameResult, RecordToMake,
    ReportedProblem,
};
use crate::model::text::{listed, shortened};
use crate::print::escape::{escape, no_command};

/// Most rows of a table; a summary on GitHub may have 1 MiB.
const MAX_ROWS: usize = 200;
/// Most sections, and most names in each.
const MAX_SECTIONS: usize = 50;
const MAX_NAMES: usize = 50;
/// Most names in a row.
const MAX_NAMES_IN_ROW: usize = 5;
/// Most characters of a foreign text.
const MAX_TEXT_CHARS: usize = 1000;

/// Renders the page.
pub fn document(page: &PipelinePage) -> String {
    if let Some(causes) = &page.causes {
        return of_causes(page, causes);
    }
    let report = &page.report;
    let mut text = format!("## kubectl-acme: {}\n", outline(page));
    if report.rehearsal {
        text += "\nA rehearsal: nothing was spent at the CA, and clients do not trust the issued certificates.\n";
    }
    if !report.certificates.is_empty() {
        text += &table(page);
    }
    let certificates = report.certificates.iter().filter_map(|it| of_certificate(page, it));
    let issuers = report.issuers.iter().filter_map(|it| of_issuer(page, it));
    let mut sections: Vec<String> = page.faults.iter().map(|it| of_fault(page, it)).collect();
    sections.extend(certificates.chain(issuers));
    if let (true, Some(error)) = (sections.is_empty(), &report.error) {
        sections.push(section("The command", error, None, page, &[]));
    }
    let more = sections.len().saturating_sub(MAX_SECTIONS);
    sections.truncate(MAX_SECTIONS);
    text += &sections.concat();
    if more > 0 {
        let _written = writeln!(text, "\n{more} more failed.");
    }
    if !report.records.is_empty() {
        text += &records(&report.records);
    }
    if !page.warnings.is_empty() {
        text += "\n### Warnings\n\n";
        let told = page.warnings.iter().take(MAX_NAMES).map(|it| {
            let place = it.place.as_ref().map(|place| code(&at(page, place)) + ": ");
            format!("- {}{}\n", place.unwrap_or_default(), code(&it.message))
        });
        text.extend(told);
    }
    text
}

/// Summarizes the result in a few words.
fn outline(page: &PipelinePage) -> String {
    let report = &page.report;
    let all = report.certificates.len();
    let good = report.certificates.iter().filter(|it| it.error.is_none()).count();
    match (all, page.faults.len()) {
        (0, 1) => "a fault in the manifests".to_owned(),
        (0, 2..) => format!("{} faults in the manifests", page.faults.len()),
        (0, 0) if report.exit_code == 0 => "done".to_owned(),
        (0, 0) => "failed".to_owned(),
        (_, _) if report.rehearsal => format!("{good} of {all} certificates would be issued"),
        (1, _) if good == 1 => "the certificate is there".to_owned(),
        (_, _) if good == all => format!("all {all} certificates are there"),
        (_, _) => format!("{good} of {all} certificates are there"),
    }
}

/// Renders the page of the causes that `diagnose` has found: a table, and a section for each cause with its hints.
fn of_causes(page: &PipelinePage, causes: &[FoundCause]) -> String {
    let outline = match causes.len() {
        0 => "nothing is wrong".to_owned(),
        1 => "1 cause".to_owned(),
        count => format!("{count} causes"),
    };
    let mut text = format!("## kubectl-acme: {outline}\n");
    if causes.is_empty() {
        return text;
    }
    text += "\n| Cause | Severity | Subject | What is wrong |\n| --- | --- | --- | --- |\n";
    for cause in causes.iter().take(MAX_ROWS) {
        let severity = match cause.level {
            FindingLevel::Error => "error",
            FindingLevel::Warning => "warning",
            FindingLevel::Note => "note",
        };
        let cells = [&cause.id, severity, &cell(&cause.subject), &cell(&cause.message)];
        let _written = writeln!(text, "| {} |", cells.join(" | "));
    }
    if causes.len() > MAX_ROWS {
        let _written = writeln!(text, "\n{} more are not shown.", causes.len() - MAX_ROWS);
    }
    let mut told: Vec<&str> = Vec::new();
    for cause in causes {
        // Hints are written once for each cause.
        if told.contains(&cause.id.as_str()) || told.len() == MAX_SECTIONS {
            continue;
        }
        told.push(&cause.id);
        let place = cause.place.as_ref().map(|place| format!("\n{}\n", code(&at(page, place))));
        let (id, title) = (&cause.id, &cause.title);
        let _written = write!(text, "\n### {id}: {}\n{}", code(title), place.unwrap_or_default());
        text += &block(&cause.message);
        text += &hints(&cause.hints);
    }
    text
}

fn table(page: &PipelinePage) -> String {
    let all = &page.report.certificates;
    let head = "\n| Certificate | State | Names | Valid until | Days left | Renews |\n| --- | --- | --- | --- | --- | --- |\n";
    let mut text = head.to_owned();
    text.extend(all.iter().take(MAX_ROWS).map(|certificate| row(page, certificate)));
    if all.len() > MAX_ROWS {
        let _written = writeln!(text, "\n{} more are not shown.", all.len() - MAX_ROWS);
    }
    text
}

fn row(page: &PipelinePage, certificate: &CertificateResult) -> String {
    let name = format!("{}/{}", certificate.namespace, certificate.name);
    let names =
        listed(certificate.names.iter().map(|name| &name.name), MAX_NAMES_IN_ROW, MAX_TEXT_CHARS);
    let end = certificate.not_after;
    let days = end.map(|end| days_left(end.timestamp(), page.now).to_string());
    let cells = [
        cell(&name),
        word(certificate.outcome).to_owned(),
        cell(&names),
        end.map(|end| end.to_string()).unwrap_or_default(),
        days.unwrap_or_default(),
        certificate.renewal_time.map(|time| time.to_string()).unwrap_or_default(),
    ];
    format!("| {} |\n", cells.join(" | "))
}

fn of_fault(page: &PipelinePage, fault: &InputFault) -> String {
    let object = if fault.object.is_empty() { "Manifest".to_owned() } else { code(&fault.object) };
    let place = fault.place.as_ref().map(|place| format!("\n{}\n", code(&at(page, place))));
    let hints = hints(&fault.hints);
    let place = place.unwrap_or_default();
    format!("\n### {object}: wrong\n{place}{}{hints}", block(&fault.message))
}

fn of_certificate(page: &PipelinePage, certificate: &CertificateResult) -> Option<String> {
    let CertificateResult { kind, namespace, name, error, .. } = certificate;
    let title =
        format!("{kind} {}: {}", code(&format!("{namespace}/{name}")), word(certificate.outcome));
    Some(section(&title, error.as_ref()?, certificate.source.as_ref(), page, &certificate.names))
}

fn of_issuer(page: &PipelinePage, issuer: &IssuerResult) -> Option<String> {
    let title = format!("{} {}: {}", issuer.kind, code(&issuer.name), word(issuer.outcome));
    Some(section(&title, issuer.error.as_ref()?, issuer.source.as_ref(), page, &[]))
}

fn section(
    title: &str,
    error: &ErrorReport,
    place: Option<&InputPlace>,
    page: &PipelinePage,
    names: &[NameResult],
) -> String {
    let mut text = format!("\n### {title}\n\n`{}`, exit code {}", error.kind, error.exit_code);
    text.extend(place.map(|place| format!(", {}", code(&at(page, place)))));
    text.push('\n');
    text += &block(&error.message);
    if let Some(said) = &error.problem {
        let _written = writeln!(text, "\nThe CA said {}", problem(said));
    }
    if let Some(moment) = error.retry_after {
        let _written = writeln!(text, "\nNot before {moment}.");
    }
    let told: Vec<&NameResult> =
        names.iter().filter(|it| it.reason.is_some() || it.problem.is_some()).collect();
    if !told.is_empty() {
        text.push('\n');
        text.extend(told.iter().take(MAX_NAMES).map(|it| reason(it)));
    }
    text + &hints(&error.hints)
}

fn reason(name: &NameResult) -> String {
    let kind = name.kind.map(|kind| format!(", {kind}")).unwrap_or_default();
    let reason = name.reason.iter().map(|reason| format!(": {}", code(reason)));
    let said = name.problem.iter().map(|said| format!("; the CA said {}", problem(said)));
    let more: String = reason.chain(said).collect();
    format!("- {}: {}{kind}{more}\n", code(&name.name), name.state)
}

fn problem(said: &ReportedProblem) -> String {
    format!("{} ({})", code(&said.detail), code(&said.kind))
}

fn hints(hints: &[String]) -> String {
    if hints.is_empty() {
        return String::new();
    }
    let hints = hints.iter().map(|hint| format!("- {}\n", code(hint)));
    format!("\nWhat helps:\n\n{}", hints.collect::<String>())
}

fn records(records: &[RecordToMake]) -> String {
    let mut text =
        "\n### Records to make\n\n| Name | Type | TTL | Value |\n| --- | --- | --- | --- |\n"
            .to_owned();
    text.extend(records.iter().take(MAX_ROWS).map(|record| {
        let RecordToMake { name, kind, ttl, value, .. } = record;
        format!("| {} | {kind} | {ttl} | {} |\n", cell(name), cell(value))
    }));
    text
}

fn at(page: &PipelinePage, place: &InputPlace) -> String {
    let file = page.path(place).unwrap_or(&place.file);
    format!("{file}:{}", place.line)
}

/// Renders a foreign text as inline code: nothing in the text is a link, an element or an end of the code.
fn code(text: &str) -> String {
    let text = no_command(escape(&shortened(text, MAX_TEXT_CHARS)).replace(['\n', '\t'], " "));
    if text.trim().is_empty() {
        return "(nothing)".to_owned();
    }
    let fence = "`".repeat(longest_run(&text) + 1);
    // A text with a backtick at an end would make the fence longer, and an outer blank would count as padding.
    let gap = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{gap}{text}{gap}{fence}")
}

/// Renders a foreign text in a cell, punctuation as numbers: a bar would end the cell even between backticks.
fn cell(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in escape(&shortened(text, MAX_TEXT_CHARS)).chars() {
        match character {
            '\n' | '\t' => out.push(' '),
            ' ' | '-' | '.' | ',' | '/' => out.push(character),
            _ if character.is_ascii_punctuation() => {
                // Writing into memory cannot fail.
                let _written = write!(out, "&#{};", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

/// Renders a foreign text as a fenced block.
fn block(text: &str) -> String {
    let text = no_command(escape(&shortened(text, MAX_TEXT_CHARS * 4)));
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    format!("\n{fence}text\n{text}\n{fence}\n")
}

/// Returns the length of the longest run of backticks.
fn longest_run(text: &str) -> usize {
    text.split(|character| character != '`').map(str::len).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;
    use crate::model::order_report::{NamedObject, OrderReport, ResultOutcome};

    #[test]
    fn a_page_has_a_table_and_a_section_for_each_failure() {
        let mut page = sample::mixed();
        page.report.rehearsal = true;
        insta::assert_snapshot!(document(&page), @r#"
        ## kubectl-acme: 1 of 2 certificates would be issued

        A rehearsal: nothing was spent at the CA, and clients do not trust the issued certificates.

        | Certificate | State | Names | Valid until | Days left | Renews |
        | --- | --- | --- | --- | --- | --- |
        | web/good | issued | good.example.com | 2027-02-22T12:00:00Z | 90 | 2027-01-23T12:00:00Z |
        | web/bad | failed | bad.example.com |  |  |  |

        ### Certificate `web/bad`: failed

        `validation`, exit code 4, `ci/deploy/web.yaml:3`

        ```text
        Certificate web/bad: the CA refused it, 50%
        ```

        - `bad.example.com`: invalid, http-01: `the answer is not there`; the CA said `Invalid response` (`urn:ietf:params:acme:error:unauthorized`)

        What helps:

        - `look at the name: dig www.example.com`
        "#);
    }

    #[test]
    fn faults_have_a_section_each_and_no_table() {
        insta::assert_snapshot!(document(&sample::faulty("unknown field")), @r#"
        ## kubectl-acme: 2 faults in the manifests

        ### `Certificate a`: wrong

        `ci/deploy/web.yaml:6`

        ```text
        unknown field
        ```

        What helps:

        - `did you mean dnsNames?`

        ### `Certificate a`: wrong

        `stdin:2`

        ```text
        unknown field
        ```

        What helps:

        - `did you mean dnsNames?`
        "#);
    }

    #[test]
    fn records_of_a_person_are_a_table() {
        let object = || NamedObject { namespace: "web".to_owned(), name: "a".to_owned() };
        let mut page = sample::page(OrderReport::new(13, false));
        page.report.records = vec![RecordToMake {
            name: "_acme-challenge.a.example.".to_owned(),
            kind: "TXT",
            ttl: 60,
            value: "x|y".to_owned(),
            certificate: object(),
            challenge: object(),
            reason: String::new(),
        }];
        let text = document(&page);
        let row = "| &#95;acme-challenge.a.example. | TXT | 60 | x&#124;y |";
        assert!(text.lines().any(|line| line == row), "{text}");
    }

    #[test]
    fn no_text_is_more_than_text() {
        let text = document(&sample::hostile());
        let mut fence = "";
        for line in text.lines() {
            let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
            if fence.is_empty() && ticks.len() > 2 {
                fence = ticks;
            } else if !fence.is_empty() {
                fence = if line == fence { "" } else { fence };
            } else {
                // Outside of blocks every line is one of ours.
                let ours =
                    ["## kubectl-acme: ", "### ", "| ", "- ", "`", "What helps:", "The CA said"];
                assert!(line.is_empty() || ours.iter().any(|it| line.starts_with(it)), "{line}");
            }
        }
        assert_eq!(fence, "");
        assert!(
            !text.contains("##[") && !text.lines().any(|line| line.trim_start().starts_with("::"))
        );
        let row = text.lines().find(|line| line.contains(" failed |")).unwrap();
        assert_eq!(row.matches('|').count(), 7, "{row}");
    }

    #[test]
    fn many_rows_and_sections_are_counted() {
        let mut page = sample::page(OrderReport::new(4, false));
        let failed = |at| {
            let error = sample::error("validation", 4, sample::HOSTILE);
            sample::certificate(&format!("c{at}"), ResultOutcome::Failed, Some(error))
        };
        page.report.certificates = (0..5000).map(failed).collect();
        let text = document(&page);
        assert!(
            text.contains("\n4800 more are not shown.\n") && text.contains("\n4950 more failed.\n")
        );
        assert!(text.len() < 1 << 20, "{}", text.len());
    }

    #[test]
    fn causes_that_were_found_are_a_table_and_a_section_each() {
        let subjects = [("a.example", FindingLevel::Error), ("b.example", FindingLevel::Warning)];
        let text = document(&sample::diagnosed(sample::HOSTILE, &subjects));
        assert!(text.starts_with("## kubectl-acme: 2 causes\n"), "{text}");
        let rows = text.lines().filter(|line| line.starts_with("| HTTP-05 |"));
        assert_eq!(rows.count(), 2, "{text}");
        assert_eq!(text.matches("\n### ").count(), 1, "what helps is told once: {text}");
        // Within its fence nothing is a heading.
        let (before, fenced) = text.split_once("````text\n").unwrap();
        let (_, after) = fenced.split_once("\n````\n").unwrap();
        assert!(!before.contains("\n# end") && !after.contains("\n# end"), "{text}");
        assert!(!before.contains("<b>&") && !after.contains("<b>&"), "{text}");
        assert_eq!(document(&sample::diagnosed("", &[])), "## kubectl-acme: nothing is wrong\n");
    }
}
