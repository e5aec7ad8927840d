//! End of `order`: files on disk, the table, the timeline if it is short, a line for each Certificate, and the exit code.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::purpose::say_rehearsed;
use super::report::{self, ObjectResult, ObjectResults};
use super::subject::Results;
use super::write_out::write_out;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::{OutputArgs, TimelineChoice};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::issue::follow::work::interruption;
use crate::issue::manual;
use crate::issue::tracked::{End, WorkResult};
use crate::known::StoredFinding;
use crate::model::event::reason;
use crate::model::order_report::ResultOutcome;
use crate::model::{Key, Kind};
use crate::objects::history;
use crate::print::columns::Namespaces;
use crate::print::table::Headers;
use crate::print::timeline::{self, Entry, sheet};
use crate::print::{Group, Printer, Shape};

/// Most Certificates whose timelines are shown; those of more are left to `timeline`.
const MAX_TIMELINES: usize = 3;
/// Most lines of all timelines together that are shown unasked.
const MAX_TIMELINE_LINES: usize = 25;
/// Writes results, prints them, and returns the failure with the lowest exit code. Programs get one report of all objects,
/// also when work has stopped before.
///
/// # Errors
/// Fails with the lowest exit code of all Certificates.
pub async fn settle(
    results: &Results<'_>,
    output: &OutputArgs,
    context: &Context,
    worked: WorkResult,
) -> Result<(), Failure> {
    let mut printer = context.printer(output);
    let due = results.followed.iter().filter(|(_, is_due)| **is_due).map(|(key, _)| key.clone());
    let mut stories = ObjectResults { due: due.collect(), ..ObjectResults::default() };
    if let Some(failure) = worked.stopped {
        return end_stopped(results, &mut printer, context, (stories, worked.ends), failure).await;
    }
    let ends = worked.ends;
    if results.purpose.is_first() && worked.untidy.is_none() && ends.values().all(End::is_good) {
        say_rehearsed(&printer, Timestamp::now().duration_since(results.times.0));
        return Ok(());
    }
    let of_kind = |key: &&Key| key.kind.is_issued();
    let certificates: Vec<&Key> = results.records.iter().map(|r| &r.key).filter(of_kind).collect();
    let worked_on: BTreeSet<Key> = ends.keys().filter(of_kind).cloned().collect();
    let mut done: BTreeMap<Key, Timestamp> = BTreeMap::new();
    let mut failed: BTreeSet<Key> = BTreeSet::new();
    let mut failures: Vec<Failure> = Vec::new();
    let mut wanted = Vec::new();
    for (key, end) in ends {
        stories.of.insert(key.clone(), story(&end));
        match end {
            End::Done(at) => {
                done.insert(key, at);
                continue;
            }
            End::Failed(failure) => failures.push(failure),
            End::ByHand(failure, records) => {
                failures.push(failure);
                wanted.extend(records);
            }
        }
        failed.insert(key);
    }
    let is_document = printer.format().is_document() || context.reports().take_stdout();
    if is_document {
        if let Some(path) = results.zone_file.filter(|_| !wanted.is_empty()) {
            failures.extend(manual::write(path, &wanted, context.interrupted()).await.err());
        }
        stories.records.clone_from(&wanted);
    } else if wanted.is_empty() {
        print(&mut printer, context, results).await?;
        print_timelines(&mut printer, context, results, &worked_on).await?;
    } else {
        // Stdout now holds only the records to make, for programs.
        let headers = if output.no_headers { Headers::Hidden } else { Headers::Shown };
        manual::print(&mut printer, headers, &wanted)?;
        if let Some(path) = results.zone_file {
            failures.extend(manual::write(path, &wanted, context.interrupted()).await.err());
        }
    }
    let issued: Vec<&Key> =
        certificates.iter().filter(|k| !failed.contains(**k)).copied().collect();
    failures.extend(write_out(results, (&issued, &done), &mut stories, &printer, context).await);
    if worked_on.is_empty() && !certificates.is_empty() && failures.is_empty() {
        let is_of_requests = certificates.iter().any(|key| key.kind == Kind::CertificateRequest);
        let place = if is_of_requests { "there" } else { "in its Secret" };
        printer.note(&format!("nothing is due: every certificate is {place} and up to date"));
    }
    if printer.format().is_for_people() {
        results.purpose.say_unspent(&printer, failures.is_empty());
    }
    // A Certificate may fail with the message of its Issuer, which may be followed, too.
    let mut told = BTreeSet::new();
    failures.retain(|failure| told.insert(failure.message.clone()));
    // Last, where a person looks first.
    print_failures(results, &printer, (&failures, &stories), context.now()).await;
    let lowest =
        failures.into_iter().map(|failure| failure.kind).min_by_key(|kind| kind.exit_code());
    let kind = lowest.or(worked.untidy);
    let exit_code = kind.map_or(0, FailureKind::exit_code);
    write_report(results, (&mut printer, context), exit_code, &stories).await?;
    match kind {
        None => Ok(()),
        // Each failure has been printed already.
        Some(kind) => Err(Failure::silent(kind)),
    }
}

/// Prints each failure; then a line for each object that failed, with the finding of `diagnose` as far as it is known here,
/// or with the hint that `diagnose` says more.
async fn print_failures(
    results: &Results<'_>,
    printer: &Printer,
    (failures, stories): (&[Failure], &ObjectResults),
    now: Timestamp,
) {
    for failure in failures {
        printer.error(&failure.message, &failure.hints);
    }
    if !results.purpose.is_kept() {
        return;
    }
    let mut said: BTreeSet<String> = BTreeSet::new();
    let has_failed = |story: &ObjectResult| {
        let outcome = story.error.as_ref().map(|(outcome, _)| *outcome);
        matches!(outcome, Some(ResultOutcome::Failed | ResultOutcome::Waiting))
    };
    let failed = stories.of.iter().filter(|(_, story)| has_failed(story)).map(|(key, _)| key);
    for key in failed.take(MAX_TIMELINES) {
        let Some(known) = StoredFinding::of(results.store, key, now).await else { continue };
        // One cause may prevent several certificates.
        if known.format_finding().is_none_or(|told| said.insert(told)) {
            printer.note(&known.line());
        }
    }
}

/// Reports all objects to programs when work has stopped; people have seen the results, or see the failure.
async fn end_stopped(
    results: &Results<'_>,
    printer: &mut Printer,
    context: &Context,
    (mut stories, ends): (ObjectResults, BTreeMap<Key, End>),
    failure: Failure,
) -> Result<(), Failure> {
    let is_told = failure.message.is_empty();
    let is_signal = matches!(failure.kind, FailureKind::Interrupted | FailureKind::Terminated);
    let told =
        (is_told && is_signal).then(|| interruption(failure.kind, results.purpose.is_kept()));
    let story = ObjectResult::failed(told.as_ref().unwrap_or(&failure));
    stories.stopped = story.error.as_ref().map(|(_, error)| error.clone());
    let stories_of_ends = ends.iter().map(|(key, end)| (key.clone(), self::story(end)));
    stories.of = results.followed.keys().map(|key| (key.clone(), story.clone())).collect();
    stories.of.extend(stories_of_ends);
    write_report(results, (printer, context), failure.kind.exit_code(), &stories).await?;
    Err(failure)
}

fn story(end: &End) -> ObjectResult {
    match end {
        End::Done(at) => ObjectResult { done: Some(*at), ..ObjectResult::default() },
        End::Failed(failure) | End::ByHand(failure, _) => ObjectResult::failed(failure),
    }
}

/// Prints the report if documents are asked for, writes it after the steps, and keeps it for the formats of `--report`.
async fn write_report(
    results: &Results<'_>,
    (printer, context): (&mut Printer, &Context),
    exit_code: u8,
    stories: &ObjectResults,
) -> Result<(), Failure> {
    let is_document = printer.format().is_document();
    let reports = context.reports();
    if !is_document && !results.events.is_open() && !reports.are_wanted() {
        return Ok(());
    }
    let times = (results.times.0, Timestamp::now());
    let objects = (results.records, results.places, results.store);
    let report =
        report::report((exit_code, !results.purpose.is_kept()), objects, times, stories).await?;
    reports.keep(&report);
    let report = json!(report);
    if let Some(text) = printer.format().document(&report) {
        printer.data(&text)?;
    }
    results.events.document(&report);
    Ok(())
}

async fn print(
    printer: &mut Printer,
    context: &Context,
    results: &Results<'_>,
) -> Result<(), Failure> {
    let (store, records) = (results.store, results.records);
    let mut groups: BTreeMap<Kind, Vec<Value>> = BTreeMap::new();
    let has_certificates = records.iter().any(|r| r.key.kind.is_issued());
    for record in records {
        // Issuers are means; they are the result only when nothing else was given.
        let is_result = match record.key.kind {
            Kind::Certificate | Kind::CertificateRequest => true,
            Kind::Issuer | Kind::ClusterIssuer => !has_certificates,
            _ => false,
        };
        if let (true, Some(stored)) = (is_result, store.get(&record.key).await?) {
            groups.entry(record.key.kind).or_default().push(stored.object);
        }
    }
    let count: usize = groups.values().map(Vec::len).sum();
    let shape = if count == 1 { Shape::One } else { Shape::Many };
    let groups: Vec<Group<'_>> = groups
        .iter()
        .map(|(kind, all)| Group { kind: *kind, objects: all.iter().collect() })
        .collect();
    let now = context.now();
    printer.resources(&groups, shape, Namespaces::Hidden, now)?;
    Ok(())
}

/// Prints the timeline of each Certificate if all are short or asked for; else a summary of each in a line.
async fn print_timelines(
    printer: &mut Printer,
    context: &Context,
    results: &Results<'_>,
    worked_on: &BTreeSet<Key>,
) -> Result<(), Failure> {
    let is_wanted = match results.timeline {
        TimelineChoice::Always => true,
        TimelineChoice::Never => false,
        TimelineChoice::Auto => worked_on.len() <= MAX_TIMELINES,
    };
    if !printer.format().is_for_people() || !is_wanted {
        return Ok(());
    }
    let now = context.now();
    let mut all = Vec::new();
    for key in results.records.iter().map(|r| &r.key).filter(|key| worked_on.contains(key)) {
        let entries = history::entries(results.store, key).await?;
        let entries = own_issuance(&entries);
        // The error says what the Certificate waits for.
        all.push((key, printer.timeline_text(&entries, None, now), entries));
    }
    let lines: usize = all.iter().map(|(_, text, _)| text.lines().count() + 1).sum();
    for (key, text, entries) in all {
        if results.timeline == TimelineChoice::Always || lines <= MAX_TIMELINE_LINES {
            printer.text(&format!("\n{text}"))?;
        } else if let Some(summary) = sheet::summary(&entries, now) {
            let name = &key.name;
            let command = format!("timeline {}/{}", key.kind.singular(), name.name);
            let command = invocation::current().like_in(&name.namespace, &command);
            let more =
                if results.purpose.is_kept() { format!(": {command}") } else { String::new() };
            printer.note(&format!("{key}: {summary}{more}"));
        }
    }
    Ok(())
}

/// Returns the last issuance, without events that look like trouble in every good issuance.
fn own_issuance(entries: &[Entry]) -> Vec<Entry> {
    let own = timeline::last_issuance(entries);
    let is_issued = own.iter().any(Entry::is_issued);
    let is_noise = |entry: &&Entry| {
        is_issued
            && [reason::WAITING_FOR_APPROVAL, reason::ISSUER_NOT_READY].contains(&&*entry.reason)
    };
    own.iter().filter(|entry| !is_noise(entry)).cloned().collect()
}
