//! Kinds of failure, each with its exit code.

use crate::acme::error::{self, ErrorSubject};
use crate::controllers::ReconcileError;
use crate::model::Problem;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Kinds of failure, each with its exit code (stable: scripts rely on the codes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// Unforeseen failure.
    Unexpected,
    /// Wrong usage, or an impossible manifest.
    Usage,
    /// The CA validated, and did not find the answer.
    Validation,
    /// A limit of the CA was reached, or the CA has paused the account.
    RateLimited,
    /// The CA cannot be reached, or fails itself.
    CaUnreachable,
    /// Account, external account binding, or terms.
    Account,
    /// The cluster, its CRDs or permissions.
    Cluster,
    /// Solver or DNS provider.
    Solver,
    /// `diagnose` has found what keeps a certificate from being issued, or `certificate check` one that must be replaced.
    CausesFound,
    /// `diagnose` has found nothing but warnings, and warnings count; or not everything could be found out.
    WarningsFound,
    /// Another controller or process drives the objects.
    OwnedByAnother,
    /// A person has to do something first.
    Person,
    /// The time limit is over.
    Timeout,
    /// Interrupted (SIGINT).
    Interrupted,
    /// Ended (SIGTERM).
    Terminated,
}

impl FailureKind {
    /// Every kind, in the order of the exit codes.
    pub const ALL: [Self; 15] = [
        Self::Unexpected,
        Self::Usage,
        Self::Validation,
        Self::RateLimited,
        Self::CaUnreachable,
        Self::Account,
        Self::Cluster,
        Self::Solver,
        Self::CausesFound,
        Self::WarningsFound,
        Self::OwnedByAnother,
        Self::Person,
        Self::Timeout,
        Self::Interrupted,
        Self::Terminated,
    ];

    /// Returns the word for the kind in machine-readable output (stable, as the exit codes are).
    pub fn word(self) -> &'static str {
        match self {
            Self::Unexpected => "unexpected",
            Self::Usage => "usage",
            Self::Validation => "validation",
            Self::RateLimited => "rateLimited",
            Self::CaUnreachable => "caUnreachable",
            Self::Account => "account",
            Self::Cluster => "cluster",
            Self::Solver => "solver",
            Self::CausesFound => "causesFound",
            Self::WarningsFound => "warningsFound",
            Self::OwnedByAnother => "ownedByAnother",
            Self::Person => "person",
            Self::Timeout => "timeout",
            Self::Interrupted => "interrupted",
            Self::Terminated => "terminated",
        }
    }

    /// Returns the meaning of the exit code, for the pages of the manual.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Unexpected => "Something unexpected: the message says what.",
            Self::Usage => "Wrong usage, a wrong manifest, or an object that does not exist.",
            Self::Validation => "Validation failed: the CA did not see the answer of a challenge.",
            Self::RateLimited => "A limit of the CA was reached, or it has paused the account.",
            Self::CaUnreachable => "The CA cannot be reached, or fails itself.",
            Self::Account => {
                "The CA refuses the account or its external binding, or its terms are not accepted."
            }
            Self::Cluster => {
                "The cluster cannot be reached, lacks the definitions, or denies permission."
            }
            Self::Solver => "A solver or a DNS provider cannot do its work.",
            Self::CausesFound => {
                "diagnose found a cause that stops an issuance, or certificate check a certificate that must be replaced."
            }
            Self::WarningsFound => {
                "diagnose found only warnings, which count as failures; or certificate check could not find out everything."
            }
            Self::OwnedByAnother => "Another controller or process works on the same objects.",
            Self::Person => "A person has to do something first; the message says what.",
            Self::Timeout => "The time limit was over before everything was done.",
            Self::Interrupted => "Interrupted by Ctrl-C (SIGINT); what was done so far is kept.",
            Self::Terminated => "Ended by SIGTERM; what was done so far is kept.",
        }
    }

    /// Returns the exit code.
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
            Self::CausesFound => 10,
            Self::WarningsFound => 11,
            Self::OwnedByAnother => 12,
            Self::Person => 13,
            Self::Timeout => 124,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }

    /// Returns the kind of a CA's refusal.
    pub fn of_problem(problem: &Problem) -> Self {
        Self::of_sort(error::sort_problem(problem))
    }

    /// Returns the kind of an error in a challenge: its type says what validation met, not what the CA refuses.
    pub fn of_validation(problem: &Problem) -> Self {
        match problem.short_kind() {
            "serverInternal" => Self::CaUnreachable,
            _ => Self::Validation,
        }
    }

    /// Returns the kind of a fault in the work on an object.
    pub fn of_error(error: &ReconcileError) -> Self {
        match error {
            ReconcileError::Acme(error) => Self::of_sort(error::sort(error)),
            ReconcileError::Solve(_) => Self::Solver,
            ReconcileError::Store(error) => Self::of_store(error),
            ReconcileError::Missing(_)
            | ReconcileError::Annotation(_)
            | ReconcileError::Keystore(_) => Self::Usage,
            ReconcileError::OverBudget(_) => Self::RateLimited,
            ReconcileError::NameConflict(_) => Self::Person,
            ReconcileError::Panicked => Self::Unexpected,
        }
    }

    fn of_sort(sort: ErrorSubject) -> Self {
        match sort {
            ErrorSubject::Account => Self::Account,
            ErrorSubject::RateLimited | ErrorSubject::Paused => Self::RateLimited,
            ErrorSubject::Connection | ErrorSubject::Unavailable => Self::CaUnreachable,
            // The manifest has to change if the CA will not certify it.
            ErrorSubject::Identifier | ErrorSubject::Profile | ErrorSubject::SigningRequest => {
                Self::Usage
            }
            ErrorSubject::OrderState
            | ErrorSubject::Replaced
            | ErrorSubject::Gone
            | ErrorSubject::Other => Self::Unexpected,
        }
    }

    /// Returns the kind of a fault of the store.
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
