//! Challenge: outcomes of actions, and how each is written down.

use std::net::SocketAddr;

use jiff::Timestamp;

use super::lingering::CachedRecord;
use super::pauses::{Polled, worth_keeping};
use super::{NEXT_TRY, Note, Recorded, Refusal};
use crate::model::cause::{About, Cause, CheckFinding};
use crate::model::event::{reason, source};
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, ChallengeStatus, ChallengeType, Problem, State};

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The Order has failed, or is gone.
    Abandoned,
    /// The challenge is accepted; the CA's first reply.
    Accepted(SeenChallenge),
    /// Acceptance failed, perhaps temporarily: why, in words, and the CA's problem, if it sent one.
    AcceptFailed(String, Option<Box<Problem>>),
    /// The answer and the finalizer are gone.
    CleanedUp,
    /// The answer could not be taken down: why, in words, and as data, if the cause is of a known kind.
    CleanUpFailed(String, Option<Cause>),
    /// Acceptance waits in place of a self-check: until when, in words.
    Deferred(String),
    /// A person puts the answer up.
    HandedOver,
    /// Acceptance waits until no resolver caches the old record.
    HeldBack(CachedRecord),
    /// Our finalizer is on the object.
    FinalizerAdded,
    /// The answer is about to be a file below this document root; the file outlives the process that writes it.
    Placed(String),
    /// The answer is up; addresses on which this machine takes connections for it, if it was chosen for that.
    Presented(Vec<SocketAddr>),
    /// The answer could not be put up: why, in words, and as data, if the cause is of a known kind.
    PresentFailed(String, Option<Cause>),
    /// The CA refused acceptance or the reading of the authorization.
    Refused(Refusal),
    /// The self-check does not see the answer yet: what it sees, in words, and as data, if of a known kind.
    NotVisible(String, Option<CheckFinding>),
    /// The work is over.
    Settled,
    /// The name is not proved; this problem is taken as the CA's final result.
    Unproven(Box<Problem>),
    /// The state that the Order has read.
    StateTaken(State),
    /// The authorization was read.
    StateFetched(SeenChallenge),
}

/// Challenge or authorization as the CA reported it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeenChallenge {
    /// State; `None` for an unknown word, which counts as not final.
    pub state: Option<State>,
    /// Problem that the CA met during validation, in whatever state.
    pub problem: Option<Problem>,
    /// Whether the CA says that it is at work on the validation.
    pub is_at_work: bool,
    /// Earliest moment at which the CA wants to be asked again.
    pub retry_after: Option<Timestamp>,
}

/// Returns the moment and Retry-After, if this outcome is a reading of the authorization or a temporary refusal.
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
            // The cause that kept the answer up is over.
            if new.memory.cause.as_ref().is_some_and(About::is_of_provider) {
                new.memory.cause = None;
            }
            new.status.presented = false;
            new.status.processing = false;
            if !challenge.has_ended() {
                // A self-check's view of an answer that is down means nothing any more.
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
            apply_presented(challenge, &mut new, now);
        }
        Outcome::Presented(listens_at) => {
            new.memory.by_hand = false;
            new.memory.listens_at = listens_at;
            apply_presented(challenge, &mut new, now);
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
        Outcome::StateTaken(state) => apply_state(challenge, &mut new, Some(state), None),
        Outcome::Accepted(said) => {
            new.memory.accepted_at = Some(now);
            // The reply's Retry-After is about the validation; the authorization, which is read instead, has its own.
            new.memory.next_try = None;
            // The reason of a failed self-check is no longer true.
            new.status.reason = String::new();
            if said.problem.is_some() && said.state == Some(State::Pending) {
                // Moment at which the CA validates again by itself (RFC 8555 §8.2).
                new.memory.next_try = worth_keeping(said.retry_after, now);
            }
            if said.problem.is_some() || said.state.is_some_and(State::is_final) {
                apply_state(challenge, &mut new, said.state, said.problem);
            }
        }
        Outcome::StateFetched(said) => {
            let passed = new.memory.passed_try(now);
            new.memory.next_try = worth_keeping(said.retry_after, now).or(passed);
            let told = new.memory.cause.as_ref().and_then(|about| about.of(&new.status.reason));
            if matches!(told, Some(Cause::Refused(_) | Cause::Validation(_))) {
                // The CA replies again, or shows its error no more.
                new.status.reason = String::new();
            }
            // An unknown first state is no end.
            let first = challenge.status.state.is_none().then_some(State::Pending);
            apply_state(challenge, &mut new, said.state.or(first), said.problem);
        }
        Outcome::Unproven(problem) => {
            apply_state(challenge, &mut new, Some(State::Invalid), Some(*problem));
        }
        Outcome::Refused(refusal) => apply_refusal(challenge, &mut new, refusal),
    }
    if let Some(cause) = cause {
        // An older cause stays until then, although its reason is gone: removal would be a write of its own.
        new.memory.cause = Some(About::new(&new.status.reason, cause));
    }
    if new.status.state.is_some_and(State::is_final) {
        new.memory.next_try = memory(challenge).passed_try(now);
    }
    new
}

/// Returns the cause behind the reason that an outcome leaves, if known.
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

fn apply_presented(challenge: &Challenge, new: &mut Recorded<ChallengeStatus>, now: Timestamp) {
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

fn apply_state(
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
            // While the CA validates, the state in the CRD stays `pending`, as in cert-manager.
            new.status.state = Some(State::Pending);
            return;
        }
    }
    new.status.state = Some(state);
}

fn apply_refusal(challenge: &Challenge, new: &mut Recorded<ChallengeStatus>, refusal: Refusal) {
    let problem = match refusal {
        Refusal::Until(problem, at) => {
            new.memory.next_try = Some(at);
            // The authorization is read before its state is known, and after acceptance.
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
        // cert-manager's words speak of an Order, although the object is a challenge.
        new.status.reason = format!("Failed to retrieve Order resource: {problem}");
    }
    let name = &challenge.spec.dns_name;
    let message = format!("Accepting challenge authorization failed: {name}: {problem}");
    new.notes.push(Note::warning(source::CHALLENGES, reason::FAILED, message));
}

pub(super) fn memory(challenge: &Challenge) -> Memory {
    Memory::read(Holder::Challenge, &challenge.metadata.annotations)
}

/// Returns cert-manager's sentence for a verified name.
fn verified(name: &str, kind: ChallengeType) -> String {
    format!("Domain \"{name}\" verified with \"{kind}\" validation")
}
