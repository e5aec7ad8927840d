//! Turns to request an order: keeps Orders under way and Orders that wait, and makes a waiting Order say so.

use std::ops::ControlFlow::{self, Break, Continue};

use parking_lot::Mutex;
use serde::Deserialize as _;

use super::ReconcileError;
use super::order_ledger::holder;
use super::order_requests::OrderAtCa;
use crate::model::cause::OrderWait;
use crate::model::{CertificateStatus, Issuer, Key, Kind, ObjectName, Order, Record};
use crate::reconcile::Wake;
use crate::reconcile::order::turns::{Turns, has_challenges_to_come, precedence, waiting_message};
use crate::reconcile::order::{Outcome, waits_for};
use crate::reconcile::schedule::Limits;
use crate::store::Store;

/// Turns of all Orders that one process works on.
#[derive(Debug)]
pub(super) struct OrderTurns(Mutex<Turns>);

impl OrderTurns {
    /// Builds turns without any Order.
    pub(super) fn new(limits: Limits) -> Self {
        Self(Mutex::new(Turns::new(limits)))
    }

    /// Records an Order that has names to prove as under way.
    pub(super) fn note(&self, order: &Order, issuer: &Issuer) {
        if has_challenges_to_come(order) {
            let name = order.name();
            self.0.lock().begin(&name, directory_of(issuer), names_of(order));
        }
    }

    /// Records that the request of an Order failed: the next Order that asks may have its turn.
    pub(super) fn give_up(&self, order: &Order) {
        self.0.lock().leave(&order.name());
    }

    /// Records a change of an Order, `None` if it is gone; returns the Orders whose turn it is now.
    pub(super) fn note_change(&self, name: &ObjectName, known: Option<&Record>) -> Vec<Key> {
        let mut turns = self.0.lock();
        if known.and_then(|k| Order::deserialize(&k.object).ok()).is_none_or(|o| is_over(&o)) {
            turns.leave(name);
        }
        turns.admit().into_iter().map(|name| Key::new(Kind::Order, name)).collect()
    }

    /// Continues if an Order may begin at the CA; otherwise breaks with the outcome or wait until its turn.
    pub(super) async fn turn(
        &self,
        store: &dyn Store,
        at_ca: OrderAtCa<'_>,
        issuer: &Issuer,
    ) -> Result<ControlFlow<Result<Outcome, Wake>>, ReconcileError> {
        let OrderAtCa { order, now, .. } = at_ca;
        let (name, directory, names) = (order.name(), directory_of(issuer), names_of(order));
        if self.0.lock().begin_if_free(&name, directory, names) {
            return Ok(Continue(()));
        }
        let holder = holder(store, order, false).await?;
        let certificate = holder.certificate.map(|certificate| {
            CertificateStatus::deserialize(&certificate.object["status"]).unwrap_or_default()
        });
        let precedence = precedence(order, certificate.as_ref(), now);
        let asked = self.0.lock().ask(&name, directory, names, precedence);
        let Err(not_yet) = asked else { return Ok(Continue(())) };
        Ok(Break(if waits_for(order) == Some(OrderWait::Turn) {
            Err(Wake::At(now.saturating_add(not_yet.pause).unwrap_or(now)))
        } else {
            Ok(Outcome::Queued(waiting_message(not_yet.under_way)))
        }))
    }
}

/// Returns whether an Order needs no turn any more. An Order without an order still waits for, or has, its turn.
fn is_over(order: &Order) -> bool {
    let is_new = order.status.url.is_empty() && order.status.state.is_none();
    !has_challenges_to_come(order) && (!is_new || order.metadata.is_deleted())
}

fn directory_of(issuer: &Issuer) -> &str {
    issuer.spec.acme.as_ref().map_or("", |acme| &acme.server)
}

fn names_of(order: &Order) -> usize {
    (order.spec.dns_names.len() + order.spec.ip_addresses.len()).max(1)
}
