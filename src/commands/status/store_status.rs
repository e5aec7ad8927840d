//! State of a store: numbers of Certificates and Issuers by state, next renewals, the driver, slots, and waits that CAs
//! have asked for.

use std::sync::Arc;

use jiff::Timestamp;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::selector::LabelSelector;
use crate::input::target;
use crate::lead::{self, RunningController};
use crate::model::common::{ConditionStatus, condition, is_true};
use crate::model::memory::{Holder, Memory};
use crate::model::{Certificate, Challenge, Issuer, Key, Kind, ObjectName, Order, State};
use crate::reconcile::schedule::Limits;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

/// State of a store, or of one of its namespaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStatus {
    /// Numbers of Certificates.
    pub certificates: CertificateCounts,
    /// Numbers of Issuers and ClusterIssuers; `None` if neither kind may be read.
    pub issuers: Option<IssuerCounts>,
    /// Renewal times of ready Certificates, earliest first.
    pub renewals: Vec<(Timestamp, ObjectName)>,
    /// Program that drives; `None` if no controller is running.
    pub driver: Option<RunningController>,
    /// Number of challenges with a slot, of all namespaces that may be read.
    pub running: usize,
    /// Number of challenges that wait for a slot.
    pub queued: usize,
    /// Number of slots.
    pub slots: usize,
    /// End of each wait that a CA has asked for (`Retry-After`, RFC 8555 §6.6), with the waiting object, earliest first.
    pub waits: Vec<(Timestamp, Key)>,
}

/// Numbers of Certificates by state; each Certificate counts once, except in `expired`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CertificateCounts {
    /// Certificates that are `Ready` and not being issued.
    pub ready: usize,
    /// Certificates that are being issued or renewed.
    pub issuing: usize,
    /// Certificates that are neither ready nor being issued.
    pub not_ready: usize,
    /// Certificates of any state whose certificate has expired.
    pub expired: usize,
}

/// Numbers of Issuers and ClusterIssuers by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IssuerCounts {
    /// Issuers that are `Ready`.
    pub ready: usize,
    /// Issuers that are not, or not yet, `Ready`.
    pub not_ready: usize,
}

impl CertificateCounts {
    /// Number of all Certificates.
    pub fn total(self) -> usize {
        self.ready + self.issuing + self.not_ready
    }

    fn count(&mut self, certificate: &Certificate, now: Timestamp) {
        let status = &certificate.status;
        let kind =
            match (is_true(&status.conditions, "Issuing"), is_true(&status.conditions, "Ready")) {
                (true, _) => &mut self.issuing,
                (false, true) => &mut self.ready,
                (false, false) => &mut self.not_ready,
            };
        *kind += 1;
        self.expired += usize::from(status.not_after.is_some_and(|end| end.timestamp() <= now));
    }
}

/// Reads the state of a namespace, or of all namespaces if none is named. All namespaces share the slots, so challenges of
/// all namespaces that may be read are counted.
///
/// # Errors
/// Fails when Certificates cannot be read, or the store fails.
pub async fn read(
    store: &Arc<dyn Store>,
    (namespace, labels): (Option<&str>, Option<&LabelSelector>),
    limits: Limits,
    context: &Context,
) -> Result<StoreStatus, Failure> {
    let now = context.now();
    let mut status = StoreStatus { slots: limits.max_in_flight, ..StoreStatus::default() };
    let records =
        store.list(Kind::Certificate, &target::scope(Kind::Certificate, namespace)).await?;
    for record in records.into_iter().filter(|it| labels.is_none_or(|labels| labels.fits(it))) {
        let certificate: Certificate = typed(record)?;
        status.certificates.count(&certificate, now);
        let of = &certificate.status;
        let is_kept = is_true(&of.conditions, "Ready") && !is_true(&of.conditions, "Issuing");
        if let Some(at) = of.renewal_time.filter(|_| is_kept) {
            status.renewals.push((at.timestamp(), certificate.name()));
        }
    }
    status.renewals.sort();
    status.issuers = issuers(store, namespace, now, &mut status.waits).await?;
    orders(store, namespace, now, &mut status.waits).await?;
    status.waits.sort();
    for challenge in challenges(store, namespace).await? {
        let is_open = !challenge.has_ended() && !challenge.metadata.is_deleted();
        if challenge.status.processing {
            status.running += 1;
        } else {
            status.queued += usize::from(is_open);
        }
    }
    status.driver = lead::at_work(context).await?;
    Ok(status)
}

/// Counts issuers, and records the issuers whose CA has asked to wait.
async fn issuers(
    store: &Arc<dyn Store>,
    namespace: Option<&str>,
    now: Timestamp,
    waits: &mut Vec<(Timestamp, Key)>,
) -> Result<Option<IssuerCounts>, StoreError> {
    let mut counts: Option<IssuerCounts> = None;
    for kind in [Kind::Issuer, Kind::ClusterIssuer] {
        let Some(all) = unless_forbidden(store.list(kind, &target::scope(kind, namespace)).await)?
        else {
            continue;
        };
        let counts = counts.get_or_insert_default();
        for record in all {
            let key = record.key.clone();
            let issuer: Issuer = typed(record)?;
            let ready = condition(&issuer.status.conditions, "Ready");
            let is_ready = ready.is_some_and(|ready| ready.status == ConditionStatus::True);
            *(if is_ready { &mut counts.ready } else { &mut counts.not_ready }) += 1;
            let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
            waits.extend(memory.next_try.filter(|at| *at > now).map(|at| (at, key)));
        }
    }
    Ok(counts)
}

/// Records the Orders whose CA has asked to wait.
async fn orders(
    store: &Arc<dyn Store>,
    namespace: Option<&str>,
    now: Timestamp,
    waits: &mut Vec<(Timestamp, Key)>,
) -> Result<(), StoreError> {
    let scope = target::scope(Kind::Order, namespace).brief();
    let orders = Resources::<Order>::new(Arc::clone(store), Kind::Order);
    for order in unless_forbidden(orders.list(&scope).await)?.unwrap_or_default() {
        let memory = Memory::read(Holder::Order, &order.metadata.annotations);
        let is_open = !order.status.state.is_some_and(State::is_final);
        let until = memory.next_try.filter(|at| is_open && *at > now);
        waits.extend(until.map(|at| (at, Key::new(Kind::Order, order.name()))));
    }
    Ok(())
}

/// Lists the Challenges that may be read: of all namespaces, or else of the named one, or else none.
async fn challenges(
    store: &Arc<dyn Store>,
    namespace: Option<&str>,
) -> Result<Vec<Challenge>, StoreError> {
    let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
    if let Some(found) = unless_forbidden(all.list(&Scope::all().brief()).await)? {
        return Ok(found);
    }
    let scope = target::scope(Kind::Challenge, namespace).brief();
    Ok(unless_forbidden(all.list(&scope).await)?.unwrap_or_default())
}
