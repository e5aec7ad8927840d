//! newOrder: its terms, its permit, the request, and the outcome.

use tokio::time::Instant;

use super::ReconcileError;
use super::order::OrderController;
use super::order_budget::Granted;
use super::order_requests::{OrderAtCa, Unanswered, is_unknown_account, refused};
use crate::acme::error::AcmeError;
use crate::model::event::{reason, source};
use crate::model::order_budget::ReorderReason;
use crate::model::order_ledger::RequestOutcome;
use crate::model::{Issuer, Key, Kind, Order};
use crate::reconcile::order::required::OrderTerms;
use crate::reconcile::order::{OrderRequest, Outcome};
use crate::reconcile::{Note, Refusal};
use crate::store::error::StoreError;
use crate::store::events::reference;

impl OrderController {
    /// Requests the order. An account that the CA has forgotten is registered again before the next try.
    pub(super) async fn create(
        &self,
        at_ca: OrderAtCa<'_>,
        issuer: &Issuer,
        wanted: OrderTerms,
    ) -> Result<Outcome, ReconcileError> {
        let begun = Instant::now();
        let mut wanted = match at_ca.terms(wanted).await {
            Ok(Ok(terms)) => terms,
            Ok(Err(outcome)) => return Ok(outcome),
            Err(unanswered) => return self.record_reply(at_ca, Err(unanswered)).await,
        };
        // Pebble fails each time for one certificate in 256, whose serial number it does not find again.
        let has_failed = self.budget.has_failed_at_ca(at_ca.order);
        // A permit is used at once: whatever has to be read first may take its time.
        if let Err(error) = at_ca.acme.prepare().await {
            return self.handle_refusal(at_ca, issuer, error).await;
        }
        let Granted { permit, excuse, reserved } = match self.permit(at_ca, &wanted).await? {
            Ok(granted) => granted,
            Err(why) => return Ok(Outcome::Refused(OrderRequest::Create, why)),
        };
        if self.is_gone(at_ca.order).await? {
            self.budget.note(at_ca.order, RequestOutcome::NotMade);
            return Err(
                StoreError::NotFound { key: Key::new(Kind::Order, at_ca.order.name()) }.into()
            );
        }
        if has_failed || excuse == Some(ReorderReason::Unread) {
            // The unread order may replace the certificate already; and a CA may fail over `replaces` each time.
            wanted.replaces = None;
        }
        let asked = at_ca.create(wanted, permit).await;
        drop(reserved);
        match asked {
            Ok(Outcome::Created(seen)) => {
                self.budget.note(at_ca.order, RequestOutcome::Made);
                Ok(Outcome::Created(seen))
            }
            Err(Unanswered { error, .. }) if is_unknown_account(&error) => {
                self.budget.note(at_ca.order, RequestOutcome::NotMade);
                self.handle_refusal(at_ca, issuer, error).await
            }
            asked => {
                self.budget.note_answer(at_ca.order, &asked, at_ca.now + begun.elapsed());
                self.record_reply(at_ca, asked).await
            }
        }
    }

    /// Returns the outcome of a refused newOrder; an account that the CA no longer knows is registered again.
    async fn handle_refusal(
        &self,
        at_ca: OrderAtCa<'_>,
        issuer: &Issuer,
        error: AcmeError,
    ) -> Result<Outcome, ReconcileError> {
        if is_unknown_account(&error) && self.accounts.account_is_gone(issuer, at_ca.now).await? {
            let why = format!("registering the account of {} again: {error}", issuer.name());
            return Err(ReconcileError::Missing(why));
        }
        self.record_reply(at_ca, refused(OrderRequest::Create, error)).await
    }

    /// Returns the permit to request an order, or the CA's refusal that still holds; notes why one is repeated.
    async fn permit(
        &self,
        at_ca: OrderAtCa<'_>,
        wanted: &OrderTerms,
    ) -> Result<Result<Granted<'_>, Refusal>, ReconcileError> {
        let OrderAtCa { order, now, .. } = at_ca;
        let account = at_ca.acme.account_url().unwrap_or_default();
        let asked = (&*account, &*wanted.identifiers);
        match self.budget.ask(self.recorder.store(), order, asked, now).await {
            Ok(granted) => {
                if let Ok(Granted { excuse: Some(excuse), .. }) = &granted {
                    let message = format!("Asking the CA for another order: {excuse}");
                    let note = Note::normal(source::ORDERS, reason::ORDERED_AGAIN, message);
                    self.recorder.note(&reference(order), &note, now).await?;
                }
                Ok(granted)
            }
            Err(ReconcileError::OverBudget(over)) if !over.is_pause() => {
                let why = Outcome::Unanswered(OrderRequest::Create, None, over.to_string());
                self.write(order, why, now).await?;
                Err(ReconcileError::OverBudget(over))
            }
            Err(error) => Err(error),
        }
    }

    /// Returns whether the Order is gone or left over: the grant may have taken its time.
    async fn is_gone(&self, order: &Order) -> Result<bool, StoreError> {
        let known = self.orders.get_known(&order.name()).await?;
        if known.is_none_or(|known| known.metadata.uid != order.metadata.uid) {
            return Ok(true);
        }
        super::is_left_over(&**self.recorder.store(), &order.metadata).await
    }
}
