//! Stores of resources: the [`Store`] trait and its contract.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::stream::BoxStream;

pub(crate) use self::error::StoreError;
use self::event_cache::EventCache;
use crate::model::{Key, Kind, ObjectName, Record};

pub mod cluster;
pub mod cluster_fault;
pub mod error;
pub mod event_cache;
pub mod events;
pub mod folder;
mod ids;
pub mod lease;
pub mod local;
pub mod memory;
pub mod mirror;
pub(crate) mod object;
pub mod overlay;
pub mod resources;
mod rules;
#[cfg(test)]
pub(crate) mod testing;
mod watch;
mod written;

/// Selection of objects of a kind; every part that is given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// Only objects whose managing owner has this UID.
    pub owner_uid: Option<String>,
    /// Only Events about the object with this UID.
    pub involved_uid: Option<String>,
    /// Whether a list may leave out fields that no table shows: requests, certificates, authorizations are empty then.
    pub brief: bool,
}

impl Scope {
    /// Every object.
    pub fn all() -> Self {
        Self::default()
    }

    /// The objects of one namespace.
    pub fn namespace(namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..Self::default() }
    }

    /// The objects managed by one owner.
    pub fn owned_by(namespace: impl Into<String>, uid: impl Into<String>) -> Self {
        Self { owner_uid: Some(uid.into()), ..Self::namespace(namespace) }
    }

    /// The Events about one object.
    pub fn about(uid: impl Into<String>) -> Self {
        Self { involved_uid: Some(uid.into()), ..Self::default() }
    }

    /// Leaves out the fields that no table shows.
    #[must_use]
    pub fn brief(self) -> Self {
        Self { brief: true, ..self }
    }

    /// Limits the scope to one namespace.
    #[must_use]
    pub fn within(self, namespace: impl Into<String>) -> Self {
        Self { namespace: Some(namespace.into()), ..self }
    }

    /// Returns whether an object fits.
    pub fn fits(&self, record: &Record) -> bool {
        let in_namespace = |namespace: &String| record.key.name.namespace == *namespace;
        let involves = |uid: &String| record.text("/involvedObject/uid") == uid;
        self.namespace.as_ref().is_none_or(in_namespace)
            && self.owner_uid.as_ref().is_none_or(|uid| record.metadata().is_controlled_by(uid))
            && self.involved_uid.as_ref().is_none_or(involves)
    }

    /// Returns whether a write can take an object out of the scope.
    fn can_be_left(&self) -> bool {
        self.owner_uid.is_some() || self.involved_uid.is_some()
    }
}

/// Part of an object that a [`Store::replace`] writes; the rest of the given record is ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Finalizers. A cluster records them as applied by the manager, as cert-manager does, which removes only those.
    Finalizers,
    /// Labels, annotations, finalizers and owner references.
    Metadata,
    /// `status`.
    Status,
    /// Everything but `status` for kinds that have one; everything for Secrets and Events.
    Whole,
}

/// One object of [`Store::list_unknown`].
#[derive(Clone, Debug, PartialEq)]
pub enum Listed {
    /// Name of an object that is as the caller has it.
    Known(ObjectName),
    /// Object that the caller does not have, or not as it is now.
    Record(Record),
}

impl Listed {
    /// Name of the object.
    pub fn name(&self) -> &ObjectName {
        match self {
            Self::Known(name) => name,
            Self::Record(record) => &record.key.name,
        }
    }
}

/// One change for a watcher.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The object is there, new or changed.
    Applied(Record),
    /// The object is gone; the record is its last state.
    Deleted(Record),
    /// The watcher starts, or fell behind: all objects there are now. Only a mirror then reports those gone meanwhile.
    Resynced(Vec<Record>),
}

/// Store of resources. Safe to share between tasks.
///
/// Contract, checked by one suite on every implementation:
/// * a write with a stale `resourceVersion` fails with [`StoreError::Conflict`]; a write without any is unconditional;
/// * a write that changes nothing succeeds, keeps the `resourceVersion`, and is not reported to watchers;
/// * `create` gives UID, `creationTimestamp`, `resourceVersion` and generation 1, and makes a name from
///   `generateName`; `generation` grows with the spec, and once when deletion is asked for (Secrets and Events have
///   none); status and the rest are written apart, so a status given to `create` or `apply` is dropped;
/// * unknown fields are kept;
/// * `delete` of an object with finalizers sets `deletionTimestamp`, and the object goes when the last finalizer goes;
///   objects whose owners are all gone are deleted the same way;
/// * Events go some time after their last occurrence;
/// * a watch begins with [`Change::Resynced`]; a watcher that fell behind gets it again, or gets each changed object
///   once, never a gap; the watch ends only with the store.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Reads one object.
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError>;

    /// Reads one object, as far as a watch has reported it or we have written it: an object that others made just now
    /// may be missing, and comes as a change.
    async fn get_known(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.get(key).await
    }

    /// Reads one object, past any memory of it.
    async fn get_anew(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.get(key).await
    }

    /// Reads the objects of a kind, ordered by namespace and name.
    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError>;

    /// Reads the objects of a kind as [`Self::list`] does, past any memory of them.
    async fn list_anew(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.list(kind, scope).await
    }

    /// Reads the objects of a kind; if that costs less, those whose `resourceVersion` the caller has by name alone.
    async fn list_unknown(
        &self,
        kind: Kind,
        scope: &Scope,
        _known: &HashMap<ObjectName, String>,
    ) -> Result<Vec<Listed>, StoreError> {
        Ok(self.list(kind, scope).await?.into_iter().map(Listed::Record).collect())
    }

    /// Creates an object and returns it as stored.
    async fn create(&self, record: Record) -> Result<Record, StoreError>;

    /// Writes one part of an object and returns it as stored.
    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError>;

    /// Creates the object, or replaces labels, annotations and everything but `status` of the stored object. In local
    /// stores users' manifests and issued Secrets come in by this method; annotations under `kubectl-acme/`, finalizers
    /// and owner references of the stored object stay.
    async fn apply(&self, record: Record) -> Result<Record, StoreError>;

    /// Deletes an object; succeeds if there is none. An object that finalizers hold is returned in its new state.
    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError>;

    /// Deletes the object of that UID and no other: an object that took its name since is a [`StoreError::Conflict`].
    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError>;

    /// Watches the objects of a kind.
    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>>;

    /// Returns this store, writing under another manager's name; `None` if managers are not recorded.
    fn under(&self, _manager: Manager) -> Option<Arc<dyn Store>> {
        None
    }

    /// Returns whether a watch of everything covers that object; a view of a part does not cover objects elsewhere.
    fn reaches(&self, _key: &Key) -> bool {
        true
    }

    /// Returns whether this is a cluster's store, and not this machine's own.
    fn in_cluster(&self) -> bool {
        false
    }

    /// Cache of the Events that were written through this store lately; `None` if their lookup costs no request.
    fn event_cache(&self) -> Option<&EventCache> {
        None
    }
}

/// Returns the store, writing under a manager's name if managers are recorded.
pub fn under(store: &Arc<dyn Store>, manager: Manager) -> Arc<dyn Store> {
    store.under(manager).unwrap_or_else(|| Arc::clone(store))
}

/// Writer of fields (field manager). A cluster records the manager of every field; the other stores do not.
///
/// Controllers use cert-manager's names, and people's commands ours. Three things are applied server-side, as by
/// cert-manager: the finalizers of Challenges, issued Secrets, and manifests. A finalizer is removed by a patch,
/// whichever manager has put it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// One of cert-manager's controllers, by its name in [`crate::model::event::source`]: either controller can then
    /// finish the work that the other began. A field that it applies is its own, whichever manager had it before.
    Controller(&'static str),
    /// A person, with our commands: a field that another manager holds is not taken over.
    Person,
    /// A person who insists (`--force-conflicts`).
    PersonByForce,
}

impl Manager {
    /// Name that the cluster records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Controller(name) => name,
            Self::Person | Self::PersonByForce => "kubectl-acme",
        }
    }

    /// Returns whether an apply takes fields over from other managers.
    pub fn takes_over(self) -> bool {
        self != Self::Person
    }
}
