//! What a problem document of a CA names (RFC 8555 §6.7), whatever it was an answer to: one table for accounts and for orders.

use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::diagnosis::foreign::{self, Limit};
use crate::model::Problem;

/// The cause that a problem names, by its type first and by its words second; and how sure that is.
pub(super) fn cause_of(problem: &Problem) -> Option<(CauseId, Grade)> {
    use CauseId as Id;
    if problem.short_kind() == "rateLimited" || problem.status == 429 {
        return Some((limit(problem), Grade::Certain));
    }
    let cause = match problem.short_kind() {
        "invalidContact" | "invalidEmail" | "unsupportedContact" => Id::Acc01,
        "accountDoesNotExist" => Id::Acc03,
        "externalAccountRequired" => Id::Acc07,
        "userActionRequired" | "agreementRequired" => Id::Acc09,
        _ if foreign::is_about_binding(problem) => Id::Acc08,
        "unauthorized" if foreign::says_account_is_over(problem) => Id::Acc04,
        "caa" if foreign::is_caa_again(problem) => Id::Caa09,
        "caa" => Id::Caa01,
        "rejectedIdentifier" => Id::Cfg13,
        "unsupportedIdentifier" => Id::Cfg16,
        "invalidProfile" => Id::Cfg09,
        "orderNotReady" => Id::Ord09,
        "alreadyReplaced" => Id::Ord15,
        "badCSR" => Id::Cfg18,
        "badPublicKey" => Id::Cfg19,
        "badNonce" => Id::Env05,
        _ if problem.status == 404 => Id::Ord06,
        _ if problem.status >= 500 => Id::Lim07,
        _ => return None,
    };
    let is_sure = problem.short_kind() != "caa";
    Some((cause, if is_sure { Grade::Certain } else { Grade::Likely }))
}

/// Which limit it is that was met.
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
