//! Every event of a Certificate and all below it, in order, with durations.
//!
//! Events stand in the order of the store's revisions (in a cluster, of their moments), and causes before effects
//! whatever was written first, because controllers tell side by side. An issuance is measured in milliseconds where all
//! of its moments are known so well, else in seconds: a sum must agree with its steps.

mod cells;
mod chain;
mod folded;
pub mod report;
pub mod saying;
pub mod sheet;
pub mod stage;

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};

use self::saying::Sequence;
use self::stage::{Saying, Stage};
use super::lineage;
use crate::model::event_times::Grain;
use crate::model::{Event, Kind, Severity};

/// What is told again within this is told once.
const ONCE: SignedDuration = SignedDuration::from_secs(1);

/// How often an event was told, of which an entry stands for one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeats {
    /// So often, at that moment.
    Times(u32),
    /// This is the first of so many.
    FirstOf(u32),
    /// This is the last of so many.
    LastOf(u32),
}

/// What happened at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// When it had happened, at the latest.
    pub at: Timestamp,
    /// When it was told first, of all times this entry knows of.
    pub first: Timestamp,
    /// How exactly the store knows that.
    pub grain: Grain,
    /// How often it was told.
    pub repeats: Repeats,
    /// To what kind of object.
    pub kind: String,
    /// To which object.
    pub name: String,
    /// Of a challenge: its domain, where that is known.
    pub domain: Option<String>,
    /// As it should be, or not.
    pub severity: Severity,
    /// The word for it.
    pub reason: String,
    /// The sentence.
    pub message: String,
    /// Who wrote it; several where controllers said the same in one second.
    pub sources: Vec<String>,
    /// Time since the issuance it belongs to began.
    pub since_start: SignedDuration,
    /// Time since the entry before, zero at the beginning of an issuance.
    pub step: SignedDuration,
    /// How exactly the issuance it belongs to is measured.
    pub measure: Grain,
    /// Which issuance it belongs to, from 0: a renewal starts another.
    pub issuance: usize,
    stage: Stage,
}

/// Puts events in order and measures the time between them; events without any time are left out.
pub fn entries<'a>(events: impl IntoIterator<Item = &'a Event>, sequence: Sequence) -> Vec<Entry> {
    let sayings = saying::in_order(events, sequence);
    let domains: HashMap<String, String> =
        sayings.iter().filter_map(|saying| lineage::domain(saying.event)).collect();
    let mut entries: Vec<Entry> = Vec::new();
    for telling in told_once(&sayings) {
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

/// The entries of the last issuance.
pub fn last_issuance(entries: &[Entry]) -> &[Entry] {
    entries.chunk_by(|a, b| a.issuance == b.issuance).last().unwrap_or_default()
}

/// One time of an event that is worth an entry.
#[derive(Clone, Copy)]
struct Telling<'s, 'a> {
    saying: &'s Saying<'a>,
    repeats: Repeats,
    first: Timestamp,
}

/// In each issuance an event is told the first time and the last one, and once where those are near.
fn told_once<'s, 'a>(sayings: &'s [Saying<'a>]) -> Vec<Telling<'s, 'a>> {
    let mut of_event: HashMap<(usize, usize), Vec<&Saying<'_>>> = HashMap::new();
    for saying in sayings {
        of_event.entry((saying.issuance, saying.number)).or_default().push(saying);
    }
    let told = sayings.iter().filter_map(|saying| {
        let all = &of_event[&(saying.issuance, saying.number)];
        let (repeats, first) = repeats(all, saying.nth)?;
        Some(Telling { saying, repeats, first })
    });
    told.collect()
}

/// What to say of one time among those of an event in an issuance, and when the first was; nothing of those in between.
fn repeats(all: &[&Saying<'_>], nth: usize) -> Option<(Repeats, Timestamp)> {
    let first = all.iter().min_by_key(|saying| saying.nth)?;
    let last = all.iter().max_by_key(|saying| saying.nth)?;
    let here = u32::try_from(all.len()).unwrap_or(u32::MAX);
    let total = first.event.count.unwrap_or(1).max(here);
    let (at, began) = (first.occasion.at, first.began);
    // Of what others count up, the times between the first and the last are unknown.
    let is_whole = usize::try_from(total).is_ok_and(|total| total == first.known);
    let count = match (first.nth == 0, last.nth + 1 == last.known) {
        (true, false) if !is_whole && here == 1 => return Some((Repeats::FirstOf(total), at)),
        (false, true) if !is_whole && here == 1 => return Some((Repeats::LastOf(total), began)),
        (true, true) => total,
        _ => here,
    };
    let is_spread = last.occasion.at.duration_since(at) >= ONCE;
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

/// Several controllers say the same of one object (five times `WaitingForApproval`).
fn is_said_by_another(earlier: &Entry, entry: &Entry) -> bool {
    let said = |entry: &Entry| {
        let Entry { kind, name, reason, message, repeats, .. } = entry.clone();
        (kind, name, reason, message, repeats)
    };
    said(earlier) == said(entry)
        && !entry.sources.iter().any(|source| earlier.sources.contains(source))
}

/// Measures one issuance: in milliseconds where every moment of it is known so well, else in whole seconds, and never backwards.
fn measure(issuance: &mut [Entry]) {
    let is_fine = issuance.iter().all(|entry| entry.grain == Grain::Fine);
    let grain = if is_fine { Grain::Fine } else { Grain::Second };
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

/// A moment as it is measured.
fn cut(at: Timestamp, grain: Grain) -> Timestamp {
    let cut = match grain {
        Grain::Fine => Timestamp::from_millisecond(at.as_millisecond()),
        Grain::Second => Timestamp::from_second(at.as_second()),
    };
    cut.unwrap_or(at)
}

impl Entry {
    fn new(Telling { saying, repeats, first }: Telling<'_, '_>) -> Self {
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

    /// Whether it tells that the Certificate was issued.
    pub fn is_issued(&self) -> bool {
        self.stage == Stage::CertificateEnded && self.severity == Severity::Normal
    }
}

/// How one issuance went.
#[derive(Clone, Copy, Debug)]
struct Total<'a> {
    /// What was told in it.
    entries: &'a [Entry],
    /// What ended it, or was told last.
    end: &'a Entry,
    outcome: IssuanceResult,
    /// How long nothing has been told while more is waited for.
    quiet: SignedDuration,
}

/// What became of an issuance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IssuanceResult {
    /// The certificate is there.
    Issued,
    /// The certificate is not there.
    NotIssued,
    /// No Certificate is in it, and what it is about is over.
    Over,
    /// No Certificate is in it, and what it is about is not over.
    UnderWay,
}

impl Total<'_> {
    /// The time it took, or takes already.
    fn length(&self) -> SignedDuration {
        self.end.since_start + self.quiet
    }

    /// When that time ended, by whole seconds or milliseconds.
    fn until(&self) -> Timestamp {
        cut(self.end.at, self.end.measure) + self.quiet
    }
}

/// How the issuances went, the last one until now.
fn totals(entries: &[Entry], now: Timestamp) -> Vec<Total<'_>> {
    let mut totals: Vec<Total<'_>> =
        entries.chunk_by(|a, b| a.issuance == b.issuance).filter_map(total).collect();
    if let Some(last) = totals.last_mut()
        && matches!(last.outcome, IssuanceResult::NotIssued | IssuanceResult::UnderWay)
    {
        let grain = last.end.measure;
        let quiet = cut(now, grain).duration_since(cut(last.end.at, grain));
        // What was told just now is not waited for.
        last.quiet = if quiet >= ONCE { quiet } else { SignedDuration::ZERO };
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
