//! Writes the result of a machine: memory first, then the status, then the events. An Issuer's memory is deleted last.
//!
//! A reader between two writes must not see a failure that is none: the memory (annotations `kubectl-acme/*`) of a
//! status is written before the status.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::memory::Holder;
use crate::model::{ObjectReference, Resource};
use crate::reconcile::{Note, Recorded};
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::event_cache::Notice;
use crate::store::events::{self, reference};
use crate::store::resources::Resources;

/// Writes outcomes to a store.
#[derive(Clone, Debug)]
pub struct Recorder {
    store: Arc<dyn Store>,
}

impl Recorder {
    /// Builds a recorder.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Returns the store that the recorder writes to.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Writes the result for one resource; kinds without memory pass no holder. Unchanged parts are not written.
    ///
    /// # Errors
    /// Fails with a conflict if another writer came in since the resource was read.
    pub async fn keep<S, T>(
        &self,
        resources: &Resources<Resource<S, T>>,
        resource: &Resource<S, T>,
        holder: Option<Holder>,
        recorded: Recorded<T>,
        now: Timestamp,
    ) -> Result<(), StoreError>
    where
        S: Clone + Serialize + DeserializeOwned + Send + Sync,
        T: Clone + Default + PartialEq + Serialize + DeserializeOwned + Send + Sync,
    {
        let mut current = resource.clone();
        let before = &resource.metadata.annotations;
        let mut after = before.clone();
        let has_news = holder.is_some_and(|holder| recorded.memory.write(holder, &mut after));
        // Without its memory, the old status would look like a fault without a retry.
        let forgets = holder == Some(Holder::Issuer)
            && after.iter().all(|(key, value)| before.get(key) == Some(value));
        if has_news && !forgets {
            current.metadata.annotations.clone_from(&after);
            current = resources.replace_metadata(&current).await?;
        }
        if recorded.status != resource.status {
            current = resources.replace_status(&current, &recorded.status).await?;
        }
        if has_news && forgets {
            current.metadata.annotations = after;
            current = resources.replace_metadata(&current).await?;
        }
        let about = reference(&current);
        let notices: Vec<Notice<'_>> = recorded.notes.iter().map(notice).collect();
        events::emit_all(&*self.store, &about, &notices, now).await
    }

    /// Writes one event.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn note(
        &self,
        about: &ObjectReference,
        note: &Note,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        events::emit(&*self.store, about, notice(note), now).await
    }
}

fn notice(note: &Note) -> Notice<'_> {
    Notice {
        severity: note.severity,
        reason: &note.reason,
        message: &note.message,
        component: note.source,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use serde_json::json;

    use super::*;
    use crate::model::issuer::AcmeIssuerStatus;
    use crate::model::memory::Memory;
    use crate::model::{Issuer, Kind, Record};
    use crate::store::memory::MemoryStore;
    use crate::store::{Change, Scope};

    /// The Issuers that somebody sees who watches while an outcome is kept.
    async fn seen(before: &Memory, after: &Memory) -> Vec<Issuer> {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let issuers = Resources::<Issuer>::new(Arc::clone(&store), Kind::Issuer);
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {"name": "ca", "namespace": "default"}, "spec": {},
        });
        store.create(Record::new(issuer).unwrap()).await.unwrap();
        let mut issuer = issuers.list(&Scope::all()).await.unwrap().remove(0);
        before.write(Holder::Issuer, &mut issuer.metadata.annotations);
        let issuer = issuers.replace_metadata(&issuer).await.unwrap();
        let mut changes = store.watch(Kind::Issuer, Scope::all());
        changes.next().await.unwrap().unwrap();
        let mut status = issuer.status.clone();
        status.acme = Some(AcmeIssuerStatus::default());
        let recorded = Recorded { status, memory: after.clone(), notes: Vec::new() };
        let kept_by = Recorder::new(Arc::clone(&store));
        let now = Timestamp::UNIX_EPOCH;
        kept_by.keep(&issuers, &issuer, Some(Holder::Issuer), recorded, now).await.unwrap();
        let mut seen: Vec<Issuer> = Vec::new();
        while seen.len() < 2 {
            let Change::Applied(record) = changes.next().await.unwrap().unwrap() else { continue };
            seen.push(serde_json::from_value(record.object).unwrap());
        }
        seen
    }

    #[tokio::test]
    async fn an_issuer_is_never_seen_with_an_old_status_and_without_its_memory() {
        let waits = Memory { next_try: Some(Timestamp::UNIX_EPOCH), ..Memory::default() };
        let memory = |issuer: &Issuer| Memory::read(Holder::Issuer, &issuer.metadata.annotations);
        let forgets = seen(&waits, &Memory::default()).await;
        assert_eq!((memory(&forgets[0]), forgets[0].status.acme.is_none()), (waits.clone(), false));
        assert_eq!(memory(&forgets[1]), Memory::default());
        let learns = seen(&Memory::default(), &waits).await;
        assert_eq!((memory(&learns[0]), learns[0].status.acme.is_none()), (waits, true));
    }
}
