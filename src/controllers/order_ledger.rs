//! Ledger of a Certificate's orders in the store: its holder, its writing, and the result of an outcome in it. And facts of
//! this process about the entries, beyond the ledger in the store.

use std::time::Duration;

use jiff::SignedDuration;
use tokio::time::Instant;

use super::order_requests::Unanswered;
use crate::acme::error::AcmeError;
use crate::model::order_ledger::{Entry, Ledger, RequestOutcome};
use crate::model::{Key, Kind, Metadata, Order, OrderStatus, Problem, Record, State};
use crate::reconcile::Refusal;
use crate::reconcile::order::Outcome;
use crate::store::error::StoreError;
use crate::store::{Part, Store};

/// Object whose orders are counted.
#[derive(Debug)]
pub(super) struct LedgerHolder {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) ledger: Ledger,
    /// Revision of the last issuance that succeeded.
    pub(super) issued: i64,
    /// Certificate, if there is one: its ledger is stored.
    pub(super) certificate: Option<Record>,
}

/// Returns the Certificate above an Order, else the topmost object; `anew` after a write based on an old state.
///
/// # Errors
/// Fails if an owner is gone, so that the Order goes too, or the store fails.
pub(super) async fn holder(
    store: &dyn Store,
    order: &Order,
    anew: bool,
) -> Result<LedgerHolder, StoreError> {
    let mut key = Key::new(Kind::Order, order.name());
    let mut metadata = order.metadata.clone();
    while let Some((above, uid)) = metadata.controller_key() {
        let found = if anew { store.get_anew(&above).await? } else { store.get(&above).await? };
        let Some(found) = found.filter(|found| found.uid() == uid) else {
            return Err(StoreError::NotFound { key: above });
        };
        metadata = found.metadata();
        if above.kind == Kind::Certificate {
            return Ok(LedgerHolder {
                key: above,
                uid: metadata.uid,
                ledger: Ledger::read(&metadata.annotations),
                issued: found.object["status"]["revision"].as_i64().unwrap_or(0),
                certificate: Some(found),
            });
        }
        key = above;
    }
    let Metadata { uid, .. } = metadata;
    Ok(LedgerHolder { key, uid, ledger: Ledger::default(), issued: 0, certificate: None })
}

/// Returns whether the store has an Order with its order by now.
///
/// # Errors
/// Fails if the store does.
pub(super) async fn has_its_order(store: &dyn Store, order: &Order) -> Result<bool, StoreError> {
    let known = store.get_anew(&Key::new(Kind::Order, order.name())).await?;
    Ok(known.is_some_and(|known| !known.text("/status/url").is_empty()))
}

/// Writes the ledger; does nothing if there is no Certificate.
///
/// # Errors
/// Fails if the store does.
pub(super) async fn write(
    store: &dyn Store,
    holder: &LedgerHolder,
    ledger: &Ledger,
) -> Result<(), StoreError> {
    let Some(certificate) = &holder.certificate else { return Ok(()) };
    let mut metadata = certificate.metadata();
    ledger.write(&mut metadata.annotations);
    let object = serde_json::json!({ "metadata": metadata });
    let key = certificate.key.clone();
    store.replace(Record { key, object }, Part::Metadata).await.map(drop)
}

/// Returns the result of the newOrder of an Order, by the recorded status of an outcome.
pub(super) fn became(order: &Order, is_dropped: bool, now: &OrderStatus) -> Option<RequestOutcome> {
    let before = &order.status;
    if is_dropped {
        return Some(RequestOutcome::Dropped);
    }
    let has_failed = now.state.is_some_and(State::is_failure);
    match (before.url.is_empty(), now.url.is_empty()) {
        (true, _) => has_failed.then_some(RequestOutcome::Refused),
        (false, true) => Some(RequestOutcome::LostToAnother),
        (false, false) if has_failed => Some(RequestOutcome::Failed),
        (false, false) => (!now.certificate.is_empty()).then_some(RequestOutcome::Issued),
    }
}

/// Returns whether the CA replied that it made no order; a gateway's fault does not show that.
pub(super) fn is_not_made(asked: &Result<Outcome, Unanswered>) -> bool {
    match asked {
        Ok(Outcome::Refused(_, Refusal::Until(problem, _))) => problem.status < 500,
        Err(Unanswered { error, .. }) => error.problem().is_some_and(|p| p.status < 500),
        Ok(_) => false,
    }
}

/// An entry of a ledger that this process has seen or made.
#[derive(Clone, Debug)]
pub(super) struct BudgetEntry {
    pub(super) holder: String,
    pub(super) entry: Entry,
    pub(super) is_ours: bool,
    /// Reply that brought no order, if any.
    pub(super) heard: Option<NoOrder>,
    /// Age of the request when this process first knew of it.
    pub(super) ago: SignedDuration,
    /// Moment of that first knowledge; `None` while the request is being stored or is under way.
    pub(super) since: Option<Instant>,
}

/// Reason that a newOrder brought no order.
#[derive(Clone, Debug)]
pub(super) enum NoOrder {
    /// Error that kept the reply from being read.
    Fault(AcmeError),
    /// The CA's refusal, and until when that holds (`Retry-After`, RFC 8555 §6.6).
    Limit(Box<Problem>, Instant),
}

impl BudgetEntry {
    /// Returns whether this is the entry with that number, of the Order with that UID.
    pub(super) fn is_entry(&self, (number, uid): &(u64, String)) -> bool {
        (self.entry.number, &self.entry.uid) == (*number, uid)
    }

    /// Returns whether the request was for this account and this set of names.
    pub(super) fn is_for(&self, account: &str, names: &str) -> bool {
        (&*self.entry.account, &*self.entry.names) == (account, names)
    }

    /// Returns the age of the request; a request under way counts as made now.
    pub(super) fn ago(&self) -> SignedDuration {
        let elapsed: Duration = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        SignedDuration::try_from(elapsed)
            .ok()
            .and_then(|elapsed| self.ago.checked_add(elapsed))
            .unwrap_or(SignedDuration::MAX)
    }
}
