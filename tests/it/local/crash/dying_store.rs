//! A store whose process dies at one write.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use kubectl_acme::model::{Key, Kind, Record};
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::{Change, Part, Scope, Store};

/// What becomes of the write at which the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    /// It is in the store.
    AfterTheWrite,
    /// Its deed is done, and it is lost.
    BeforeTheWrite,
}

/// A store that takes so many writes, and nothing any more from the one at which its process dies.
#[derive(Debug)]
pub(super) struct Mortal {
    store: Arc<dyn Store>,
    left: AtomicI64,
    death: Death,
    /// Whether it dies at the first write of an order's URL.
    at_order_url: bool,
    last: OnceLock<Key>,
}

/// What a write has to do.
enum Fate {
    Done,
    DoneAndDead,
    Lost,
}

impl Mortal {
    /// Dies at the write before which there were `writes` others.
    pub(super) fn new(store: Arc<dyn Store>, writes: i64, death: Death) -> Self {
        let left = AtomicI64::new(writes);
        Self { store, left, death, at_order_url: false, last: OnceLock::new() }
    }

    /// Dies before an order's URL is written, whichever write that is: their order is not the same each time.
    pub(super) fn before_the_order_url(store: Arc<dyn Store>) -> Self {
        Self { at_order_url: true, ..Self::new(store, i64::MAX, Death::BeforeTheWrite) }
    }

    /// A process that outlives its work.
    pub(super) fn immortal(store: Arc<dyn Store>) -> Self {
        Self::new(store, i64::MAX, Death::AfterTheWrite)
    }

    /// Writes so far.
    pub(super) fn writes(&self) -> i64 {
        i64::MAX - self.left.load(Ordering::SeqCst)
    }

    /// What was written when the process died, if it has.
    pub(super) fn last(&self) -> Option<&Key> {
        self.last.get()
    }

    fn dead() -> StoreError {
        StoreError::Unusable { place: "test".to_owned(), why: "the process is dead".to_owned() }
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.last.get().is_some() { Err(Self::dead()) } else { Ok(()) }
    }

    fn fate(&self, key: &Key) -> Fate {
        match self.left.fetch_sub(1, Ordering::SeqCst) {
            1.. => Fate::Done,
            0 => {
                self.last.set(key.clone()).ok();
                match self.death {
                    Death::AfterTheWrite => Fate::DoneAndDead,
                    Death::BeforeTheWrite => Fate::Lost,
                }
            }
            _ => Fate::Lost,
        }
    }

    async fn write<T>(
        &self,
        key: &Key,
        write: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        match self.fate(key) {
            Fate::Done => write.await,
            Fate::DoneAndDead => write.await.and(Err(Self::dead())),
            Fate::Lost => Err(Self::dead()),
        }
    }
}

#[async_trait]
impl Store for Mortal {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.alive()?;
        self.store.get(key).await
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.alive()?;
        self.store.list(kind, scope).await
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        self.write(&record.key.clone(), self.store.create(record)).await
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        if self.at_order_url && !record.text("/status/url").is_empty() {
            self.left.store(0, Ordering::SeqCst);
        }
        self.write(&record.key.clone(), self.store.replace(record, part)).await
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        self.write(&record.key.clone(), self.store.apply(record)).await
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.write(key, self.store.delete(key)).await
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        self.write(key, self.store.delete_exactly(key, uid)).await
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        self.store.watch(kind, scope).boxed()
    }
}
