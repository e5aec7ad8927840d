//! A person's wishes: a fresh certificate, by the condition that cmctl sets, too; and another look at an Issuer that failed.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::failure::Failure;
use crate::model::common::{condition, is_true, set_condition};
use crate::model::memory::{Holder, Memory};
use crate::model::{Certificate, Condition, ConditionStatus, Issuer, Key, Kind, ObjectName};
use crate::store::resources::Resources;
use crate::store::{Store, StoreError};

/// How often the status is read and written again because somebody else wrote in between.
const TRIES: usize = 10;

/// Sets `Issuing=True`, reason `ManuallyTriggered`; returns false when the Certificate is being issued already.
///
/// # Errors
/// Fails when there is no such Certificate, or the store fails.
pub async fn mark_for_renewal(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    now: Timestamp,
) -> Result<bool, Failure> {
    let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    for _ in 0..TRIES {
        let Some(certificate) = certificates.get(name).await? else {
            return Err(Failure::usage(format!("Certificate {name} not found")));
        };
        if is_true(&certificate.status.conditions, "Issuing") {
            return Ok(false);
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
        match certificates.replace_status(&certificate, &status).await {
            Ok(_) => return Ok(true),
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Conflict { key: certificates.key(name) }.into())
}

/// Takes the `Ready=False` of an earlier run from Issuers, so that whatever they say next was found in this run. A moment that
/// the CA has named still counts.
///
/// # Errors
/// Fails when the store does.
pub async fn look_anew(
    store: &Arc<dyn Store>,
    issuers: &BTreeSet<Key>,
    now: Timestamp,
) -> Result<(), Failure> {
    for key in issuers {
        if !matches!(key.kind, Kind::Issuer | Kind::ClusterIssuer) {
            continue;
        }
        let issuers = Resources::<Issuer>::new(Arc::clone(store), key.kind);
        let Some(issuer) = issuers.get(&key.name).await? else { continue };
        let ready = condition(&issuer.status.conditions, "Ready");
        let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
        let waits = memory.next_try.is_some_and(|at| at > now);
        if waits || ready.is_none_or(|ready| ready.status != ConditionStatus::False) {
            continue;
        }
        let mut status = issuer.status.clone();
        status.conditions.retain(|condition| condition.kind != "Ready");
        issuers.replace_status(&issuer, &status).await?;
    }
    Ok(())
}
