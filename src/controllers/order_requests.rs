//! Requests of an Order to the CA, and their outcomes.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use jiff::Timestamp;

use crate::acme::chain::{self, ChainFault};
use crate::acme::error::{AcmeError, Retry};
use crate::acme::{Acme, AuthorizationReply, ChallengeReply, NewOrder, OrderReply, csr};
use crate::model::issuer::first_offered;
use crate::model::names::shown_domain;
use crate::model::order::{Authorization, OfferedChallenge};
use crate::model::order_budget::Permit;
use crate::model::persist::{AccountForm, Offer};
use crate::model::text::listed;
use crate::model::{Challenge, Order, Problem, State};
use crate::reconcile::Refusal;
use crate::reconcile::order::required::OrderTerms;
use crate::reconcile::order::{OrderRequest, Outcome, SeenOrder};

/// Largest number of a CA's profiles that a reason names, and of characters of each name.
const PROFILES_LISTED_MAX: usize = 20;
const PROFILE_CHARS_MAX: usize = 100;

/// Number of authorizations of one order that are read in parallel.
const PARALLEL_READS: usize = 32;

/// An Order at its CA.
#[derive(Clone, Copy, Debug)]
pub struct OrderAtCa<'a> {
    /// The CA.
    pub acme: &'a dyn Acme,
    /// The Order.
    pub order: &'a Order,
    /// Challenges of the Order.
    pub challenges: &'a [Challenge],
    /// Root that the chain should lead to; empty for the CA's choice.
    pub preferred_chain: &'a str,
    /// Whether persistent records are asked for, so that the CA's offers for them are kept.
    pub persists: bool,
    /// Moment at which chains must be valid.
    pub now: Timestamp,
}

/// Failed request that another try may complete.
#[derive(Debug)]
pub struct Unanswered {
    /// Request that failed.
    pub deed: OrderRequest,
    /// Error from the CA or the transport.
    pub error: AcmeError,
}

impl OrderAtCa<'_> {
    /// Returns the terms to request: with the first wanted profile that the CA has, or an outcome if it has none.
    ///
    /// # Errors
    /// Fails if the CA does not answer.
    pub async fn terms(
        &self,
        wanted: OrderTerms,
    ) -> Result<Result<OrderTerms, Outcome>, Unanswered> {
        let Some(profiles) = &wanted.profile else { return Ok(Ok(wanted)) };
        let directory = self.acme.directory().await.map_err(unanswered)?;
        let chosen = first_offered(profiles, |name| directory.profiles.contains_key(name));
        let Some(chosen) = chosen else {
            let why = not_offered(profiles, &directory.profiles);
            return Ok(Err(Outcome::NoProfile(format!("Failed to create Order: acme: {why}"))));
        };
        let profile = Some(chosen.to_owned());
        Ok(Ok(OrderTerms { profile, ..wanted }))
    }

    /// Requests the order (newOrder).
    ///
    /// # Errors
    /// Fails if the CA does not answer, or no longer knows the account.
    pub async fn create(&self, wanted: OrderTerms, permit: Permit) -> Result<Outcome, Unanswered> {
        let request = NewOrder {
            identifiers: wanted.identifiers,
            not_after: wanted.not_after,
            profile: wanted.profile,
            replaces: wanted.replaces,
        };
        match self.acme.create_order(&request, permit).await {
            Ok(reply) => Ok(Outcome::Created(parse_reply(reply))),
            Err(error) if is_unknown_account(&error) => Err(unanswered(error)),
            Err(error) => refused(OrderRequest::Create, error),
        }
    }

    /// Reads authorizations in parallel. After a refusal no more are requested; those read before it count.
    ///
    /// # Errors
    /// Fails if the CA does not answer.
    pub async fn authorizations(&self, urls: &[String]) -> Result<Outcome, Unanswered> {
        let (mut read, mut fault) = (Vec::new(), None);
        for some in urls.chunks(PARALLEL_READS) {
            for (url, reply) in
                some.iter().zip(join_all(some.iter().map(|url| self.read(url))).await)
            {
                match reply {
                    Ok(reply) => read.push((url.clone(), reply)),
                    Err(error) => fault = Some(error),
                }
            }
            if fault.is_some() {
                break;
            }
        }
        let lost =
            |reply: &AuthorizationReply| Some((name_of(reply), State::lost_word(&reply.status)?));
        if let Some((name, word)) = read.iter().find_map(|(_, reply)| lost(reply)) {
            return Ok(Outcome::AuthorizationLost(name, word));
        }
        let refusal = match fault.map(|error| refused(OrderRequest::FetchAuthorizations, error)) {
            None => None,
            Some(Ok(Outcome::Refused(_, refusal @ Refusal::Until(..)))) => Some(refusal),
            Some(Err(_)) if !read.is_empty() => None,
            Some(other) => return other,
        };
        let read = read.into_iter().map(|(url, reply)| first_read(url, reply)).collect();
        Ok(Outcome::AuthorizationsFetched(read, refusal))
    }

    async fn read(&self, url: &str) -> Result<AuthorizationReply, AcmeError> {
        let mut reply = self.acme.authorization(url).await?;
        for challenge in &mut reply.challenges {
            challenge.persist = self.offer(challenge.persist.take()).await?;
        }
        Ok(reply)
    }

    /// Returns the part of a dns-persist-01 offer that is kept; in draft -02 half of it is in the directory.
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
    /// Fails if the CA does not answer.
    pub async fn fetch(&self) -> Result<Outcome, Unanswered> {
        let reply = match self.acme.order(&self.order.status.url).await {
            Ok(reply) => reply,
            Err(error) => return refused(OrderRequest::Fetch, error),
        };
        Ok(self.conclude(reply).await?.map_or_else(|other| other, Outcome::Fetched))
    }

    /// Sends the signing request. Once the CA has taken the request, it is not sent again, whether or not the chain can
    /// be had: the next reading of the order finds the chain.
    ///
    /// # Errors
    /// Fails if the CA does not answer.
    pub async fn finalize(&self) -> Result<Outcome, Unanswered> {
        let request = match csr::read(&self.order.spec.request.0) {
            Ok(request) => request,
            Err(why) => {
                return Ok(Outcome::GivenUp(format!("Failed to finalize Order: {why}"), None));
            }
        };
        let url = &self.order.status.url;
        match self.acme.finalize(&self.order.status.finalize_url, &request.der).await {
            Ok(reply) => {
                let reply = OrderReply { url: url.clone(), ..reply };
                let taken = parse_reply(reply.clone());
                Ok(match self.conclude(reply).await {
                    Ok(Ok(seen)) => Outcome::Finalized(seen),
                    // The CA took our signing request, but issued for another key.
                    Ok(Err(Outcome::OtherKey(why))) => Outcome::GivenUp(why, None),
                    Ok(Err(Outcome::Refused(_, Refusal::Until(_, at)))) => {
                        Outcome::Finalized(SeenOrder { retry_after: Some(at), ..taken })
                    }
                    Ok(Err(other)) => other,
                    Err(_) => Outcome::Finalized(taken),
                })
            }
            // 403: a finalize whose reply was lost, a finalize by another Order with the same order, or a CA that is
            // still at work (RFC 8555 §7.4). The order shows which.
            Err(error) if error.problem().is_some_and(|problem| problem.status == 403) => {
                match self.acme.order(url).await {
                    Ok(reply) if is_ready(&reply) && !is_not_ready(&error) => {
                        refused(OrderRequest::Finalize, error)
                    }
                    Ok(reply) => self.after_refusal(reply).await,
                    Err(error) => refused(OrderRequest::Fetch, error),
                }
            }
            Err(error) => refused(OrderRequest::Finalize, error),
        }
    }

    /// Returns the outcome for an order that could not be finalized: only a ready one awaits our signing request.
    async fn after_refusal(&self, reply: OrderReply) -> Result<Outcome, Unanswered> {
        Ok(match self.conclude(reply).await? {
            Ok(seen) if seen.state == Some(State::Ready) => Outcome::Finalized(seen),
            Ok(seen) => Outcome::Fetched(seen),
            Err(other) => other,
        })
    }

    /// Returns the order as read, with the checked chain if there is one, or the outcome that ends the Order.
    async fn conclude(&self, reply: OrderReply) -> Result<Result<SeenOrder, Outcome>, Unanswered> {
        let certificate = reply.certificate.clone();
        let error = reply.error.clone();
        let mut seen = parse_reply(reply);
        if seen.state == Some(State::Invalid) {
            seen.problems = self.problems(error).await;
        }
        let (Some(State::Valid), Some(url)) = (seen.state, certificate) else {
            return Ok(Ok(seen));
        };
        let served = match chain::choose(self.acme, &url, self.preferred_chain).await {
            Ok(served) => served,
            Err(error) => {
                return refused(OrderRequest::Download, error).map(Err);
            }
        };
        let request = match csr::read(&self.order.spec.request.0) {
            Ok(request) => request,
            Err(why) => return Ok(Err(Outcome::GivenUp(why.to_string(), None))),
        };
        match chain::check(&served.pem, &request, self.now) {
            Ok(checked) => {
                let remarks = chain::remarks(&checked.pem, &request);
                seen.remarks = remarks.iter().map(ToString::to_string).collect();
                seen.certificate = Some(checked.pem.into_bytes());
                Ok(Ok(seen))
            }
            Err(fault) => {
                let why = format!(
                    "Failed to retrieve signed certificate: what {url} serves is not what was ordered: {fault}"
                );
                let is_other = fault == ChainFault::OtherKey;
                Ok(Err(if is_other { Outcome::OtherKey(why) } else { Outcome::GivenUp(why, None) }))
            }
        }
    }

    /// Returns why an order is invalid: its own error, and that of every challenge that was tried; else the
    /// authorizations that are not valid. Best effort: an authorization that cannot be read adds nothing.
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

fn unanswered(error: AcmeError) -> Unanswered {
    Unanswered { deed: OrderRequest::Create, error }
}

/// Returns an authorization as it is stored. If the CA validates already, the state is processing, because the schema
/// of an Order has no field for a challenge's state. Used-up challenges are left out, as long as there are others.
fn first_read(url: String, reply: AuthorizationReply) -> Authorization {
    let mut initial_state = State::of_acme(&reply.status);
    let mut challenges = reply.challenges;
    if initial_state == Some(State::Pending) {
        let is_begun = |challenge: &ChallengeReply| is_under_way(&challenge.status);
        let is_over = !challenges.is_empty() && challenges.iter().all(is_used_up);
        if is_over || challenges.iter().any(is_begun) {
            initial_state = Some(State::Processing);
        } else {
            challenges.retain(|challenge| !is_used_up(challenge));
        }
    }
    let offered = challenges.into_iter().map(|challenge| OfferedChallenge {
        url: challenge.url,
        token: challenge.token,
        kind: challenge.kind,
        persist: challenge.persist,
    });
    Authorization {
        url,
        identifier: reply.identifier,
        wildcard: Some(reply.wildcard),
        initial_state,
        challenges: offered.collect(),
        ..Authorization::default()
    }
}

/// Returns whether a challenge of a pending authorization needs no answer any more: the CA validates, or has validated.
fn is_under_way(status: &str) -> bool {
    matches!(status, "processing" | "valid")
}

/// Returns whether a challenge takes no answer any more (RFC 8555 §7.1.6).
pub fn is_used_up(challenge: &ChallengeReply) -> bool {
    is_under_way(&challenge.status) || challenge.status == "invalid"
}

/// Returns the name that an authorization is for.
fn name_of(reply: &AuthorizationReply) -> String {
    shown_domain(&reply.identifier, reply.wildcard)
}

/// Returns why the CA cannot issue by a profile that it does not offer.
fn not_offered(profile: &str, offered: &BTreeMap<String, String>) -> String {
    if offered.is_empty() {
        return "certificate authority does not support profiles".to_owned();
    }
    let names = listed(offered.keys(), PROFILES_LISTED_MAX, PROFILE_CHARS_MAX);
    format!(
        "certificate authority does not advertise a profile with name {profile} (it has {names})"
    )
}

/// Returns whether the CA has forgotten the account.
pub fn is_unknown_account(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.short_kind() == "accountDoesNotExist")
}

/// Builds the problem of an authorization that is not valid, if the CA gives no reason.
pub fn lost_authorization(status: &str) -> Problem {
    Problem { detail: format!("the authorization is {status}"), ..Problem::default() }
}

fn is_ready(reply: &OrderReply) -> bool {
    State::of_acme(&reply.status) == Some(State::Ready)
}

/// Returns whether the CA says that the order cannot be finalized now; any other 403 is about this signing request.
fn is_not_ready(error: &AcmeError) -> bool {
    error.problem().is_some_and(|problem| problem.short_kind() == "orderNotReady")
}

/// Turns a refusal into an outcome; other errors are left for the driver to try again.
///
/// # Errors
/// Fails if another try may help.
pub fn refused(deed: OrderRequest, error: AcmeError) -> Result<Outcome, Unanswered> {
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

fn parse_reply(reply: OrderReply) -> SeenOrder {
    SeenOrder {
        url: reply.url,
        finalize_url: reply.finalize,
        authorizations: reply.authorizations,
        state: State::of_acme(&reply.status),
        expires: reply.expires,
        problems: Vec::new(),
        certificate: None,
        remarks: Vec::new(),
        retry_after: reply.retry_after,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first state of an authorization in that state, and how many of its challenges are on offer.
    #[track_caller]
    fn check(status: &str, challenges: &[&str], state: Option<State>, offered: usize) {
        let challenge = |status: &&str| ChallengeReply {
            status: (*status).to_owned(),
            kind: "http-01".to_owned(),
            ..ChallengeReply::default()
        };
        let reply = AuthorizationReply {
            status: status.to_owned(),
            challenges: challenges.iter().map(challenge).collect(),
            ..AuthorizationReply::default()
        };
        let read = first_read("https://ca.example/authz/1".to_owned(), reply);
        assert_eq!((read.initial_state, read.challenges.len()), (state, offered), "{challenges:?}");
    }

    #[test]
    fn an_authorization_that_the_ca_proves_already_needs_no_answer() {
        let (pending, processing) = (Some(State::Pending), Some(State::Processing));
        check("pending", &["pending", "pending"], pending, 2);
        check("pending", &[], pending, 0);
        check("pending", &["wondering", ""], pending, 2);
        check("pending", &["pending", "processing"], processing, 2);
        check("pending", &["valid", "pending"], processing, 2);
        // One that has failed is not on offer; when all have, the CA is about to say so.
        check("pending", &["invalid", "pending"], pending, 1);
        check("pending", &["invalid", "invalid"], processing, 2);
        check("valid", &["valid", "pending"], Some(State::Valid), 2);
        check("invalid", &["invalid", "pending"], Some(State::Invalid), 2);
        check("wondering", &["pending"], None, 1);
    }
}
