//! Challenge: what came of a deed, and how it is written down.

use std::net::SocketAddr;

use jiff::Timestamp;

use super::challenge_facts::{memory, verified};
use super::lingering::Lingering;
use super::pauses::{Polled, worth_keeping};
use super::{NEXT_TRY, Note, Recorded, Refusal};
use crate::model::cause::{About, Cause, Sighting};
use crate::model::event::{reason, source};
use crate::model::{Challenge, ChallengeStatus, Problem, State};

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The Order has failed, or is gone.
    Abandoned,
    /// The CA knows; this is its first word.
    Accepted(SeenChallenge),
    /// The CA could not be told, which may pass: why, in words, and what it answered, if it did.
    AcceptFailed(String, Option<Box<Problem>>),
    /// The answer and the finalizer are gone.
    CleanedUp,
    /// The answer could not be taken down: why, in words, and as data, if it is of a known sort.
    CleanUpFailed(String, Option<Cause>),
    /// Acceptance waits in place of a self-check, in words.
    Deferred(String),
    /// A person puts the answer up.
    HandedOver,
    /// Acceptance waits until nobody keeps the record as it was before.
    HeldBack(Lingering),
    /// Our finalizer is on the object.
    FinalizerAdded,
    /// The answer is about to be a file below that document root, which outlives whoever writes it.
    Placed(String),
    /// The answer is up; where this machine takes connections for it, if that was chosen.
    Presented(Vec<SocketAddr>),
    /// The answer could not be put up: why, in words, and as data, if it is of a known sort.
    PresentFailed(String, Option<Cause>),
    /// The CA did not take the answer.
    Refused(Refusal),
    /// The self-check does not see the answer yet: what it sees, in words, and as data, if it is of a known sort.
    NotVisible(String, Option<Sighting>),
    /// It is over.
    Settled,
    /// The name is not proven, and this is taken for the CA's last word.
    Unproven(Box<Problem>),
    /// The state the Order has read.
    StateTaken(State),
    /// The authorization was read.
    StateFetched(SeenChallenge),
}

/// What the CA said of a challenge or its authorization.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenChallenge {
    /// State; none for a word we do not know, which counts as not final.
    pub state: Option<State>,
    /// What the CA met when it looked, in whatever state.
    pub problem: Option<Problem>,
    /// The CA says that it is at work on it.
    pub is_at_work: bool,
    /// Not before this moment does the CA want to be asked again.
    pub retry_after: Option<Timestamp>,
}

/// When the CA was asked, and what it says of the next time, if this outcome is a reading of the authorization or a refusal.
pub fn polled(outcome: &Outcome, now: Timestamp) -> Option<Polled> {
    if let Outcome::Refused(Refusal::Until(_, at)) = outcome {
        return Some(Polled { at: now, retry_after: Some(*at) });
    }
    let Outcome::StateFetched(seen) = outcome else { return None };
    Some(Polled { at: now, retry_after: seen.retry_after })
}

/// Folds an outcome into status, memory and notes.
pub fn record(
    challenge: &Challenge,
    outcome: Outcome,
    now: Timestamp,
) -> Recorded<ChallengeStatus> {
    let mut new =
        Recorded { status: challenge.status.clone(), memory: memory(challenge), notes: Vec::new() };
    let cause = cause(&outcome);
    match outcome {
        Outcome::FinalizerAdded => {}
        Outcome::Abandoned => {
            new.status.state = Some(State::Errored);
            "The Order has failed or is gone: the challenge is not needed any more"
                .clone_into(&mut new.status.reason);
        }
        Outcome::Placed(webroot) => new.memory.webroot = Some(webroot),
        Outcome::CleanedUp | Outcome::Settled => {
            new.memory.webroot = None;
            // What kept the answer up is over.
            if new.memory.cause.as_ref().is_some_and(About::is_of_provider) {
                new.memory.cause = None;
            }
            new.status.presented = false;
            new.status.processing = false;
            if !challenge.has_ended() {
                // What a self-check saw of an answer that is down says nothing any more.
                new.status.reason = String::new();
            }
        }
        Outcome::CleanUpFailed(why, _) => {
            let message = format!("Error cleaning up challenge: {why}");
            new.status.processing = false;
            if challenge.status.state != Some(State::Valid) {
                new.status.reason.clone_from(&message);
            }
            new.notes.push(Note::warning(source::CHALLENGES, reason::CLEAN_UP_ERROR, message));
        }
        Outcome::HandedOver => {
            new.memory.by_hand = true;
            presented(challenge, &mut new, now);
        }
        Outcome::Presented(listens_at) => {
            new.memory.by_hand = false;
            new.memory.listens_at = listens_at;
            presented(challenge, &mut new, now);
        }
        Outcome::PresentFailed(why, _) => {
            let message = format!("Error presenting challenge: {why}");
            new.status.reason = why;
            new.notes.push(Note::warning(source::CHALLENGES, reason::PRESENT_ERROR, message));
        }
        Outcome::Deferred(why) => new.status.reason = why,
        Outcome::HeldBack(kept) => {
            new.memory.next_try = Some(kept.until);
            new.status.reason = kept.reason(challenge);
        }
        Outcome::NotVisible(why, _) => {
            new.status.reason =
                format!("Waiting for {} challenge propagation: {why}", challenge.spec.kind);
        }
        Outcome::AcceptFailed(why, _) => {
            new.status.reason = format!("Error accepting challenge: {why}");
        }
        Outcome::StateTaken(state) => seen(challenge, &mut new, Some(state), None),
        Outcome::Accepted(said) => {
            new.memory.accepted_at = Some(now);
            // Its Retry-After is about the validation; the authorization, which is what is read, has one of its own.
            new.memory.next_try = None;
            // What a failed self-check left behind is no longer true.
            new.status.reason = String::new();
            if said.problem.is_some() && said.state == Some(State::Pending) {
                // When it looks again by itself (RFC 8555 §8.2).
                new.memory.next_try = worth_keeping(said.retry_after, now);
            }
            if said.problem.is_some() || said.state.is_some_and(State::is_final) {
                seen(challenge, &mut new, said.state, said.problem);
            }
        }
        Outcome::StateFetched(said) => {
            let passed = new.memory.passed_try(now);
            new.memory.next_try = worth_keeping(said.retry_after, now).or(passed);
            let told = new.memory.cause.as_ref().and_then(|about| about.of(&new.status.reason));
            if matches!(told, Some(Cause::Refused(_) | Cause::Validation(_))) {
                // The CA answers again, or shows its error no more.
                new.status.reason = String::new();
            }
            // A first word that we do not know is no end.
            let first = challenge.status.state.is_none().then_some(State::Pending);
            seen(challenge, &mut new, said.state.or(first), said.problem);
        }
        Outcome::Unproven(problem) => {
            seen(challenge, &mut new, Some(State::Invalid), Some(*problem));
        }
        Outcome::Refused(refusal) => refused(challenge, &mut new, refusal),
    }
    if let Some(cause) = cause {
        // One of before stays until then, about a reason that is no more: taking it off would be a write of its own.
        new.memory.cause = Some(About::new(&new.status.reason, cause));
    }
    if new.status.state.is_some_and(State::is_final) {
        new.memory.next_try = memory(challenge).passed_try(now);
    }
    new
}

/// What is known of the reason that an outcome leaves.
fn cause(outcome: &Outcome) -> Option<Cause> {
    let refused = |problem: &Problem| Cause::Refused(Box::new(problem.kept()));
    let validation = |problem: &Problem| Cause::Validation(Box::new(problem.kept()));
    match outcome {
        Outcome::PresentFailed(_, cause) | Outcome::CleanUpFailed(_, cause) => cause.clone(),
        Outcome::NotVisible(_, sighting) => sighting.map(Cause::Seen),
        Outcome::AcceptFailed(_, problem) => problem.as_deref().map(refused),
        Outcome::Refused(Refusal::Final(problem) | Refusal::Until(problem, _)) => {
            Some(refused(problem))
        }
        Outcome::Accepted(seen) | Outcome::StateFetched(seen) => {
            let problem = seen.problem.as_ref().filter(|_| seen.state != Some(State::Valid));
            problem.map(validation)
        }
        Outcome::Unproven(problem) => Some(validation(problem)),
        Outcome::Abandoned
        | Outcome::CleanedUp
        | Outcome::Deferred(_)
        | Outcome::HandedOver
        | Outcome::HeldBack(_)
        | Outcome::FinalizerAdded
        | Outcome::Placed(_)
        | Outcome::Presented(_)
        | Outcome::Settled
        | Outcome::StateTaken(_) => None,
    }
}

fn presented(challenge: &Challenge, new: &mut Recorded<ChallengeStatus>, now: Timestamp) {
    if challenge.status.presented {
        new.status.presented_at.get_or_insert_with(|| now.into());
        return;
    }
    new.status.presented = true;
    new.status.presented_at = Some(now.into());
    new.status.reason = String::new();
    let message = match (challenge.spec.kind, new.memory.by_hand) {
        (kind, false) => format!("Presented challenge using {kind} challenge mechanism"),
        (kind, true) => format!("Left the {kind} record to a person"),
    };
    new.notes.push(Note::normal(source::CHALLENGES, reason::PRESENTED, message));
}

fn seen(
    challenge: &Challenge,
    new: &mut Recorded<ChallengeStatus>,
    state: Option<State>,
    problem: Option<Problem>,
) {
    let Some(state) = state else { return };
    let name = &challenge.spec.dns_name;
    match state {
        State::Valid => {
            "Successfully authorized domain".clone_into(&mut new.status.reason);
            // An authorization that was valid before we did anything is no news.
            if new.memory.accepted_at.is_some() {
                let message = verified(name, challenge.spec.kind);
                new.notes.push(Note::normal(source::CHALLENGES, reason::DOMAIN_VERIFIED, message));
            }
        }
        State::Invalid | State::Expired | State::Errored => {
            let said = match problem {
                Some(problem) => problem.to_string(),
                None => format!("the authorization is {state}, and the CA gives no reason"),
            };
            let error = format!("acme: authorization error for {name}: {said}");
            new.status.reason = format!("Error accepting authorization: {error}");
            let message = format!("Accepting challenge authorization failed: {error}");
            new.notes.push(Note::warning(source::CHALLENGES, reason::FAILED, message));
        }
        State::Pending | State::Processing | State::Ready => {
            new.status.reason = match (new.memory.accepted_at, problem) {
                (_, None) => new.status.reason.clone(),
                (None, Some(problem)) if !problem.detail.is_empty() => problem.detail,
                (None, Some(problem)) => problem.to_string(),
                (Some(_), Some(problem)) => format!("The CA reports: {problem}"),
            };
            // While the CA validates, the CRD's word stays `pending`, as cert-manager leaves it.
            new.status.state = Some(State::Pending);
            return;
        }
    }
    new.status.state = Some(state);
}

fn refused(challenge: &Challenge, new: &mut Recorded<ChallengeStatus>, refusal: Refusal) {
    let problem = match refusal {
        Refusal::Until(problem, at) => {
            new.memory.next_try = Some(at);
            // It is read before it is known, and once it is accepted.
            let is_read = challenge.status.state.is_none() || new.memory.accepted_at.is_some();
            let failed =
                if is_read { "Failed to fetch authorization" } else { "Error accepting challenge" };
            new.status.reason = format!("{failed}: {problem}{NEXT_TRY}{at:.0}");
            return;
        }
        Refusal::Final(problem) => problem,
    };
    if problem.short_kind() == "malformed" {
        new.status.state = Some(State::Expired);
        new.status.reason = format!("Error accepting challenge: {problem}");
    } else {
        new.status.state = Some(State::Errored);
        // The words are cert-manager's, although it is a challenge.
        new.status.reason = format!("Failed to retrieve Order resource: {problem}");
    }
    let name = &challenge.spec.dns_name;
    let message = format!("Accepting challenge authorization failed: {name}: {problem}");
    new.notes.push(Note::warning(source::CHALLENGES, reason::FAILED, message));
}
