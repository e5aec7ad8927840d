//! Orders that got one and the same order from their CA: Boulder returns the order that an account has under way for
//! the same names. Such an order brings one certificate, for the key of the Order that finalizes it.
//!
//! One Order goes on; the others wait and then request a new order. An order that another Order has finalized is
//! forgotten and requested again.

use crate::model::cause::OrderWait;
use crate::model::memory::{Holder, Memory};
use crate::model::{ObjectName, Order, State};

/// Progress of an Order with a shared order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Progress {
    /// Only the URL is known.
    Created,
    /// Names are being proved.
    Authorizing,
    /// The signing request may be with the CA.
    Finalizing,
}

/// Another Order under way that got the same order from the CA.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharer {
    /// The other Order.
    pub order: Order,
    /// Whether the other Order had the order before ours.
    pub came_first: bool,
}

/// Returns the Order whose turn comes before this one: the furthest, and among equals the Order that had the order
/// first. Two Orders never both have their turn, however their steps interleave: the later one sees which came first.
pub fn ahead<'a>(order: &Order, sharers: &'a [Sharer]) -> Option<&'a Order> {
    let ours = progress(order);
    let furthest = sharers
        .iter()
        .map(|other| (progress(&other.order), other))
        .filter(|(theirs, other)| *theirs > ours || (*theirs == ours && other.came_first))
        .reduce(|first, next| if next.0 > first.0 { next } else { first });
    furthest.map(|(_, other)| &other.order)
}

/// Returns the sentence of an Order that stands back, with the Order that goes first.
pub fn waiting_message(first: &ObjectName) -> String {
    format!(
        "Waiting for order {first}: the CA gave both the same order, which brings one certificate"
    )
}

/// Returns the state of an order that was read; progress by another Order does not count for an Order that stands back.
pub fn own_state(order: &Order, read: Option<State>) -> Option<State> {
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let stands_back = memory.wait_of(&order.status.reason) == Some(OrderWait::OtherOrder);
    match read {
        Some(State::Ready | State::Processing) if stands_back => Some(State::Pending),
        state => state,
    }
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
    use crate::reconcile::testing::order;

    fn sharing(name: &str, has_read: bool) -> Order {
        let new = order(name).state(State::Pending);
        if has_read { new.authorization("www.example.com").build() } else { new.build() }
    }

    fn before(order: &Order) -> Sharer {
        Sharer { order: order.clone(), came_first: true }
    }

    fn after(order: &Order) -> Sharer {
        Sharer { order: order.clone(), came_first: false }
    }

    #[track_caller]
    fn check(order: &Order, sharers: &[Sharer], first: Option<&str>) {
        assert_eq!(ahead(order, sharers).map(|o| o.metadata.name.as_str()), first);
    }

    #[test]
    fn whoever_had_it_first_goes_first_and_the_others_wait_for_it() {
        let (a, b, c) = (sharing("a", false), sharing("b", false), sharing("c", false));
        check(&b, &[after(&c), after(&a)], None);
        check(&c, &[before(&b), after(&a)], Some("b"));
        check(&a, &[before(&b), before(&c)], Some("b"));
    }

    #[test]
    fn whoever_has_begun_is_not_overtaken() {
        let (first, begun) = (sharing("first", false), sharing("begun", true));
        check(&begun, &[before(&first)], None);
        check(&first, &[after(&begun)], Some("begun"));
        let sent = order("sent").state(State::Processing).build();
        check(&begun, &[before(&first), after(&sent)], Some("sent"));
    }
}
