//! Occurrences of events, in order and separated by issuance.

use std::collections::{HashMap, HashSet};

use jiff::Timestamp;

use super::chain;
use super::stage::{Occurrence, Stage};
use crate::model::Event;
use crate::model::event_times::Occasion;
use crate::print::lineage;

/// Returns every occurrence of these events, issuance by issuance, causes before effects.
pub(super) fn in_order<'a>(
    events: impl IntoIterator<Item = &'a Event>,
    sequence: Sequence,
) -> Vec<Occurrence<'a>> {
    let mut sayings: Vec<Occurrence<'a>> =
        events.into_iter().enumerate().flat_map(|(number, event)| of(number, event)).collect();
    let revisions: Option<Vec<u64>> = match sequence {
        Sequence::Moments => None,
        Sequence::Revisions => sayings.iter().map(|saying| saying.occasion.revision).collect(),
    };
    if let Some(revisions) = revisions {
        for (saying, revision) in sayings.iter_mut().zip(revisions) {
            saying.place = i128::from(revision);
        }
        sayings.sort_by_key(|saying| saying.place);
    } else {
        // If only the second is known, a beginning counts from its start, and an end from its end.
        sayings.sort_by_key(|saying| {
            let (earliest, latest) = saying.bounds();
            (if saying.stage.is_end() { latest } else { earliest }, saying.stage)
        });
    }
    assign_issuances(&mut sayings);
    sayings.sort_by_key(|saying| saying.issuance);
    for issuance in sayings.chunk_by_mut(|a, b| a.issuance == b.issuance) {
        chain::put_causes_first(issuance);
    }
    sayings
}

fn of(number: usize, event: &Event) -> Vec<Occurrence<'_>> {
    let occasions = event.occasions();
    let known = occasions.len();
    let began = occasions.first().map_or(Timestamp::UNIX_EPOCH, |occasion| occasion.at);
    let saying = |(nth, occasion): (usize, Occasion)| {
        let mut saying = Occurrence {
            event,
            number,
            known,
            began,
            nth,
            occasion,
            stage: Stage::of(event),
            issuance: 0,
            is_first: true,
            makes: lineage::child(event),
            place: 0,
            latest: occasion.at,
            object: lineage::subject(event),
        };
        saying.latest = saying.bounds().1;
        saying.place = saying.latest.as_nanosecond();
        saying
    };
    occasions.into_iter().enumerate().map(saying).collect()
}

/// Assigns each event to an issuance. An issuance begins with `Issuing`, or with another private key after a
/// request by hand. Events of an object belong to the issuance for which the object was made.
fn assign_issuances(sayings: &mut [Occurrence<'_>]) {
    let (mut issuance, mut is_under_way, mut has_key) = (0, false, false);
    let mut homes: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut told = HashSet::new();
    for saying in sayings {
        let begins = saying.stage == Stage::Begun && is_under_way;
        if begins || (saying.is_key() && has_key) {
            issuance += 1;
            (is_under_way, has_key) = (false, false);
        }
        is_under_way |= saying.stage != Stage::Begun;
        has_key |= saying.is_key();
        let object = &saying.event.involved_object;
        saying.issuance = if saying.is_certificate() {
            issuance
        } else {
            *homes.entry((&object.kind, &object.name, &object.uid)).or_insert(issuance)
        };
        // An object made again under its old name repeats the same messages, in events of its own.
        let Event { reason, message, .. } = saying.event;
        saying.is_first =
            told.insert((&object.kind, &object.name, reason, message, saying.issuance));
    }
}

/// Source of the order of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Times in the events: in a cluster revisions are opaque, and other writers record events late.
    Moments,
    /// Revisions of the events in the store, whatever the store's clock did meanwhile.
    Revisions,
}
