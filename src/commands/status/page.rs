//! The status as a page for people and as a report for programs.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::store_status::StoreStatus;
use crate::diagnosis::finding::Finding;
use crate::hints::finding::sentence;
use crate::lead::{NO_CONTROLLER, RunningController};
use crate::model::{ObjectName, Time};
use crate::print::age::{age, until};
use crate::print::colour::{Colour, Weight};
use crate::print::fold::fold;

/// Columns before the text of a line.
const INDENT: usize = 16;
/// Columns of a page without a terminal.
const PIPED_COLUMNS: usize = 80;
/// Maximum number of columns, beyond which lines are hard to read.
const MAX_COLUMNS: usize = 120;
/// Maximum number of renewals, and of waiting objects, that are named.
const MOST_NAMED: usize = 3;
/// Maximum number of causes that are named.
const MOST_CAUSES: usize = 10;

/// Page of one screen: a line for each part, then the findings, the worst last, just above the prompt of a terminal.
pub fn page(
    status: &StoreStatus,
    findings: &[Finding],
    (now, is_of_all): (Timestamp, bool),
    width: Option<usize>,
    colour: Colour,
) -> String {
    let width = width.unwrap_or(PIPED_COLUMNS).min(MAX_COLUMNS);
    let mut text = String::new();
    let shown = |name: &ObjectName| if is_of_all { name.to_string() } else { name.name.clone() };
    part(&mut text, "Certificates", &certificates(status), width);
    if let Some(issuers) = status.issuers {
        let total = issuers.ready + issuers.not_ready;
        let counts = tally(&[(issuers.ready, "ready"), (issuers.not_ready, "not ready")]);
        part(&mut text, "Issuers", &with_counts(total, &counts), width);
    }
    let renewals = status.renewals.iter().map(|(at, name)| {
        let when = match until(Some(*at), now).as_str() {
            "expired" => format!("due since {}", age(Some(*at), now)),
            left => format!("in {left}"),
        };
        format!("{} {when}", shown(name))
    });
    part(&mut text, "Next renewals", &join_first(renewals.collect(), "none"), width);
    part(&mut text, "Driver", &driver(status.driver.as_ref(), now), width);
    let StoreStatus { running, queued, slots, .. } = status;
    let challenges = format!("{running} of {slots} slots taken, {queued} queued");
    part(&mut text, "Challenges", &challenges, width);
    if !status.waits.is_empty() {
        let waits = status.waits.iter();
        let waits =
            waits.map(|(at, key)| format!("{key} until {at} (in {})", until(Some(*at), now)));
        part(&mut text, "CAs asked to wait", "", width);
        for line in fold(&join_first(waits.collect(), ""), width.saturating_sub(2)) {
            let _written = writeln!(text, "  {}", line.trim_end());
        }
    }
    text.push_str(&stuck(findings, width, colour));
    text
}

fn certificates(status: &StoreStatus) -> String {
    let of = status.certificates;
    let mut counts =
        tally(&[(of.ready, "ready"), (of.issuing, "being issued"), (of.not_ready, "not ready")]);
    if of.expired > 0 {
        let _written = write!(counts, "; {} expired", of.expired);
    }
    with_counts(of.total(), &counts)
}

fn with_counts(total: usize, counts: &str) -> String {
    if total == 0 { "none".to_owned() } else { format!("{total}: {counts}") }
}

/// Joins the counts that are not zero, each with its word.
fn tally(counts: &[(usize, &str)]) -> String {
    let all = counts.iter().filter(|(count, _)| *count > 0);
    all.map(|(count, word)| format!("{count} {word}")).collect::<Vec<_>>().join(", ")
}

/// Joins the first few texts of a list, with the number of further texts.
fn join_first(mut all: Vec<String>, none: &str) -> String {
    let more = all.len().saturating_sub(MOST_NAMED);
    all.truncate(MOST_NAMED);
    if more > 0 {
        all.push(format!("and {more} more"));
    }
    if all.is_empty() { none.to_owned() } else { all.join(", ") }
}

fn driver(driver: Option<&RunningController>, now: Timestamp) -> String {
    let Some(RunningController { who, since }) = driver else { return NO_CONTROLLER.to_owned() };
    match since {
        Some(since) => format!("{who}, since {}", age(Some(since.timestamp()), now)),
        None => who.clone(),
    }
}

fn part(text: &mut String, title: &str, words: &str, width: usize) {
    let mut title = format!("{title}:");
    for line in fold(words, width.saturating_sub(INDENT)).iter().map(|line| line.trim_end()) {
        // Writing into memory cannot fail.
        let _written = writeln!(text, "{}", format!("{title:<INDENT$}{line}").trim_end());
        title.clear();
    }
    if !title.is_empty() {
        let _written = writeln!(text, "{title}");
    }
}

/// Errors and warnings, with a few lines for each cause, worst last.
fn stuck(findings: &[Finding], width: usize, colour: Colour) -> String {
    let told: Vec<&Finding> =
        findings.iter().filter(|it| it.is_error() || it.is_warning()).collect();
    let mut causes = Vec::new();
    for finding in &told {
        if !causes.contains(&finding.cause) {
            causes.push(finding.cause);
        }
    }
    let mut text = String::new();
    if causes.is_empty() {
        part(&mut text, "Stuck", "nothing, as far as can be seen from here", width);
        return text;
    }
    let more = causes.len().saturating_sub(MOST_CAUSES);
    causes.truncate(MOST_CAUSES);
    text.push_str("Stuck:\n");
    if more > 0 {
        let _written = writeln!(text, "  and {more} more causes");
    }
    for cause in causes.into_iter().rev() {
        let alike: Vec<&&Finding> = told.iter().filter(|it| it.cause == cause).collect();
        let Some(first) = alike.first() else { continue };
        let weight = if first.is_error() { Weight::Wrong } else { Weight::Doubtful };
        let count = match alike.len() {
            1 => String::new(),
            count => format!(", {count} times"),
        };
        let head = format!("{cause}  {}, {}{count}", first.severity().word(), first.grade.word());
        let _written = writeln!(text, "  {}", colour.weighed(weight, &head));
        for line in fold(&sentence(first), width.saturating_sub(4)) {
            let _written = writeln!(text, "    {}", line.trim_end());
        }
    }
    text
}

/// Status as a report for programs.
pub fn document(
    status: &StoreStatus,
    findings: &[Finding],
    now: Timestamp,
    exit_code: u8,
) -> Value {
    let of = status.certificates;
    let renewals = status.renewals.iter().map(|(at, ObjectName { namespace, name })| {
        json!({"namespace": namespace, "name": name, "at": Time::new(*at)})
    });
    let waits = status.waits.iter().map(|(at, key)| {
        json!({
            "kind": key.kind.to_string(), "namespace": key.name.namespace, "name": key.name.name,
            "until": Time::new(*at),
        })
    });
    let stuck = findings.iter().filter(|it| it.is_error() || it.is_warning()).map(|finding| {
        json!({
            "cause": finding.cause.to_string(), "subject": finding.subject,
            "severity": finding.severity().word(), "grade": finding.grade.word(),
            "message": sentence(finding),
        })
    });
    let mut document = json!({
        "apiVersion": "kubectl-acme/v1alpha1",
        "kind": "Status",
        "at": Time::new(now),
        "certificates": {
            "total": of.total(), "ready": of.ready, "issuing": of.issuing, "notReady": of.not_ready,
            "expired": of.expired,
        },
        "renewals": renewals.collect::<Vec<_>>(),
        "challenges": {"running": status.running, "queued": status.queued, "slots": status.slots},
        "waits": waits.collect::<Vec<_>>(),
        "stuck": stuck.collect::<Vec<_>>(),
        "exitCode": exit_code,
    });
    if let Some(issuers) = status.issuers {
        document["issuers"] = json!({"ready": issuers.ready, "notReady": issuers.not_ready});
    }
    if let Some(RunningController { who, since }) = &status.driver {
        document["driver"] = json!({"name": who, "since": since});
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::status::store_status::{CertificateCounts, IssuerCounts};
    use crate::diagnosis::catalogue::id::CauseId;
    use crate::diagnosis::finding::{Grade, stored};

    fn now() -> Timestamp {
        "2026-11-29T06:00:00Z".parse().unwrap()
    }

    fn status() -> StoreStatus {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let renewal = |text: &str, name: &str| (at(text), ObjectName::new("web", name));
        StoreStatus {
            certificates: CertificateCounts { ready: 4, issuing: 1, not_ready: 1, expired: 1 },
            issuers: Some(IssuerCounts { ready: 1, not_ready: 0 }),
            renewals: vec![
                renewal("2026-11-29T05:00:00Z", "late"),
                renewal("2026-12-02T06:00:00Z", "www"),
                renewal("2026-12-11T06:00:00Z", "api"),
                renewal("2026-12-12T06:00:00Z", "shop"),
            ],
            driver: Some(RunningController {
                who: "cert-manager".into(),
                since: Some(Time::new(at("2026-11-29T03:00:00Z"))),
            }),
            running: 1,
            queued: 2,
            slots: 60,
            waits: Vec::new(),
        }
    }

    fn finding(cause: CauseId, grade: Grade) -> Finding {
        Finding::new(cause, grade, "www.example.com", stored("a", now(), "b"))
    }

    #[test]
    fn a_page_has_a_line_for_each_part_and_the_worst_last() {
        let found =
            [finding(CauseId::Http03, Grade::Certain), finding(CauseId::Hyg06, Grade::Certain)];
        let text = page(&status(), &found, (now(), false), None, Colour::Off);
        let mut lines = text.lines();
        let mut next = || lines.next().unwrap_or_default();
        assert_eq!(next(), "Certificates:   6: 4 ready, 1 being issued, 1 not ready; 1 expired");
        assert_eq!(next(), "Issuers:        1: 1 ready");
        assert_eq!(next(), "Next renewals:  late due since 60m, www in 3d, api in 12d, and 1 more");
        assert_eq!(next(), "Driver:         cert-manager, since 3h");
        assert_eq!(next(), "Challenges:     1 of 60 slots taken, 2 queued");
        assert_eq!(next(), "Stuck:");
        let heads: Vec<&str> = text.lines().filter(|line| line.contains(", certain")).collect();
        assert!(heads[0].starts_with("  HYG-06"), "{text}");
        assert_eq!(heads[1], "  HTTP-03  error, certain");
    }

    #[test]
    fn nothing_stuck_nobody_at_work_and_a_ca_that_asks_to_wait_are_told() {
        let key = crate::model::Key::new(crate::model::Kind::Issuer, ObjectName::new("web", "le"));
        let status = StoreStatus {
            driver: None,
            waits: vec![("2026-11-29T06:20:00Z".parse().unwrap(), key)],
            ..status()
        };
        let text = page(&status, &[], (now(), true), None, Colour::Off);
        assert!(text.contains("web/www in 3d"), "{text}");
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(words.join(" ").contains(&format!("Driver: {NO_CONTROLLER}")), "{text}");
        assert!(text.contains("  Issuer web/le until 2026-11-29T06:20:00Z (in 20m)\n"), "{text}");
        assert!(
            text.ends_with("Stuck:          nothing, as far as can be seen from here\n"),
            "{text}"
        );
        let document = document(&status, &[], now(), 0);
        assert_eq!(document["waits"][0]["until"], "2026-11-29T06:20:00Z");
        assert_eq!(document["certificates"]["total"], 6);
        assert_eq!(document.get("driver"), None);
    }
}
