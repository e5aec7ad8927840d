//! Failure: how a command ends badly: kind, message, hints, exit code.

use std::fmt;
use std::path::Path;

use super::invocation;
use crate::acme::error::{self, Sort};
use crate::controllers::ReconcileError;
use crate::disk::private::Exposure;
use crate::model::Problem;
use crate::solvers::SolveError;
use crate::store::cluster::ClusterFault;
use crate::store::error::StoreError;

/// Sorts of failure, each with its exit code (stable: scripts rely on them).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
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

impl Kind {
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
                    ClusterFault::Unconfigured { .. } | ClusterFault::Namespace { .. }
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

/// How a command ends badly. `Display` is the message, without `error: `.
#[derive(Debug)]
pub struct Failure {
    /// Sort.
    pub kind: Kind,
    /// `<what failed for which object>: <why>`; empty when everything has been said already.
    pub message: String,
    /// What to do next, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// Makes a failure.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Wrong usage, or a manifest that cannot be.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message)
    }

    /// A failure of which everything has been said already.
    pub fn silent(kind: Kind) -> Self {
        Self::new(kind, "")
    }

    /// Interrupted with the state kept: the same command goes on.
    pub fn interrupted(kind: Kind) -> Self {
        Self::new(kind, "interrupted; everything so far is kept")
            .hint(invocation::current().go_on())
    }

    /// What a store refused, and what helps.
    pub fn of(error: &StoreError) -> Self {
        let failure = Self::new(Kind::of_store(error), error.to_string());
        let failure = error
            .hints_by(&invocation::current().kubectl_program())
            .into_iter()
            .fold(failure, Self::hint);
        match error {
            StoreError::Unusable { .. } => failure.hint(STORE),
            StoreError::Exposed { place, exposure } => {
                failure.hint(exposed(place, *exposure)).hint(STORE)
            }
            _ => failure,
        }
    }

    /// Adds a line that says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of(&error)
    }
}

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        let failure = Self::new(Kind::Solver, error.to_string());
        error.hint.into_iter().fold(failure, Self::hint)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(Kind::Unexpected, format!("cannot write the output: {error}"))
    }
}

/// What helps when the store cannot be used.
pub const STORE: &str = "put that right, or choose another state folder with --local=DIR";

/// What makes a file or folder of the state private again, so that it is used.
pub fn exposed(place: &Path, exposure: Exposure) -> String {
    let path = invocation::quoted(&place.to_string_lossy());
    match exposure {
        Exposure::Link => format!("take the link away: rm {path}; or name what it leads to"),
        Exposure::NoFile => format!("look what it is: ls -ld {path}; and take it away"),
        Exposure::Owner { theirs, ours } => format!(
            "work as that user (sudo -u '#{theirs}'); or, where what is in it is yours, take it over: chown -R {ours} {path}"
        ),
        Exposure::OpenFile(_) => {
            format!("where nobody has changed what is in it, close it: chmod 600 {path}")
        }
        // Everybody's folder, such as /tmp, stays so.
        Exposure::OpenFolder(mode) if mode & STICKY != 0 => {
            let own = invocation::quoted(&place.join("kubectl-acme").to_string_lossy());
            format!("make one of your own in it: mkdir -m 700 {own}; and name that")
        }
        Exposure::OpenFolder(_) => {
            format!("where everything in it is yours, close it: chmod 700 {path}")
        }
    }
}

/// The bit of a folder's mode that keeps its users from each other's files.
const STICKY: u32 = 0o1000;
