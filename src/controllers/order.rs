//! Orders: gathers Issuer and Challenges, performs one deed at the CA or in the store, keeps what came of it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{join_all, try_join_all};
use jiff::Timestamp;

use super::accounts::Accounts;
use super::recorder::Recorder;
use super::{Controller, ReconcileError};
use crate::acme::{Acme, AcmeError, NewOrder, OrderReply, Retry, chain, csr};
use crate::model::memory::Holder;
use crate::model::order::{Authorization, OfferedChallenge};
use crate::model::{
    Challenge, ChallengeStatus, Issuer, Key, Kind, Metadata, ObjectName, Order, OrderStatus,
    Problem, Record, State,
};
use crate::reconcile::order::{self, Action, Observed, Outcome, Required, Seen, Wanted};
use crate::reconcile::required::required;
use crate::reconcile::{Recorded, Refusal, Wake};
use crate::store::resources::Resources;
use crate::store::{Scope, StoreError};

/// In whose name an Order is remembered beyond its status.
const HOLDER: Option<Holder> = Some(Holder::Order);

/// Carries Orders from newOrder to the certificate.
#[derive(Debug)]
pub struct OrderController {
    orders: Resources<Order>,
    challenges: Resources<Challenge>,
    accounts: Arc<Accounts>,
    recorder: Recorder,
}

impl OrderController {
    /// Puts the controller together.
    pub fn new(recorder: Recorder, accounts: Arc<Accounts>) -> Self {
        let store = recorder.store();
        Self {
            orders: Resources::new(Arc::clone(store), Kind::Order),
            challenges: Resources::new(Arc::clone(store), Kind::Challenge),
            accounts,
            recorder,
        }
    }

    async fn step(&self, order: &Order, now: Timestamp) -> Result<Wake, ReconcileError> {
        let issuer =
            self.accounts.issuer(&order.metadata.namespace, &order.spec.issuer_ref).await?;
        let acme = self.accounts.session(&issuer).await?;
        let scope = Scope::owned_by(&order.metadata.namespace, &order.metadata.uid);
        let challenges = self.challenges.list(&scope).await?;
        let required = required(order, &issuer, acme.thumbprint());
        let observed = Observed {
            issuer: &issuer,
            challenges: &challenges,
            required: required.as_deref().map_err(String::as_str),
        };
        let outcome = match order::next_action(order, &observed, now) {
            Action::Wait(wake) => return Ok(wake),
            Action::Create(wanted) => self.create(&*acme, &issuer, wanted, now).await?,
            Action::Fetch(since) => {
                self.fetch(&*acme, order, &issuer, &challenges, (since, now)).await?
            }
            Action::FetchAuthorizations(urls) => authorizations(&*acme, &urls).await?,
            Action::Finalize => self.finalize(&*acme, order, &issuer, &challenges, now).await?,
            Action::CreateChallenges(missing) => self.create_challenges(order, missing).await?,
            Action::DeleteChallenges(names) => self.delete_challenges(order, &names).await?,
            Action::Explain(why) => Outcome::Explained(why),
            Action::Expire(at) => Outcome::Expired(at),
            Action::GiveUp(why) => Outcome::GivenUp(why),
        };
        let recorded = order::record(order, outcome, now);
        self.keep(order, recorded, now).await?;
        Ok(Wake::Now)
    }

    /// Keeps the order's URL before anything else: a process that is killed without it makes a second order.
    async fn keep(
        &self,
        order: &Order,
        recorded: Recorded<OrderStatus>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if order.status.url.is_empty() && !recorded.status.url.is_empty() {
            let order = self.orders.replace_status(order, &recorded.status).await?;
            return self.recorder.keep(&self.orders, &order, HOLDER, recorded, now).await;
        }
        self.recorder.keep(&self.orders, order, HOLDER, recorded, now).await
    }

    async fn create(
        &self,
        acme: &dyn Acme,
        issuer: &Issuer,
        wanted: Wanted,
        now: Timestamp,
    ) -> Result<Outcome, ReconcileError> {
        if let Some(profile) = &wanted.profile {
            let offered = &acme.directory().await?.profiles;
            if offered.is_empty() {
                let why = "acme: certificate authority does not support profiles";
                return Ok(Outcome::GivenUp(format!("Failed to create Order: {why}")));
            }
            if !offered.contains_key(profile) {
                let names: Vec<&str> = offered.keys().map(String::as_str).collect();
                return Ok(Outcome::GivenUp(format!(
                    "Failed to create Order: acme: certificate authority does not advertise a \
                     profile with name {profile} (it has {})",
                    names.join(", ")
                )));
            }
        }
        let request = NewOrder {
            identifiers: wanted.identifiers,
            not_after: wanted.not_after,
            profile: wanted.profile,
            replaces: wanted.replaces,
        };
        match acme.create_order(&request).await {
            Ok(reply) => Ok(Outcome::Created(seen(reply))),
            Err(error) => {
                let gone = error.problem().is_some_and(|p| p.short_kind() == "accountDoesNotExist");
                if gone && self.accounts.account_is_gone(issuer, now).await? {
                    let why =
                        format!("registering the account of {} again: {error}", issuer.name());
                    return Err(ReconcileError::Missing(why));
                }
                refused("create Order", error)
            }
        }
    }

    /// Reads the order; once it is valid the chain is downloaded and checked in the same step, once it is invalid the
    /// authorizations are read for the reason, which Boulder's order leaves out.
    async fn fetch(
        &self,
        acme: &dyn Acme,
        order: &Order,
        issuer: &Issuer,
        challenges: &[Challenge],
        (since, now): (Timestamp, Timestamp),
    ) -> Result<Outcome, ReconcileError> {
        let reply = match acme.order(&order.status.url).await {
            Ok(reply) => reply,
            Err(error) => return refused("retrieve Order resource", error),
        };
        self.conclude(acme, order, issuer, challenges, reply, now).await.map(|seen| match seen {
            Ok(seen) => Outcome::Fetched(seen, since),
            Err(failed) => failed,
        })
    }

    async fn finalize(
        &self,
        acme: &dyn Acme,
        order: &Order,
        issuer: &Issuer,
        challenges: &[Challenge],
        now: Timestamp,
    ) -> Result<Outcome, ReconcileError> {
        let request = match csr::read(&order.spec.request.0) {
            Ok(request) => request,
            Err(why) => return Ok(Outcome::GivenUp(format!("Failed to finalize Order: {why}"))),
        };
        let reply = match acme.finalize(&order.status.finalize_url, &request.der).await {
            Ok(reply) => OrderReply { url: order.status.url.clone(), ..reply },
            // 403: a finalize whose answer was lost, or a CA that still thinks (RFC 8555 §7.4). The order tells.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 403) => {
                match acme.order(&order.status.url).await {
                    Ok(reply) if is_ready(&reply) && !is_not_ready(&error) => {
                        return refused("finalize Order", error);
                    }
                    Ok(reply) => reply,
                    Err(error) => return refused("retrieve Order resource", error),
                }
            }
            Err(error) => return refused("finalize Order", error),
        };
        self.conclude(acme, order, issuer, challenges, reply, now).await.map(|seen| match seen {
            Ok(seen) if seen.state == Some(State::Pending) => Outcome::Fetched(seen, now),
            Ok(seen) => Outcome::Finalized(seen),
            Err(failed) => failed,
        })
    }

    async fn conclude(
        &self,
        acme: &dyn Acme,
        order: &Order,
        issuer: &Issuer,
        challenges: &[Challenge],
        reply: OrderReply,
        now: Timestamp,
    ) -> Result<Result<Seen, Outcome>, ReconcileError> {
        let certificate = reply.certificate.clone();
        let error = reply.error.clone();
        let mut seen = seen(reply);
        if seen.state == Some(State::Invalid) {
            seen.problems = problems(acme, error, order, challenges).await;
        }
        let (Some(State::Valid), Some(url)) = (seen.state, certificate) else {
            return Ok(Ok(seen));
        };
        let preferred = issuer.spec.acme.as_ref().map_or("", |a| a.preferred_chain.as_str());
        let served = match chain::choose(acme, &url, preferred).await {
            Ok(served) => served,
            Err(error) => {
                return refused("retrieve signed certificate", error).map(Err);
            }
        };
        let request = match csr::read(&order.spec.request.0) {
            Ok(request) => request,
            Err(why) => return Ok(Err(Outcome::GivenUp(why.to_string()))),
        };
        match chain::check(&served.pem, &request, now) {
            Ok(checked) => {
                seen.certificate = Some(checked.pem.into_bytes());
                Ok(Ok(seen))
            }
            Err(fault) => Ok(Err(Outcome::GivenUp(format!(
                "Failed to retrieve signed certificate: what {url} serves is not what was ordered: {fault}"
            )))),
        }
    }

    async fn create_challenges(
        &self,
        order: &Order,
        missing: Vec<Required>,
    ) -> Result<Outcome, ReconcileError> {
        let made =
            missing.iter().map(|required| (required.name.clone(), required.spec.dns_name.clone()));
        let made = made.collect();
        let creations = missing.into_iter().map(|required| self.create_challenge(order, required));
        try_join_all(creations).await?;
        Ok(Outcome::ChallengesCreated(made))
    }

    async fn create_challenge(&self, order: &Order, required: Required) -> Result<(), StoreError> {
        let challenge = Challenge {
            api_version: Kind::Challenge.api_version().to_owned(),
            kind: Kind::Challenge.as_str().to_owned(),
            metadata: Metadata {
                name: required.name,
                namespace: order.metadata.namespace.clone(),
                owner_references: vec![order.owner_reference()],
                ..Metadata::default()
            },
            spec: required.spec,
            status: ChallengeStatus::default(),
        };
        match self.challenges.create(&challenge).await {
            Ok(_) | Err(StoreError::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn delete_challenges(
        &self,
        order: &Order,
        names: &[String],
    ) -> Result<Outcome, ReconcileError> {
        try_join_all(names.iter().map(|name| async move {
            self.challenges.delete(&ObjectName::new(&order.metadata.namespace, name)).await
        }))
        .await?;
        Ok(Outcome::ChallengesDeleted)
    }
}

#[async_trait]
impl Controller for OrderController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Order, Kind::Challenge, Kind::Issuer, Kind::ClusterIssuer]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        match changed.key.kind {
            Kind::Order => Ok(vec![changed.key.clone()]),
            Kind::Challenge => Ok(super::owner_of(changed, Kind::Order).into_iter().collect()),
            Kind::Issuer | Kind::ClusterIssuer => {
                let orders = self.orders.list(&super::reach(&changed.key)).await?;
                let unfinished = orders.into_iter().filter(|order| {
                    !order.status.state.is_some_and(State::is_final)
                        && super::refers_to(&order.spec.issuer_ref, &changed.key)
                });
                Ok(unfinished.map(|order| Key::new(Kind::Order, order.name())).collect())
            }
            Kind::Certificate | Kind::CertificateRequest | Kind::Event | Kind::Secret => {
                Ok(Vec::new())
            }
        }
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileError> {
        let Some(order) = self.orders.get(&key.name).await? else { return Ok(Wake::OnChange) };
        let is_over = order.status.state.is_some_and(State::is_failure);
        if is_over || order.metadata.is_deleted() {
            return Ok(Wake::OnChange);
        }
        self.step(&order, now).await
    }
}

/// Reads authorizations side by side; the order is kept.
async fn authorizations(acme: &dyn Acme, urls: &[String]) -> Result<Outcome, ReconcileError> {
    let reads = urls.iter().map(|url| async move {
        let reply = acme.authorization(url).await?;
        Ok::<_, AcmeError>(Authorization {
            url: url.clone(),
            identifier: reply.identifier,
            wildcard: Some(reply.wildcard),
            initial_state: State::of_acme(&reply.status),
            challenges: reply
                .challenges
                .into_iter()
                .map(|c| OfferedChallenge { url: c.url, token: c.token, kind: c.kind })
                .collect(),
            ..Authorization::default()
        })
    });
    match try_join_all(reads).await {
        Ok(read) => Ok(Outcome::AuthorizationsFetched(read)),
        Err(error) => refused("fetch authorization", error),
    }
}

/// Why an order is invalid: its own error, and that of every challenge that was tried; else which authorizations do not
/// hold. Best effort: an authorization that cannot be read adds nothing.
async fn problems(
    acme: &dyn Acme,
    error: Option<Problem>,
    order: &Order,
    challenges: &[Challenge],
) -> Vec<(String, Problem)> {
    let tried = challenges.iter().filter(|c| c.status.processing);
    let mut urls: Vec<&str> = tried.map(|c| c.spec.authorization_url.as_str()).collect();
    if urls.is_empty() && error.is_none() {
        urls = order.status.authorizations.iter().map(|a| a.url.as_str()).collect();
    }
    let read = join_all(urls.into_iter().map(|url| acme.authorization(url))).await;
    let mut problems: Vec<(String, Problem)> =
        error.into_iter().map(|problem| (String::new(), problem)).collect();
    for reply in read.iter().flatten() {
        let failed = reply.challenges.iter().filter_map(|c| c.error.clone());
        problems.extend(failed.map(|problem| (reply.identifier.clone(), problem)));
    }
    if problems.is_empty() {
        let lost =
            read.iter().flatten().filter(|a| !matches!(a.status.as_str(), "valid" | "pending"));
        problems.extend(lost.map(|a| (a.identifier.clone(), lost_authorization(&a.status))));
    }
    problems
}

/// An authorization that does not hold, where the CA gives no reason.
fn lost_authorization(status: &str) -> Problem {
    Problem { detail: format!("the authorization is {status}"), ..Problem::default() }
}

fn is_ready(reply: &OrderReply) -> bool {
    State::of_acme(&reply.status) == Some(State::Ready)
}

/// The CA says that the order cannot be finalized now; any other 403 means this signing request.
fn is_not_ready(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.short_kind() == "orderNotReady")
}

/// A refusal is an outcome; a fault of transport is an error that the driver tries again.
fn refused(deed: &'static str, error: AcmeError) -> Result<Outcome, ReconcileError> {
    match (error.retry(), error) {
        (Retry::Never, AcmeError::Refused { problem, .. }) => {
            Ok(Outcome::Refused(deed, Refusal::Final(problem)))
        }
        (Retry::At(at), AcmeError::Refused { problem, .. }) => {
            Ok(Outcome::Refused(deed, Refusal::Until(problem, at)))
        }
        (_, error) => Err(error.into()),
    }
}

fn seen(reply: OrderReply) -> Seen {
    Seen {
        url: reply.url,
        finalize_url: reply.finalize,
        authorizations: reply.authorizations,
        state: State::of_acme(&reply.status),
        expires: reply.expires,
        problems: Vec::new(),
        certificate: None,
        retry_after: reply.retry_after,
    }
}
