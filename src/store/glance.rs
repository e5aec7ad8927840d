//! A store in front of an API server, for one look at many objects.
//!
//! In a cluster a list for each Certificate is a list of the whole namespace. `order -f` looks through this store; a
//! Mirror is for those who look all the time.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use parking_lot::{Mutex, MutexGuard};

use super::error::StoreError;
use super::event_cache::EventCache;
use super::manager::Manager;
use super::object::leave_out_bulk;
use super::{Change, Part, Scope, Store};
use crate::model::{Key, Kind, ObjectName, Record};

/// A store that reads each namespace once, where an API server would read all of it again for each owner whose objects are asked for.
/// Unlike a [`Mirror`](super::mirror::Mirror) it watches nothing: what others write later is not seen among an owner's objects,
/// what is written through it is. Made for one look, and dropped after it.
#[derive(Clone, Debug)]
pub struct Glance {
    store: Arc<dyn Store>,
    pages: Arc<Mutex<HashMap<Place, Page>>>,
}

/// What one list read: a kind in a namespace, whole or brief.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    kind: Kind,
    namespace: Option<String>,
    brief: bool,
}

/// The objects of a place by the UID of their managing owner; those that have none are not kept.
#[derive(Debug, Default)]
struct Page(HashMap<String, BTreeMap<ObjectName, Record>>);

impl Glance {
    /// Makes the view; nothing is read yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, pages: Arc::default() }
    }

    fn pages(&self) -> MutexGuard<'_, HashMap<Place, Page>> {
        // Every change of a page is whole before anything could fail.
        self.pages.lock()
    }

    /// Notes what a write has left of an object.
    fn wrote(&self, key: &Key, left: Option<&Record>) {
        let mut pages = self.pages();
        for (place, page) in pages.iter_mut().filter(|(place, _)| place.holds(key)) {
            page.0.values_mut().for_each(|owned| drop(owned.remove(&key.name)));
            if let Some(record) = left {
                page.put(record.clone(), place.brief);
            }
        }
    }

    fn keep(&self, written: Result<Record, StoreError>) -> Result<Record, StoreError> {
        let record = written?;
        let metadata = record.metadata();
        let is_gone = metadata.is_deleted() && metadata.finalizers.is_empty();
        self.wrote(&record.key, Some(&record).filter(|_| !is_gone));
        Ok(record)
    }
}

impl Place {
    fn holds(&self, key: &Key) -> bool {
        let in_namespace = |namespace: &String| *namespace == key.name.namespace;
        self.kind == key.kind && self.namespace.as_ref().is_none_or(in_namespace)
    }
}

impl Page {
    fn put(&mut self, mut record: Record, brief: bool) {
        let Some(owner) = record.metadata().controller().map(|owner| owner.uid.clone()) else {
            return;
        };
        if brief {
            leave_out_bulk(&mut record.object);
        }
        self.0.entry(owner).or_default().insert(record.key.name.clone(), record);
    }

    fn of(&self, owner: &str) -> Vec<Record> {
        self.0.get(owner).into_iter().flat_map(BTreeMap::values).cloned().collect()
    }
}

#[async_trait]
impl Store for Glance {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.store.get(key).await
    }

    async fn get_known(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.store.get_known(key).await
    }

    async fn get_anew(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.store.get_anew(key).await
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let (Some(owner), None) = (&scope.owner_uid, &scope.involved_uid) else {
            return self.store.list(kind, scope).await;
        };
        let place = Place { kind, namespace: scope.namespace.clone(), brief: scope.brief };
        if let Some(page) = self.pages().get(&place) {
            return Ok(page.of(owner));
        }
        let mut page = Page::default();
        for record in self.store.list(kind, &Scope { owner_uid: None, ..scope.clone() }).await? {
            page.put(record, scope.brief);
        }
        let found = page.of(owner);
        self.pages().insert(place, page);
        Ok(found)
    }

    async fn list_anew(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.store.list_anew(kind, scope).await
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        self.keep(self.store.create(record).await)
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        self.keep(self.store.replace(record, part).await)
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        self.keep(self.store.apply(record).await)
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let held = self.store.delete(key).await?;
        self.wrote(key, held.as_ref());
        Ok(held)
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        let held = self.store.delete_exactly(key, uid).await?;
        self.wrote(key, held.as_ref());
        Ok(held)
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        self.store.watch(kind, scope)
    }

    fn under(&self, manager: Manager) -> Option<Arc<dyn Store>> {
        let store = self.store.under(manager)?;
        Some(Arc::new(Self { store, pages: Arc::clone(&self.pages) }))
    }

    fn reaches(&self, key: &Key) -> bool {
        self.store.reaches(key)
    }

    fn in_cluster(&self) -> bool {
        self.store.in_cluster()
    }

    fn told(&self) -> Option<&EventCache> {
        self.store.told()
    }
}
