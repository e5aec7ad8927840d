//! Small facts about a Challenge and its Order.

use crate::model::challenge::{FINALIZER, LEGACY_FINALIZER};
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, ChallengeType, Order, State};

pub(super) fn has_failed(order: Option<&Order>) -> bool {
    order.is_none_or(|order| order.status.state.is_some_and(State::is_failure))
}

pub(super) fn has_finalizer(challenge: &Challenge) -> bool {
    challenge.metadata.finalizers.iter().any(|f| f == FINALIZER || f == LEGACY_FINALIZER)
}

pub(super) fn has_only_our_finalizer(challenge: &Challenge) -> bool {
    let finalizers = &challenge.metadata.finalizers;
    finalizers.iter().any(|f| f == FINALIZER) && !finalizers.iter().any(|f| f == LEGACY_FINALIZER)
}

pub(super) fn memory(challenge: &Challenge) -> Memory {
    Memory::read(Holder::Challenge, &challenge.metadata.annotations)
}

/// Returns `Valid` for an accepted Challenge whose order has moved on: the authorization holds; no request is needed.
pub(super) fn settled_by_order(
    challenge: &Challenge,
    memory: &Memory,
    order: Option<&Order>,
) -> Option<State> {
    if challenge.has_ended() || memory.accepted_at.is_none() {
        return None;
    }
    match order?.status.state? {
        State::Ready | State::Processing | State::Valid => Some(State::Valid),
        State::Errored | State::Expired | State::Invalid | State::Pending => None,
    }
}

/// Returns cert-manager's sentence for a verified name.
pub(super) fn verified(name: &str, kind: ChallengeType) -> String {
    format!("Domain \"{name}\" verified with \"{kind}\" validation")
}

/// Returns the state that the authorization had when the Order read it.
pub fn first_state(challenge: &Challenge, order: Option<&Order>) -> Option<State> {
    order?
        .status
        .authorizations
        .iter()
        .find(|a| a.url == challenge.spec.authorization_url)
        .and_then(|a| a.initial_state)
}
