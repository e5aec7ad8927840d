//! Orders that got one and the same order from their CA: Boulder gives an account the order back that it has under way for
//! the same names. It brings one certificate, for the key of whoever finalizes it.

use std::cmp::Reverse;

use jiff::Timestamp;

use crate::model::memory::{Holder, Memory};
use crate::model::{ObjectName, Order, State, Time};

/// How the reason of an Order begins that stands back.
const WAITING: &str = "Waiting for order ";

/// How far an Order has got with what it shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// It has nothing but the URL.
    Created,
    /// It proves its names.
    Authorizing,
    /// Its signing request may be with the CA.
    Finalizing,
}

/// Returns the Order whose turn it is before this one: the furthest, of these the oldest.
pub fn ahead<'a>(order: &Order, sharers: &'a [Order]) -> Option<&'a Order> {
    let before_us = sharers.iter().filter(|other| rank(other) < rank(order));
    before_us.min_by_key(|other| rank(other))
}

/// Tells whether an Order stands back because of what [`waiting_message`] says.
pub fn stands_back(order: &Order) -> bool {
    order.status.reason.starts_with(WAITING)
}

/// What an Order waits for that stands back.
pub fn waiting_message(first: &ObjectName) -> String {
    format!("{WAITING}{first}: the CA gave both the same order, which brings one certificate")
}

/// The furthest first, of these the oldest.
fn rank(order: &Order) -> (Reverse<Progress>, Option<Timestamp>, ObjectName) {
    let created = order.metadata.creation_timestamp.map(Time::timestamp);
    (Reverse(progress(order)), created, order.name())
}

fn progress(order: &Order) -> Progress {
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let was_sent = matches!(order.status.state, Some(State::Processing | State::Valid));
    if memory.finalized_at.is_some() || was_sent {
        return Progress::Finalizing;
    }
    let has_read = order.status.authorizations.iter().any(|a| !a.identifier.is_empty());
    if has_read { Progress::Authorizing } else { Progress::Created }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::{at, order};

    fn aged(name: &str, second: i64, has_read: bool) -> Order {
        let new = order(name).state(State::Pending);
        let new = if has_read { new.authorization("www.example.com") } else { new };
        new.change(|o| o.metadata.creation_timestamp = Some(at(second).into())).build()
    }

    #[track_caller]
    fn check(order: &Order, sharers: &[Order], first: Option<&str>) {
        assert_eq!(ahead(order, sharers).map(|o| o.metadata.name.as_str()), first);
    }

    #[test]
    fn the_oldest_goes_first_and_the_others_wait_for_it() {
        let (a, b, c) = (aged("a", 2, false), aged("b", 1, false), aged("c", 2, false));
        check(&b, &[a.clone(), c.clone()], None);
        check(&a, &[b.clone(), c.clone()], Some("b"));
        check(&c, &[a, b], Some("b"));
    }

    #[test]
    fn whoever_has_begun_is_not_overtaken() {
        let (old, young) = (aged("old", 1, false), aged("young", 2, true));
        check(&young, std::slice::from_ref(&old), None);
        check(&old, std::slice::from_ref(&young), Some("young"));
        let sent = order("last").state(State::Processing).build();
        check(&young, &[old, sent], Some("last"));
    }
}
