//! Causes that a CA's problem document names (RFC 8555 §6.7), whatever the request: one table for accounts and for orders.
//! And causes by a message alone, without the object that it is about.

use super::symptom;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::diagnosis::words::foreign::{self, Limit};
use crate::diagnosis::words::issuer::{self, BindingFault};
use crate::diagnosis::words::refusal::{
    RefusedOrderPart, RefusedRequest, is_key_of_another_account, is_no_longer_pending,
    refused_request, refused_wish, says_key_is_another,
};
use crate::model::cause::Symptom;
use crate::model::{Challenge, ChallengeType, Problem};

/// Returns the cause that a problem names, by its type first and its text second, and how sure the cause is.
pub(super) fn cause_of(problem: &Problem) -> Option<(CauseId, Grade)> {
    use CauseId as Id;
    if problem.short_kind() == "rateLimited" || problem.status == 429 {
        return Some((limit(problem), Grade::Certain));
    }
    if let Some(wish) = refused_wish(problem) {
        return Some((cause_of_wish(wish), Grade::Certain));
    }
    let cause = match problem.short_kind() {
        _ if foreign::lacks_perspectives(problem) => Id::Lim07,
        "invalidContact" | "invalidEmail" | "unsupportedContact" => Id::Acc01,
        "accountDoesNotExist" => Id::Acc03,
        _ if says_key_is_another(problem) => Id::Acc02,
        "externalAccountRequired" => Id::Acc07,
        "userActionRequired" | "agreementRequired" => Id::Acc09,
        _ if issuer::is_about_binding(problem) => match issuer::binding_fault(problem) {
            BindingFault::Key => Id::Acc07,
            BindingFault::Spent => Id::Acc08,
            BindingFault::Unknown => return Some((Id::Acc08, Grade::Likely)),
        },
        _ if is_key_of_another_account(problem) => Id::Acc11,
        _ if is_no_longer_pending(problem) => Id::Ord07,
        "unauthorized" if issuer::says_account_is_over(problem) => Id::Acc04,
        "caa" if foreign::is_caa_again(problem) => Id::Caa09,
        "caa" => Id::Caa01,
        "unsupportedIdentifier" => Id::Cfg16,
        "invalidProfile" => Id::Cfg09,
        "orderNotReady" => Id::Ord09,
        "alreadyReplaced" => Id::Ord15,
        "badCSR" => match refused_request(problem) {
            RefusedRequest::Key => Id::Cfg19,
            RefusedRequest::Names => Id::Cfg18,
        },
        "badPublicKey" => Id::Cfg19,
        "badNonce" => Id::Env05,
        _ if problem.status == 404 => Id::Ord06,
        _ if problem.status >= 500 => Id::Lim07,
        _ => return None,
    };
    let is_sure = problem.short_kind() != "caa";
    Some((cause, if is_sure { Grade::Certain } else { Grade::Likely }))
}

/// Returns the symptom that the CA met at the name of a challenge; quoted text of a web server is ignored.
pub(super) fn met(challenge: &Challenge, problem: &Problem) -> Option<Symptom> {
    let own = problem.detail.split('"').next().unwrap_or_default();
    foreign::sighting(challenge, own).map(|sighting| sighting.symptom)
}

/// Returns the cause for a part of an order that was refused.
fn cause_of_wish(wish: RefusedOrderPart) -> CauseId {
    match wish {
        RefusedOrderPart::NameForm => CauseId::Cfg10,
        RefusedOrderPart::Suffix => CauseId::Cfg12,
        RefusedOrderPart::Policy => CauseId::Cfg13,
        RefusedOrderPart::Address => CauseId::Cfg16,
        RefusedOrderPart::TooMany => CauseId::Cfg17,
        RefusedOrderPart::Dates => CauseId::Cfg20,
    }
}

/// Returns the cause for a limit that was reached.
fn limit(problem: &Problem) -> CauseId {
    match foreign::limit(problem) {
        Limit::ExactSet => CauseId::Lim01,
        Limit::RegisteredDomain => CauseId::Lim02,
        Limit::FailedAuthorizations => CauseId::Lim03,
        Limit::NewOrders => CauseId::Lim04,
        Limit::Registrations => CauseId::Lim05,
        Limit::Paused => CauseId::Lim06,
        Limit::Busy => CauseId::Lim07,
    }
}

/// Returns the causes that a text of a CA or of a self-check names, as people paste it; shared words alone do not count.
pub fn causes_of_words(text: &str) -> Vec<CauseId> {
    const URN: &str = "urn:ietf:params:acme:error:";
    let typed = text.split_once(URN).map(|(_, rest)| {
        let is_of_type = |c: char| c.is_ascii_alphanumeric();
        let kind: String = rest.chars().take_while(|c| is_of_type(*c)).collect();
        let detail = rest[kind.len()..].trim_start_matches(':').trim().to_owned();
        Problem { kind: format!("{URN}{kind}"), detail, ..Problem::default() }
    });
    let of_problem = typed.as_ref().and_then(cause_of).map(|(cause, _)| cause);
    let of_look = foreign::symptom_of_http(text).into_iter().flat_map(|met| {
        [false, true].map(|in_cluster| symptom::cause_of(met, ChallengeType::Http01, in_cluster).0)
    });
    let mut found: Vec<CauseId> = of_problem.into_iter().chain(of_look).collect();
    found.dedup();
    found
}
