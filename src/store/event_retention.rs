//! Events that are forgotten. An API server drops an Event an hour after it was told last; stores of ours keep them for `timeline`,
//! but not without end.
//!
//! When a new Event comes, two sorts of others go, a few at a time: those told last so many days before it ([`DAYS`]), whatever they are
//! about; and of those about the same object the ones told last before the newest [`MOST`]. A certificate of 90 days still has all
//! Events of its last renewal then. Whether the object is still there is of no matter: Challenges and Orders go after each success,
//! and what was told of them belongs to the timeline of their Certificate.

use jiff::{SignedDuration, Timestamp};

use super::error::StoreError;
use super::transaction::Transaction;
use crate::model::common::Time;
use crate::model::{Key, Kind, Record};

/// So long an Event is kept after it was told last.
const DAYS: i64 = 100;
/// So many Events are kept about one object.
const MOST: u32 = 200;
/// Most Events of each sort that go at once: no write takes long, and still more go than come.
const BATCH: u32 = 16;

/// When an Event was told last, as text that sorts by time; nothing for other objects.
pub(super) fn told(record: &Record) -> Option<&str> {
    let times = ["/lastTimestamp", "/metadata/creationTimestamp"].map(|field| record.text(field));
    times.into_iter().find(|time| record.key.kind == Kind::Event && !time.is_empty())
}

/// The Events that a new one makes bygone.
pub(super) fn bygone(
    transaction: &dyn Transaction,
    event: &Record,
    now: Timestamp,
) -> Result<Vec<Key>, StoreError> {
    // An Event of a clock that is ahead makes no other one old.
    let at =
        told(event).and_then(|told| told.parse().ok()).map_or(now, |told: Timestamp| told.min(now));
    let before = at.saturating_sub(SignedDuration::from_hours(24 * DAYS)).unwrap_or(Timestamp::MIN);
    let mut bygone = transaction.told_before(&Time::new(before).to_string(), BATCH)?;
    let about = event.text("/involvedObject/uid");
    if !about.is_empty() {
        bygone.extend(transaction.told_beyond(about, MOST, BATCH)?);
    }
    bygone.retain(|key| *key != event.key);
    Ok(bygone)
}
