//! Facts of an object beyond its messages: kept as data if this program wrote the status, else read from the messages of
//! others in the status.

use jiff::Timestamp;

use super::foreign::{Perspective, RecordFault};
use super::{foreign, provider};
use crate::model::cause::{Cause, CheckFinding, OrderWait};
use crate::model::memory::{Holder, Memory};
use crate::model::provider_refusal::ProviderRefusal;
use crate::model::{Challenge, ChallengeType, Issuer, Order, Problem};

/// Outdated answer that a resolver keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StaleAnswer {
    /// The record's absence.
    Absence,
    /// Values without the current one.
    Values,
}

/// Returns why a challenge does not go on, if its status says so.
pub fn cause(challenge: &Challenge) -> Option<Cause> {
    let reason = &challenge.status.reason;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let kept = memory.cause.as_ref().and_then(|about| about.of(reason).cloned());
    kept.or_else(|| foreign::cause(challenge))
}

/// Returns the last sighting in place of a challenge's answer, by this program, another program, or the CA.
pub fn sighting(challenge: &Challenge) -> Option<CheckFinding> {
    match cause(challenge)? {
        Cause::Seen(sighting) => Some(sighting),
        Cause::Refused(problem) | Cause::Validation(problem) => {
            foreign::sighting(challenge, &problem.detail)
        }
        Cause::NoIngress | Cause::Denied(_) | Cause::Provider(_) => None,
    }
}

/// Returns when the CA was asked to validate after every name server had the record; `None` without an earlier self-check.
pub fn seen_everywhere_at(challenge: &Challenge) -> Option<Timestamp> {
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let spec = &challenge.spec;
    let was_looked_for = spec.solver.wait_instead_of_self_check.is_none() || memory.by_hand;
    memory.accepted_at.filter(|_| spec.kind.is_by_record() && was_looked_for)
}

/// Returns what the CA's resolver still keeps, by the CA's problem, if every name server had the record by then.
pub fn kept_by_resolver(challenge: &Challenge, problem: &Problem) -> Option<StaleAnswer> {
    let is_of_value =
        matches!(challenge.spec.kind, ChallengeType::Dns01 | ChallengeType::DnsAccount01);
    seen_everywhere_at(challenge).filter(|_| is_of_value)?;
    // Elsewhere in the world the record may not have been there yet.
    if foreign::perspective(problem) == Perspective::Secondary {
        return None;
    }
    match foreign::record_fault(problem)? {
        RecordFault::None => Some(StaleAnswer::Absence),
        RecordFault::Others => Some(StaleAnswer::Values),
        RecordFault::Servers | RecordFault::Silence | RecordFault::Signatures => None,
    }
}

/// Returns the sighting at this program's listener if it explains why the answer is not seen.
pub fn sighting_of_listener(challenge: &Challenge) -> Option<CheckFinding> {
    sighting(challenge).filter(|sighting| sighting.symptom.is_of_listener())
}

/// Returns the refusal of a challenge's record by a DNS provider, and whether it is known as data, rather than read.
pub fn refusal(challenge: &Challenge) -> Option<(ProviderRefusal, bool)> {
    let reason = &challenge.status.reason;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    match memory.cause.as_ref().and_then(|about| about.of(reason)) {
        Some(Cause::Provider(refusal)) => Some(((**refusal).clone(), true)),
        Some(_) => None,
        None => provider::refusal(challenge).map(|refusal| (refusal, false)),
    }
}

/// Returns the CA's problem that an Order's reason describes.
pub fn problem(order: &Order) -> Option<Problem> {
    let reason = &order.status.reason;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let kept = memory.problem.as_ref().and_then(|about| about.of(reason).cloned());
    kept.or_else(|| foreign::problem_of_order(reason))
}

/// Reports whether a bare refusal of a new order (step-ca: `malformed`) is about an ordered name that is no host name.
pub fn is_refused_name(order: &Order, problem: &Problem) -> bool {
    let is_bare = problem.short_kind() == "malformed" && problem.status == 400;
    let is_host_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'*');
    let is_odd = |name: &String| !name.bytes().all(is_host_letter);
    is_bare && order.status.url.is_empty() && order.spec.dns_names.iter().any(is_odd)
}

/// Returns why an Order that has not ended stands still.
pub fn waits_for(order: &Order) -> Option<OrderWait> {
    let reason = &order.status.reason;
    crate::reconcile::order::waits_for(order).or_else(|| foreign::order_wait(reason))
}

/// Returns the CA's problem that the message of an issuer's condition describes.
pub fn problem_of_issuer(issuer: &Issuer, message: &str) -> Option<Problem> {
    let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
    let kept = memory.problem.as_ref().and_then(|about| about.of(message).cloned());
    kept.or_else(|| foreign::problem_in(message))
}
