//! Requests to the CA for a Challenge: acceptance, and reading of the authorization.
//!
//! The refusal `malformed` at an acceptance is settled by reading the authorization, because an acceptance whose reply
//! was lost looks the same; only if the authorization is still pending does the Challenge end as `expired`, as in
//! cert-manager, unless the challenge was accepted before.
//!
//! A CA that validates during the acceptance request may refuse the request with the problem it met (serles). That is
//! no refusal of the request if the authorization can be read: an account without any rights could not read it either.
//!
//! The Retry-After of the reply to an acceptance is not kept. The authorization, which is read later, has its own; and
//! an order that has failed must not leave its answers up until then.

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

/// Sends requests to the CA, by the account of each Challenge's issuer.
#[derive(Debug)]
pub(super) struct ChallengeRequests {
    pub(super) accounts: Arc<Accounts>,
}

impl ChallengeRequests {
    /// Accepts the challenge: informs the CA that the answer is up.
    ///
    /// # Errors
    /// Fails if the CA does not reply usefully.
    pub(super) async fn accept(&self, challenge: &Challenge) -> Result<Outcome, ReconcileError> {
        let issuer =
            self.accounts.issuer(&challenge.metadata.namespace, &challenge.spec.issuer_ref).await?;
        let acme = self.accounts.session(&issuer).await?;
        let error = match acme.accept(&challenge.spec.url).await {
            Ok(reply) => return Ok(Outcome::Accepted(parse_reply(reply))),
            Err(error) => error,
        };
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let is_again = memory.accepted_at.is_some();
        match (error.retry(), error) {
            (Retry::Never, AcmeError::Refused { problem, .. })
                if problem.short_kind() == "malformed" =>
            {
                // "authorization must be pending": perhaps an acceptance whose reply was lost. Its state shows that.
                match acme.authorization(&challenge.spec.authorization_url).await {
                    Ok(reply) => {
                        let own = reply.challenges.iter().find(|c| c.url == challenge.spec.url);
                        let under_way = own.is_some_and(is_used_up);
                        let seen = read(reply, &challenge.spec.url);
                        if seen.state.is_some_and(State::is_final) {
                            // An earlier acceptance has come to its end; this one did not count.
                            return Ok(Outcome::StateFetched(seen));
                        }
                        if under_way || is_again {
                            return Ok(Outcome::Accepted(seen));
                        }
                    }
                    Err(error) if error.problem().is_some() && error.retry() == Retry::Never => {}
                    Err(error) => return sort_refusal(error),
                }
                Ok(Outcome::Refused(Refusal::Final(problem)))
            }
            (Retry::Never, AcmeError::Refused { problem, .. }) if is_of_validation(&problem) => {
                match acme.authorization(&challenge.spec.authorization_url).await {
                    Ok(reply) => {
                        Ok(Outcome::Accepted(merge_refusal(reply, &challenge.spec.url, *problem)))
                    }
                    Err(error) if error.problem().is_some() && error.retry() == Retry::Never => {
                        Ok(Outcome::Refused(Refusal::Final(problem)))
                    }
                    Err(error) => sort_refusal(error),
                }
            }
            (_, error) => sort_refusal(error),
        }
    }

    /// Reads the authorization; only a new order helps if the CA has forgotten it.
    ///
    /// # Errors
    /// Fails if the CA does not reply usefully.
    pub(super) async fn state(&self, challenge: &Challenge) -> Result<Outcome, ReconcileError> {
        let issuer =
            self.accounts.issuer(&challenge.metadata.namespace, &challenge.spec.issuer_ref).await?;
        let acme = self.accounts.session(&issuer).await?;
        match acme.authorization(&challenge.spec.authorization_url).await {
            Ok(reply) => Ok(Outcome::StateFetched(read(reply, &challenge.spec.url))),
            Err(error) => sort_refusal(error),
        }
    }
}

/// Turns a refusal of the CA, final or until a moment that it names, into an outcome; other errors are tried again.
fn sort_refusal(error: AcmeError) -> Result<Outcome, ReconcileError> {
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

/// Returns whether a refusal of an acceptance has a type that says what a CA met during validation (RFC 8555 §6.7).
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

fn parse_reply(reply: ChallengeReply) -> SeenChallenge {
    SeenChallenge {
        is_at_work: is_at_work(&reply),
        state: State::of_acme(&reply.status),
        problem: reply.error,
        retry_after: reply.retry_after,
    }
}

/// Returns whether a challenge is being validated; a challenge with an error waits for the next try (RFC 8555 §8.2).
fn is_at_work(challenge: &ChallengeReply) -> bool {
    challenge.status == "processing" && challenge.error.is_none()
}

/// Returns the state of an authorization whose challenge was refused with a problem; the more detailed one counts.
fn merge_refusal(reply: AuthorizationReply, url: &str, refusal: Problem) -> SeenChallenge {
    let seen = read(reply, url);
    let is_silent = seen.problem.as_ref().is_none_or(|problem| problem.detail.is_empty());
    let problem = if is_silent { Some(refusal) } else { seen.problem };
    SeenChallenge { state: seen.state.or(Some(State::Pending)), problem, ..seen }
}

/// Returns the authorization's state, or `invalid` if the tried challenge is, with that challenge's problem first.
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
