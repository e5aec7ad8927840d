//! View of a store as if manifests were applied to it, and as it is at one moment: each object is read once, however
//! many callers ask for it. Nothing is written: the view is for reading only.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use super::error::{StoreError, unless_forbidden};
use super::memory::MemoryStore;
use super::{Change, Part, Scope, Store};
use crate::model::{Key, Kind, Record};

/// A view of a store with other objects above it.
#[derive(Debug)]
pub struct Overlay {
    below: Arc<dyn Store>,
    above: BTreeMap<Key, Record>,
    /// Objects that were read by name from the store below.
    read: Mutex<HashMap<Key, Arc<OnceCell<Option<Record>>>>>,
}

impl Overlay {
    /// Makes a view of the store as it is.
    pub fn over(below: Arc<dyn Store>) -> Self {
        Self { below, above: BTreeMap::new(), read: Mutex::default() }
    }

    /// Makes a view of the store with these manifests applied as they would be: the state of existing objects stays.
    ///
    /// # Errors
    /// Fails if the store fails, or would not take a manifest; an object that may not be read counts as missing.
    pub async fn of(below: Arc<dyn Store>, manifests: &[Record]) -> Result<Self, StoreError> {
        let mut held = Vec::new();
        for manifest in manifests {
            held.extend(unless_forbidden(below.get(&manifest.key).await)?.flatten());
        }
        let applied = MemoryStore::of(held);
        let mut above = BTreeMap::new();
        for manifest in manifests {
            let record = applied.apply(manifest.clone()).await?;
            above.insert(record.key.clone(), record);
        }
        Ok(Self { above, ..Self::over(below) })
    }
}

/// Makes the error for a write, as a view takes none.
fn read_only_error(key: &Key) -> StoreError {
    StoreError::Invalid { key: key.clone(), why: "it is only looked at".to_owned() }
}

#[async_trait]
impl Store for Overlay {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if let Some(record) = self.above.get(key) {
            return Ok(Some(record.clone()));
        }
        let read = Arc::clone(self.read.lock().entry(key.clone()).or_default());
        read.get_or_try_init(|| self.below.get(key)).await.cloned()
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let mut listed = self.below.list(kind, scope).await?;
        listed.retain(|record| !self.above.contains_key(&record.key));
        let above = self.above.values().filter(|record| record.key.kind == kind);
        listed.extend(above.filter(|record| scope.fits(record)).cloned());
        listed.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(listed)
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        Err(read_only_error(&record.key))
    }

    async fn replace(&self, record: Record, _part: Part) -> Result<Record, StoreError> {
        Err(read_only_error(&record.key))
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        Err(read_only_error(&record.key))
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        Err(read_only_error(key))
    }

    async fn delete_exactly(&self, key: &Key, _uid: &str) -> Result<Option<Record>, StoreError> {
        Err(read_only_error(key))
    }

    /// Sends the objects that are there now, and nothing more.
    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        let (below, above) = (Arc::clone(&self.below), self.above.clone());
        let listed = async move { Self { above, ..Self::over(below) }.list(kind, &scope).await };
        stream::once(async move { listed.await.map(Change::Resynced) })
            .chain(stream::pending())
            .boxed()
    }

    fn in_cluster(&self) -> bool {
        self.below.in_cluster()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::ObjectName;

    fn certificate(name: &str, secret: &str) -> Record {
        let object = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": name, "namespace": "web"},
            "spec": {"secretName": secret, "issuerRef": {"name": "acme"}, "dnsNames": ["a.example"]},
        });
        Record::new(object).unwrap()
    }

    #[tokio::test]
    async fn an_object_is_read_once() {
        let below: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let view = Overlay::over(Arc::clone(&below));
        let made = below.create(certificate("web", "old")).await.unwrap();
        let key = made.key.clone();
        assert_eq!(view.get(&key).await.unwrap(), Some(made));
        below.delete(&key).await.unwrap();
        assert!(view.get(&key).await.unwrap().is_some());
        assert_eq!(Overlay::over(below).get(&key).await.unwrap(), None);
    }

    #[tokio::test]
    async fn manifests_lie_above_what_is_there_and_nothing_is_written() {
        let below: Arc<dyn Store> = Arc::new(MemoryStore::new());
        for name in ["held", "left"] {
            below.create(certificate(name, "old")).await.unwrap();
        }
        let held = Key::new(Kind::Certificate, ObjectName::new("web", "held"));
        let mut ready = below.get(&held).await.unwrap().unwrap();
        ready.object["status"] = json!({"revision": 7});
        below.replace(ready, Part::Status).await.unwrap();
        let manifests = [certificate("held", "new"), certificate("made", "new")];
        let view = Overlay::of(Arc::clone(&below), &manifests).await.unwrap();
        let listed = view.list(Kind::Certificate, &Scope::namespace("web")).await.unwrap();
        let secrets: Vec<&str> = listed.iter().map(|r| r.text("/spec/secretName")).collect();
        assert_eq!(secrets, ["new", "old", "new"]);
        let seen = view.get(&held).await.unwrap().unwrap();
        assert_eq!(seen.object["status"]["revision"], 7, "what became of it stays");
        assert_eq!(below.list(Kind::Certificate, &Scope::all()).await.unwrap().len(), 2);
        assert_eq!(below.get(&held).await.unwrap().unwrap().text("/spec/secretName"), "old");
        assert!(
            view.delete(&held).await.is_err() && view.apply(certificate("x", "y")).await.is_err()
        );
        assert!(view.list(Kind::Certificate, &Scope::namespace("other")).await.unwrap().is_empty());
    }
}
