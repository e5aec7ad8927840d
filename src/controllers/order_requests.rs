//! What an Order asks the CA: one deed each, and what came of it.

use std::collections::BTreeMap;

use futures_util::future::{join_all, try_join_all};
use jiff::Timestamp;

use crate::acme::chain::ChainFault;
use crate::acme::{Acme, AcmeError, NewOrder, OrderReply, Retry, chain, csr};
use crate::model::order::{Authorization, OfferedChallenge};
use crate::model::persist::{AccountForm, Offer};
use crate::model::{Challenge, Order, Problem, State};
use crate::reconcile::Refusal;
use crate::reconcile::order::{Outcome, Seen, Wanted};

/// An Order at its CA.
#[derive(Clone, Copy, Debug)]
pub struct OrderAtCa<'a> {
    /// The CA.
    pub acme: &'a dyn Acme,
    /// The Order.
    pub order: &'a Order,
    /// Its Challenges.
    pub challenges: &'a [Challenge],
    /// The root that the chain should lead to; empty for the CA's choice.
    pub preferred_chain: &'a str,
    /// Whether records that stay are asked for, so that what the CA says of them is kept.
    pub persists: bool,
    /// The moment at which chains must hold.
    pub now: Timestamp,
}

/// A deed that another try may bring to its end.
#[derive(Debug)]
pub struct Unanswered {
    /// The deed in cert-manager's words (`create Order`).
    pub deed: &'static str,
    /// What the CA said, or why it said nothing.
    pub error: AcmeError,
}

impl OrderAtCa<'_> {
    /// Asks for the order, if the CA has the profile.
    ///
    /// # Errors
    /// Fails when the CA does not answer, or no longer knows the account.
    pub async fn create(&self, wanted: Wanted) -> Result<Outcome, Unanswered> {
        let unanswered = |error| Unanswered { deed: "create Order", error };
        if let Some(profile) = &wanted.profile {
            let directory = self.acme.directory().await.map_err(unanswered)?;
            if let Some(why) = not_offered(profile, &directory.profiles) {
                return Ok(Outcome::GivenUp(format!("Failed to create Order: acme: {why}")));
            }
        }
        let request = NewOrder {
            identifiers: wanted.identifiers,
            not_after: wanted.not_after,
            profile: wanted.profile,
            replaces: wanted.replaces,
        };
        match self.acme.create_order(&request).await {
            Ok(reply) => Ok(Outcome::Created(seen(reply))),
            Err(error) if is_unknown_account(&error) => Err(unanswered(error)),
            Err(error) => refused("create Order", error),
        }
    }

    /// Reads authorizations side by side; the order is kept.
    ///
    /// # Errors
    /// Fails when the CA does not answer.
    pub async fn authorizations(&self, urls: &[String]) -> Result<Outcome, Unanswered> {
        let reads = urls.iter().map(|url| async move {
            let mut reply = self.acme.authorization(url).await?;
            for challenge in &mut reply.challenges {
                challenge.persist = self.offer(challenge.persist.take()).await?;
            }
            Ok::<_, AcmeError>(Authorization {
                url: url.clone(),
                identifier: reply.identifier,
                wildcard: Some(reply.wildcard),
                initial_state: State::of_acme(&reply.status),
                challenges: reply
                    .challenges
                    .into_iter()
                    .map(|c| OfferedChallenge {
                        url: c.url,
                        token: c.token,
                        kind: c.kind,
                        persist: c.persist,
                    })
                    .collect(),
                ..Authorization::default()
            })
        });
        match try_join_all(reads).await {
            Ok(read) => Ok(Outcome::AuthorizationsFetched(read)),
            Err(error) => refused("fetch authorization", error),
        }
    }

    /// What is kept of an offer of dns-persist-01; of draft -02 half is in the directory.
    async fn offer(&self, offer: Option<Offer>) -> Result<Option<Offer>, AcmeError> {
        let Some(offer) = offer.filter(|_| self.persists) else { return Ok(None) };
        Ok(Some(match offer.account {
            AccountForm::Url | AccountForm::Given(_) => offer,
            AccountForm::Hashed(_) => {
                let prefix = self.acme.directory().await?.account_hash_prefix.clone();
                Offer { account: AccountForm::Hashed(prefix), ..offer }
            }
        }))
    }

    /// Reads the order; once it is valid the chain is downloaded and checked in the same step, once it is invalid the
    /// authorizations are read for the reason, which Boulder's order leaves out.
    ///
    /// # Errors
    /// Fails when the CA does not answer.
    pub async fn fetch(&self, since: Timestamp) -> Result<Outcome, Unanswered> {
        let reply = match self.acme.order(&self.order.status.url).await {
            Ok(reply) => reply,
            Err(error) => return refused("retrieve Order resource", error),
        };
        Ok(self
            .conclude(reply)
            .await?
            .map_or_else(|other| other, |seen| Outcome::Fetched(seen, since)))
    }

    /// Sends the signing request.
    ///
    /// # Errors
    /// Fails when the CA does not answer.
    pub async fn finalize(&self) -> Result<Outcome, Unanswered> {
        let request = match csr::read(&self.order.spec.request.0) {
            Ok(request) => request,
            Err(why) => return Ok(Outcome::GivenUp(format!("Failed to finalize Order: {why}"))),
        };
        let url = &self.order.status.url;
        match self.acme.finalize(&self.order.status.finalize_url, &request.der).await {
            Ok(reply) => {
                let reply = OrderReply { url: url.clone(), ..reply };
                Ok(match self.conclude(reply).await? {
                    Ok(seen) => Outcome::Finalized(seen),
                    // The CA took our signing request, and answers it with something else.
                    Err(Outcome::OtherKey(why)) => Outcome::GivenUp(why),
                    Err(other) => other,
                })
            }
            // 403: a finalize whose answer was lost, one of somebody else to whom the CA gave the same order, or a CA that
            // still thinks (RFC 8555 §7.4). The order tells.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 403) => {
                match self.acme.order(url).await {
                    Ok(reply) if is_ready(&reply) && !is_not_ready(&error) => {
                        refused("finalize Order", error)
                    }
                    Ok(reply) => self.after_refusal(reply).await,
                    Err(error) => refused("retrieve Order resource", error),
                }
            }
            Err(error) => refused("finalize Order", error),
        }
    }

    /// What stands in an order that could not be finalized: only one that is still ready waits for our signing request.
    async fn after_refusal(&self, reply: OrderReply) -> Result<Outcome, Unanswered> {
        Ok(match self.conclude(reply).await? {
            Ok(seen) if seen.state == Some(State::Ready) => Outcome::Finalized(seen),
            Ok(seen) => Outcome::Fetched(seen, self.now),
            Err(other) => other,
        })
    }

    /// What the order brought: its state, or why that is all.
    async fn conclude(&self, reply: OrderReply) -> Result<Result<Seen, Outcome>, Unanswered> {
        let certificate = reply.certificate.clone();
        let error = reply.error.clone();
        let mut seen = seen(reply);
        if seen.state == Some(State::Invalid) {
            seen.problems = self.problems(error).await;
        }
        let (Some(State::Valid), Some(url)) = (seen.state, certificate) else {
            return Ok(Ok(seen));
        };
        let served = match chain::choose(self.acme, &url, self.preferred_chain).await {
            Ok(served) => served,
            Err(error) => {
                return refused("retrieve signed certificate", error).map(Err);
            }
        };
        let request = match csr::read(&self.order.spec.request.0) {
            Ok(request) => request,
            Err(why) => return Ok(Err(Outcome::GivenUp(why.to_string()))),
        };
        match chain::check(&served.pem, &request, self.now) {
            Ok(checked) => {
                seen.certificate = Some(checked.pem.into_bytes());
                Ok(Ok(seen))
            }
            Err(fault) => {
                let why = format!(
                    "Failed to retrieve signed certificate: what {url} serves is not what was ordered: {fault}"
                );
                let is_other = fault == ChainFault::OtherKey;
                Ok(Err(if is_other { Outcome::OtherKey(why) } else { Outcome::GivenUp(why) }))
            }
        }
    }

    /// Why an order is invalid: its own error, and that of every challenge that was tried; else which authorizations do not
    /// hold. Best effort: an authorization that cannot be read adds nothing.
    async fn problems(&self, error: Option<Problem>) -> Vec<(String, Problem)> {
        let tried = self.challenges.iter().filter(|c| c.status.processing);
        let mut urls: Vec<&str> = tried.map(|c| c.spec.authorization_url.as_str()).collect();
        if urls.is_empty() && error.is_none() {
            urls = self.order.status.authorizations.iter().map(|a| a.url.as_str()).collect();
        }
        let read = join_all(urls.into_iter().map(|url| self.acme.authorization(url))).await;
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
}

/// Says why the CA cannot issue by a profile, when it does not offer it.
fn not_offered(profile: &str, offered: &BTreeMap<String, String>) -> Option<String> {
    if offered.is_empty() {
        return Some("certificate authority does not support profiles".to_owned());
    }
    let names: Vec<&str> = offered.keys().map(String::as_str).collect();
    (!offered.contains_key(profile)).then(|| {
        format!(
            "certificate authority does not advertise a profile with name {profile} (it has {})",
            names.join(", ")
        )
    })
}

/// Tells whether the CA has forgotten the account.
pub fn is_unknown_account(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.short_kind() == "accountDoesNotExist")
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
///
/// # Errors
/// Fails when another try may help.
pub fn refused(deed: &'static str, error: AcmeError) -> Result<Outcome, Unanswered> {
    match (error.retry(), error) {
        (Retry::Never, AcmeError::Refused { problem, .. }) => {
            Ok(Outcome::Refused(deed, Refusal::Final(problem)))
        }
        (Retry::At(at), AcmeError::Refused { problem, .. }) => {
            Ok(Outcome::Refused(deed, Refusal::Until(problem, at)))
        }
        (_, error) => Err(Unanswered { deed, error }),
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
