//! What an order has to follow, and what is put right before anybody follows anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::followed::{End, Followed};
use super::left;
use crate::commands::chain::{Chain, issuer_key};
use crate::commands::claim::Claim;
use crate::commands::due::due;
use crate::commands::failure::{Failure, Kind as FailureKind};
use crate::commands::precheck::certificates;
use crate::commands::verdict::{Verdict, verdict};
use crate::controllers::ReconcileError;
use crate::controllers::certificate::CertificateController;
use crate::controllers::driver::Obstacles;
use crate::controllers::recorder::Recorder;
use crate::model::common::is_true;
use crate::model::{Issuer, Key, Kind, ObjectName, Record};
use crate::reconcile::issuer::{is_ready, is_ready_to_cert_manager};
use crate::store::Store;
use crate::store::resources::typed;

/// Where an order begins.
#[derive(Debug)]
pub struct Opening {
    /// What has to be followed: Certificates that are due, untidy or not looked at yet, and Issuers of which no other object tells.
    pub open: BTreeMap<Key, Followed>,
    /// What has ended already.
    pub ends: BTreeMap<Key, End>,
}

/// Finds what has to be followed. Certificates that are not due are put right here, where nobody else drives: that takes neither
/// a CA nor a port.
///
/// # Errors
/// Fails when the store does, or two Certificates have one Secret.
pub async fn opening(
    records: &[Record],
    store: &Arc<dyn Store>,
    claim: &Claim,
    is_in_cluster: bool,
    now: Timestamp,
) -> Result<Opening, Failure> {
    let (mut open, mut ends) = (BTreeMap::new(), BTreeMap::new());
    let of_kind = |kind| records.iter().map(|r| &r.key).filter(move |key| key.kind == kind);
    let left = if is_in_cluster && !claim.is_cert_manager() {
        left::to_cert_manager(store, of_kind(Kind::Certificate)).await?
    } else {
        BTreeMap::new()
    };
    for key in of_kind(Kind::Certificate) {
        if let Some(since) = due(store, &key.name, now).await? {
            open.insert(key.clone(), Followed::due(store, &key.name, since).await?);
            continue;
        }
        if left.contains_key(key) {
            continue;
        }
        if let Claim::Alone | Claim::Drives(_) = claim {
            put_right(store, &key.name, now).await?;
        }
        let Some(chain) = Chain::read(store, &key.name).await? else { continue };
        match verdict(&chain, &Obstacles::new(), None) {
            Verdict::Issued => {}
            Verdict::Failed(failed) => {
                ends.insert(key.clone(), End::Failed(failed.failure));
            }
            Verdict::Waiting(_) => {
                open.insert(key.clone(), Followed::default());
            }
        }
    }
    for key in of_kind(Kind::Issuer).chain(of_kind(Kind::ClusterIssuer)) {
        if is_followed(key, records, store, claim, &open).await? {
            open.insert(key.clone(), Followed::default());
        }
    }
    Ok(Opening { open, ends })
}

/// Tells whether an Issuer is followed itself: it was given alone; or it has still to be looked at, and no due Certificate waits
/// for that.
async fn is_followed(
    key: &Key,
    records: &[Record],
    store: &Arc<dyn Store>,
    claim: &Claim,
    open: &BTreeMap<Key, Followed>,
) -> Result<bool, Failure> {
    if certificates(records).next().is_none() {
        return Ok(true);
    }
    let Some(record) = store.get(key).await? else { return Ok(false) };
    let issuer = typed::<Issuer>(record)?;
    let is_done =
        if claim.is_cert_manager() { is_ready_to_cert_manager(&issuer) } else { is_ready(&issuer) };
    if issuer.spec.acme.is_none() || is_done {
        return Ok(false);
    }
    // A Certificate goes on with what was ready before.
    let was_ready = is_true(&issuer.status.conditions, "Ready");
    let users: BTreeSet<bool> = certificates(records)
        .filter(|certificate| issuer_key(certificate).as_ref() == Some(key))
        .map(|certificate| {
            let key = Key::new(Kind::Certificate, certificate.name());
            open.get(&key).is_some_and(|followed| followed.since.is_some())
        })
        .collect();
    Ok(was_ready || users == BTreeSet::from([false]))
}

async fn put_right(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    now: Timestamp,
) -> Result<(), Failure> {
    let controller = CertificateController::new(Recorder::new(Arc::clone(store)));
    controller.put_right(name, now).await.map_err(|error| match error {
        ReconcileError::Store(error) => error.into(),
        error => {
            let message = format!("cannot put Certificate {name} right: {error}");
            Failure::new(FailureKind::of_error(&error), message)
        }
    })
}
