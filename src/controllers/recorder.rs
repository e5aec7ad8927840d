//! Keeps what a machine has recorded: memory first, then the status, then the events.

use std::sync::Arc;

use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::memory::Holder;
use crate::model::{ObjectReference, Resource};
use crate::reconcile::{Note, Recorded};
use crate::store::events::{self, Notice, reference};
use crate::store::resources::Resources;
use crate::store::{Store, StoreError};

/// Writes outcomes to a store.
#[derive(Clone, Debug)]
pub struct Recorder {
    store: Arc<dyn Store>,
}

impl Recorder {
    /// Makes a recorder.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// The store it writes to.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Keeps what was recorded for one resource; kinds without memory pass no holder. What did not change is not written.
    ///
    /// # Errors
    /// Fails with a conflict when somebody else wrote since the resource was read.
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
        if let Some(holder) = holder
            && recorded.memory.write(holder, &mut current.metadata.annotations)
        {
            current = resources.replace_metadata(&current).await?;
        }
        if recorded.status != resource.status {
            current = resources.replace_status(&current, &recorded.status).await?;
        }
        let about = reference(&current);
        let notices: Vec<Notice<'_>> = recorded.notes.iter().map(notice).collect();
        events::emit_all(&*self.store, &about, &notices, now).await
    }

    /// Writes one event.
    ///
    /// # Errors
    /// Fails when the store does.
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
