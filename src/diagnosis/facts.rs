//! What is known of an object beyond its words: kept as data where this program wrote the status, else read from what others
//! have written there.

use jiff::Timestamp;

use super::foreign::{Perspective, RecordFault};
use super::{foreign, provider_words};
use crate::model::cause::{Cause, OrderWait, Sighting};
use crate::model::memory::{Holder, Memory};
use crate::model::provider_refusal::ProviderRefusal;
use crate::model::{Challenge, ChallengeType, Issuer, Order, Problem};

/// What a resolver keeps of a record that is not so any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptAnswer {
    /// That there is no such record.
    Absence,
    /// Values without the one that is there now.
    Values,
}

/// Why a challenge does not go on, if its status says anything of it.
pub fn cause(challenge: &Challenge) -> Option<Cause> {
    let reason = &challenge.status.reason;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let kept = memory.cause.as_ref().and_then(|about| about.of(reason).cloned());
    kept.or_else(|| foreign::cause(challenge))
}

/// What was seen in place of a challenge's answer, by whoever looked last: this program, another, or the CA.
pub fn sighting(challenge: &Challenge) -> Option<Sighting> {
    match cause(challenge)? {
        Cause::Seen(sighting) => Some(sighting),
        Cause::Refused(problem) | Cause::Validation(problem) => {
            foreign::sighting(challenge, &problem.detail)
        }
        Cause::NoIngress | Cause::Denied(_) | Cause::Provider(_) => None,
    }
}

/// When the CA was told of a challenge since every name server was seen to have its record; `None` if nobody has looked before.
pub fn seen_everywhere_at(challenge: &Challenge) -> Option<Timestamp> {
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let spec = &challenge.spec;
    let was_looked_for = spec.solver.wait_instead_of_self_check.is_none() || memory.by_hand;
    memory.accepted_at.filter(|_| spec.kind.is_by_record() && was_looked_for)
}

/// What a CA's resolver keeps of a record that every name server had when the CA was told of it, by what the CA says.
pub fn kept_by_resolver(challenge: &Challenge, problem: &Problem) -> Option<KeptAnswer> {
    let is_of_value =
        matches!(challenge.spec.kind, ChallengeType::Dns01 | ChallengeType::DnsAccount01);
    seen_everywhere_at(challenge).filter(|_| is_of_value)?;
    // Elsewhere in the world it may not have been there yet.
    if foreign::perspective(problem) == Perspective::Secondary {
        return None;
    }
    match foreign::record_fault(problem)? {
        RecordFault::None => Some(KeptAnswer::Absence),
        RecordFault::Others => Some(KeptAnswer::Values),
        RecordFault::Servers | RecordFault::Silence | RecordFault::Signatures => None,
    }
}

/// What came to the listener of the process that answers, where that explains why the answer is not seen.
pub fn sighting_of_listener(challenge: &Challenge) -> Option<Sighting> {
    sighting(challenge).filter(|sighting| sighting.symptom.is_of_listener())
}

/// What a DNS provider refuses of a challenge's record, and whether that is known as data, rather than read.
pub fn refusal(challenge: &Challenge) -> Option<(ProviderRefusal, bool)> {
    let reason = &challenge.status.reason;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    match memory.cause.as_ref().and_then(|about| about.of(reason)) {
        Some(Cause::Provider(refusal)) => Some(((**refusal).clone(), true)),
        Some(_) => None,
        None => provider_words::refusal(challenge).map(|refusal| (refusal, false)),
    }
}

/// The CA's problem that an Order's reason tells of.
pub fn problem(order: &Order) -> Option<Problem> {
    let reason = &order.status.reason;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let kept = memory.problem.as_ref().and_then(|about| about.of(reason).cloned());
    kept.or_else(|| foreign::problem_of_order(reason))
}

/// Tells whether a CA that gives no reason (step-ca: bare `malformed`) has refused a new order for a name: one in it is no host name.
pub fn is_refused_name(order: &Order, problem: &Problem) -> bool {
    let is_bare = problem.short_kind() == "malformed" && problem.status == 400;
    let is_host_letter = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'*');
    let is_odd = |name: &String| !name.bytes().all(is_host_letter);
    is_bare && order.status.url.is_empty() && order.spec.dns_names.iter().any(is_odd)
}

/// Why an Order stands still that has not ended.
pub fn waits_for(order: &Order) -> Option<OrderWait> {
    let reason = &order.status.reason;
    crate::reconcile::order::waits_for(order).or_else(|| foreign::order_wait(reason))
}

/// The CA's problem that the message of an issuer's condition tells of.
pub fn problem_of_issuer(issuer: &Issuer, message: &str) -> Option<Problem> {
    let memory = Memory::read(Holder::Issuer, &issuer.metadata.annotations);
    let kept = memory.problem.as_ref().and_then(|about| about.of(message).cloned());
    kept.or_else(|| foreign::problem_in(message))
}
