//! A store within a shared cluster: every test has the namespaces `web` and `mail` and its own cluster-wide names, and
//! sees nothing of its neighbours.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use kubectl_acme::model::{Key, Kind, Record};
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::event_cache::EventCache;
use kubectl_acme::store::{Change, Manager, Part, Scope, Store};
use serde_json::Value;

/// Where everybody's events about cluster-wide objects are.
const SHARED: &str = "default";

/// The view of one test.
#[derive(Clone, Debug)]
pub(super) struct Tenant {
    store: Arc<dyn Store>,
    names: Names,
}

impl Tenant {
    /// Makes the view; whatever is made through it carries the mark.
    pub(super) fn new(store: Arc<dyn Store>, mark: &str) -> Self {
        Self { store, names: Names { mark: format!("-{mark}") } }
    }
}

/// What things are called inside and outside of the view.
#[derive(Clone, Debug)]
struct Names {
    mark: String,
}

impl Names {
    fn outside(&self, namespace: &str) -> String {
        match namespace {
            "" | SHARED => namespace.to_owned(),
            namespace => format!("{namespace}{}", self.mark),
        }
    }

    fn inside(&self, namespace: &str) -> Option<String> {
        match namespace {
            "" | SHARED => Some(namespace.to_owned()),
            namespace => namespace.strip_suffix(&self.mark).map(str::to_owned),
        }
    }

    fn key_out(&self, key: &Key) -> Key {
        let mut key = key.clone();
        if !key.kind.is_namespaced() {
            key.name.name.push_str(&self.mark);
        }
        key.name.namespace = self.outside(&key.name.namespace);
        key
    }

    fn out(&self, mut record: Record) -> Record {
        record.key = self.key_out(&record.key);
        let wide = |kind: &str| kind == Kind::ClusterIssuer.as_str();
        rename(&mut record.object, "/metadata/namespace", |name| Some(self.outside(name)));
        rename(&mut record.object, "/involvedObject/namespace", |name| Some(self.outside(name)));
        let marked = |name: &str| Some(format!("{name}{}", self.mark));
        if !record.key.kind.is_namespaced() {
            rename(&mut record.object, "/metadata/name", marked);
        }
        if wide(record.text("/involvedObject/kind")) {
            rename(&mut record.object, "/involvedObject/name", marked);
        }
        record
    }

    fn key_in(&self, mut key: Key) -> Option<Key> {
        key.name.namespace = self.inside(&key.name.namespace)?;
        if !key.kind.is_namespaced() {
            key.name.name = key.name.name.strip_suffix(&self.mark)?.to_owned();
        }
        Some(key)
    }

    /// The record as the test knows it; nothing when it is a neighbour's.
    fn take_in(&self, mut record: Record) -> Option<Record> {
        let unmarked = |name: &str| name.strip_suffix(&self.mark).map(str::to_owned);
        if record.key.name.namespace == SHARED {
            rename(&mut record.object, "/involvedObject/name", unmarked).then_some(())?;
        }
        record.key = self.key_in(record.key)?;
        rename(&mut record.object, "/metadata/namespace", |name| self.inside(name));
        rename(&mut record.object, "/involvedObject/namespace", |name| self.inside(name));
        if !record.key.kind.is_namespaced() {
            rename(&mut record.object, "/metadata/name", unmarked);
        }
        Some(record)
    }

    fn scope(&self, scope: &Scope) -> Scope {
        let namespace = scope.namespace.as_deref().map(|name| self.outside(name));
        Scope { namespace, ..scope.clone() }
    }

    fn error(&self, error: StoreError) -> StoreError {
        let key = |key: Key| self.key_in(key).expect("an error is about what was asked");
        match error {
            StoreError::Conflict { key: k } => StoreError::Conflict { key: key(k) },
            StoreError::AlreadyExists { key: k } => StoreError::AlreadyExists { key: key(k) },
            StoreError::NotFound { key: k } => StoreError::NotFound { key: key(k) },
            StoreError::Invalid { key: k, why } => StoreError::Invalid { key: key(k), why },
            StoreError::Held { key: k, why } => StoreError::Held { key: key(k), why },
            StoreError::Denied { key: k, why, guard } => {
                StoreError::Denied { key: key(k), why, guard }
            }
            error => error,
        }
    }

    fn written(&self, written: Result<Record, StoreError>) -> Result<Record, StoreError> {
        let record = written.map_err(|error| self.error(error))?;
        Ok(self.take_in(record).expect("what is written is ours"))
    }

    fn held(&self, held: Result<Option<Record>, StoreError>) -> Result<Option<Record>, StoreError> {
        held.map(|held| held.and_then(|record| self.take_in(record)))
            .map_err(|error| self.error(error))
    }

    fn change(&self, change: Change) -> Option<Change> {
        Some(match change {
            Change::Applied(record) => Change::Applied(self.take_in(record)?),
            Change::Deleted(record) => Change::Deleted(self.take_in(record)?),
            Change::Resynced(records) => {
                Change::Resynced(records.into_iter().filter_map(|r| self.take_in(r)).collect())
            }
        })
    }
}

/// Renames what is there; false when it may not be.
fn rename(object: &mut Value, pointer: &str, by: impl Fn(&str) -> Option<String>) -> bool {
    let Some(Value::String(text)) = object.pointer_mut(pointer) else { return true };
    let Some(renamed) = by(text) else { return false };
    *text = renamed;
    true
}

#[async_trait]
impl Store for Tenant {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let got = self.store.get(&self.names.key_out(key)).await;
        Ok(got
            .map_err(|error| self.names.error(error))?
            .and_then(|record| self.names.take_in(record)))
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let listed = self.store.list(kind, &self.names.scope(scope)).await;
        let listed = listed.map_err(|error| self.names.error(error))?;
        Ok(listed.into_iter().filter_map(|record| self.names.take_in(record)).collect())
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        self.names.written(self.store.create(self.names.out(record)).await)
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        self.names.written(self.store.replace(self.names.out(record), part).await)
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        self.names.written(self.store.apply(self.names.out(record)).await)
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.names.held(self.store.delete(&self.names.key_out(key)).await)
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        self.names.held(self.store.delete_exactly(&self.names.key_out(key), uid).await)
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        let names = self.names.clone();
        let changes = self.store.watch(kind, self.names.scope(&scope));
        let ours = changes.filter_map(move |change| {
            let ours = match change {
                Ok(change) => names.change(change).map(Ok),
                Err(error) => Some(Err(names.error(error))),
            };
            async { ours }
        });
        ours.boxed()
    }

    fn under(&self, manager: Manager) -> Option<Arc<dyn Store>> {
        let store = self.store.under(manager)?;
        Some(Arc::new(Self { store, names: self.names.clone() }))
    }

    fn event_cache(&self) -> Option<&EventCache> {
        self.store.event_cache()
    }
}
