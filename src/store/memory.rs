//! Resources in memory: for tests and for `--dry-run`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::error::StoreError;
use super::rules::Transaction;
use super::watch::{JOURNAL_LENGTH, Journal, JournalEntry, Lines, changes};
use super::{Change, Part, Scope, Store, rules};
use crate::model::{Key, Kind, ObjectName, Record};
use crate::surroundings::Environment;

/// A store that lives as long as the process.
pub struct MemoryStore {
    room: Room,
    revisions: watch::Sender<i64>,
}

impl MemoryStore {
    /// Makes an empty store.
    pub fn new() -> Self {
        Self { room: Room::default(), revisions: watch::Sender::new(0) }
    }

    /// Sets another clock and another source of random values than this machine's.
    #[must_use]
    pub fn within(self, surroundings: Environment) -> Self {
        self.room.contents().surroundings = surroundings;
        self
    }

    fn now(&self) -> Timestamp {
        let surroundings = self.room.contents().surroundings.clone();
        surroundings.now()
    }

    /// Makes a store of objects as another store holds them.
    pub fn of(records: impl IntoIterator<Item = Record>) -> Self {
        let store = Self::new();
        let mut contents = store.room.contents();
        for record in records {
            contents.revision += 1;
            contents.uids.insert(record.uid().to_owned(), record.key.clone());
            contents.objects.insert(record.key.clone(), record);
        }
        drop(contents);
        store
    }

    fn write<T>(
        &self,
        deed: impl FnOnce(&mut Contents) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut contents = self.room.contents();
        let done = deed(&mut contents);
        let revision = contents.revision;
        drop(contents);
        self.revisions.send_if_modified(|told| std::mem::replace(told, revision) != revision);
        done
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemoryStore({} objects)", self.room.contents().objects.len())
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.room.contents().read(key)
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        Ok(self.room.contents().list(kind, scope))
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        let now = self.now();
        self.write(|contents| rules::create(contents, record, now))
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        let now = self.now();
        self.write(|contents| rules::replace(contents, record, part, now))
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        let now = self.now();
        self.write(|contents| rules::apply(contents, record, now))
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let now = self.now();
        self.write(|contents| rules::delete(contents, key, now))
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        let now = self.now();
        self.write(|contents| rules::delete_exactly(contents, key, uid, now))
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        changes(self.room.clone(), self.revisions.subscribe(), kind, scope)
    }
}

#[derive(Clone, Default)]
struct Room(Arc<Mutex<Contents>>);

impl Room {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        // The rules leave the contents whole at every step that could fail.
        self.0.lock()
    }
}

impl Journal for Room {
    async fn snapshot(&self, kind: Kind, scope: &Scope) -> Result<(i64, Vec<Record>), StoreError> {
        let contents = self.contents();
        Ok((contents.revision, contents.list(kind, scope)))
    }

    async fn since(&self, kind: Kind, revision: i64) -> Result<(i64, Option<Lines>), StoreError> {
        let contents = self.contents();
        let oldest = contents.journal.front().map_or(contents.revision, |line| line.0 - 1);
        let new = contents.journal.iter().filter(|line| line.0 > revision);
        let logged = new.map(|(_, logged)| logged).filter(|l| l.record.key.kind == kind).cloned();
        Ok((contents.revision, (revision >= oldest).then(|| logged.collect())))
    }
}

#[derive(Default)]
struct Contents {
    surroundings: Environment,
    revision: i64,
    objects: BTreeMap<Key, Record>,
    /// Keys of the objects, by UID.
    uids: HashMap<String, Key>,
    /// Changes by their revision.
    journal: VecDeque<(i64, Arc<JournalEntry>)>,
}

impl Contents {
    fn list(&self, kind: Kind, scope: &Scope) -> Vec<Record> {
        let namespace = scope.namespace.as_deref().unwrap_or_default();
        let first = Key::new(kind, ObjectName::new(namespace, ""));
        let from_first = self.objects.range((Bound::Included(first), Bound::Unbounded));
        let of_kind = from_first.map(|(_, record)| record).take_while(|r| r.key.kind == kind);
        of_kind.filter(|record| scope.fits(record)).cloned().collect()
    }

    fn events(&self) -> impl Iterator<Item = &Record> {
        let first = Key::new(Kind::Event, ObjectName::new("", ""));
        let from_first = self.objects.range((Bound::Included(first), Bound::Unbounded));
        from_first.map(|(_, record)| record).take_while(|record| record.key.kind == Kind::Event)
    }

    fn log(&mut self, record: &Record, revision: i64, gone: bool) {
        self.journal.push_back((revision, Arc::new(JournalEntry { record: record.clone(), gone })));
        if self.journal.front().is_some_and(|line| line.0 <= revision - JOURNAL_LENGTH) {
            self.journal.pop_front();
        }
    }
}

impl Transaction for Contents {
    fn surroundings(&self) -> &Environment {
        &self.surroundings
    }

    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        Ok(self.objects.get(key).cloned())
    }

    fn next_revision(&mut self) -> Result<i64, StoreError> {
        self.revision += 1;
        Ok(self.revision)
    }

    fn put(&mut self, record: &Record, revision: i64) -> Result<(), StoreError> {
        self.log(record, revision, false);
        self.uids.insert(record.uid().to_owned(), record.key.clone());
        self.objects.insert(record.key.clone(), record.clone());
        Ok(())
    }

    fn remove(&mut self, record: &Record, revision: i64) -> Result<(), StoreError> {
        self.log(record, revision, true);
        self.uids.remove(record.uid());
        self.objects.remove(&record.key);
        Ok(())
    }

    fn is_there(&self, uid: &str) -> Result<bool, StoreError> {
        Ok(self.uids.contains_key(uid))
    }

    fn dependents(&self, uid: &str) -> Result<Vec<Key>, StoreError> {
        let owned =
            |record: &&Record| record.metadata().owner_references.iter().any(|o| o.uid == uid);
        Ok(self.objects.values().filter(owned).map(|record| record.key.clone()).collect())
    }

    fn told_before(&self, moment: &str, most: u32) -> Result<Vec<Key>, StoreError> {
        let before =
            |event: &&Record| rules::last_occurrence(event).is_some_and(|told| told < moment);
        Ok(self
            .events()
            .filter(before)
            .take(most as usize)
            .map(|event| event.key.clone())
            .collect())
    }

    fn told_beyond(&self, about: &str, kept: u32, most: u32) -> Result<Vec<Key>, StoreError> {
        let is_about = |event: &&Record| event.text("/involvedObject/uid") == about;
        let mut events: Vec<_> = self.events().filter(is_about).collect();
        events.sort_by_key(|event| Reverse((rules::last_occurrence(event), &event.key.name)));
        let beyond = events.into_iter().skip(kept as usize).take(most as usize);
        Ok(beyond.map(|event| event.key.clone()).collect())
    }
}
