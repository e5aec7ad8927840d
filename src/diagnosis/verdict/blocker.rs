//! Obstacles that hold up a Certificate for now: a pause that the CA wants, a waiting challenge, an unreachable store.

use jiff::Timestamp;

use super::advice;
use super::failure_kind::FailureKind;
use super::next_step::NextStep;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::words::facts;
use crate::model::cause::{Cause, OrderWait};
use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, Key, Kind, Problem, State};
use crate::reconcile::pauses::POLL_PAUSE_MAX;
use crate::solvers::remedy::Remedy;
use crate::store::error::StoreError;

/// Obstacle that may pass.
#[derive(Clone, Debug)]
pub struct Blocker {
    /// Kind of failure if time runs out meanwhile.
    pub kind: FailureKind,
    /// Kind of the object that waits.
    pub of: Kind,
    /// Description of the obstacle, in one line.
    pub what: String,
    /// Time of the next try, if known.
    pub until: Option<Timestamp>,
    /// Whether the CA named `until`, so that no earlier try makes sense.
    pub named_by_ca: bool,
    /// Problem that the CA sent, if the problem is the obstacle.
    pub problem: Option<Box<Problem>>,
    /// Step that helps, if known.
    pub next_step: Option<NextStep>,
}

impl Blocker {
    /// Builds the obstacle of a store that does not answer, which may pass.
    pub fn of_store(key: &Key, error: &StoreError) -> Self {
        Self {
            kind: FailureKind::of_store(error),
            of: key.kind,
            what: format!("{key}: {error}"),
            until: None,
            named_by_ca: false,
            problem: None,
            next_step: Some(NextStep::Store(Box::new(error.clone()))),
        }
    }
}

/// Returns why an Order stands still, and until when if the CA named a time; `None` if the status has no reason.
pub fn of_order(chain: &Chain) -> Option<Blocker> {
    let order = chain.order()?;
    if order.status.reason.is_empty() {
        return None;
    }
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let problem = facts::problem(order);
    let kind = problem.as_ref().map_or(FailureKind::Timeout, FailureKind::of_problem);
    let reason = &order.status.reason;
    let what = format!("{}: {reason}", Key::new(Kind::Order, order.name()));
    let is_told = facts::waits_for(order) == Some(OrderWait::Authority);
    let named_by_ca = is_told && problem.is_some() && memory.next_try.is_some();
    let (of, until) = (Kind::Order, memory.next_try);
    let problem = problem.map(Box::new);
    Some(Blocker { kind, of, what, until, named_by_ca, problem, next_step: None })
}

/// Returns an obstacle if the CA wants the order left alone until after `deadline`; our own pauses do not count.
pub fn beyond(chain: &Chain, deadline: Timestamp) -> Option<Blocker> {
    let order = chain.order()?;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let until = memory.next_try?;
    let state = order.status.state.filter(|state| !state.is_final())?;
    if memory.finalized_at.is_some() && state != State::Processing {
        // The memory is written before the status: the CA's answer to the CSR is yet to come.
        return None;
    }
    let latest = deadline.saturating_add(POLL_PAUSE_MAX).unwrap_or(deadline);
    (until > latest).then(|| Blocker {
        kind: FailureKind::Timeout,
        of: Kind::Order,
        what: format!(
            "{}: {state} at the CA, which asks to wait until {until:.0}",
            Key::new(Kind::Order, order.name())
        ),
        until: Some(until),
        named_by_ca: true,
        problem: None,
        next_step: None,
    })
}

/// Returns the obstacle of the first waiting challenge.
pub fn of_challenges(chain: &Chain) -> Option<Blocker> {
    let challenge =
        chain.challenges.iter().find(|c| !c.has_ended() && !c.status.reason.is_empty())?;
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    let (of, until) = (Kind::Challenge, memory.next_try);
    let what = format!("{}: {}", Key::new(of, challenge.name()), challenge.status.reason);
    let cause = facts::cause(challenge);
    let is_unpresented = challenge.status.processing && !challenge.status.presented;
    if let Some(next_step) = cause.as_ref().and_then(|cause| unpresented(challenge, cause))
        && is_unpresented
    {
        let (kind, next_step) = (FailureKind::Solver, Some(next_step));
        let (named_by_ca, problem) = (false, None);
        return Some(Blocker { kind, of, what, until, named_by_ca, problem, next_step });
    }
    let (kind, refused) = match &cause {
        Some(Cause::Refused(problem)) => (FailureKind::of_problem(problem), Some(problem)),
        Some(Cause::Validation(problem)) => (FailureKind::of_validation(problem), Some(problem)),
        _ => (FailureKind::Timeout, None),
    };
    let named_by_ca = refused.is_some() && until.is_some();
    // A challenge that is held back until a time of its own goes on by itself.
    let is_held_back = until.is_some() && cause.is_none();
    let is_unseen = matches!(kind, FailureKind::Timeout | FailureKind::Validation);
    let next_step =
        (is_unseen && !is_held_back).then(|| advice::for_answer(challenge, chain.in_cluster));
    let problem = refused.cloned();
    Some(Blocker { kind, of, what, until, named_by_ca, problem, next_step })
}

/// Returns the step for an answer that could not even be put up; `None` if something else is at fault.
fn unpresented(challenge: &Challenge, cause: &Cause) -> Option<NextStep> {
    let namespace = challenge.metadata.namespace.clone();
    match cause {
        Cause::NoIngress => {
            let http01 = challenge.spec.solver.http01.as_ref();
            let name = http01.and_then(|http01| http01.ingress.as_ref())?.name.clone();
            Some(NextStep::Solver(Remedy::Ingress { name, namespace }))
        }
        Cause::Denied(guard) => Some(NextStep::PastGuard { guard: *guard, namespace }),
        Cause::Seen(_) | Cause::Refused(_) | Cause::Validation(_) | Cause::Provider(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::diagnosis::verdict::blocker::*;
    use crate::reconcile::testing::at;

    /// A Certificate whose Order is in `state`, finalized or not, and to be left alone for an hour.
    fn chain(state: State, finalized_at: Option<Timestamp>) -> Chain {
        let spec = json!({"secretName": "web-tls", "request": "", "issuerRef": {"name": "ca"}});
        let owner =
            json!({"apiVersion": "v1", "kind": "x", "name": "x", "uid": "r", "controller": true});
        let mut order = json!({
            "metadata": {"name": "web-1-5", "namespace": "a", "ownerReferences": [owner], "annotations": {}},
            "spec": spec, "status": {"state": state},
        });
        let memory = Memory { finalized_at, next_try: Some(at(3600)), ..Memory::default() };
        let mut annotations = std::collections::BTreeMap::new();
        memory.write(Holder::Order, &mut annotations);
        order["metadata"]["annotations"] = json!(annotations);
        let object = |name: &str, uid: &str| json!({"metadata": {"name": name, "namespace": "a", "uid": uid}, "spec": spec});
        Chain {
            certificate: serde_json::from_value(object("web", "c")).unwrap(),
            requests: vec![serde_json::from_value(object("web-1", "r")).unwrap()],
            orders: vec![serde_json::from_value(order).unwrap()],
            challenges: Vec::new(),
            issuer: None,
            in_cluster: false,
        }
    }

    #[test]
    fn patience_beyond_the_deadline_is_told_with_the_state_it_came_with() {
        let told = |chain: &Chain| beyond(chain, at(60)).map(|blocker| blocker.what);
        // An answer to finalize whose state is not written yet.
        assert_eq!(told(&chain(State::Ready, Some(at(0)))), None);
        for (chain, word) in [
            (chain(State::Processing, Some(at(0))), "processing"),
            (chain(State::Ready, None), "ready"),
        ] {
            let what =
                format!("Order a/web-1-5: {word} at the CA, which asks to wait until {}", at(3600));
            assert_eq!(told(&chain), Some(what));
            assert!(beyond(&chain, at(3600)).is_none());
        }
    }
}
