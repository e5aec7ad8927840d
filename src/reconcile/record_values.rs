//! Values that stand side by side at one record: those of a name and of its wildcard (RFC 8555 §8.4).
//!
//! A resolver caches a record for some seconds, whatever the TTL (knot-resolver and CoreDNS: five). A CA that was asked
//! to validate one value would look for the next in that cache. If the provider keeps several values, no challenge is
//! accepted before all are seen. If it may keep one, or no slot is free, the second waits (`lingering`).

use jiff::Timestamp;

use crate::model::memory::{Holder, Memory};
use crate::model::solver::Dns01Solver;
use crate::model::{Challenge, ChallengeType, ObjectName, Order, State, Time};

/// State of the other values of a record, before a challenge is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// All values that can be up are; since when, if there are others.
    Complete(Option<Timestamp>),
    /// The challenge of another value is about to be made.
    Expected,
    /// This challenge has yet to put its value up.
    Lacks(ObjectName),
}

/// Returns whether two challenges may be under way at once although their values belong to one record.
pub fn may_stand_together(one: &Challenge, other: &Challenge) -> bool {
    let order = |of: &Challenge| of.metadata.controller().map(|order| order.uid.clone());
    one.spec.kind == other.spec.kind
        && has_side_by_side_values(one)
        && has_side_by_side_values(other)
        && order(one).is_some_and(|uid| Some(uid) == order(other))
}

/// Returns the other challenges whose values must be at the record of this one before the CA validates: those of its
/// Order that have yet to be accepted, except those that wait for their turn (`is_queued`).
pub fn others<'a>(
    challenge: &Challenge,
    of_order: &'a [Challenge],
    is_queued: impl Fn(&ObjectName) -> bool,
) -> Vec<&'a Challenge> {
    let is_wanted = |other: &&Challenge| {
        let is_over = other.has_ended() || other.metadata.is_deleted();
        shares_record(challenge, other)
            && may_stand_together(challenge, other)
            && !is_over
            && Memory::read(Holder::Challenge, &other.metadata.annotations).accepted_at.is_none()
            && (other.status.processing || !is_queued(&other.name()))
    };
    of_order.iter().filter(is_wanted).collect()
}

/// Returns the state of the values of `others`; the Order shows whether another one is still to come.
pub fn state(
    challenge: &Challenge,
    order: Option<&Order>,
    of_order: &[Challenge],
    others: &[&Challenge],
) -> RecordState {
    if let Some(absent) = others.iter().find(|other| !other.status.presented) {
        return RecordState::Lacks(absent.name());
    }
    if has_side_by_side_values(challenge)
        && wants_another_value(challenge, order)
        && !of_order.iter().any(|other| shares_record(challenge, other))
    {
        return RecordState::Expected;
    }
    let presented_at = others.iter().filter_map(|other| other.status.presented_at);
    RecordState::Complete(presented_at.map(Time::timestamp).max())
}

/// Returns whether an Order asks for another value at the record of a challenge.
pub fn wants_another_value(challenge: &Challenge, order: Option<&Order>) -> bool {
    let spec = &challenge.spec;
    let all = order.map(|order| &order.status.authorizations[..]).unwrap_or_default();
    all.iter().any(|other| {
        other.url != spec.authorization_url
            && other.identifier.eq_ignore_ascii_case(&spec.dns_name)
            && other.initial_state != Some(State::Valid)
    })
}

fn shares_record(challenge: &Challenge, other: &Challenge) -> bool {
    challenge.metadata.uid != other.metadata.uid
        && challenge.spec.kind == other.spec.kind
        && challenge.spec.dns_name.eq_ignore_ascii_case(&other.spec.dns_name)
}

/// Returns whether a challenge is proved by one value among several. A dns-persist-01 record stays and may do for both.
fn has_side_by_side_values(challenge: &Challenge) -> bool {
    let is_of_kind =
        matches!(challenge.spec.kind, ChallengeType::Dns01 | ChallengeType::DnsAccount01);
    let dns01 = challenge.spec.solver.dns01.as_deref();
    is_of_kind && dns01.is_some_and(Dns01Solver::keeps_several_values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::memory::{Holder, Memory};
    use crate::reconcile::testing::{at, challenge, order};

    fn wanted() -> Order {
        let order = order("web").state(State::Pending).authorization("x.example");
        order
            .authorization("x.example")
            .change(|o| {
                let urls = ["authz/apex", "authz/wild"];
                for (one, url) in o.status.authorizations.iter_mut().zip(urls) {
                    url.clone_into(&mut one.url);
                }
            })
            .build()
    }

    /// A challenge of `x.example` in that Order that runs; its value was put up at a moment, if it is.
    fn of(name: &str, presented_at: Option<i64>) -> Challenge {
        let build = challenge("x.example").named(name).dns01().running(true).change(|c| {
            name.clone_into(&mut c.metadata.uid);
            c.metadata.owner_references = vec![wanted().owner_reference()];
            c.spec.authorization_url = format!("authz/{name}");
            c.spec.solver.dns01 = serde_json::from_value(serde_json::json!({
                "rfc2136": {"nameserver": "192.0.2.53"},
            }))
            .unwrap();
            c.status.presented = presented_at.is_some();
            c.status.presented_at = presented_at.map(|second| at(second).into());
        });
        build.build()
    }

    #[track_caller]
    fn check(of_order: &[Challenge], is_queued: bool, expected: &RecordState) {
        let others = others(&of_order[0], of_order, |_| is_queued);
        assert_eq!(state(&of_order[0], Some(&wanted()), of_order, &others), *expected);
    }

    #[test]
    fn both_values_of_a_record_are_waited_for() {
        let (apex, wild) = (of("apex", Some(5)), of("wild", None));
        let lacks = RecordState::Lacks(wild.name());
        check(&[apex.clone(), wild.clone()], false, &lacks);
        check(&[apex.clone(), of("wild", Some(7))], false, &RecordState::Complete(Some(at(7))));
        // Its object is about to be made, or its first write about to be seen.
        check(std::slice::from_ref(&apex), false, &RecordState::Expected);
        let mut starting = wild.clone();
        starting.status.processing = false;
        check(&[apex.clone(), starting.clone()], false, &lacks);
        // No slot is free for it.
        check(&[apex.clone(), starting], true, &RecordState::Complete(None));
        let mut over = wild;
        over.status.state = Some(State::Valid);
        check(&[apex, over], false, &RecordState::Complete(None));
    }

    #[test]
    fn a_value_that_the_ca_was_told_of_is_up() {
        let mut told = of("wild", None);
        let memory = Memory { accepted_at: Some(at(3)), ..Memory::default() };
        memory.write(Holder::Challenge, &mut told.metadata.annotations);
        check(&[of("apex", Some(5)), told], false, &RecordState::Complete(None));
    }

    #[test]
    fn a_provider_that_may_keep_one_value_has_nobody_wait_for_the_other() {
        let one_value = |name: &str| {
            let mut challenge = of(name, None);
            let fields = serde_json::json!({"acmeDNS": {"host": "h", "accountSecretRef": {"name": "s", "key": "k"}}});
            challenge.spec.solver.dns01 = serde_json::from_value(fields).unwrap();
            challenge
        };
        let (apex, wild) = (one_value("apex"), one_value("wild"));
        assert!(!may_stand_together(&apex, &wild));
        check(&[apex.clone(), wild], false, &RecordState::Complete(None));
        check(&[apex], false, &RecordState::Complete(None));
    }
}
