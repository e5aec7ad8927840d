//! Errors of a store.

use std::path::PathBuf;

use super::cluster_fault::ClusterFault;
use crate::disk::private::Exposure;
use crate::model::Key;
use crate::model::cause::Guard;

/// Reason why a store did not do what was requested.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer came in between: read again and decide anew.
    #[error("cannot write {key}: it was changed by another writer")]
    Conflict {
        /// Object.
        key: Key,
    },
    /// There is already an object of that name.
    #[error("cannot create {key}: it exists already")]
    AlreadyExists {
        /// Object.
        key: Key,
    },
    /// There is no such object.
    #[error("{key} not found")]
    NotFound {
        /// Object.
        key: Key,
    },
    /// The object may not be written in that form.
    #[error("cannot write {key}: {why}")]
    Invalid {
        /// Object.
        key: Key,
        /// Reason.
        why: String,
    },
    /// The object is there, and does not have the shape of its kind: plain texts of a schema may hold anything.
    #[error("cannot read {key}: {why}; it is left alone until that is corrected")]
    Unreadable {
        /// Object.
        key: Key,
        /// Field and its fault.
        why: String,
    },
    /// Another field manager holds fields that would be written.
    #[error("cannot apply {key}: {why}")]
    Held {
        /// Object.
        key: Key,
        /// Managers with the fields that they hold.
        why: String,
    },
    /// An admission webhook, a quota or another guard of the cluster refused the write.
    #[error("cannot write {key}: {why}")]
    Denied {
        /// Object.
        key: Key,
        /// The server's words.
        why: String,
        /// Guard that refused, as far as the server's words show.
        guard: Guard,
    },
    /// The cluster gives no answer, none to us, or none that is useful.
    #[error(transparent)]
    Cluster(#[from] Box<ClusterFault>),
    /// The store itself cannot be used: no space, no permission, not our file, a newer version.
    #[error("cannot use the state in {place}: {why}")]
    Unusable {
        /// File, folder or server.
        place: String,
        /// Reason.
        why: String,
    },
    /// The state folder, or a file in it, is not this user's alone.
    #[error("cannot use the state in {}: {exposure}", place.display())]
    Exposed {
        /// File or folder.
        place: PathBuf,
        /// Reason why the place is not trusted.
        exposure: Exposure,
    },
}

impl StoreError {
    /// Returns whether a repeat may succeed a little later without any change: the server was away, or busy.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Cluster(fault) if fault.may_pass())
    }

    /// Returns whether a cluster refuses until a person changes something. A quota does not count: it fills and empties.
    pub fn needs_person(&self) -> bool {
        match self {
            Self::Cluster(fault) => !fault.may_pass(),
            Self::Denied { guard, .. } => !guard.passes(),
            Self::Held { .. } | Self::Unreadable { .. } => true,
            Self::Conflict { .. }
            | Self::AlreadyExists { .. }
            | Self::NotFound { .. }
            | Self::Invalid { .. }
            | Self::Unusable { .. }
            | Self::Exposed { .. } => false,
        }
    }

    /// Object that failed, if any.
    pub fn key(&self) -> Option<&Key> {
        match self {
            Self::Conflict { key }
            | Self::AlreadyExists { key }
            | Self::NotFound { key }
            | Self::Invalid { key, .. }
            | Self::Unreadable { key, .. }
            | Self::Held { key, .. }
            | Self::Denied { key, .. } => Some(key),
            Self::Cluster(_) | Self::Unusable { .. } | Self::Exposed { .. } => None,
        }
    }

    /// Returns whether a permission is missing.
    pub fn lacks_permission(&self) -> bool {
        matches!(self, Self::Cluster(fault) if matches!(**fault, ClusterFault::Forbidden { .. }))
    }
}

/// Makes the error for an object that may not be written in that form.
pub(crate) fn invalid(key: &Key, why: impl Into<String>) -> StoreError {
    StoreError::Invalid { key: key.clone(), why: why.into() }
}

impl From<ClusterFault> for StoreError {
    fn from(fault: ClusterFault) -> Self {
        Self::Cluster(Box::new(fault))
    }
}

/// Returns the result of a read; `None` if this user may not read the object.
///
/// # Errors
/// Fails with every other refusal.
pub fn unless_forbidden<T>(read: Result<T, StoreError>) -> Result<Option<T>, StoreError> {
    match read {
        Err(error) if error.lacks_permission() => Ok(None),
        read => read.map(Some),
    }
}
