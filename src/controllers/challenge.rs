//! Challenges: presents, self-checks, accepts, cleans up.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tracing::info;

use super::accounts::Accounts;
use super::awaited_secrets::AwaitedSecrets;
use super::challenge_records::{ChallengeRecords, present_failed, refused};
use super::challenge_requests::ChallengeRequests;
use super::recorder::Recorder;
use super::resolver_cache::{Published, ResolverCache};
use super::self_check::self_check;
use super::solver_set::SolverSet;
use super::validations::Validations;
use super::{Clock, Controller, ReconcileError, ReconcileFailure, is_by_record};
use crate::model::acme_server::AcmeServer;
use crate::model::memory::{Holder, Memory};
use crate::model::{Answer, Challenge, Identifier, Key, Kind, ObjectName, Order, Record, State};
use crate::reconcile::challenge::{self, Action, Observed, Outcome, Readiness, SeenChallenge};
use crate::reconcile::{Wake, pauses, record_values};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Pause before an accepted challenge checks whether another one waits for it; that costs no request.
const CONTENTION_CHECK_PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// Largest number of Orders that are remembered.
const ORDERS_REMEMBERED_MAX: usize = 1000;

/// Carries Challenges from the start by the scheduler to the clean-up.
#[derive(Debug)]
pub struct ChallengeController {
    challenges: ChallengeRecords,
    orders: Resources<Order>,
    requests: ChallengeRequests,
    solvers: SolverSet,
    clock: Arc<dyn Clock>,
    /// Unfinished Orders as they last changed: every challenge reads its own at every step, and they are large.
    known: Mutex<HashMap<ObjectName, Arc<Order>>>,
    looks: ResolverCache,
    /// Secrets that the providers of unfinished Challenges need.
    awaited: AwaitedSecrets,
    validations: Validations,
    /// Notifies running self-checks that an Order has ended.
    ended: Notify,
}

impl ChallengeController {
    /// Builds the controller.
    pub fn new(
        recorder: Recorder,
        accounts: Arc<Accounts>,
        solvers: SolverSet,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let store = recorder.store();
        Self {
            orders: Resources::new(Arc::clone(store), Kind::Order),
            requests: ChallengeRequests { accounts },
            solvers,
            clock,
            known: Mutex::default(),
            looks: ResolverCache::new(store),
            awaited: AwaitedSecrets::default(),
            validations: Validations::default(),
            ended: Notify::new(),
            challenges: ChallengeRecords::new(recorder),
        }
    }

    async fn step(&self, challenge: &Challenge, now: Timestamp) -> Result<Wake, ReconcileError> {
        let order = self.order_of(challenge).await?;
        let answer = answer(challenge);
        let contention = &self.solvers.contention;
        let contended = is_accepted(challenge) && contention.is_held_up_by(&challenge.name());
        let owner = challenge.metadata.controller();
        let beside =
            is_accepted(challenge) && owner.is_some_and(|o| contention.keeps_back(&o.uid, now));
        let mut followed = challenge::Followed::default();
        if is_accepted(challenge) {
            let is_ended_by_ca = self.is_ended_by_ca(challenge).await;
            followed = self.validations.followed(challenge, is_ended_by_ca, now);
        }
        let mut seen: Option<Readiness> = None;
        let mut published = Published::default();
        let mut lingering = None;
        let of_order = self.beside(challenge, order.as_deref()).await?;
        let others = record_values::others(challenge, &of_order, |it| contention.has_queued(it));
        let record = record_values::state(challenge, order.as_deref(), &of_order, &others);
        let (outcome, now) = loop {
            let observed = Observed {
                order: order.as_deref(),
                contended,
                beside,
                polled: self.validations.polled(challenge),
                answer_stands: answer.as_ref().is_ok_and(|a| self.stands(challenge, a)),
                by_hand: self.solvers.solver(challenge).is_by_hand(),
                visible: seen.as_ref(),
                lingering: lingering.as_ref(),
                record: &record,
                followed,
            };
            let outcome = match challenge::next_action(challenge, &observed, now) {
                Action::Wait(wake @ (Wake::OnChange | Wake::At(_)))
                    if is_running(challenge) && is_accepted(challenge) && seen.is_none() =>
                {
                    let soon = now.saturating_add(CONTENTION_CHECK_PAUSE).unwrap_or(now);
                    return Ok(match wake {
                        Wake::At(at) => Wake::At(at.min(soon)),
                        Wake::OnChange | Wake::Now => Wake::At(soon),
                    });
                }
                Action::Wait(wake) => return Ok(wake),
                Action::SelfCheck => {
                    let readiness;
                    (readiness, published) = tokio::select! {
                        biased;
                        () = self.order_fails(challenge) => return Ok(Wake::Now),
                        looked = self_check(&self.solvers, challenge, answer.as_ref(), &others) => looked,
                    };
                    seen = Some(readiness);
                    lingering = self.looks.lingering(challenge, &published, now).await?;
                    continue;
                }
                Action::Report(reason, cause) => {
                    let now = self.clock.now();
                    let next = pauses::next_self_check(challenge, self.solvers.check_period, now);
                    let seen = Outcome::NotVisible(reason, cause);
                    self.challenges.keep(challenge, seen, now).await?;
                    return Ok(Wake::At(next));
                }
                Action::AddFinalizer => self.add_finalizer(challenge).await?,
                Action::Present => self.present(challenge, answer.as_ref()).await?,
                Action::CleanUp => self.clean_up(challenge, answer.as_ref(), now).await?,
                Action::Defer(why) => Outcome::Deferred(why),
                Action::HoldBack(lingering) => Outcome::HeldBack(lingering),
                Action::Accept => {
                    self.looks.record_acceptance(
                        challenge,
                        std::mem::take(&mut published),
                        self.clock.now(),
                    );
                    self.accept(challenge).await?
                }
                Action::Adopt => Outcome::Accepted(SeenChallenge::default()),
                Action::Fail(problem) => Outcome::Unproven(problem),
                Action::FetchState => self.requests.state(challenge).await?,
                Action::TakeState(state) => Outcome::StateTaken(state),
                Action::Settle => Outcome::Settled,
                Action::Abandon => Outcome::Abandoned,
            };
            break (outcome, self.clock.now());
        };
        if matches!(outcome, Outcome::FinalizerAdded | Outcome::CleanedUp) {
            // The write of the finalizer wakes this Challenge in its new state.
            return Ok(Wake::OnChange);
        }
        self.validations.note(challenge, &outcome, now);
        self.challenges.keep(challenge, outcome, now).await?;
        Ok(Wake::Now)
    }

    /// Returns the Challenges of an Order, if the Order asks for another value at the record of this one.
    async fn beside(
        &self,
        challenge: &Challenge,
        order: Option<&Order>,
    ) -> Result<Vec<Challenge>, StoreError> {
        let is_waited_for = is_running(challenge) && !is_accepted(challenge);
        match order.filter(|_| is_waited_for) {
            Some(order) if record_values::wants_another_value(challenge, Some(order)) => {
                let scope = Scope::owned_by(&order.metadata.namespace, &order.metadata.uid);
                self.challenges.resources.list(&scope).await
            }
            _ => Ok(Vec::new()),
        }
    }

    /// Returns Challenges that may wait for the value of a changed one, since their values are at the same record.
    async fn waiting_beside(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        let name = changed.text("/spec/dnsName");
        let metadata = changed.metadata();
        let Some(owner) = metadata.controller().filter(|_| is_by_record(changed)) else {
            return Ok(Vec::new());
        };
        let order = ObjectName::new(&changed.key.name.namespace, &owner.name);
        let of_name = |order: &Arc<Order>| {
            order.status.authorizations.iter().filter(|a| a.identifier == name).count()
        };
        if self.known.lock().get(&order).is_none_or(|order| of_name(order) < 2) {
            return Ok(Vec::new());
        }
        let scope = Scope::owned_by(&order.namespace, &owner.uid);
        let all = self.challenges.resources.list(&scope).await?;
        let others = all.iter().filter(|c| c.spec.dns_name == name && c.name() != changed.key.name);
        Ok(others.map(|c| Key::new(Kind::Challenge, c.name())).collect())
    }

    /// Returns whether the CA of a challenge is a public one; an unreadable issuer counts as public.
    async fn is_ended_by_ca(&self, challenge: &Challenge) -> bool {
        let (namespace, issuer) = (&challenge.metadata.namespace, &challenge.spec.issuer_ref);
        let Ok(issuer) = self.requests.accounts.issuer(namespace, issuer).await else {
            return true;
        };
        issuer.spec.acme.as_ref().is_none_or(|acme| AcmeServer::is_public(&acme.server))
    }

    /// Waits until the Order of a challenge is known to have failed: the result of a self-check is of no use then.
    async fn order_fails(&self, challenge: &Challenge) {
        let owner = challenge.metadata.controller();
        let name = owner.map(|owner| ObjectName::new(&challenge.metadata.namespace, &owner.name));
        let Some(name) = name else { return std::future::pending().await };
        loop {
            self.ended.notified().await;
            let order = self.orders.get_known(&name).await.ok().flatten();
            if order.is_some_and(|order| order.status.state.is_some_and(State::is_failure)) {
                return;
            }
        }
    }

    /// Returns the Order of a challenge; `None` if the challenge has ended and needs none.
    async fn order_of(&self, challenge: &Challenge) -> Result<Option<Arc<Order>>, StoreError> {
        let Some(owner) = challenge.metadata.controller() else { return Ok(None) };
        if challenge.has_ended() {
            return Ok(None);
        }
        let name = ObjectName::new(&challenge.metadata.namespace, &owner.name);
        let known = self.known.lock().get(&name).cloned();
        // An outdated Order is good enough: its change wakes the challenge. But it must have read the authorization.
        let has_read = |order: &Arc<Order>| {
            let url = &challenge.spec.authorization_url;
            order.metadata.uid == owner.uid
                && order
                    .status
                    .authorizations
                    .iter()
                    .any(|a| a.url == *url && a.initial_state.is_some())
        };
        if let Some(order) = known.filter(has_read) {
            return Ok(Some(order));
        }
        let order = self.orders.get(&name).await?;
        Ok(order.filter(|order| order.metadata.uid == owner.uid).map(Arc::new))
    }

    /// Remembers an Order until it has ended or gone; an unreadable Order is read again, and reported, when needed.
    async fn remember(&self, changed: &Record) -> Result<(), StoreError> {
        // The reported change may be the Order's end.
        let order = match self.orders.get_known(&changed.key.name).await {
            Err(StoreError::Unreadable { .. }) => None,
            known => known?,
        };
        let mut known = self.known.lock();
        let Some(order) = order.filter(|order| !order.has_ended()) else {
            known.remove(&changed.key.name);
            self.validations.forget_order(changed.uid());
            self.ended.notify_waiters();
            return Ok(());
        };
        if known.len() >= ORDERS_REMEMBERED_MAX {
            known.clear();
        }
        known.insert(changed.key.name.clone(), Arc::new(order));
        Ok(())
    }

    fn stands(&self, challenge: &Challenge, answer: &Answer) -> bool {
        self.solvers.solver(challenge).stands(challenge, answer)
    }

    async fn add_finalizer(&self, challenge: &Challenge) -> Result<Outcome, ReconcileError> {
        self.challenges.mark(challenge).await?;
        if challenge.metadata.finalizers.is_empty() && !challenge.status.presented {
            // A Challenge is marked before anything is put up for it, so nothing is up.
            self.solvers.solver(challenge).nothing_stands(challenge);
        }
        Ok(Outcome::FinalizerAdded)
    }

    async fn present(
        &self,
        challenge: &Challenge,
        answer: Result<&Answer, &String>,
    ) -> Result<Outcome, ReconcileError> {
        let solver = self.solvers.solver(challenge);
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => return Ok(Outcome::PresentFailed(why.clone(), None)),
        };
        if let Some(placed) = self.challenges.place(challenge, answer, solver).await? {
            return Ok(placed);
        }
        let domain = &challenge.spec.dns_name;
        match solver.present(challenge, answer).await {
            Ok(()) if solver.is_by_hand() => Ok(Outcome::HandedOver),
            Ok(()) => {
                info!(domain, kind = %challenge.spec.kind, "the answer is up");
                Ok(Outcome::Presented(solver.listens_at()))
            }
            Err(error) => {
                info!(domain, kind = %challenge.spec.kind, %error, "the answer is not up");
                let why = present_failed(&error);
                self.challenges.keep(challenge, why, self.clock.now()).await?;
                Err(error.into())
            }
        }
    }

    async fn accept(&self, challenge: &Challenge) -> Result<Outcome, ReconcileError> {
        let accepted = self.requests.accept(challenge).await;
        if let Err(ReconcileError::Acme(error)) = &accepted {
            let why =
                Outcome::AcceptFailed(error.to_string(), error.problem().cloned().map(Box::new));
            self.challenges.keep(challenge, why, self.clock.now()).await?;
        }
        accepted
    }

    /// Takes the answer down, then the finalizer off: a crash in between only repeats the first.
    async fn clean_up(
        &self,
        challenge: &Challenge,
        answer: Result<&Answer, &String>,
        now: Timestamp,
    ) -> Result<Outcome, ReconcileError> {
        if let Ok(answer) = answer
            && let Err(error) = self.solvers.solver(challenge).clean_up(challenge, answer).await
        {
            let why = Outcome::CleanUpFailed(error.to_string(), refused(&error));
            self.challenges.keep(challenge, why, now).await?;
            return Err(error.into());
        }
        info!(domain = challenge.spec.dns_name, "the answer is taken down");
        self.challenges.unmark(challenge).await?;
        Ok(Outcome::CleanedUp)
    }
}

#[async_trait]
impl Controller for ChallengeController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Challenge, Kind::Order, Kind::Secret]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        if changed.key.kind == Kind::Challenge {
            self.looks.heard(changed, self.clock.now());
            self.awaited.heard(changed, self.requests.accounts.cluster_namespace());
            let mut wakes = self.waiting_beside(changed).await?;
            wakes.push(changed.key.clone());
            return Ok(wakes);
        }
        if changed.key.kind == Kind::Secret {
            let waiting = self.awaited.who_needs(&changed.key.name);
            return Ok(waiting.into_iter().map(|name| Key::new(Kind::Challenge, name)).collect());
        }
        self.remember(changed).await?;
        let scope = Scope::owned_by(&changed.key.name.namespace, changed.uid());
        let challenges = self.challenges.resources.list(&scope).await?;
        Ok(challenges.iter().map(|c| Key::new(Kind::Challenge, c.name())).collect())
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        let Some(challenge) = self.challenges.resources.get_known(&key.name).await? else {
            self.awaited.forget(&key.name);
            self.validations.forget(&key.name);
            return Ok(Wake::OnChange);
        };
        Ok(self.step(&challenge, now).await?)
    }
}

/// Returns the answer that the CA must see for a Challenge.
///
/// # Errors
/// Fails if its name is neither a DNS name nor an address.
pub fn answer(challenge: &Challenge) -> Result<Answer, String> {
    let identifier = Identifier::parse(&challenge.spec.dns_name).map_err(|e| e.to_string())?;
    Ok(Answer {
        identifier,
        token: challenge.spec.token.clone(),
        key_authorization: challenge.spec.key.clone(),
    })
}

fn is_accepted(challenge: &Challenge) -> bool {
    Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at.is_some()
}

fn is_running(challenge: &Challenge) -> bool {
    challenge.status.processing && !challenge.has_ended()
}
