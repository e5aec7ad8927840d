//! Removal of old Events. An API server drops an Event an hour after its last occurrence; stores of ours keep Events
//! for `timeline`, but not without end.
//!
//! When a new Event comes, two sorts of others go, a few at a time: Events about any object that last occurred more
//! than [`EVENT_DAYS`] before it; and of Events about its own object those beyond the newest [`MAX_EVENTS_OF_OBJECT`].
//! So a certificate of 90 days has all Events of its last renewal. Whether the object still exists does not matter:
//! Challenges and Orders go after each success, and their Events belong to the timeline of their Certificate.

use jiff::{SignedDuration, Timestamp};

use super::error::StoreError;
use super::transaction::Transaction;
use crate::model::common::Time;
use crate::model::{Key, Kind, Record};

/// Days for which an Event is kept after its last occurrence.
const EVENT_DAYS: i64 = 100;
/// Number of Events that are kept about one object.
const MAX_EVENTS_OF_OBJECT: u32 = 200;
/// Most Events of each sort that go at once: no write takes long, and still more go than come.
const BATCH: u32 = 16;

/// Time of the last occurrence of an Event, as text that sorts by time; `None` for other objects.
pub(super) fn told(record: &Record) -> Option<&str> {
    let times = ["/lastTimestamp", "/metadata/creationTimestamp"].map(|field| record.text(field));
    times.into_iter().find(|time| record.key.kind == Kind::Event && !time.is_empty())
}

/// Lists the Events that a new Event makes obsolete.
pub(super) fn bygone(
    transaction: &dyn Transaction,
    event: &Record,
    now: Timestamp,
) -> Result<Vec<Key>, StoreError> {
    // An Event of a clock that is ahead makes no other Event old.
    let at =
        told(event).and_then(|told| told.parse().ok()).map_or(now, |told: Timestamp| told.min(now));
    let before =
        at.saturating_sub(SignedDuration::from_hours(24 * EVENT_DAYS)).unwrap_or(Timestamp::MIN);
    let mut bygone = transaction.told_before(&Time::new(before).to_string(), BATCH)?;
    let about = event.text("/involvedObject/uid");
    if !about.is_empty() {
        bygone.extend(transaction.told_beyond(about, MAX_EVENTS_OF_OBJECT, BATCH)?);
    }
    bygone.retain(|key| *key != event.key);
    Ok(bygone)
}
