//! Controllers observe, let a machine decide, perform one action, and record what came of it.
//!
//! No request is made for a CertificateRequest or an Order whose owner, or the owner's owner, is gone or being deleted
//! (`is_left_over`): the garbage collector may take minutes, and the result would be of no use. cert-manager makes the
//! requests.

pub mod account_rollover;
pub mod account_secrets;
pub mod accounts;
mod awaited_secrets;
mod backoff;
pub mod blocking;
pub mod by_hand;
pub mod by_object;
pub mod certificate;
mod certificate_renewal;
pub mod challenge;
mod challenge_records;
mod challenge_requests;
mod change_filter;
pub mod clock;
pub mod dns01;
pub mod driver;
pub mod facts;
pub mod ingress_shim;
pub mod issuer;
pub mod keystores;
pub mod name_conflict;
pub mod neighbours;
pub mod obstacles;
pub mod order;
pub mod order_budget;
mod order_challenges;
mod order_creation;
mod order_ledger;
pub mod order_requests;
mod order_turns;
mod per_issuer;
pub mod recorder;
pub mod renewal_inquiry;
pub mod request;
mod resolver_cache;
pub mod scheduler;
pub mod secret_builder;
mod secret_writer;
pub mod selection;
mod self_check;
pub mod shared_orders;
pub mod solver_set;
#[cfg(test)]
mod testing;
mod validations;
mod work_queue;

pub use self::clock::Clock;
use self::name_conflict::NameConflict;
use crate::acme::KeyError;
use crate::acme::error::{AcmeError, Retry};
use crate::model::keystore::NoKeystore;
use crate::model::order_budget::OverBudget;
use crate::model::{ChallengeType, IssuerRef, Key, Kind, Metadata, ObjectName, Record};
use crate::reconcile::Wake;
use crate::reconcile::ingress_shim::InvalidAnnotation;
use crate::solvers::SolveError;
use crate::store::error::StoreError;
use crate::store::{Scope, Store};

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;

/// Controller of one kind.
#[async_trait]
pub trait Controller: fmt::Debug + Send + Sync + 'static {
    /// Kinds whose changes concern the controller, its own kind first.
    fn watches(&self) -> &'static [Kind];

    /// Returns the objects to reconcile because `changed` changed, was created or was deleted.
    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError>;

    /// Takes one step for one object; returns when to reconcile it again.
    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure>;
}

/// Returns the managing owner of an object, if the owner is of this kind.
fn owner_of(record: &Record, kind: Kind) -> Option<Key> {
    let metadata = record.metadata();
    let owner = metadata.controller().filter(|owner| owner.kind == kind.as_str())?;
    Some(Key::new(kind, ObjectName::new(&metadata.namespace, &owner.name)))
}

/// Returns whether an owner above an object is gone or being deleted: the object is collected as well, sooner or later,
/// and the result of a request for it would be of no use.
async fn is_left_over(store: &dyn Store, metadata: &Metadata) -> Result<bool, StoreError> {
    let mut metadata = metadata.clone();
    while let Some((key, uid)) = metadata.controller_key() {
        let above = store.get(&key).await?.filter(|found| found.uid() == uid);
        let above = above.map(|found| found.metadata()).filter(|found| !found.is_deleted());
        let Some(above) = above else { return Ok(true) };
        metadata = above;
    }
    Ok(false)
}

/// Returns the scope of the objects that may refer to an issuer.
fn reach(issuer: &Key) -> Scope {
    match issuer.kind {
        Kind::ClusterIssuer => Scope::all(),
        _ => Scope::namespace(&issuer.name.namespace),
    }
}

/// Returns whether a reference means this issuer; the caller compares namespaces.
fn refers_to(reference: &IssuerRef, issuer: &Key) -> bool {
    reference.name == issuer.name.name
        && reference.effective_kind() == issuer.kind.as_str()
        && reference.effective_group() == issuer.kind.group()
}

/// Reason that a step could not be taken; the status stays as it was, and the driver tries again.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The store refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The CA did not reply usefully.
    #[error(transparent)]
    Acme(#[from] AcmeError),
    /// An answer could not be put up or taken down.
    #[error(transparent)]
    Solve(#[from] SolveError),
    /// An object that should exist does not; a change of that object wakes this one.
    #[error("{0}")]
    Missing(String),
    /// No order may be requested now.
    #[error(transparent)]
    OverBudget(Box<OverBudget>),
    /// Another object has the name of the one to be created.
    #[error(transparent)]
    NameConflict(#[from] Box<NameConflict>),
    /// An annotation cannot be read until its value changes, which wakes the object.
    #[error(transparent)]
    Annotation(#[from] InvalidAnnotation),
    /// A keystore cannot be written until the spec or a Secret changes, which wakes the object.
    #[error(transparent)]
    Keystore(#[from] Box<NoKeystore>),
    /// A bug in this program.
    #[error("this step failed by a mistake of kubectl-acme itself")]
    Panicked,
}

impl ReconcileError {
    /// Returns whether another writer was quicker: the present state has to be read.
    fn is_race(&self) -> bool {
        match self {
            Self::Store(error) => {
                use StoreError::{AlreadyExists, Conflict, NotFound};
                matches!(error, Conflict { .. } | AlreadyExists { .. } | NotFound { .. })
            }
            _ => false,
        }
    }

    /// Returns when another try helps.
    pub fn retry(&self) -> Retry {
        match self {
            Self::Acme(error) => error.retry(),
            Self::Solve(error) if error.needs_person => Retry::Never,
            Self::Solve(SolveError { until: Some(until), .. }) => Retry::At(*until),
            Self::Store(StoreError::Unreadable { .. })
            | Self::Keystore(_)
            | Self::Annotation(_) => Retry::Never,
            Self::Store(error) if error.lacks_permission() => Retry::Never,
            Self::OverBudget(over) => over.until.map_or(Retry::Never, Retry::At),
            Self::NameConflict(taken) if !taken.passes => Retry::Never,
            Self::Store(_)
            | Self::Solve(_)
            | Self::Missing(_)
            | Self::NameConflict(_)
            | Self::Panicked => Retry::Backoff,
        }
    }
}

impl From<KeyError> for ReconcileError {
    fn from(error: KeyError) -> Self {
        Self::Missing(error.to_string())
    }
}

impl From<NoKeystore> for ReconcileError {
    fn from(why: NoKeystore) -> Self {
        Self::Keystore(Box::new(why))
    }
}

/// Reason that stopped a reconcile, by the object that it concerns.
#[derive(Debug)]
pub enum ReconcileFailure {
    /// The reconciled object itself.
    Itself(ReconcileError),
    /// Other objects, at least one.
    Others(BTreeMap<Key, ReconcileError>),
}

impl ReconcileFailure {
    /// Returns the errors by object; `key` is the reconciled object.
    fn at(self, key: &Key) -> BTreeMap<Key, ReconcileError> {
        match self {
            Self::Itself(error) => BTreeMap::from([(key.clone(), error)]),
            Self::Others(errors) => errors,
        }
    }
}

impl<E: Into<ReconcileError>> From<E> for ReconcileFailure {
    fn from(error: E) -> Self {
        Self::Itself(error.into())
    }
}

/// Returns whether a TXT record answers a Challenge, given as stored.
fn is_by_record(changed: &Record) -> bool {
    let kind = serde_json::from_value::<ChallengeType>(changed.object["spec"]["type"].clone());
    kind.is_ok_and(ChallengeType::is_by_record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_a_moment_is_not_asked_before() {
        let moment: Timestamp = "2026-11-21T12:05:00Z".parse().unwrap();
        let retry = |needs_person, until| {
            let (what, why) = ("cannot ask".to_owned(), "too many requests".to_owned());
            ReconcileError::Solve(SolveError::new(what, why, needs_person).until(until)).retry()
        };
        assert_eq!(retry(false, Some(moment)), Retry::At(moment));
        assert_eq!(retry(false, None), Retry::Backoff);
        assert_eq!(retry(true, Some(moment)), Retry::Never);
    }
}
