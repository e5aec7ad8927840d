//! Sorts of failure, each with its exit code.

use crate::acme::error::{self, Sort};
use crate::controllers::ReconcileError;
use crate::model::Problem;
use crate::store::cluster::ClusterFault;
use crate::store::error::StoreError;

/// Sorts of failure, each with its exit code (stable: scripts rely on them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Nobody foresaw it.
    Unexpected,
    /// Wrong usage, or a manifest that cannot be.
    Usage,
    /// The CA looked and did not find the answer.
    Validation,
    /// Too much was asked of the CA, or it has paused the account.
    RateLimited,
    /// The CA cannot be reached, or fails itself.
    CaUnreachable,
    /// Account, external account binding, or terms.
    Account,
    /// The cluster, its CRDs or permissions.
    Cluster,
    /// Solver or DNS provider.
    Solver,
    /// Somebody else drives.
    OwnedByAnother,
    /// A person has to do something first.
    Person,
    /// Time is up.
    Timeout,
    /// Interrupted (SIGINT).
    Interrupted,
    /// Ended (SIGTERM).
    Terminated,
}

impl FailureKind {
    /// The exit code.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Unexpected => 1,
            Self::Usage => 2,
            Self::Validation => 4,
            Self::RateLimited => 5,
            Self::CaUnreachable => 6,
            Self::Account => 7,
            Self::Cluster => 8,
            Self::Solver => 9,
            Self::OwnedByAnother => 12,
            Self::Person => 13,
            Self::Timeout => 124,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// The sort of a CA's refusal.
    pub fn of_problem(problem: &Problem) -> Self {
        Self::of_sort(error::sort_problem(problem))
    }

    /// The sort of a fault that stood in the way of an object.
    pub fn of_error(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::Acme(error) => Self::of_sort(error::sort(error)),
            ReconcileError::Solve(_) => Self::Solver,
            ReconcileError::Store(error) => Self::of_store(error),
            ReconcileError::Missing(_) => Self::Usage,
            ReconcileError::OverBudget(_) => Self::RateLimited,
            ReconcileError::NameConflict(_) => Self::Person,
            ReconcileError::Panicked => Self::Unexpected,
        }
    }

    fn of_sort(sort: Sort) -> Self {
        match sort {
            Sort::Account => Self::Account,
            Sort::RateLimited | Sort::Paused => Self::RateLimited,
            Sort::Connection | Sort::Unavailable => Self::CaUnreachable,
            // What the CA will not certify has to be changed in the manifest.
            Sort::Identifier | Sort::Profile | Sort::SigningRequest => Self::Usage,
            Sort::OrderState | Sort::Replaced | Sort::Gone | Sort::Other => Self::Unexpected,
        }
    }

    /// The sort of a fault of the store.
    pub fn of_store(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound { .. }
            | StoreError::Invalid { .. }
            | StoreError::Unreadable { .. }
            | StoreError::Exposed { .. } => Self::Usage,
            StoreError::Held { .. } => Self::OwnedByAnother,
            StoreError::Cluster(fault)
                if matches!(
                    **fault,
                    ClusterFault::Unconfigured { .. } | ClusterFault::NoNamespace { .. }
                ) =>
            {
                Self::Usage
            }
            StoreError::Cluster(_) | StoreError::Denied { .. } => Self::Cluster,
            StoreError::Conflict { .. }
            | StoreError::AlreadyExists { .. }
            | StoreError::Unusable { .. } => Self::Unexpected,
        }
    }
}
