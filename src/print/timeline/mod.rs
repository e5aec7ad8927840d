//! Events of a Certificate and of all objects below, in order, with durations.
//!
//! Events stand in the order of the store's revisions (in a cluster, of their times), and causes before effects
//! whichever was written first, because controllers write events concurrently. An issuance is measured in milliseconds
//! if all of its times are known to the millisecond, else in seconds: a sum must agree with its steps.

mod chain;
mod folded;
pub mod report;
pub mod saying;
pub mod sheet;
pub mod stage;

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use self::saying::Sequence;
use self::stage::{Occurrence, Stage};
use super::lineage;
use crate::model::event_times::TimePrecision;
use crate::model::{Duration, Event, Kind, Severity, Time};

/// Time within which repetitions of an event are shown once.
const REPEAT_WINDOW: SignedDuration = SignedDuration::from_secs(1);

/// Repetitions of an event, for an entry that stands for one occurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// Number of occurrences, all at one moment.
    Times(u32),
    /// Number of occurrences, of which the entry is the first.
    FirstOf(u32),
    /// Number of occurrences, of which the entry is the last.
    LastOf(u32),
}

/// Event at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Latest time at which the event can have happened.
    pub at: Timestamp,
    /// First time at which the event was written, among all times of this entry.
    pub first: Timestamp,
    /// Precision with which the store knows the time.
    pub grain: TimePrecision,
    /// Number of occurrences.
    pub repeats: Repeats,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Domain of a challenge, if known.
    pub domain: Option<String>,
    /// Severity of the event: normal or warning.
    pub severity: Severity,
    /// Reason of the event, in one word.
    pub reason: String,
    /// Message of the event, a sentence.
    pub message: String,
    /// Writers of the event; several if controllers wrote the same event within one second.
    pub sources: Vec<String>,
    /// Time since the start of the entry's issuance.
    pub since_start: SignedDuration,
    /// Time since the entry before, zero at the beginning of an issuance.
    pub step: SignedDuration,
    /// Precision with which the entry's issuance is measured.
    pub measure: TimePrecision,
    /// Number of the entry's issuance, from 0; a renewal starts another issuance.
    pub issuance: usize,
    stage: Stage,
}

/// Puts events in order and measures the time between them; events without any time are left out.
pub fn entries<'a>(events: impl IntoIterator<Item = &'a Event>, sequence: Sequence) -> Vec<Entry> {
    let sayings = saying::in_order(events, sequence);
    let domains: HashMap<String, String> =
        sayings.iter().filter_map(|saying| lineage::domain(saying.event)).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for telling in select_tellings(&sayings) {
        let entry = Entry::new(telling);
        let near = entries.iter_mut().rev().take_while(|earlier| is_near(earlier, &entry));
        match near.into_iter().find(|earlier| is_said_by_another(earlier, &entry)) {
            Some(earlier) => earlier.sources.extend(entry.sources),
            None => entries.push(entry),
        }
    }
    for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Challenge.as_str()) {
        entry.domain = domains.get(&entry.name).cloned();
    }
    for issuance in entries.chunk_by_mut(|a, b| a.issuance == b.issuance) {
        measure(issuance);
    }
    entries
}

/// Returns the entries of the last issuance.
pub fn last_issuance(entries: &[Entry]) -> &[Entry] {
    entries.chunk_by(|a, b| a.issuance == b.issuance).last().unwrap_or_default()
}

/// Occurrence of an event that gets an entry.
#[derive(Clone, Copy)]
struct ShownOccurrence<'s, 'a> {
    saying: &'s Occurrence<'a>,
    repeats: Repeats,
    first: Timestamp,
}

/// Selects the first and the last occurrence of each event in each issuance, and only one if both are near.
fn select_tellings<'s, 'a>(sayings: &'s [Occurrence<'a>]) -> Vec<ShownOccurrence<'s, 'a>> {
    let mut of_event: HashMap<(usize, usize), Vec<&Occurrence<'_>>> = HashMap::new();
    for saying in sayings {
        of_event.entry((saying.issuance, saying.number)).or_default().push(saying);
    }
    let told = sayings.iter().filter_map(|saying| {
        let all = &of_event[&(saying.issuance, saying.number)];
        let (repeats, first) = repeats(all, saying.nth)?;
        Some(ShownOccurrence { saying, repeats, first })
    });
    told.collect()
}

/// Returns the repetitions to show for one occurrence in an issuance, and the first time; `None` for one in between.
fn repeats(all: &[&Occurrence<'_>], nth: usize) -> Option<(Repeats, Timestamp)> {
    let first = all.iter().min_by_key(|saying| saying.nth)?;
    let last = all.iter().max_by_key(|saying| saying.nth)?;
    let here = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let total = first.event.count.unwrap_or(1).max(here);
    let (at, began) = (first.occasion.at, first.began);
    // If another writer counts repetitions, the times between the first and the last are unknown.
    let is_whole = usize::try_from(total).is_ok_and(|total| total == first.known);
    let count = match (first.nth == 0, last.nth + 1 == last.known) {
        (true, false) if !is_whole && here == 1 => return Some((Repeats::FirstOf(total), at)),
        (false, true) if !is_whole && here == 1 => return Some((Repeats::LastOf(total), began)),
        (true, true) => total,
        _ => here,
    };
    let is_spread = last.occasion.at.duration_since(at) >= REPEAT_WINDOW;
    match is_spread && count > 1 {
        false if nth == first.nth => Some((Repeats::Times(count), at)),
        true if nth == first.nth => Some((Repeats::FirstOf(count), at)),
        true if nth == last.nth => Some((Repeats::LastOf(count), at)),
        _ => None,
    }
}

fn is_near(earlier: &Entry, entry: &Entry) -> bool {
    let is_same = earlier.issuance == entry.issuance;
    is_same && entry.at.as_second() - earlier.at.as_second() <= 1
}

/// Returns whether several controllers wrote the same event of one object (five times `WaitingForApproval`).
fn is_said_by_another(earlier: &Entry, entry: &Entry) -> bool {
    let said = |entry: &Entry| {
        let Entry { kind, name, reason, message, repeats, .. } = entry.clone();
        (kind, name, reason, message, repeats)
    };
    said(earlier) == said(entry)
        && !entry.sources.iter().any(|source| earlier.sources.contains(source))
}

/// Measures one issuance, never backwards: in milliseconds if all times are that precise, else in whole seconds.
fn measure(issuance: &mut [Entry]) {
    let is_fine = issuance.iter().all(|entry| entry.grain == TimePrecision::Fine);
    let grain = if is_fine { TimePrecision::Fine } else { TimePrecision::Second };
    let mut start = None;
    let mut before = None;
    for entry in issuance {
        entry.at = before.map_or(entry.at, |before| entry.at.max(before));
        let at = cut(entry.at, grain);
        entry.measure = grain;
        entry.since_start = at.duration_since(*start.get_or_insert(at));
        entry.step = at.duration_since(before.map_or(at, |before| cut(before, grain)));
        before = Some(entry.at);
    }
}

/// Cuts a moment to the precision of the measure.
fn cut(at: Timestamp, grain: TimePrecision) -> Timestamp {
    let cut = match grain {
        TimePrecision::Fine => Timestamp::from_millisecond(at.as_millisecond()),
        TimePrecision::Second => Timestamp::from_second(at.as_second()),
    };
    cut.unwrap_or(at)
}

impl Entry {
    fn new(ShownOccurrence { saying, repeats, first }: ShownOccurrence<'_, '_>) -> Self {
        let (event, at) = (saying.event, saying.occasion.at.min(saying.latest));
        Self {
            at,
            first: first.min(at),
            grain: saying.occasion.grain,
            repeats,
            kind: event.involved_object.kind.clone(),
            name: event.involved_object.name.clone(),
            domain: None,
            severity: event.severity,
            reason: event.reason.clone(),
            message: event.message.trim().to_owned(),
            sources: vec![event.source.component.clone()],
            since_start: SignedDuration::ZERO,
            step: SignedDuration::ZERO,
            measure: saying.occasion.grain,
            issuance: saying.issuance,
            stage: saying.stage,
        }
    }

    /// Returns whether the entry reports that the Certificate was issued.
    pub fn is_issued(&self) -> bool {
        self.stage == Stage::CertificateEnded && self.severity == Severity::Normal
    }
}

/// Result of one issuance.
#[derive(Clone, Copy, Debug)]
struct Total<'a> {
    /// Entries of the issuance.
    entries: &'a [Entry],
    /// Entry that ended the issuance, else the last entry.
    end: &'a Entry,
    outcome: IssuanceResult,
    /// Time without an entry while the issuance still waits.
    quiet: SignedDuration,
}

/// Outcome of an issuance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IssuanceResult {
    /// The certificate is there.
    Issued,
    /// The certificate is not there.
    NotIssued,
    /// The entries concern no Certificate, and their object has ended.
    Over,
    /// The entries concern no Certificate, and their object has not ended.
    UnderWay,
}

impl Total<'_> {
    /// Returns the time that the issuance took, or has taken so far.
    fn length(&self) -> SignedDuration {
        self.end.since_start + self.quiet
    }

    /// Returns the end of the issuance's time, in whole seconds or milliseconds.
    fn until(&self) -> Timestamp {
        cut(self.end.at, self.end.measure) + self.quiet
    }
}

/// Returns the results of the issuances, of the last issuance until now.
fn totals(entries: &[Entry], now: Timestamp) -> Vec<Total<'_>> {
    let mut totals: Vec<Total<'_>> =
        entries.chunk_by(|a, b| a.issuance == b.issuance).filter_map(total).collect();
    if let Some(last) = totals.last_mut()
        && matches!(last.outcome, IssuanceResult::NotIssued | IssuanceResult::UnderWay)
    {
        let grain = last.end.measure;
        let quiet = cut(now, grain).duration_since(cut(last.end.at, grain));
        // An entry of just now does not count as a wait.
        last.quiet = if quiet >= REPEAT_WINDOW { quiet } else { SignedDuration::ZERO };
    }
    totals
}

fn total(entries: &[Entry]) -> Option<Total<'_>> {
    let (first, last) = (entries.first()?, entries.last()?);
    let issued = entries.iter().rev().find(|entry| entry.is_issued());
    let is_over = |entry: &Entry| match entry.stage {
        Stage::ChallengeEnded => {
            entry.severity == Severity::Warning || first.kind == Kind::Challenge.as_str()
        }
        stage => [Stage::OrderEnded, Stage::RequestEnded].contains(&stage),
    };
    let outcome = if issued.is_some() {
        IssuanceResult::Issued
    } else if entries.iter().any(|entry| entry.kind == Kind::Certificate.as_str()) {
        IssuanceResult::NotIssued
    } else if entries.iter().any(is_over) {
        IssuanceResult::Over
    } else {
        IssuanceResult::UnderWay
    };
    Some(Total { entries, end: issued.unwrap_or(last), outcome, quiet: SignedDuration::ZERO })
}

/// Describes the repetitions of an event: `(x3)` for repetitions at once, `(first of 3)` and `(last of 3,
/// over 2m59s)` for later repetitions, `(said by 5 controllers)` for an event that several controllers wrote.
fn again(entry: &Entry) -> String {
    match (entry.repeats, entry.sources.len()) {
        (Repeats::FirstOf(count), _) => format!(" (first of {count})"),
        (Repeats::LastOf(count), _) => {
            let over = whole(entry.at.duration_since(entry.first));
            format!(" (last of {count}, over {over})")
        }
        (Repeats::Times(count), _) if count > 1 => format!(" (x{count})"),
        (Repeats::Times(_), 0 | 1) => String::new(),
        (Repeats::Times(_), several) => format!(" (said by {several} controllers)"),
    }
}

/// Writes a moment as precisely as its issuance is measured.
fn moment(at: Timestamp, measure: TimePrecision) -> String {
    match measure {
        TimePrecision::Fine => format!("{at:.3}"),
        TimePrecision::Second => Time::new(at).to_string(),
    }
}

/// Writes a length of time as measured: `412ms`, `5.9s`, `16m40s`.
fn length(length: SignedDuration) -> String {
    Duration(length).to_string()
}

/// Writes a length of time in whole seconds.
fn whole(length: SignedDuration) -> String {
    Duration::from_secs(length.as_secs()).to_string()
}
