//! A store whose watched kinds are read from memory.
//!
//! A new object of a name, or of an owner, of which an object has gone is made only after the owner was read anew: the
//! deletion of owned objects may be reported before their owner's. An issuance begins only after its Secret was read
//! from the store, and other writers' objects are read from the store before they count as absent: after a restore of a
//! Certificate and its Secret, the Certificate may be reported first.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::future::try_join_all;
use futures_util::stream::{self, BoxStream};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::debug;

use self::kind_cache::KindCache;
use self::tombstones::Unheard;
use super::error::StoreError;
use super::event_cache::EventCache;
use super::object::leave_out_bulk;
use super::{Change, Listed, Manager, Part, Scope, Store};
use crate::model::{Key, Kind, ObjectName, Record};

mod kind_cache;
mod tombstones;

/// A store in front of another store, for controllers in a cluster: an API server finds the objects of an owner only by
/// reading a whole namespace.
///
/// A kind is read from memory once it is watched through this view. A write through the view shows at once; another
/// writer's when the watch reports it. There is one watch of a kind, so that the receiver of a change finds it in
/// memory: with its own watch it could be early, read in vain, and never read again. An object that is not in memory is
/// read from the store before it counts as absent. Writes go to the store, which refuses those based on old state; then
/// the object is read anew. The content of a Secret is read when needed, and kept until the Secret changes.
#[derive(Clone)]
pub struct Mirror {
    store: Arc<dyn Store>,
    room: Arc<Room>,
}

/// State that all views of one mirror share.
struct Room {
    /// Ends the watches when the last view is dropped; the first field to go.
    _close: DropGuard,
    open: CancellationToken,
    /// Whether kinds are watched; else the objects of an owner are read with all of its namespace, once.
    watches: bool,
    /// The store as its watches use it, whichever manager writes.
    store: Arc<dyn Store>,
    caches: Mutex<BTreeMap<Kind, KindCache>>,
}

impl Mirror {
    /// Makes the view; nothing is watched yet.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::over(store, true)
    }

    /// Makes a view that never watches, for one pass over many objects: an API server would read a namespace again for
    /// each owner whose objects are listed. Later writes through the view are seen in it, those of others not.
    pub fn for_one_look(store: Arc<dyn Store>) -> Self {
        Self::over(store, false)
    }

    fn over(store: Arc<dyn Store>, watches: bool) -> Self {
        let open = CancellationToken::new();
        let room = Room {
            _close: open.clone().drop_guard(),
            open,
            watches,
            store: Arc::clone(&store),
            caches: Mutex::default(),
        };
        Self { store, room: Arc::new(room) }
    }

    /// Reads the memory of a kind; `None` unless all of the kind is known.
    fn read_cache<T>(&self, kind: Kind, look: impl FnOnce(&KindCache) -> T) -> Option<T> {
        let caches = self.room.caches();
        caches.get(&kind).filter(|cache| cache.is_whole()).map(look)
    }

    /// Returns the known objects of a scope; `None` unless all of them are known.
    async fn list_known(
        &self,
        kind: Kind,
        scope: &Scope,
    ) -> Result<Option<Vec<Record>>, StoreError> {
        let (false, Some(namespace), Some(_)) =
            (self.room.watches, &scope.namespace, &scope.owner_uid)
        else {
            return Ok(self.read_cache(kind, |cache| cache.list(scope)));
        };
        let list = |cache: &mut KindCache| cache.has_read(namespace).then(|| cache.list(scope));
        if let Some(known) = self.room.change(kind, list).flatten() {
            return Ok(Some(known));
        }
        let records = self.store.list(kind, &Scope::namespace(namespace)).await?;
        let mut caches = self.room.caches();
        let cache = caches.entry(kind).or_insert_with(KindCache::new);
        cache.read(namespace, &records);
        Ok(Some(cache.list(scope)))
    }

    fn has(&self, key: &Key) -> bool {
        self.read_cache(key.kind, |cache| cache.has(&key.name)).unwrap_or(false)
    }

    /// Returns a Secret that was listed, with its content.
    async fn content(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        match self.room.change(key.kind, |cache| cache.get(&key.name).cloned()).flatten() {
            Some(known) => Ok(Some(known)),
            None => self.get_anew(key).await,
        }
    }

    /// Takes in the result of a write. After a write that was based on old state the object is read anew.
    async fn keep(
        &self,
        key: &Key,
        written: Result<Record, StoreError>,
    ) -> Result<Record, StoreError> {
        match written {
            Ok(record) => {
                self.room.change(key.kind, |cache| cache.written(&record));
                Ok(record)
            }
            Err(StoreError::NotFound { .. }) if self.has(key) => {
                self.get_anew(key).await?;
                // Another writer has deleted the object since we read it.
                Err(StoreError::Conflict { key: key.clone() })
            }
            Err(error @ (StoreError::Conflict { .. } | StoreError::AlreadyExists { .. })) => {
                self.get_anew(key).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    /// UID of an object as we know it.
    fn uid(&self, key: &Key) -> Option<String> {
        self.room.change(key.kind, |cache| cache.uid(&key.name)).flatten()
    }

    /// Notes the outcome of a deletion.
    fn note_deletion(&self, key: &Key, uid: Option<&str>, held: Option<&Record>) {
        self.room.change(key.kind, |cache| match (held, uid) {
            (Some(record), _) => cache.written(record),
            (None, Some(uid)) => cache.lost(&key.name, uid),
            (None, None) => {}
        });
    }

    /// Fails if an object may have been there before and its owner is gone: an object that is deleted with its owner
    /// may be reported first, and would be made again.
    async fn expect_owner(&self, record: &Record) -> Result<(), StoreError> {
        let before = |cache: &mut KindCache| cache.may_have_had(record);
        if self.room.change(record.key.kind, before) != Some(true) {
            return Ok(());
        }
        let metadata = record.metadata();
        let Some((key, uid)) = metadata.controller_key() else { return Ok(()) };
        let found = self.get_anew(&key).await?;
        let stands = |found: &Record| found.uid() == uid && !found.metadata().is_deleted();
        if found.as_ref().is_some_and(stands) { Ok(()) } else { Err(StoreError::Conflict { key }) }
    }
}

impl Room {
    fn caches(&self) -> MutexGuard<'_, BTreeMap<Kind, KindCache>> {
        // Every change of a cache is whole before anything could fail.
        self.caches.lock()
    }

    /// Changes the memory of a kind, if there is any.
    fn change<T>(&self, kind: Kind, change: impl FnOnce(&mut KindCache) -> T) -> Option<T> {
        self.caches().get_mut(&kind).map(change)
    }

    /// Reads the objects that the watch has not reported meanwhile.
    async fn read(&self, unheard: &mut Unheard) {
        let mut unanswered = Vec::new();
        for known in unheard.take() {
            let Key { kind, ref name } = known.key;
            if self.change(kind, |cache| cache.is_unheard(&known)) != Some(true) {
                continue;
            }
            match self.store.get(&known.key).await {
                Ok(Some(read)) => {
                    self.change(kind, |cache| cache.written(&read));
                }
                Ok(None) => {
                    self.change(kind, |cache| cache.lost(name, known.uid()));
                }
                Err(_) => unanswered.push(known),
            }
        }
        unheard.keep(unanswered);
    }

    /// Starts the watch of a kind, unless it is watched.
    fn begin(self: &Arc<Self>, kind: Kind) {
        let mut caches = self.caches();
        if caches.contains_key(&kind) {
            return;
        }
        caches.insert(kind, KindCache::new());
        drop(caches);
        let changes = self.store.watch(kind, Scope::all());
        let following = follow(Arc::downgrade(self), kind, changes);
        tokio::spawn(self.open.clone().run_until_cancelled_owned(following));
    }
}

/// Keeps the memory of a kind by the changes that the store reports.
async fn follow(
    room: Weak<Room>,
    kind: Kind,
    mut changes: BoxStream<'static, Result<Change, StoreError>>,
) {
    let mut unheard = Unheard::new(Vec::new());
    loop {
        let told = tokio::select! {
            biased;
            () = unheard.due() => {
                let Some(room) = room.upgrade() else { return };
                room.read(&mut unheard).await;
                continue;
            }
            told = changes.next() => told,
        };
        let Some(room) = room.upgrade() else { return };
        match told {
            Some(Ok(Change::Resynced(records))) => {
                let missing = room.change(kind, |cache| cache.missing(&records));
                unheard = Unheard::new(missing.unwrap_or_default());
                room.read(&mut unheard).await;
                room.change(kind, |cache| cache.watched(Change::Resynced(records)));
            }
            Some(Ok(change)) => {
                room.change(kind, |cache| cache.watched(change));
            }
            Some(Err(error)) => {
                debug!(%error, %kind, "read from the store until it is watched again");
                room.change(kind, |cache| cache.fail(&error));
            }
            None => {
                room.change(kind, KindCache::end);
                return;
            }
        }
    }
}

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mirror({:?})", self.store)
    }
}

#[async_trait]
impl Store for Mirror {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if self.has(key) {
            return self.get_known(key).await;
        }
        self.get_anew(key).await
    }

    async fn get_known(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let known = self
            .read_cache(key.kind, |cache| (cache.has(&key.name), cache.get(&key.name).cloned()));
        match known {
            Some((_, Some(record))) => Ok(Some(record)),
            Some((false, None)) if self.store.reaches(key) => Ok(None),
            _ => self.get_anew(key).await,
        }
    }

    async fn get_anew(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let before = self.uid(key);
        let read = self.store.get(key).await?;
        self.room.change(key.kind, |cache| match (&read, before) {
            (Some(record), _) => cache.written(record),
            // Another object of that name may have been made meanwhile.
            (None, Some(uid)) => cache.lost(&key.name, &uid),
            (None, None) => {}
        });
        Ok(read)
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let Some(mut records) = self.list_known(kind, scope).await? else {
            return self.store.list(kind, scope).await;
        };
        if kind == Kind::Secret {
            let whole = records.iter().map(|record| self.content(&record.key));
            let whole = try_join_all(whole).await?.into_iter().flatten();
            return Ok(whole.filter(|record| scope.fits(record)).collect());
        }
        if scope.brief {
            for record in &mut records {
                leave_out_bulk(&mut record.object);
            }
        }
        Ok(records)
    }

    async fn list_unknown(
        &self,
        kind: Kind,
        scope: &Scope,
        known: &HashMap<ObjectName, String>,
    ) -> Result<Vec<Listed>, StoreError> {
        if kind != Kind::Secret
            && !scope.brief
            && let Some(listed) = self.read_cache(kind, |cache| cache.list_unknown(scope, known))
        {
            return Ok(listed);
        }
        Ok(self.list(kind, scope).await?.into_iter().map(Listed::Record).collect())
    }

    async fn list_anew(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let records = self.store.list(kind, scope).await?;
        if !scope.brief {
            self.room.change(kind, |cache| records.iter().for_each(|found| cache.written(found)));
        }
        Ok(records)
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        self.expect_owner(&record).await?;
        let key = record.key.clone();
        self.keep(&key, self.store.create(record).await).await
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        let key = record.key.clone();
        self.keep(&key, self.store.replace(record, part).await).await
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        let key = record.key.clone();
        self.keep(&key, self.store.apply(record).await).await
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let uid = self.uid(key);
        let held = self.store.delete(key).await?;
        self.note_deletion(key, uid.as_deref(), held.as_ref());
        Ok(held)
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        let held = self.store.delete_exactly(key, uid).await?;
        self.note_deletion(key, Some(uid), held.as_ref());
        Ok(held)
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        if kind == Kind::Event || !self.room.watches {
            return self.store.watch(kind, scope);
        }
        self.room.begin(kind);
        let (sender, told) = mpsc::unbounded_channel();
        let without_brief = Scope { brief: false, ..scope };
        self.room.change(kind, |cache| cache.tell(without_brief, sender));
        let told = stream::unfold(told, |mut told| async { Some((told.recv().await?, told)) });
        told.take_until(self.room.open.clone().cancelled_owned()).boxed()
    }

    fn under(&self, manager: Manager) -> Option<Arc<dyn Store>> {
        let store = self.store.under(manager)?;
        Some(Arc::new(Self { store, room: Arc::clone(&self.room) }))
    }

    fn in_cluster(&self) -> bool {
        self.store.in_cluster()
    }

    fn event_cache(&self) -> Option<&EventCache> {
        self.store.event_cache()
    }
}

#[cfg(test)]
mod tests;
