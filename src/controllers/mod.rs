//! Controllers observe, let a machine decide, perform one action, and record what came of it.

pub mod clock;
pub mod driver;
pub mod selection;

pub use self::clock::Clock;

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::acme::{AcmeError, Retry};
use crate::model::{Key, Kind, Record};
use crate::reconcile::Wake;
use crate::solvers::SolveError;
use crate::store::StoreError;

/// One kind's controller.
#[async_trait]
pub trait Controller: fmt::Debug + Send + Sync + 'static {
    /// Kinds whose changes concern it, its own first.
    fn watches(&self) -> &'static [Kind];

    /// Objects to look at because that one changed, was made or went.
    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError>;

    /// Takes one step for one object and says when to look again.
    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileError>;
}

/// Why a step could not be taken; the status stays as it was, and the driver tries again.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The CA did not answer, or not usefully.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// An answer could not be put up or taken down.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// Something that should be there is not; a change of it wakes the object.
    #[error("{0}")]
    Missing(String),
}

impl ReconcileError {
    /// Says when another try helps.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Acme(error) => error.retry(),
            Self::Solve(error) if error.needs_person => Retry::Never,
            Self::Store(_) | Self::Solve(_) | Self::Missing(_) => Retry::Backoff,
        }
    }
}
