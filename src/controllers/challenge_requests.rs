//! What the CA is asked for a Challenge: to look at the answer, and what it has seen.
//!
//! The refusal `malformed` at an acceptance is settled by reading the authorization, because an acceptance whose answer
//! was lost looks the same; only if that is still pending does the Challenge end as `expired`, as in cert-manager, unless the answer
//! was given once more.
//!
//! A CA that looks while it is given the answer may refuse it with what it met there (serles). That is no refusal of the request, as
//! long as the authorization can be read: an account that may do nothing could not read it either.
//!
//! The Retry-After of the answer that accepts a challenge is not kept. The authorization, which is what is read later,
//! has its own; and an order that has failed must not leave its answers up until then.

use std::sync::Arc;

use super::ReconcileError;
use super::accounts::Accounts;
use super::order_requests::{is_used_up, lost_authorization};
use crate::acme::error::{AcmeError, Retry};
use crate::acme::{AuthorizationReply, ChallengeReply};
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, Problem, State};
use crate::reconcile::Refusal;
use crate::reconcile::challenge::{Outcome, SeenChallenge};

/// Asks the CA, by the account of each Challenge's issuer.
#[derive(Debug)]
pub(super) struct ChallengeRequests {
    pub(super) accounts: Arc<Accounts>,
}

impl ChallengeRequests {
    /// Tells the CA that the answer is up.
    ///
    /// # Errors
    /// Fails when the CA does not answer, or not usefully.
    pub(super) async fn accept(&self, challenge: &Challenge) -> Result<Outcome, ReconcileError> {
        let issuer =
            self.accounts.issuer(&challenge.metadata.namespace, &challenge.spec.issuer_ref).await?;
        let acme = self.accounts.session(&issuer).await?;
        let error = match acme.accept(&challenge.spec.url).await {
            Ok(reply) => return Ok(Outcome::Accepted(said(reply))),
            Err(error) => error,
        };
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let is_again = memory.accepted_at.is_some();
        match (error.retry(), error) {
            (Retry::Never, AcmeError::Refused { problem, .. })
                if problem.short_kind() == "malformed" =>
            {
                // "authorization must be pending": perhaps an acceptance whose answer was lost. Its state tells.
                match acme.authorization(&challenge.spec.authorization_url).await {
                    Ok(reply) => {
                        let own = reply.challenges.iter().find(|c| c.url == challenge.spec.url);
                        let under_way = own.is_some_and(is_used_up);
                        let seen = read(reply, &challenge.spec.url);
                        if seen.state.is_some_and(State::is_final) {
                            // An earlier acceptance has come to its end; this one was none.
                            return Ok(Outcome::StateFetched(seen));
                        }
                        if under_way || is_again {
                            return Ok(Outcome::Accepted(seen));
                        }
                    }
                    Err(error) if error.problem().is_some() && error.retry() == Retry::Never => {}
                    Err(error) => return refused(error),
                }
                Ok(Outcome::Refused(Refusal::Final(problem)))
            }
            (Retry::Never, AcmeError::Refused { problem, .. }) if is_of_validation(&problem) => {
                match acme.authorization(&challenge.spec.authorization_url).await {
                    Ok(reply) => Ok(Outcome::Accepted(met(reply, &challenge.spec.url, *problem))),
                    Err(error) if error.problem().is_some() && error.retry() == Retry::Never => {
                        Ok(Outcome::Refused(Refusal::Final(problem)))
                    }
                    Err(error) => refused(error),
                }
            }
            (_, error) => refused(error),
        }
    }

    /// Reads the authorization; only a fresh order helps where the CA has forgotten it.
    ///
    /// # Errors
    /// Fails when the CA does not answer, or not usefully.
    pub(super) async fn state(&self, challenge: &Challenge) -> Result<Outcome, ReconcileError> {
        let issuer =
            self.accounts.issuer(&challenge.metadata.namespace, &challenge.spec.issuer_ref).await?;
        let acme = self.accounts.session(&issuer).await?;
        match acme.authorization(&challenge.spec.authorization_url).await {
            Ok(reply) => Ok(Outcome::StateFetched(read(reply, &challenge.spec.url))),
            Err(error) => refused(error),
        }
    }
}

/// A refusal of the CA, for ever or until a moment that it names; what else goes wrong is tried again.
fn refused(error: AcmeError) -> Result<Outcome, ReconcileError> {
    match (error.retry(), error) {
        (Retry::Never, AcmeError::Refused { problem, .. }) => {
            Ok(Outcome::Refused(Refusal::Final(problem)))
        }
        (Retry::At(at), AcmeError::Refused { problem, .. }) => {
            Ok(Outcome::Refused(Refusal::Until(problem, at)))
        }
        (_, error) => Err(error.into()),
    }
}

/// Tells whether a refusal of an answer is of the types that say what a CA met when it looked (RFC 8555 §6.7).
fn is_of_validation(problem: &Problem) -> bool {
    matches!(
        problem.short_kind(),
        "caa"
            | "connection"
            | "dns"
            | "incorrectResponse"
            | "rejectedIdentifier"
            | "tls"
            | "unauthorized"
    )
}

fn said(reply: ChallengeReply) -> SeenChallenge {
    SeenChallenge {
        is_at_work: is_at_work(&reply),
        state: State::of_acme(&reply.status),
        problem: reply.error,
        retry_after: reply.retry_after,
    }
}

/// Tells whether a challenge is being validated; one with an error waits for the next look (RFC 8555 §8.2).
fn is_at_work(challenge: &ChallengeReply) -> bool {
    challenge.status == "processing" && challenge.error.is_none()
}

/// What stands in an authorization whose challenge was refused with what the CA met. The more telling one of the two errors counts.
fn met(reply: AuthorizationReply, url: &str, refusal: Problem) -> SeenChallenge {
    let seen = read(reply, url);
    let is_silent = seen.problem.as_ref().is_none_or(|problem| problem.detail.is_empty());
    let problem = if is_silent { Some(refusal) } else { seen.problem };
    SeenChallenge { state: seen.state.or(Some(State::Pending)), problem, ..seen }
}

/// The state is the authorization's, unless the challenge that was tried is refused already; the problem stands in that.
fn read(reply: AuthorizationReply, url: &str) -> SeenChallenge {
    let own = reply.challenges.iter().find(|c| c.url == url);
    let is_at_work = reply.status == "processing" || own.is_some_and(is_at_work);
    let is_refused = reply.status == "pending" && own.is_some_and(|c| c.status == "invalid");
    let state = if is_refused { Some(State::Invalid) } else { State::of_acme(&reply.status) };
    let lost = State::lost_word(&reply.status).map(lost_authorization);
    let mut problems: Vec<_> = reply
        .challenges
        .into_iter()
        .filter_map(|c| c.error.map(|problem| (c.url == url, problem)))
        .collect();
    problems.sort_by_key(|(is_ours, _)| !is_ours);
    let problem = problems.into_iter().next().map(|(_, problem)| problem);
    SeenChallenge { state, problem: problem.or(lost), is_at_work, retry_after: reply.retry_after }
}
