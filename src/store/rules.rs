//! The rules of writing, shared by every store that is not an API server: effects of `create`, `replace`, `apply` and
//! `delete` on the objects of a [`Transaction`], garbage collection and removal of old Events included.

use jiff::{SignedDuration, Timestamp};

use super::error::{StoreError, invalid};
use super::object::{Object, has_status};
use super::{Part, ids};
use crate::model::common::Time;
use crate::model::memory::is_ours;
use crate::model::{Key, Kind, Metadata, Record};
use crate::surroundings::Environment;

/// Most draws of another name when a generated name is taken.
const NAME_DRAWS: usize = 8;
/// Days for which an Event is kept after its last occurrence.
const EVENT_DAYS: i64 = 100;
/// Number of Events that are kept about one object.
const MAX_EVENTS_OF_OBJECT: u32 = 200;
/// Most obsolete Events of each sort that go at once: no write takes long, and still more go than come.
const EVENTS_AT_ONCE: u32 = 16;

/// All objects of a store, within one transaction: either all of its changes are kept, or none.
pub(crate) trait Transaction {
    /// Source of the random values for UIDs and the ends of generated names.
    fn surroundings(&self) -> &Environment;
    /// Reads one object.
    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError>;
    /// Raises the revision and returns it.
    fn next_revision(&mut self) -> Result<i64, StoreError>;
    /// Stores an object, new or changed, under its revision.
    fn put(&mut self, record: &Record, revision: i64) -> Result<(), StoreError>;
    /// Removes an object; the record is its last state.
    fn remove(&mut self, record: &Record, revision: i64) -> Result<(), StoreError>;
    /// Returns whether the object with that UID is there.
    fn is_there(&self, uid: &str) -> Result<bool, StoreError>;
    /// Finds the objects that name that UID among their owners.
    fn dependents(&self, uid: &str) -> Result<Vec<Key>, StoreError>;
    /// Finds at most `most` of the Events whose last occurrence was before a moment.
    fn told_before(&self, moment: &str, most: u32) -> Result<Vec<Key>, StoreError>;
    /// Finds at most `most` of the Events about the object with that UID, beyond the newest `kept`.
    fn told_beyond(&self, about: &str, kept: u32, most: u32) -> Result<Vec<Key>, StoreError>;
}

/// Creates an object.
pub(super) fn create(
    transaction: &mut dyn Transaction,
    record: Record,
    now: Timestamp,
) -> Result<Record, StoreError> {
    let mut object = Object::read(record)?;
    object.drop_server_managed();
    if object.metadata.name.is_empty() && !object.metadata.generate_name.is_empty() {
        object.metadata.name = free_name(transaction, &object)?;
    }
    object.check_name()?;
    object.settle_secret()?;
    if transaction.read(&object.key())?.is_some() {
        return Err(StoreError::AlreadyExists { key: object.key() });
    }
    object.metadata.uid = ids::uid(transaction.surroundings())?;
    object.metadata.creation_timestamp = Some(now.into());
    object.metadata.generation = has_status(object.kind).then_some(1);
    let created = put(transaction, object, now)?;
    if created.key.kind == Kind::Event {
        for key in bygone_events(transaction, &created, now)? {
            delete(transaction, &key, now)?;
        }
    }
    Ok(created)
}

/// Writes one part of an object.
pub(super) fn replace(
    transaction: &mut dyn Transaction,
    record: Record,
    part: Part,
    now: Timestamp,
) -> Result<Record, StoreError> {
    let mut given = Object::read(record)?;
    let Some(stored) = transaction.read(&given.key())? else {
        return Err(StoreError::NotFound { key: given.key() });
    };
    let stored = Object::read(stored)?;
    check_revision(&given, &stored)?;
    let changed = match part {
        Part::Finalizers => {
            let mut changed = stored.clone();
            changed.metadata.finalizers = given.metadata.finalizers;
            changed
        }
        Part::Metadata => {
            let mut changed = stored.clone();
            changed.metadata.labels = given.metadata.labels;
            changed.metadata.annotations = given.metadata.annotations;
            changed.metadata.finalizers = given.metadata.finalizers;
            changed.metadata.owner_references = given.metadata.owner_references;
            changed
        }
        Part::Status if !has_status(stored.kind) => {
            return Err(invalid(&stored.key(), format!("a {} has no status", stored.kind)));
        }
        Part::Status => {
            let mut changed = stored.clone();
            changed.set_status(given.fields.remove("status"));
            changed
        }
        Part::Whole => {
            given.keep_server_managed(&stored);
            given.settle_secret()?;
            given
        }
    };
    store_change(transaction, &stored, changed, now)
}

/// Creates an object, or replaces the parts of the stored object that a manifest states.
pub(super) fn apply(
    transaction: &mut dyn Transaction,
    record: Record,
    now: Timestamp,
) -> Result<Record, StoreError> {
    let Some(stored) = transaction.read(&record.key)? else {
        return create(transaction, record, now);
    };
    let (mut given, stored) = (Object::read(record)?, Object::read(stored)?);
    check_revision(&given, &stored)?;
    given.keep_server_managed(&stored);
    given.settle_secret()?;
    let (metadata, kept) = (&mut given.metadata, &stored.metadata);
    // A manifest that is applied again does not wipe out the annotations by which we remember.
    let memory = kept.annotations.iter().filter(|(name, _)| is_ours(name));
    metadata.annotations.retain(|name, _| !is_ours(name));
    metadata.annotations.extend(memory.map(|(name, text)| (name.clone(), text.clone())));
    metadata.finalizers = join_entries(&kept.finalizers, &metadata.finalizers);
    metadata.owner_references = join_entries(&kept.owner_references, &metadata.owner_references);
    store_change(transaction, &stored, given, now)
}

/// Deletes an object; an object that finalizers hold is marked, and returned.
pub(super) fn delete(
    transaction: &mut dyn Transaction,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Record>, StoreError> {
    let Some(stored) = transaction.read(key)? else { return Ok(None) };
    let mut object = Object::read(stored)?;
    if object.metadata.finalizers.is_empty() {
        remove(transaction, object, now)?;
        return Ok(None);
    }
    if object.metadata.is_deleted() {
        return object.into_record().map(Some);
    }
    // As an API server does, recorded in `tests/fixtures/traces/19-dns01-clean-up-error.jsonl`.
    object.metadata.deletion_timestamp = Some(now.into());
    object.metadata.other.insert("deletionGracePeriodSeconds".into(), 0.into());
    object.metadata.generation = object.metadata.generation.map(|count| count + 1);
    put(transaction, object, now).map(Some)
}

/// Deletes the object of that UID and no other.
pub(super) fn delete_exactly(
    transaction: &mut dyn Transaction,
    key: &Key,
    uid: &str,
    now: Timestamp,
) -> Result<Option<Record>, StoreError> {
    match transaction.read(key)? {
        Some(stored) if stored.uid() != uid => Err(StoreError::Conflict { key: key.clone() }),
        _ => delete(transaction, key, now),
    }
}

/// Stores the object that a write has changed, if it changed anything.
fn store_change(
    transaction: &mut dyn Transaction,
    stored: &Object,
    mut changed: Object,
    now: Timestamp,
) -> Result<Record, StoreError> {
    let added = |name: &String| !stored.metadata.finalizers.contains(name);
    if stored.metadata.is_deleted() && changed.metadata.finalizers.iter().any(added) {
        return Err(invalid(&stored.key(), "it is being deleted and takes no new finalizers"));
    }
    if has_status(stored.kind) && !changed.wants_same(stored) {
        changed.metadata.generation = stored.metadata.generation.map(|count| count + 1);
    }
    if changed == *stored {
        return changed.into_record();
    }
    if changed.metadata.is_deleted() && changed.metadata.finalizers.is_empty() {
        return remove(transaction, changed, now);
    }
    put(transaction, changed, now)
}

/// Stores an object under a new revision, and deletes it again if none of its owners is there.
fn put(
    transaction: &mut dyn Transaction,
    object: Object,
    now: Timestamp,
) -> Result<Record, StoreError> {
    let orphaned = is_orphaned(transaction, &object.metadata)?;
    let (record, revision) = assign_revision(transaction, object)?;
    transaction.put(&record, revision)?;
    if orphaned {
        delete(transaction, &record.key, now)?;
    }
    Ok(record)
}

/// Removes an object, and the objects whose last owner it was.
fn remove(
    transaction: &mut dyn Transaction,
    object: Object,
    now: Timestamp,
) -> Result<Record, StoreError> {
    let (record, revision) = assign_revision(transaction, object)?;
    transaction.remove(&record, revision)?;
    for key in transaction.dependents(record.uid())? {
        let Some(dependent) = transaction.read(&key)? else { continue };
        if is_orphaned(transaction, &dependent.metadata())? {
            delete(transaction, &key, now)?;
        }
    }
    Ok(record)
}

/// Returns whether an object had owners and has none any more; an object that is being deleted is left alone.
fn is_orphaned(transaction: &dyn Transaction, metadata: &Metadata) -> Result<bool, StoreError> {
    if metadata.owner_references.is_empty() || metadata.is_deleted() {
        return Ok(false);
    }
    for owner in &metadata.owner_references {
        if transaction.is_there(&owner.uid)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn assign_revision(
    transaction: &mut dyn Transaction,
    mut object: Object,
) -> Result<(Record, i64), StoreError> {
    let revision = transaction.next_revision()?;
    object.metadata.resource_version = revision.to_string();
    Ok((object.into_record()?, revision))
}

/// Refuses a write that was based on another state of the object, or on an older object of that name.
fn check_revision(given: &Object, stored: &Object) -> Result<(), StoreError> {
    let stale = |given: &str, stored: &str| !given.is_empty() && given != stored;
    if stale(&given.metadata.resource_version, &stored.metadata.resource_version)
        || stale(&given.metadata.uid, &stored.metadata.uid)
    {
        return Err(StoreError::Conflict { key: stored.key() });
    }
    Ok(())
}

fn free_name(transaction: &dyn Transaction, object: &Object) -> Result<String, StoreError> {
    let mut key = object.key();
    for _ in 0..NAME_DRAWS {
        key.name.name = ids::name(&object.metadata.generate_name, transaction.surroundings())?;
        if transaction.read(&key)?.is_none() {
            return Ok(key.name.name);
        }
    }
    Err(StoreError::AlreadyExists { key })
}

/// Returns the stored entries, then the new ones.
fn join_entries<T: Clone + PartialEq>(stored: &[T], given: &[T]) -> Vec<T> {
    let new = given.iter().filter(|entry| !stored.contains(entry));
    stored.iter().chain(new).cloned().collect()
}

/// Time of the last occurrence of an Event, as text that sorts by time; `None` for other objects.
pub(super) fn last_occurrence(record: &Record) -> Option<&str> {
    let times = ["/lastTimestamp", "/metadata/creationTimestamp"].map(|field| record.text(field));
    times.into_iter().find(|time| record.key.kind == Kind::Event && !time.is_empty())
}

/// Lists the Events that a new Event makes obsolete. An API server drops an Event an hour after its last occurrence; stores
/// of ours keep Events for `timeline`, but not without end.
///
/// Two sorts of Events go, a few at a time: Events about any object that last occurred more than [`EVENT_DAYS`] before the
/// new one; and of Events about its own object those beyond the newest [`MAX_EVENTS_OF_OBJECT`]. So a certificate of 90 days
/// has all Events of its last renewal. Whether the object still exists does not matter: Challenges and Orders go after each
/// success, and their Events belong to the timeline of their Certificate.
fn bygone_events(
    transaction: &dyn Transaction,
    event: &Record,
    now: Timestamp,
) -> Result<Vec<Key>, StoreError> {
    // An Event of a clock that is ahead makes no other Event old.
    let at = last_occurrence(event)
        .and_then(|told| told.parse().ok())
        .map_or(now, |told: Timestamp| told.min(now));
    let before =
        at.saturating_sub(SignedDuration::from_hours(24 * EVENT_DAYS)).unwrap_or(Timestamp::MIN);
    let mut bygone = transaction.told_before(&Time::new(before).to_string(), EVENTS_AT_ONCE)?;
    let about = event.text("/involvedObject/uid");
    if !about.is_empty() {
        bygone.extend(transaction.told_beyond(about, MAX_EVENTS_OF_OBJECT, EVENTS_AT_ONCE)?);
    }
    bygone.retain(|key| *key != event.key);
    Ok(bygone)
}
