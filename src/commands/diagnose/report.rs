//! Findings as a page for people and as a report for programs.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::reproduced::ReproducingCommands;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::dns::{Disagreement, DisagreementRow, DnsCase};
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::catalogue::{self, CauseSeverity, FixStep};
use crate::diagnosis::finding::{Evidence, Finding};
use crate::diagnosis::rules::{self, sights};
use crate::hints::finding::{brief, sentence, steps};
use crate::hints::invocation;
use crate::model::order_report::InputPlace;
use crate::model::{Key, Kind, Time};
use crate::print::colour::{Colour, Weight};
use crate::print::fold::fold;
use crate::print::report::{FindingLevel, FoundCause};

/// Columns of a page without a terminal.
const PIPED_COLUMNS: usize = 80;
/// Maximum number of columns, beyond which lines are hard to read.
const MAX_COLUMNS: usize = 100;
/// Maximum number of subjects that are named for one cause.
const MOST_SUBJECTS: usize = 10;
/// Number of findings above which each cause gets a short block, so that all fit one screen.
const MAX_LONG_FINDINGS: usize = 20;
/// Maximum number of subjects that are named in a short block.
const FEW_SUBJECTS: usize = 2;
/// Maximum number of characters of an observation in a short block.
const MAX_SHORT_CHARS: usize = 100;
/// Lines for short blocks; causes beyond these lines are listed by their titles.
const SCREEN_LINES: usize = 50;
/// Query parameter before a key in a link.
const KEY_PARAMETER: &str = "?jwt=";
/// Maximum number of servers that are shown for one question.
const MOST_ROWS: usize = 12;
/// Maximum number of observations that are shown for one finding.
const MOST_EVIDENCE: usize = 8;

/// Page with a block for each cause, most urgent first; each block has all subjects of the cause.
pub fn page(
    findings: &[Finding],
    (in_cluster, reproduced): (bool, Option<&ReproducingCommands<'_>>),
    width: Option<usize>,
    colour: Colour,
) -> String {
    let width = width.unwrap_or(PIPED_COLUMNS).min(MAX_COLUMNS);
    let place = (in_cluster, reproduced);
    let (mut blocks, mut titles, mut lines) = (Vec::new(), String::new(), 0);
    let mut done: Vec<CauseId> = Vec::new();
    for finding in findings {
        if done.contains(&finding.cause) {
            continue;
        }
        done.push(finding.cause);
        let alike: Vec<&Finding> = findings.iter().filter(|f| f.cause == finding.cause).collect();
        if findings.len() <= MAX_LONG_FINDINGS {
            blocks.push(block(&alike, place, width, colour));
            continue;
        }
        let short = short_block(&alike, in_cluster, width, colour);
        let count = short.lines().count() + 1;
        if lines + count > SCREEN_LINES {
            titles.push_str(&head(finding, alike.len(), colour));
            titles.push('\n');
            paragraph(&mut titles, "", &catalogue::entry(finding.cause).title, width);
        } else {
            lines += count;
            blocks.push(short);
        }
    }
    blocks.extend(Some(titles).filter(|titles| !titles.is_empty()));
    blocks.join("\n")
}

/// Heading of the block of a cause.
fn head(first: &Finding, count: usize, colour: Colour) -> String {
    let severity = first.severity().word();
    let count = if count > 1 { format!(", {count} times") } else { String::new() };
    let head = format!("{}  {severity}, {}{count}", first.cause, first.grade.word());
    let weight = match (first.is_error(), first.is_warning()) {
        (true, _) => Weight::Wrong,
        (false, true) => Weight::Doubtful,
        (false, false) => Weight::Fine,
    };
    colour.weighed(weight, &head)
}

/// Appends the subjects of a cause, at most `most`; equal sentences are printed once.
fn subjects(text: &mut String, alike: &[&Finding], most: usize, width: usize) {
    let mut sentences: Vec<String> = Vec::new();
    for finding in alike {
        let sentence = sentence(finding);
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    for sentence in sentences.iter().take(most) {
        paragraph(text, "", sentence, width);
    }
    if sentences.len() > most {
        paragraph(text, "", &format!("and {} more", sentences.len() - most), width);
    }
}

/// Short block of a cause: a few of the subjects, one observation, the first step.
fn short_block(alike: &[&Finding], in_cluster: bool, width: usize, colour: Colour) -> String {
    let Some(first) = alike.first() else { return String::new() };
    let mut text = head(first, alike.len(), colour) + "\n";
    subjects(&mut text, alike, FEW_SUBJECTS, width);
    if let Some(evidence) = first.evidence.first() {
        let mut seen: String = describe(evidence).chars().take(MAX_SHORT_CHARS + 1).collect();
        if seen.chars().count() > MAX_SHORT_CHARS {
            seen.pop();
            seen.push('…');
        }
        paragraph(&mut text, "", &format!("Seen: {seen}"), width);
    }
    let steps = steps(first, in_cluster);
    let is_wrong = first.severity() != CauseSeverity::Info;
    if let Some(step) = steps.first().filter(|_| is_wrong) {
        lines_of_step(&mut text, 1, step, width);
    }
    let program = invocation::program();
    let _written = writeln!(text, "  More: {program} explain {}", first.cause);
    text
}

/// Block of a cause with all findings.
fn block(
    alike: &[&Finding],
    (in_cluster, reproduced): (bool, Option<&ReproducingCommands<'_>>),
    width: usize,
    colour: Colour,
) -> String {
    let Some(first) = alike.first() else { return String::new() };
    let entry = catalogue::entry(first.cause);
    let mut text = String::new();
    // Writing into memory cannot fail.
    let _written = writeln!(text, "{}", head(first, alike.len(), colour));
    subjects(&mut text, alike, MOST_SUBJECTS, width);
    text.push_str("\n  Seen\n");
    for evidence in first.evidence.iter().take(MOST_EVIDENCE) {
        paragraph(&mut text, "    ", &describe(evidence), width);
        for line in reproduced.iter().flat_map(|it| it.lines(evidence)) {
            // A line to copy is not folded.
            let _written = writeln!(text, "         {line}");
        }
    }
    if !first.explains.is_empty() {
        let ids: Vec<String> = first.explains.iter().map(ToString::to_string).collect();
        paragraph(&mut text, "", &format!("Explains {}", ids.join(", ")), width);
    }
    if first.severity() != CauseSeverity::Info {
        text.push_str("\n  What helps\n");
        for (number, step) in steps(first, in_cluster).iter().enumerate() {
            lines_of_step(&mut text, number + 1, step, width);
        }
        if entry.risk != "none" {
            paragraph(&mut text, "", &format!("Risk: {}", entry.risk), width);
        }
    }
    let _written = writeln!(text, "  More: {} explain {}", invocation::program(), first.cause);
    text
}

fn lines_of_step(text: &mut String, number: usize, step: &FixStep, width: usize) {
    let mut mark = format!("{number}.");
    for line in fold(&step.does, width.saturating_sub(7)) {
        let _written = writeln!(text, "    {mark} {}", line.trim_end());
        mark = " ".repeat(mark.len());
    }
    for line in step.run.iter().chain(&step.write).flat_map(|lines| lines.trim_end().lines()) {
        // A line to copy is not folded.
        let _written = writeln!(text, "       {line}");
    }
}

fn paragraph(text: &mut String, indent: &str, words: &str, width: usize) {
    for line in fold(words, width.saturating_sub(indent.len() + 2)) {
        let _written = writeln!(text, "  {indent}{}", line.trim_end());
    }
}

/// Answers of each server to the questions with differing answers, for names with findings; empty if all servers agree.
pub fn views(case: &Case, findings: &[Finding], width: Option<usize>, colour: Colour) -> String {
    let width = width.unwrap_or(PIPED_COLUMNS).min(MAX_COLUMNS);
    let is_meant = |name: &&NameCase| findings.iter().any(|f| f.subject == name.shown());
    let mut text = String::new();
    for name in case.names.iter().filter(is_meant).take(MOST_SUBJECTS) {
        let rows = sights::disagreement(name).unwrap_or_default();
        if !rows.is_empty() {
            let head = format!("Different views of the answer for {}", name.shown());
            let _written = writeln!(text, "\n{}", colour.weighed(Weight::Doubtful, &head));
        }
        for row in rows {
            let wrong = if row.is_wrong == Some(true) { "  <- wrong" } else { "" };
            let at =
                if row.address.is_empty() { String::new() } else { format!(" at {}", row.address) };
            let line = format!("{}{at}: {}{wrong}", row.from, brief(&row.came));
            paragraph(&mut text, "", &line, width);
        }
        for view in name.dns.iter().flat_map(DnsCase::disagreements) {
            let head = format!("Different views of {} {}", bare(view.name), view.kind);
            let _written = writeln!(text, "\n{}", colour.weighed(Weight::Doubtful, &head));
            let place =
                |row: &DisagreementRow<'_>| format!("{} {}", row.from.word(), row.from.server());
            let widest = view.rows.iter().map(|row| place(row).chars().count()).max();
            let column = widest.unwrap_or_default().min(width / 2);
            for row in view.rows.iter().take(MOST_ROWS) {
                let wrong = if row.is_wrong == Some(true) { "  <- wrong" } else { "" };
                let place = place(row);
                let line = format!("{place:column$}  {}{wrong}", brief(&row.came));
                for (number, part) in fold(&line, width.saturating_sub(6)).iter().enumerate() {
                    let indent = if number == 0 { "  " } else { "      " };
                    let _written = writeln!(text, "{indent}{}", part.trim_end());
                }
            }
        }
    }
    text
}

fn bare(name: &str) -> &str {
    name.trim_end_matches('.')
}

/// Describes one observation in one sentence.
fn describe(evidence: &Evidence) -> String {
    let from = evidence.vantage.as_ref().map(|vantage| format!(", from {vantage}"));
    let Evidence { asked, came, .. } = evidence;
    format!("{asked}{}: {}", from.unwrap_or_default(), brief(came))
}

/// The report for programs.
pub fn document(
    case: &Case,
    findings: &[Finding],
    reproduced: Option<&ReproducingCommands<'_>>,
    exit_code: u8,
) -> Value {
    let evidence = |evidence: &Evidence| {
        let shown = Evidence { came: without_keys(&brief(&evidence.came)), ..evidence.clone() };
        let mut told = json!(shown);
        let lines = reproduced.map(|it| it.lines(evidence)).unwrap_or_default();
        if !lines.is_empty() {
            told["commands"] = json!(lines);
        }
        told
    };
    let findings = findings.iter().map(|finding| {
        let entry = catalogue::entry(finding.cause);
        json!({
            "cause": finding.cause,
            "title": entry.title,
            "severity": finding.severity().word(),
            "grade": finding.grade.word(),
            "subject": finding.subject,
            "message": without_keys(&sentence(finding)),
            "evidence": finding.evidence.iter().map(evidence).collect::<Vec<_>>(),
            "explains": finding.explains,
            "fix": steps(finding, case.in_cluster),
            "risk": entry.risk,
        })
    });
    let views = case.names.iter().flat_map(|name| name.dns.iter()).flat_map(|dns| {
        let of = |view: &Disagreement<'_>| {
            let sees = view.rows.iter().map(|row| {
                json!({
                    "vantage": row.from.word(),
                    "server": row.from.server(),
                    "came": brief(&row.came),
                    "isWrong": row.is_wrong,
                })
            });
            json!({"name": bare(view.name), "type": view.kind, "sees": sees.collect::<Vec<_>>()})
        };
        dns.disagreements().iter().map(of).collect::<Vec<_>>()
    });
    let answers = case.names.iter().filter_map(|name| {
        let rows = sights::disagreement(name)?.into_iter().map(|row| {
            json!({
                "vantage": row.from.to_string(), "server": row.address, "came": brief(&row.came), "isWrong": row.is_wrong,
            })
        });
        Some(json!({"name": name.shown(), "type": "HTTP-01", "sees": rows.collect::<Vec<_>>()}))
    });
    let views = views.chain(answers);
    let unseen = case.unseen.iter().map(|unseen| json!({"what": unseen.what, "why": unseen.why}));
    json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "Diagnosis",
        "time": Time::new(case.at),
        "exitCode": exit_code,
        "findings": findings.collect::<Vec<_>>(),
        "views": views.collect::<Vec<_>>(),
        "unseen": unseen.collect::<Vec<_>>(),
    })
}

/// Findings for CI reports; `places` has the position of each object's manifest.
pub fn found_causes(
    case: &Case,
    findings: &[Finding],
    places: &BTreeMap<Key, InputPlace>,
) -> Vec<FoundCause> {
    let found = findings.iter().map(|finding| {
        let level = match (finding.is_error(), finding.is_warning()) {
            (true, _) => FindingLevel::Error,
            (false, true) => FindingLevel::Warning,
            (false, false) => FindingLevel::Note,
        };
        let step = |step: FixStep| {
            let lines = step.run.iter().chain(&step.write).map(|lines| lines.trim_end());
            lines.fold(step.does.clone(), |text, lines| format!("{text}\n{lines}"))
        };
        FoundCause {
            level,
            id: finding.cause.to_string(),
            title: catalogue::entry(finding.cause).title.clone(),
            subject: finding.subject.clone(),
            message: without_keys(&sentence(finding)),
            hints: steps(finding, case.in_cluster).into_iter().map(step).collect(),
            place: place(case, &finding.subject, places),
        }
    });
    found.collect()
}

/// Position of the manifest of a subject: of the object itself, or else of a Certificate that the subject concerns.
fn place(case: &Case, subject: &str, places: &BTreeMap<Key, InputPlace>) -> Option<InputPlace> {
    let own = places.iter().find(|(key, _)| key.to_string() == subject);
    let concerned = || {
        let certificates = rules::concerned(case, subject).into_iter();
        certificates.map(|name| Key::new(Kind::Certificate, name)).find_map(|key| places.get(&key))
    };
    own.map(|(_, place)| place).or_else(concerned).cloned()
}

/// Removes the secret key from links that end a pause (Boulder's `jwt`): anyone with the link could open the page.
pub(super) fn without_keys(text: &str) -> String {
    let mut parts = text.split(KEY_PARAMETER);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |whole, part| {
        let is_end = |c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c));
        let rest = part.find(is_end).map_or("", |end| &part[end..]);
        format!("{whole}{KEY_PARAMETER}…{rest}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_ends_a_pause_is_for_the_person_at_the_terminal_alone() {
        let said = "Please visit: https://ca/unpause?jwt=eyJ.a-b_c and https://ca/x?jwt=d";
        assert_eq!(
            without_keys(said),
            "Please visit: https://ca/unpause?jwt=… and https://ca/x?jwt=…"
        );
        assert_eq!(without_keys("nothing"), "nothing");
    }
}
