//! Each time at which an event was told, in order, and the issuances told apart.

use std::collections::{HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::Sequence;
use super::chain::{self, Stage};
use crate::model::event::reason;
use crate::model::occasion::{Grain, Occasion};
use crate::model::{Event, Kind};
use crate::print::lineage::{self, Named};

/// What is left of a second after its beginning.
const REST: SignedDuration = SignedDuration::from_nanos(999_999_999);

/// One time at which an event was told.
#[derive(Debug)]
pub(super) struct Saying<'a> {
    pub event: &'a Event,
    /// The place of the event in what was given: each has one.
    pub number: usize,
    /// How many times are known of it.
    pub known: usize,
    /// When the first of them was.
    pub began: Timestamp,
    /// Which of them this is.
    pub nth: usize,
    pub occasion: Occasion,
    pub stage: Stage,
    /// Which issuance it belongs to, from 0.
    pub issuance: usize,
    /// Whether it was told in this issuance for the first time.
    pub is_first: bool,
    /// The object of whose making it tells.
    pub makes: Option<Named>,
    /// Where it stands among the others: a revision, or nanoseconds.
    pub place: i128,
    /// When it had happened.
    pub latest: Timestamp,
    object: Option<Named>,
}

impl Saying<'_> {
    /// The object that it is about.
    pub(super) fn object(&self) -> Option<&Named> {
        self.object.as_ref()
    }

    /// The first and the last moment that it may have been.
    fn bounds(&self) -> (Timestamp, Timestamp) {
        let Occasion { at, grain, .. } = self.occasion;
        match grain {
            Grain::Fine => (at, at),
            Grain::Second => (at, at.saturating_add(REST).unwrap_or(at)),
        }
    }

    fn is_certificate(&self) -> bool {
        self.event.involved_object.kind == Kind::Certificate.as_str()
    }

    /// Tells whether it is the Certificate's private key that was made or taken.
    pub(super) fn is_key(&self) -> bool {
        let reason = self.event.reason.as_str();
        self.is_certificate() && [reason::GENERATED, reason::REUSED].contains(&reason)
    }
}

/// Every time at which these events were told, issuance by issuance, causes before effects.
pub(super) fn in_order<'a>(
    events: impl IntoIterator<Item = &'a Event>,
    sequence: Sequence,
) -> Vec<Saying<'a>> {
    let mut sayings: Vec<Saying<'a>> =
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
        // Where only the second is known, things begin with it and end with it.
        sayings.sort_by_key(|saying| {
            let (earliest, latest) = saying.bounds();
            (if saying.stage.is_end() { latest } else { earliest }, saying.stage)
        });
    }
    tell_issuances_apart(&mut sayings);
    sayings.sort_by_key(|saying| saying.issuance);
    for issuance in sayings.chunk_by_mut(|a, b| a.issuance == b.issuance) {
        chain::put_causes_first(issuance);
    }
    sayings
}

fn of(number: usize, event: &Event) -> Vec<Saying<'_>> {
    let occasions = event.occasions();
    let known = occasions.len();
    let began = occasions.first().map_or(Timestamp::UNIX_EPOCH, |occasion| occasion.at);
    let saying = |(nth, occasion): (usize, Occasion)| {
        let mut saying = Saying {
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

/// An issuance begins with `Issuing`, or with another private key where somebody asked for it by hand. What was told of an object
/// belongs to the issuance for which it was made.
fn tell_issuances_apart(sayings: &mut [Saying<'_>]) {
    let (mut issuance, mut is_under_way, mut has_key) = (0, false, false);
    let mut homes: HashMap<(&str, &str, &str), usize> = HashMap::new();
    let mut told: HashSet<(usize, usize)> = HashSet::new();
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
        saying.is_first = told.insert((saying.number, saying.issuance));
    }
}
