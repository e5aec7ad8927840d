//! Order: requests to the CA and sentences for reasons, in cert-manager's words, and the facts behind the present reason.

use std::fmt;

use crate::model::cause::OrderWait;
use crate::model::memory::Memory;
use crate::model::{Order, Problem, State};
use crate::reconcile::without_moment;

/// Returns cert-manager's sentence for an order without a fitting solver.
pub(super) fn solver_message(why: &str) -> String {
    format!(
        "Failed to determine a valid solver configuration for the set of domains on the Order: {why}"
    )
}

/// Returns cert-manager's sentence for a name that the CA has not found proved.
pub(super) fn unproven(name: &str, problem: &Problem) -> String {
    format!("acme: authorization error for {name}: {problem}")
}

/// Returns why the CA has failed an order: the problem of each name that has one, the order's own under an empty name.
pub(super) fn why_failed(state: State, problems: &[(String, Problem)]) -> String {
    if problems.is_empty() {
        return format!("the order is {state}, and the CA gives no reason");
    }
    let sentence = |(name, problem): &(String, Problem)| match name.as_str() {
        "" => problem.to_string(),
        name => unproven(name, problem),
    };
    problems.iter().map(sentence).collect::<Vec<_>>().join("; ")
}

/// Returns the sentence for a lost authorization.
pub(super) fn lost(name: &str, word: &str) -> String {
    format!(
        "the authorization of {name} is {word}: the CA has dropped it, and only a new order brings another one"
    )
}

/// Returns the reason and the CA's problem, if the last request got no usable reply.
pub(super) fn unanswered(order: &Order, memory: &Memory) -> Option<(String, Problem)> {
    let reason = &order.status.reason;
    let problem = memory.problem.as_ref()?.of(reason)?;
    let is_unanswered = memory.wait_of(reason) == Some(OrderWait::Authority);
    let why = without_moment(reason, memory.next_try);
    is_unanswered.then(|| (why.to_owned(), problem.clone()))
}

/// A request to the CA about an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderRequest {
    /// newOrder (RFC 8555 §7.4).
    Create,
    /// Reading of the order.
    Fetch,
    /// Reading of the order's authorizations (RFC 8555 §7.5).
    FetchAuthorizations,
    /// Submission of the signing request.
    Finalize,
    /// Download of the chain (RFC 8555 §7.4.2).
    Download,
}

impl fmt::Display for OrderRequest {
    /// Writes the request in cert-manager's words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Create => "create Order",
            Self::Fetch => "retrieve Order resource",
            Self::FetchAuthorizations => "fetch authorization",
            Self::Finalize => "finalize Order",
            Self::Download => "retrieve signed certificate",
        })
    }
}
