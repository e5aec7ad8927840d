//! Requests of a person: a new certificate, by the condition that cmctl sets, too; and a new try of Issuers, Orders and
//! Certificates that failed in an earlier run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::context::failure::Failure;
use crate::controllers::selection::Selection;
use crate::diagnosis::words::facts;
use crate::model::cause::OrderWait;
use crate::model::common::{Time, condition, set_condition};
use crate::model::memory::{Holder, Memory};
use crate::model::{
    self, Certificate, CertificateStatus, Condition, ConditionStatus, Issuer, Key, Kind,
    ObjectName, Order, OrderStatus, Resource,
};
use crate::reconcile::certificate::issuing;
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Most attempts to write a status that another process changes in between.
const STATUS_WRITE_TRIES_MAX: usize = 10;

/// Sets `Issuing=True`, reason `ManuallyTriggered`, unless the Certificate is being issued already.
///
/// # Errors
/// Fails when there is no such Certificate, or the store fails.
pub async fn mark_for_renewal(store: &Arc<dyn Store>, name: &ObjectName) -> Result<(), Failure> {
    match try_mark_for_renewal(store, name).await? {
        Changed::Written | Changed::Nothing => Ok(()),
        Changed::Missing => Err(Failure::usage(format!("Certificate {name} not found"))),
    }
}

/// Marks a Certificate for renewal as [`mark_for_renewal`] does, and returns the outcome; the store's error is returned as
/// it is, for callers that can wait for an unreachable store.
///
/// # Errors
/// Fails when the store does.
pub async fn try_mark_for_renewal(
    store: &Arc<dyn Store>,
    name: &ObjectName,
) -> Result<Changed, StoreError> {
    let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    if let Some(certificate) = certificates.get(name).await? {
        tokio::time::sleep(rest_of_second(&certificate.status, Timestamp::now())).await;
    }
    let now = Timestamp::now();
    change_status(&certificates, name, |certificate| new_try(certificate, now)).await
}

/// Returns the status of a Certificate whose next try begins now; `None` if a try is running. The temporary Secret of the
/// last try is forgotten: that Secret identifies a try, so that a failure counts for its own try only.
fn new_try(certificate: &Certificate, now: Timestamp) -> Option<CertificateStatus> {
    if certificate.is_being_issued() {
        return None;
    }
    let mut status = certificate.status.clone();
    let condition = Condition {
        kind: "Issuing".to_owned(),
        status: ConditionStatus::True,
        reason: "ManuallyTriggered".to_owned(),
        message: "Certificate re-issuance manually triggered".to_owned(),
        observed_generation: certificate.metadata.generation,
        last_transition_time: None,
    };
    set_condition(&mut status.conditions, condition, now);
    status.next_private_key_secret_name.clear();
    Some(status)
}

/// Returns the rest of the second in which the last try failed; zero if that second is over. cert-manager, if it drives,
/// tells tries apart by whole seconds, and would take that failure for the new try's.
fn rest_of_second(status: &CertificateStatus, now: Timestamp) -> Duration {
    let failed = status.last_failure_time.map(Time::timestamp);
    let over = failed
        .filter(|at| *at <= now)
        .and_then(|at| at.checked_add(SignedDuration::from_secs(1)).ok());
    over.and_then(|over| Duration::try_from(over.duration_since(now)).ok()).unwrap_or_default()
}

/// Removes failures of an earlier run: `Ready=False` of Issuers, the reason of Orders without a solver, and the end of
/// Certificates that only a person can help. Later statuses are then of this run. A moment named by the CA still counts.
///
/// # Errors
/// Fails when the store does.
pub async fn look_anew(
    store: &Arc<dyn Store>,
    given: &BTreeSet<Key>,
    now: Timestamp,
) -> Result<(), Failure> {
    let unjudged = |issuer: &Issuer| {
        let ready = condition(&issuer.status.conditions, "Ready");
        let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
        let waits = memory.next_try.is_some_and(|at| at > now);
        if waits || ready.is_none_or(|ready| ready.status != ConditionStatus::False) {
            return None;
        }
        let mut status = issuer.status.clone();
        status.conditions.retain(|condition| condition.kind != "Ready");
        Some(status)
    };
    let is_issuer = |key: &&Key| matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer);
    for key in given.iter().filter(is_issuer) {
        let issuers = Resources::<Issuer>::new(Arc::clone(store), key.kind);
        change_status(&issuers, &key.name, unjudged).await?;
    }
    let helped = |certificate: &Certificate| {
        issuing::end(certificate)?;
        let mut status = certificate.status.clone();
        let issuing =
            status.conditions.iter_mut().find(|it| it.kind == model::certificate::ISSUING)?;
        "Looking again".clone_into(&mut issuing.message);
        Some(status)
    };
    let all = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    for key in given.iter().filter(|key| key.kind == Kind::Certificate) {
        change_status(&all, &key.name, helped).await?;
    }
    let unsolved = |order: &Order| {
        let waits_for = facts::waits_for(order);
        let is_unsolved = matches!(waits_for, Some(OrderWait::Solver | OrderWait::ChallengeType));
        is_unsolved.then(|| OrderStatus { reason: String::new(), ..order.status.clone() })
    };
    let orders = Resources::<Order>::new(Arc::clone(store), Kind::Order);
    let certificates = given.iter().filter(|key| key.kind.is_issued());
    let namespaces: BTreeSet<_> = certificates.map(|key| key.name.namespace.as_str()).collect();
    let selection = Selection::only(given.clone());
    for namespace in namespaces {
        for order in orders.list(&Scope::namespace(namespace).brief()).await? {
            let key = Key::new(Kind::Order, order.name());
            if unsolved(&order).is_some() && selection.covers(&**store, &key).await? {
                change_status(&orders, &key.name, unsolved).await?;
            }
        }
    }
    Ok(())
}

/// Outcome of a change of status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// There is no such object.
    Missing,
    /// The status was as wanted.
    Nothing,
    /// The status was written.
    Written,
}

/// Changes a status, which is read again if another process wrote in between.
async fn change_status<S, T>(
    resources: &Resources<Resource<S, T>>,
    name: &ObjectName,
    change: impl Fn(&Resource<S, T>) -> Option<T>,
) -> Result<Changed, StoreError>
where
    S: Serialize + DeserializeOwned + Send + Sync,
    T: Default + Serialize + DeserializeOwned + Send + Sync,
{
    for _ in 0..STATUS_WRITE_TRIES_MAX {
        let Some(resource) = resources.get(name).await? else { return Ok(Changed::Missing) };
        let Some(status) = change(&resource) else { return Ok(Changed::Nothing) };
        match resources.replace_status(&resource, &status).await {
            Ok(_) => return Ok(Changed::Written),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Conflict { key: resources.key(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_try_begins_after_the_second_of_the_failure_before_it() {
        let now: Timestamp = "2026-11-21T20:41:30.7Z".parse().unwrap();
        let check = |failed: Option<&str>, millis: u64| {
            let at = |text: &str| Time::from(text.parse::<Timestamp>().unwrap());
            let status =
                CertificateStatus { last_failure_time: failed.map(at), ..Default::default() };
            assert_eq!(rest_of_second(&status, now), Duration::from_millis(millis), "{failed:?}");
        };
        check(None, 0);
        check(Some("2026-11-21T20:41:29Z"), 0);
        check(Some("2026-11-21T20:41:30Z"), 300);
        // The clock was set back: nobody waits for that.
        check(Some("2026-11-21T21:41:30Z"), 0);
    }

    #[test]
    fn a_new_try_has_neither_the_key_nor_a_moment_of_the_one_before() {
        let now: Timestamp = "2026-11-21T20:41:30Z".parse().unwrap();
        let mut certificate = Certificate::default();
        certificate.status.next_private_key_secret_name = "web-abcde".to_owned();
        let status = new_try(&certificate, now).unwrap();
        assert_eq!(status.next_private_key_secret_name, "");
        let begun = condition(&status.conditions, "Issuing").unwrap().last_transition_time;
        assert_eq!(begun, Some(now.into()));
        certificate.status = status;
        assert_eq!(new_try(&certificate, now), None);
    }
}
