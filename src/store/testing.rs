//! Stores of tests that do some things in their own way.

use std::fmt;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use super::error::StoreError;
use super::{Change, Part, Scope, Store};
use crate::model::{Key, Kind, Record};

/// A store in front of another one, to which all methods go that the front does not override.
#[async_trait]
pub(crate) trait Front: fmt::Debug + Send + Sync {
    /// The other store.
    fn behind(&self) -> &dyn Store;

    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.behind().get(key).await
    }
    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.behind().list(kind, scope).await
    }
    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        self.behind().replace(record, part).await
    }
    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        self.behind().watch(kind, scope)
    }
    fn in_cluster(&self) -> bool {
        self.behind().in_cluster()
    }
}

#[async_trait]
impl<F: Front> Store for F {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        Front::get(self, key).await
    }
    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        Front::list(self, kind, scope).await
    }
    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        self.behind().create(record).await
    }
    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        Front::replace(self, record, part).await
    }
    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        self.behind().apply(record).await
    }
    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.behind().delete(key).await
    }
    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        self.behind().delete_exactly(key, uid).await
    }
    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        Front::watch(self, kind, scope)
    }
    fn in_cluster(&self) -> bool {
        Front::in_cluster(self)
    }
}
