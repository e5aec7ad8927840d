//! [`Resources`]: the typed view of a store that every caller uses.
//!
//! A record keeps the whole JSON of its object, and the typed view writes only the part it changes, so that fields
//! which we do not know are never lost.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::debug;

use super::error::{StoreError, invalid};
use super::{Listed, Manager, Part, Scope, Store};
use crate::model::{Event, Key, Kind, Metadata, ObjectName, Record, Resource, Secret};

/// Type of an object that can be kept in a store.
pub trait Stored: Serialize + DeserializeOwned + Send + Sync {
    /// Name, labels, owners and the like.
    fn metadata(&self) -> &Metadata;
}

/// Type of an object with a status, which is written apart.
pub trait WithStatus: Stored {
    /// The status.
    type Status: Serialize + Send + Sync;
}

impl<S, T> Stored for Resource<S, T>
where
    S: Serialize + DeserializeOwned + Send + Sync,
    T: Serialize + DeserializeOwned + Default + Send + Sync,
{
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl<S, T> WithStatus for Resource<S, T>
where
    S: Serialize + DeserializeOwned + Send + Sync,
    T: Serialize + DeserializeOwned + Default + Send + Sync,
{
    type Status = T;
}

impl Stored for Event {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Stored for Secret {
    fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

/// The objects of one kind in a store, typed. Cheap to clone.
pub struct Resources<R> {
    store: Arc<dyn Store>,
    kind: Kind,
    /// Objects that could not be read, by the revision at which that was logged.
    left_out: Arc<Mutex<HashMap<Key, String>>>,
    /// Result of the last shared list.
    shared: Arc<Mutex<Shared<R>>>,
}

/// Objects as they were read last.
struct Shared<R> {
    revisions: HashMap<ObjectName, String>,
    /// Objects by name; `None` for an object that cannot be read.
    objects: HashMap<ObjectName, Option<Arc<R>>>,
}

impl<R> Default for Shared<R> {
    fn default() -> Self {
        Self { revisions: HashMap::new(), objects: HashMap::new() }
    }
}

impl<R: Stored> Resources<R> {
    /// Makes the view; Issuer serves two kinds, so the kind is named.
    pub fn new(store: Arc<dyn Store>, kind: Kind) -> Self {
        Self { store, kind, left_out: Arc::default(), shared: Arc::default() }
    }

    /// Makes the view write under a controller's name.
    #[must_use]
    pub fn written_by(self, controller: &'static str) -> Self {
        Self { store: super::under(&self.store, Manager::Controller(controller)), ..self }
    }

    /// The key of an object of this kind.
    pub fn key(&self, name: &ObjectName) -> Key {
        Key::new(self.kind, name.clone())
    }

    /// Reads one object.
    pub async fn get(&self, name: &ObjectName) -> Result<Option<R>, StoreError> {
        self.store.get(&self.key(name)).await?.map(typed).transpose()
    }

    /// Reads one object as far as a watch has reported it, or we have written it.
    pub async fn get_known(&self, name: &ObjectName) -> Result<Option<R>, StoreError> {
        self.store.get_known(&self.key(name)).await?.map(typed).transpose()
    }

    /// Reads one object past any memory of it.
    pub async fn get_anew(&self, name: &ObjectName) -> Result<Option<R>, StoreError> {
        self.store.get_anew(&self.key(name)).await?.map(typed).transpose()
    }

    /// Reads the objects of a scope, ordered by namespace and name. Unreadable objects are left out: one tenant's
    /// mistake is not everybody's. Each of them is logged once.
    pub async fn list(&self, scope: &Scope) -> Result<Vec<R>, StoreError> {
        let records = self.store.list(self.kind, scope).await?.into_iter();
        Ok(records.filter_map(|record| self.readable(record)).collect())
    }

    /// Reads objects like [`Self::list`], each only once while it is unchanged: for callers that list a kind repeatedly.
    pub async fn list_shared(&self, scope: &Scope) -> Result<Vec<Arc<R>>, StoreError> {
        let mut shared = std::mem::take(&mut *self.shared.lock());
        let listed = self.store.list_unknown(self.kind, scope, &shared.revisions).await?;
        let mut found = Vec::with_capacity(listed.len());
        let mut names = HashSet::with_capacity(listed.len());
        for listed in listed {
            let name = listed.name().clone();
            if let Listed::Record(record) = listed {
                let revision = record.resource_version().to_owned();
                shared.revisions.insert(name.clone(), revision);
                shared.objects.insert(name.clone(), self.readable(record).map(Arc::new));
            }
            found.extend(shared.objects.get(&name).cloned().flatten());
            names.insert(name);
        }
        if shared.revisions.len() > names.len() {
            shared.revisions.retain(|name, _| names.contains(name));
            shared.objects.retain(|name, _| names.contains(name));
        }
        *self.shared.lock() = shared;
        Ok(found)
    }

    fn readable(&self, record: Record) -> Option<R> {
        if let Ok(resource) = R::deserialize(&record.object) {
            return Some(resource);
        }
        let revision = record.text("/metadata/resourceVersion").to_owned();
        let key = record.key.clone();
        let error = typed::<R>(record).err()?;
        let mut left_out = self.left_out.lock();
        if left_out.insert(key, revision.clone()) != Some(revision) {
            debug!(%error, "left out of a list");
        }
        None
    }

    /// Creates an object, without its status.
    pub async fn create(&self, resource: &R) -> Result<R, StoreError> {
        typed(self.store.create(self.record(resource)?).await?)
    }

    /// Writes everything but the status of an object.
    pub async fn replace(&self, resource: &R) -> Result<R, StoreError> {
        typed(self.store.replace(self.record(resource)?, Part::Whole).await?)
    }

    /// Writes the labels, annotations, finalizers and owner references of an object, nothing else.
    pub async fn replace_metadata(&self, resource: &R) -> Result<R, StoreError> {
        let metadata = self.value(resource.metadata(), resource.metadata())?;
        self.replace_part(resource, json!({ "metadata": metadata }), Part::Metadata).await
    }

    /// Writes the finalizers of an object, nothing else.
    pub async fn replace_finalizers(&self, resource: &R) -> Result<R, StoreError> {
        let metadata = resource.metadata();
        let part = json!({
            "resourceVersion": metadata.resource_version,
            "uid": metadata.uid,
            "finalizers": metadata.finalizers,
        });
        self.replace_part(resource, json!({ "metadata": part }), Part::Finalizers).await
    }

    /// Writes the status of an object, nothing else.
    pub async fn replace_status(&self, resource: &R, status: &R::Status) -> Result<R, StoreError>
    where
        R: WithStatus,
    {
        let metadata = resource.metadata();
        let object = json!({
            "metadata": { "resourceVersion": metadata.resource_version, "uid": metadata.uid },
            "status": self.value(metadata, status)?,
        });
        self.replace_part(resource, object, Part::Status).await
    }

    /// Creates the object, or replaces the parts of the stored object that a manifest states.
    pub async fn apply(&self, resource: &R) -> Result<R, StoreError> {
        typed(self.store.apply(self.record(resource)?).await?)
    }

    /// Deletes an object; succeeds if there is none.
    pub async fn delete(&self, name: &ObjectName) -> Result<(), StoreError> {
        self.store.delete(&self.key(name)).await.map(drop)
    }

    /// Deletes exactly this object; another that took its name since is a conflict.
    pub async fn delete_exactly(&self, resource: &R) -> Result<(), StoreError> {
        let metadata = resource.metadata();
        let key = self.key(&metadata.object_name());
        self.store.delete_exactly(&key, &metadata.uid).await.map(drop)
    }

    async fn replace_part(&self, resource: &R, part: Value, which: Part) -> Result<R, StoreError> {
        let key = self.key(&resource.metadata().object_name());
        typed(self.store.replace(Record { key, object: part }, which).await?)
    }

    fn record(&self, resource: &R) -> Result<Record, StoreError> {
        let key = self.key(&resource.metadata().object_name());
        let mut object = self.value(resource.metadata(), resource)?;
        object["apiVersion"] = self.kind.api_version().into();
        object["kind"] = self.kind.as_str().into();
        Ok(Record { key, object })
    }

    fn value(&self, metadata: &Metadata, part: &impl Serialize) -> Result<Value, StoreError> {
        serde_json::to_value(part).map_err(|error| {
            invalid(&self.key(&metadata.object_name()), format!("it is no JSON: {error}"))
        })
    }
}

impl<R> Clone for Resources<R> {
    fn clone(&self) -> Self {
        let (left_out, shared) = (Arc::clone(&self.left_out), Arc::clone(&self.shared));
        Self { store: Arc::clone(&self.store), kind: self.kind, left_out, shared }
    }
}

impl<R> fmt::Debug for Resources<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Resources({} in {:?})", self.kind, self.store)
    }
}

/// Reads a record as its type.
///
/// # Errors
/// Fails with [`StoreError::Unreadable`] if the object does not have the shape of its kind.
pub fn typed<R: DeserializeOwned>(record: Record) -> Result<R, StoreError> {
    let Record { key, object } = record;
    // Most objects have no fault: the field is searched for only if there is one.
    let read = R::deserialize(&object).or_else(|_| serde_path_to_error::deserialize(object));
    read.map_err(|error| {
        let field = error.path().to_string();
        let why = match (key.kind, field.as_str()) {
            // The parser's own words may quote the value.
            (Kind::Secret, _) => "it does not have the shape of a Secret".to_owned(),
            (_, ".") => error.inner().to_string(),
            (_, field) => format!("{field}: {}", error.inner()),
        };
        StoreError::Unreadable { key, why }
    })
}
