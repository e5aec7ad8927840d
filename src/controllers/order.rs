//! Orders: gathers Issuer and Challenges, performs one action at the CA or in the store, and records the outcome.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::accounts::Accounts;
use super::by_object::ByObject;
use super::order_budget::OrderBudget;
use super::order_requests::{OrderAtCa, Unanswered};
use super::order_turns::OrderTurns;
use super::recorder::Recorder;
use super::selection::Selection;
use super::shared_orders::{SharedOrders, is_under_way, url_under_way};
use super::{Controller, ReconcileError, ReconcileFailure, order_challenges, order_ledger};
use crate::model::event::source;
use crate::model::issuer::asked_type;
use crate::model::memory::Holder;
use crate::model::order_ledger::RequestOutcome;
use crate::model::persist::Account;
use crate::model::{
    Challenge, ChallengeType, Issuer, Key, Kind, Order, OrderStatus, Record, State,
};
use crate::reconcile::order::required::{Types, required};
use crate::reconcile::order::shared::Sharer;
use crate::reconcile::order::{self, Action, LastRead, Observed, Outcome};
use crate::reconcile::schedule::Limits;
use crate::reconcile::{Recorded, Wake};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Kind of memory that an Order has beyond its status.
const HOLDER: Option<Holder> = Some(Holder::Order);

/// Carries Orders from newOrder to the certificate.
#[derive(Debug)]
pub struct OrderController {
    pub(super) orders: Resources<Order>,
    challenges: Resources<Challenge>,
    pub(super) accounts: Arc<Accounts>,
    selection: Selection,
    shared: SharedOrders,
    /// Filled once all Orders from before this process are in `shared`.
    met: OnceCell<()>,
    /// CA replies to newOrder that are not in the store yet: it was away, or another writer came in between.
    unwritten: Arc<ByObject<Outcome>>,
    pub(super) budget: Arc<OrderBudget>,
    pub(super) turns: OrderTurns,
    /// Last reading of each order: readings without news are not stored.
    heard: ByObject<LastRead>,
    types: Types,
    pub(super) recorder: Recorder,
}

impl OrderController {
    /// Builds the controller; Orders outside the selection are not worked on.
    pub fn new(
        recorder: Recorder,
        accounts: Arc<Accounts>,
        selection: Selection,
        budget: Arc<OrderBudget>,
    ) -> Self {
        let store = recorder.store();
        Self {
            orders: Resources::new(Arc::clone(store), Kind::Order).written_by(source::ORDERS),
            challenges: Resources::new(Arc::clone(store), Kind::Challenge)
                .written_by(source::ORDERS),
            accounts,
            selection,
            shared: SharedOrders::default(),
            met: OnceCell::new(),
            unwritten: Arc::default(),
            budget,
            turns: OrderTurns::new(Limits { max_in_flight: usize::MAX }),
            heard: ByObject::default(),
            types: Types::All,
            recorder,
        }
    }

    /// Returns the controller for a store that can hold only these challenge types.
    #[must_use]
    pub fn with_types(self, types: Types) -> Self {
        Self { types, ..self }
    }

    /// Returns the controller with orders begun only as far ahead as challenges within these limits can follow.
    #[must_use]
    pub fn within(self, limits: Limits) -> Self {
        Self { turns: OrderTurns::new(limits), ..self }
    }

    /// Returns the controller with CA replies that earlier controllers could not store.
    #[must_use]
    pub fn remembering(self, unwritten: Arc<ByObject<Outcome>>) -> Self {
        Self { unwritten, ..self }
    }

    async fn step(&self, order: &Order, now: Timestamp) -> Result<Wake, ReconcileError> {
        let issuer =
            self.accounts.issuer(&order.metadata.namespace, &order.spec.issuer_ref).await?;
        let acme = self.accounts.session(&issuer).await?;
        self.turns.note(order, &issuer);
        let scope = Scope::owned_by(&order.metadata.namespace, &order.metadata.uid);
        let challenges = self.challenges.list(&scope).await?;
        let account_url = acme.account_url().unwrap_or_default();
        let directory = issuer.spec.acme.as_ref().map_or("", |acme| &acme.server);
        let account = Account { url: &account_url, thumbprint: acme.thumbprint(), directory };
        let required = required(order, &issuer, account, self.types);
        let observed = Observed {
            challenges: &challenges,
            required: required.as_deref(),
            sharers: &self.sharers(order).await?,
            heard: self.heard.of(&order.metadata),
        };
        let at_ca = OrderAtCa {
            acme: &*acme,
            order,
            challenges: &challenges,
            preferred_chain: issuer.spec.acme.as_ref().map_or("", |a| &a.preferred_chain),
            persists: asked_type(&issuer) == Ok(Some(ChallengeType::DnsPersist01)),
            now,
        };
        let action = order::next_action(order, &observed, now);
        let begun = Instant::now();
        if !matches!(action, Action::Wait(_))
            && super::is_left_over(&**self.recorder.store(), &order.metadata).await?
        {
            return Ok(Wake::OnChange);
        }
        let unwritten = self.unwritten.of(&order.metadata);
        let unwritten = unwritten.filter(|outcome| action.is_answered_by(outcome, now));
        let done = match unwritten {
            Some(answered) => Continue(answered),
            None => self.perform(action, at_ca, &issuer).await?,
        };
        let outcome = match done {
            Continue(outcome) => outcome,
            Break(wake) => return Ok(wake),
        };
        if order::is_asked_once(&outcome) {
            self.unwritten.note(&order.metadata, outcome.clone());
        }
        let outcome = self.budget.replace(self.recorder.store(), order, outcome, now).await?;
        let polled = order::polled(&outcome, now);
        let is_dropped = matches!(outcome, Outcome::Dropped(_));
        let recorded = order::record(order, outcome, now);
        match order_ledger::became(order, is_dropped, &recorded.status) {
            // Stored before the Order can be tried again.
            Some(
                bad @ (RequestOutcome::Refused | RequestOutcome::Failed | RequestOutcome::Dropped),
            ) => {
                self.budget.keep(self.recorder.store(), order, bad, now).await?;
            }
            Some(became) => self.budget.note(order, became),
            None => {}
        }
        if let Some(polled) = polled {
            let after_failure =
                challenges.iter().any(|c| c.status.state.is_some_and(State::is_failure));
            self.heard.note(&order.metadata, LastRead { polled, after_failure });
        }
        let forgets = !order.status.url.is_empty() && recorded.status.url.is_empty();
        if forgets {
            self.heard.forget(&order.name());
        }
        // The action may have taken its time at the CA; its outcome is recorded as of now.
        match self.keep(order, recorded, now + begun.elapsed()).await {
            // cert-manager's webhook lets no Order lose its URL; the request makes another Order in its place.
            Err(StoreError::Denied { .. }) if forgets => {
                self.orders.delete(&order.name()).await?;
                Ok(Wake::OnChange)
            }
            kept => kept.map(|()| Wake::Now).map_err(Into::into),
        }
    }

    /// Performs the next action; breaks with the time of the next reconcile if there is nothing to record.
    async fn perform(
        &self,
        action: Action,
        at_ca: OrderAtCa<'_>,
        issuer: &Issuer,
    ) -> Result<ControlFlow<Wake, Outcome>, ReconcileError> {
        let OrderAtCa { order, challenges, .. } = at_ca;
        Ok(Continue(match action {
            Action::Wait(wake) => return Ok(Break(wake)),
            Action::Create(wanted) => {
                match self.turns.turn(&**self.recorder.store(), at_ca, issuer).await? {
                    Continue(()) => {}
                    Break(Ok(queued)) => return Ok(Continue(queued)),
                    Break(Err(wake)) => return Ok(Break(wake)),
                }
                let created = self.create(at_ca, issuer, wanted).await;
                if !matches!(created, Ok(Outcome::Created(_))) {
                    self.turns.give_up(order);
                }
                match created {
                    // The Order's reason from the earlier try is still true.
                    Err(ReconcileError::OverBudget(over)) if over.is_pause() => {
                        return Ok(Break(over.until.map_or(Wake::OnChange, Wake::At)));
                    }
                    created => created?,
                }
            }
            Action::Fetch => self.record_reply(at_ca, at_ca.fetch().await).await?,
            Action::FetchAuthorizations(urls) => {
                self.record_reply(at_ca, at_ca.authorizations(&urls).await).await?
            }
            Action::Finalize => self.record_reply(at_ca, at_ca.finalize().await).await?,
            Action::Forget => Outcome::Forgotten,
            Action::StandBack(why) => Outcome::StoodBack(why),
            Action::CreateChallenges(missing) => {
                order_challenges::create(&self.challenges, order, missing).await?
            }
            Action::DeleteChallenges(names) => {
                order_challenges::delete(&self.challenges, challenges, &names).await?
            }
            Action::Explain(unsolved) => Outcome::Explained(unsolved),
            Action::Solved => Outcome::Solved,
            Action::Expire(at) => Outcome::Expired(at),
            Action::GiveUp(why, problem) => Outcome::GivenUp(why, problem),
            Action::Invalidate(why, problem) => Outcome::Invalidated(why, problem),
        }))
    }

    /// Stores the order's URL before anything else: a process killed without the URL in the store makes a second order.
    async fn keep(
        &self,
        order: &Order,
        recorded: Recorded<OrderStatus>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if order.status.url.is_empty() && !recorded.status.url.is_empty() {
            let order = self.orders.replace_status(order, &recorded.status).await?;
            self.unwritten.forget(&order.name());
            self.shared.got(&order.name(), &order.status.url);
            return self.recorder.keep(&self.orders, &order, HOLDER, recorded, now).await;
        }
        self.recorder.keep(&self.orders, order, HOLDER, recorded, now).await?;
        self.unwritten.forget(&order.name());
        Ok(())
    }

    /// Returns the outcome of a request; an unanswered request is recorded in the Order's reason until the CA answers.
    pub(super) async fn record_reply(
        &self,
        at_ca: OrderAtCa<'_>,
        asked: Result<Outcome, Unanswered>,
    ) -> Result<Outcome, ReconcileError> {
        let Unanswered { deed, error } = match asked {
            Ok(outcome) => return Ok(outcome),
            Err(unanswered) => unanswered,
        };
        let why =
            Outcome::Unanswered(deed, error.problem().cloned().map(Box::new), error.to_string());
        self.write(at_ca.order, why, at_ca.now).await?;
        Err(error.into())
    }

    pub(super) async fn write(
        &self,
        order: &Order,
        why: Outcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let recorded = order::record(order, why, now);
        self.recorder.keep(&self.orders, order, HOLDER, recorded, now).await
    }

    /// Reads the Orders from before this process: an Order may be reconciled before changes of all others have arrived.
    async fn read_existing(&self) -> Result<(), StoreError> {
        self.shared.meet(&self.recorder.store().list(Kind::Order, &Scope::all()).await?);
        Ok(())
    }

    /// Returns other Orders under way here that got the same order from the CA. Orders outside the selection are left
    /// out: they are not worked on, so a wait for them would not end.
    async fn sharers(&self, order: &Order) -> Result<Vec<Sharer>, StoreError> {
        self.met.get_or_try_init(|| self.read_existing()).await?;
        let mut sharers = Vec::new();
        for (name, came_first) in self.shared.with(&order.name(), &order.status.url) {
            let Some(other) = self.orders.get(&name).await? else {
                self.shared.forget(&name);
                continue;
            };
            let key = Key::new(Kind::Order, name);
            let is_same = other.status.url == order.status.url;
            if is_same
                && is_under_way(&other)
                && self.selection.covers(&**self.recorder.store(), &key).await?
            {
                sharers.push(Sharer { order: other, came_first });
            }
        }
        Ok(sharers)
    }
}

#[async_trait]
impl Controller for OrderController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Order, Kind::Challenge, Kind::Issuer, Kind::ClusterIssuer]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        match changed.key.kind {
            Kind::Order => {
                // The latest state in the store counts, not the state in this change.
                let known = self.recorder.store().get_known(&changed.key).await?;
                let url = known.as_ref().and_then(url_under_way);
                let others = self.shared.note(&changed.key.name, url);
                let others = others.into_iter().map(|name| Key::new(Kind::Order, name));
                let next = self.turns.note_change(&changed.key.name, known.as_ref());
                Ok([changed.key.clone()].into_iter().chain(others).chain(next).collect())
            }
            Kind::Challenge => Ok(super::owner_of(changed, Kind::Order).into_iter().collect()),
            Kind::Issuer | Kind::ClusterIssuer => {
                let orders = self.orders.list(&super::reach(&changed.key)).await?;
                let unfinished = orders.into_iter().filter(|order| {
                    !order.has_ended() && super::refers_to(&order.spec.issuer_ref, &changed.key)
                });
                Ok(unfinished.map(|order| Key::new(Kind::Order, order.name())).collect())
            }
            // Other kinds are not watched.
            _ => Ok(Vec::new()),
        }
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        let Some(order) = self.orders.get_known(&key.name).await? else {
            self.unwritten.forget(&key.name);
            self.shared.forget(&key.name);
            self.heard.forget(&key.name);
            return Ok(Wake::OnChange);
        };
        if order.metadata.is_deleted() || order.status.state.is_some_and(State::is_failure) {
            self.heard.forget(&key.name);
            return Ok(Wake::OnChange);
        }
        Ok(self.step(&order, now).await?)
    }
}
