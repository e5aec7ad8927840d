//! Memory of one kind: its objects, their owners, and the watchers of their changes.
//!
//! An object that is missing from a new list is reported as deleted: a watcher gets no other report of its end.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::Value;
use tokio::sync::mpsc::UnboundedSender;

use super::tombstones::{Tombstones, is_newer, owner_uid};
use crate::model::{Kind, ObjectName, Record};
use crate::store::error::StoreError;
use crate::store::{Change, Listed, Scope};

/// The objects of one kind, as watched and as written.
#[derive(Debug)]
pub(super) struct KindCache {
    records: BTreeMap<ObjectName, Record>,
    /// Secrets whose content we have read or written, until they change.
    contents: HashMap<ObjectName, Record>,
    /// Names by the UID of the managing owner.
    owned: HashMap<String, BTreeSet<ObjectName>>,
    /// Objects written through us and not watched yet, with the UID of each.
    unheard: HashMap<ObjectName, String>,
    gone: Tombstones,
    standing: Standing,
    /// Namespaces whose objects with a managing owner were read, once, if nothing is watched.
    read: BTreeSet<String>,
    watchers: Vec<Watcher>,
}

/// Trust in the memory of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The watch has not begun.
    Unknown,
    /// The watch has reported all objects.
    Whole,
    /// The watch failed since; it goes on without a gap, or reports everything anew.
    Doubtful,
}

/// Receiver of changes.
#[derive(Debug)]
struct Watcher {
    scope: Scope,
    /// Objects that the watcher believes to be in the scope; kept only if they can leave it without being deleted.
    told: HashSet<ObjectName>,
    changes: UnboundedSender<Result<Change, StoreError>>,
}

impl KindCache {
    /// Makes an empty cache, of which nothing is known yet.
    pub(super) fn new() -> Self {
        Self {
            records: BTreeMap::new(),
            contents: HashMap::new(),
            owned: HashMap::new(),
            unheard: HashMap::new(),
            gone: Tombstones::default(),
            standing: Standing::Unknown,
            read: BTreeSet::new(),
            watchers: Vec::new(),
        }
    }

    /// Returns whether all objects are known.
    pub(super) fn is_whole(&self) -> bool {
        self.standing == Standing::Whole
    }

    /// Returns whether all objects with an owner in a namespace were read.
    pub(super) fn has_read(&self, namespace: &str) -> bool {
        self.read.contains(namespace)
    }

    /// Takes in a namespace that was read whole; objects without an owner are never asked for.
    pub(super) fn read(&mut self, namespace: &str, records: &[Record]) {
        records.iter().filter(|record| owner_uid(record).is_some()).for_each(|r| self.written(r));
        self.read.insert(namespace.to_owned());
    }

    /// Returns an object, if all of it is known.
    pub(super) fn get(&self, name: &ObjectName) -> Option<&Record> {
        let known = self.records.get(name)?;
        if known.key.kind != Kind::Secret {
            return Some(known);
        }
        let content = self.contents.get(name)?;
        (content.resource_version() == known.resource_version()).then_some(content)
    }

    /// Returns whether an object is known to be there.
    pub(super) fn has(&self, name: &ObjectName) -> bool {
        self.records.contains_key(name)
    }

    /// Returns whether an object of that name, or of that owner, may have been there, and gone.
    pub(super) fn may_have_had(&self, like: &Record) -> bool {
        !self.is_whole() || self.gone.is_like(like)
    }

    /// The objects of a scope, ordered by namespace and name.
    pub(super) fn list(&self, scope: &Scope) -> Vec<Record> {
        self.within(scope).into_iter().cloned().collect()
    }

    /// Lists the objects of a scope; objects of a known revision by name alone.
    pub(super) fn list_unknown(
        &self,
        scope: &Scope,
        known: &HashMap<ObjectName, String>,
    ) -> Vec<Listed> {
        let listed = self.within(scope).into_iter().map(|record| {
            let name = &record.key.name;
            match known.get(name) {
                Some(revision) if revision == record.resource_version() => {
                    Listed::Known(name.clone())
                }
                _ => Listed::Record(record.clone()),
            }
        });
        listed.collect()
    }

    fn within(&self, scope: &Scope) -> Vec<&Record> {
        if let Some(owner) = &scope.owner_uid {
            let owned = self.owned.get(owner).into_iter().flatten();
            let owned = owned.filter_map(|name| self.records.get(name));
            return owned.filter(|record| scope.fits(record)).collect();
        }
        let Some(namespace) = &scope.namespace else {
            return self.records.values().filter(|record| scope.fits(record)).collect();
        };
        let from_first = self.records.range(ObjectName::new(namespace, "")..);
        let within = from_first.take_while(|(name, _)| name.namespace == *namespace);
        within.map(|(_, record)| record).filter(|record| scope.fits(record)).collect()
    }

    /// Adds a watcher; while nothing is known yet, a new watcher gets all objects later.
    pub(super) fn tell(
        &mut self,
        scope: Scope,
        changes: UnboundedSender<Result<Change, StoreError>>,
    ) {
        let mut watcher = Watcher { scope, told: HashSet::new(), changes };
        if self.is_whole() {
            watcher.resync(self.list(&watcher.scope));
        }
        self.watchers.push(watcher);
    }

    /// Notes that the watch failed, and reports the error. The watch goes on, and so do the watchers.
    pub(super) fn fail(&mut self, error: &StoreError) {
        if self.standing == Standing::Whole {
            self.standing = Standing::Doubtful;
        }
        self.watchers.retain(|watcher| watcher.changes.send(Err(error.clone())).is_ok());
    }

    /// Notes that the watch has ended for good.
    pub(super) fn end(&mut self) {
        self.watchers.clear();
    }

    /// Takes in an object that was written through us, or read from the store just now.
    pub(super) fn written(&mut self, record: &Record) {
        if record.key.kind == Kind::Secret {
            self.contents.insert(record.key.name.clone(), record.clone());
        }
        if !self.is_news(record) {
            return;
        }
        let metadata = record.metadata();
        if metadata.is_deleted() && metadata.finalizers.is_empty() {
            // No finalizer held the object any more.
            let last = strip_content(record);
            self.remove(&last);
            return self.gone.note(&last);
        }
        self.unheard.insert(record.key.name.clone(), metadata.uid);
        self.put(strip_content(record));
    }

    /// UID of an object that is known to be there.
    pub(super) fn uid(&self, name: &ObjectName) -> Option<String> {
        self.records.get(name).map(|record| record.uid().to_owned())
    }

    /// Removes an object that the store no longer has.
    pub(super) fn lost(&mut self, name: &ObjectName, uid: &str) {
        let known = self.records.get(name).filter(|record| record.uid() == uid);
        if let Some(record) = known.cloned() {
            self.remove(&record);
            self.gone.note(&record);
        }
    }

    /// Takes in a change from the watch.
    pub(super) fn watched(&mut self, change: Change) {
        if self.standing == Standing::Doubtful {
            self.standing = Standing::Whole;
        }
        match change {
            Change::Applied(record) => {
                self.note_reached(&record);
                if record.metadata().is_deleted() && self.gone.is_before(&record) {
                    // Another writer's finalizer, of which we did not know yet, has kept the object.
                    self.gone.forget(record.uid());
                }
                if self.is_news(&record) {
                    self.put(strip_content(&record));
                }
            }
            Change::Deleted(record) => {
                if self.gone.has(record.uid()) || self.is_another(&record) {
                    return;
                }
                self.remove(&record);
                // A read may be under way that found the object.
                self.gone.note(&record);
            }
            Change::Resynced(records) => self.resync(records),
        }
    }

    /// Objects written through us and missing from a list of everything: written after the list, or deleted since.
    pub(super) fn missing(&self, listed: &[Record]) -> Vec<Record> {
        let listed: HashSet<&ObjectName> = listed.iter().map(|record| &record.key.name).collect();
        let missing = self.unheard.keys().filter(|name| !listed.contains(name));
        missing.filter_map(|name| self.records.get(name)).cloned().collect()
    }

    /// Returns whether the watch has yet to report an object that was written through us.
    pub(super) fn is_unheard(&self, record: &Record) -> bool {
        self.unheard.get(&record.key.name).is_some_and(|uid| uid == record.uid())
    }

    fn resync(&mut self, records: Vec<Record>) {
        let before = std::mem::take(&mut self.records);
        self.owned.clear();
        for record in records {
            if self.gone.has(record.uid()) {
                if !self.gone.is_before(&record) {
                    // Listed before the object went.
                    continue;
                }
                self.gone.forget(record.uid());
            }
            self.note_reached(&record);
            let known = before.get(&record.key.name);
            let newer =
                known.filter(|known| known.uid() == record.uid() && is_newer(known, &record));
            let record = newer.cloned().unwrap_or_else(|| strip_content(&record));
            self.index(&record);
            self.records.insert(record.key.name.clone(), record);
        }
        let mut vanished = Vec::new();
        for (name, known) in before {
            if self.records.contains_key(&name) {
                continue;
            }
            if self.is_unheard(&known) {
                // Written after the list.
                self.index(&known);
                self.records.insert(name, known);
            } else {
                vanished.push(known);
            }
        }
        let records = &self.records;
        self.unheard.retain(|name, _| records.contains_key(name));
        self.contents.retain(|name, _| records.contains_key(name));
        self.standing = Standing::Whole;
        let mut watchers = std::mem::take(&mut self.watchers);
        watchers.retain_mut(|watcher| watcher.resync(self.list(&watcher.scope)));
        self.watchers = watchers;
        // A watcher that waits for such an object gets no other report.
        for record in vanished {
            self.watchers.retain_mut(|watcher| watcher.delete(&record));
            self.gone.note(&record);
        }
    }

    /// Notes that the watch has reached a write of ours.
    fn note_reached(&mut self, record: &Record) {
        let name = &record.key.name;
        if self.is_unheard(record)
            && self.records.get(name).is_none_or(|known| !is_newer(known, record))
        {
            self.unheard.remove(name);
        }
    }

    fn is_news(&self, record: &Record) -> bool {
        let known = self.records.get(&record.key.name);
        !self.gone.has(record.uid()) && known.is_none_or(|known| is_newer(record, known))
    }

    /// Returns whether the known object of that name took it after the record's object had gone.
    fn is_another(&self, record: &Record) -> bool {
        let known = self.records.get(&record.key.name);
        known.is_some_and(|known| known.uid() != record.uid() && is_newer(known, record))
    }

    fn put(&mut self, record: Record) {
        let name = record.key.name.clone();
        if let Some(known) = self.records.remove(&name) {
            self.unindex(&known);
        }
        self.index(&record);
        self.watchers.retain_mut(|watcher| watcher.apply(&record));
        self.records.insert(name, record);
    }

    fn remove(&mut self, record: &Record) {
        let name = &record.key.name;
        self.unheard.remove(name);
        self.contents.remove(name);
        if let Some(known) = self.records.remove(name) {
            self.unindex(&known);
        }
        self.watchers.retain_mut(|watcher| watcher.delete(record));
    }

    fn index(&mut self, record: &Record) {
        if let Some(owner) = owner_uid(record) {
            self.owned.entry(owner.to_owned()).or_default().insert(record.key.name.clone());
        }
    }

    fn unindex(&mut self, record: &Record) {
        let Some(owner) = owner_uid(record) else { return };
        let Some(names) = self.owned.get_mut(owner) else { return };
        names.remove(&record.key.name);
        if names.is_empty() {
            self.owned.remove(owner);
        }
    }
}

/// Every method returns whether the receiver still listens.
impl Watcher {
    fn resync(&mut self, records: Vec<Record>) -> bool {
        if self.scope.can_be_left() {
            self.told = records.iter().map(|record| record.key.name.clone()).collect();
        }
        self.changes.send(Ok(Change::Resynced(records))).is_ok()
    }

    fn apply(&mut self, record: &Record) -> bool {
        if self.scope.fits(record) {
            if self.scope.can_be_left() {
                self.told.insert(record.key.name.clone());
            }
            return self.changes.send(Ok(Change::Applied(record.clone()))).is_ok();
        }
        if self.told.remove(&record.key.name) {
            return self.changes.send(Ok(Change::Deleted(record.clone()))).is_ok();
        }
        !self.changes.is_closed()
    }

    fn delete(&mut self, record: &Record) -> bool {
        if self.told.remove(&record.key.name) || self.scope.fits(record) {
            return self.changes.send(Ok(Change::Deleted(record.clone()))).is_ok();
        }
        !self.changes.is_closed()
    }
}

/// Returns the part of an object that is kept: of Secrets nothing but their metadata.
fn strip_content(record: &Record) -> Record {
    let mut kept = record.clone();
    if kept.key.kind == Kind::Secret
        && let Value::Object(fields) = &mut kept.object
    {
        fields.retain(|name, _| matches!(name.as_str(), "apiVersion" | "kind" | "metadata"));
    }
    kept
}
