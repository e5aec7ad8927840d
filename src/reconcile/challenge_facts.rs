//! Small facts about a Challenge and its Order.

use crate::model::challenge::{FINALIZER, LEGACY_FINALIZER};
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

/// cert-manager's sentence for a verified name.
pub(super) fn verified(name: &str, kind: ChallengeType) -> String {
    format!("Domain \"{name}\" verified with \"{kind}\" validation")
}
