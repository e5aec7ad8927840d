//! Selection of the Orders that may be begun at their CA, and the precedence of those that wait.
//!
//! An order created long before its challenges can be worked on costs the CA a row and brings nothing sooner. So Orders
//! are begun only as far ahead as challenges can follow: at one directory, while the names still to be proved are fewer
//! than twice the challenges that may be in flight. An Order that has begun is not stopped; the others wait.
//!
//! First come Orders that a person asked for (`certificate renew`, `order retry`, an Order of no Certificate), then
//! Orders without a valid certificate, the oldest first, then renewals, by the end of their certificate. So neither a
//! new Certificate nor a person's wish waits behind thousands of renewals. A renewal that waits until its certificate
//! has ended is older than any Order made later: no Order waits for ever.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::model::cause::OrderWait;
use crate::model::common::condition;
use crate::model::memory::{Holder, Memory};
use crate::model::{CertificateStatus, ObjectName, Order, State, Time};
use crate::reconcile::schedule::Limits;

/// Number of names per slot for which orders are begun: one that runs, and one that follows it.
const NAMES_PER_SLOT: usize = 2;
/// Pause before an Order among the next ones asks again if nothing has woken it; Orders further behind wait longer.
const TURN_RETRY_PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// Precedence of an Order that waits; the least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Precedence {
    urgency: Urgency,
    /// End of the certificate for renewals, otherwise creation of the Order.
    moment: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    /// Order that a person has asked for.
    Requested,
    /// Order without a valid certificate.
    NoCertificate,
    /// Order for a certificate that is still valid.
    Renewal,
}

/// Returns the precedence of an Order, given the status of its Certificate, if it has one.
pub fn precedence(
    order: &Order,
    certificate: Option<&CertificateStatus>,
    now: Timestamp,
) -> Precedence {
    let created_at = order.metadata.creation_timestamp.map(Time::timestamp);
    let Some(status) = certificate else {
        return Precedence { urgency: Urgency::Requested, moment: created_at };
    };
    let issuing = condition(&status.conditions, "Issuing");
    let expires = status.not_after.map(Time::timestamp).filter(|at| *at > now);
    match expires {
        _ if issuing.is_some_and(|issuing| issuing.reason == "ManuallyTriggered") => {
            Precedence { urgency: Urgency::Requested, moment: created_at }
        }
        None => Precedence { urgency: Urgency::NoCertificate, moment: created_at },
        Some(_) => Precedence { urgency: Urgency::Renewal, moment: expires },
    }
}

/// Returns whether an Order has names to prove at its CA. An Order that waits for solvers or stands back takes no slot.
pub fn has_challenges_to_come(order: &Order) -> bool {
    let status = &order.status;
    let memory = Memory::read(Holder::Order, &order.metadata.annotations);
    let takes_no_slot = match memory.wait_of(&status.reason) {
        Some(OrderWait::Solver | OrderWait::ChallengeType | OrderWait::OtherOrder) => true,
        Some(OrderWait::Authority | OrderWait::Turn) | None => false,
    };
    let is_pending = matches!(status.state, None | Some(State::Pending));
    !status.url.is_empty() && is_pending && !takes_no_slot && !order.metadata.is_deleted()
}

/// Returns the reason of an Order that waits; it is written once, so the count is that of the beginning.
pub fn waiting_message(under_way: usize) -> String {
    format!("Waiting for its turn: {under_way} orders are under way")
}

/// Reason that an Order does not begin yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotYet {
    /// Number of orders under way at the directory.
    pub under_way: usize,
    /// Longest wait before the Order asks again.
    pub pause: SignedDuration,
}

/// Orders under way and Orders that wait, by directory.
#[derive(Debug)]
pub struct Turns {
    names_max: usize,
    directories: BTreeMap<String, Line>,
    directory_of: BTreeMap<ObjectName, String>,
}

/// The Orders of one directory.
#[derive(Debug, Default)]
struct Line {
    /// Number of names of each Order under way.
    under_way: BTreeMap<ObjectName, usize>,
    names_under_way: usize,
    waiting: BTreeSet<(Precedence, ObjectName)>,
    /// Precedence and number of names of each Order that waits.
    known: BTreeMap<ObjectName, (Precedence, usize)>,
}

impl Turns {
    /// Builds turns without any Order.
    pub fn new(limits: Limits) -> Self {
        Self {
            names_max: limits.max_in_flight.max(1).saturating_mul(NAMES_PER_SLOT),
            directories: BTreeMap::new(),
            directory_of: BTreeMap::new(),
        }
    }

    /// Begins an Order that has its turn or need not wait for one; returns whether the Order begins.
    pub fn begin_if_free(&mut self, order: &ObjectName, directory: &str, names: usize) -> bool {
        let names_max = self.names_max;
        let line = self.line(order, directory);
        if line.under_way.contains_key(order) {
            return true;
        }
        let is_free = line.names_under_way < names_max;
        if is_free {
            self.begin(order, directory, names);
        }
        is_free
    }

    /// Queues an Order, or begins it if there is room, see [`Self::begin_if_free`]: waiting Orders have been admitted
    /// as soon as they could.
    ///
    /// # Errors
    /// Fails if the Order does not begin yet.
    pub fn ask(
        &mut self,
        order: &ObjectName,
        directory: &str,
        names: usize,
        precedence: Precedence,
    ) -> Result<(), NotYet> {
        if self.begin_if_free(order, directory, names) {
            return Ok(());
        }
        let names_max = self.names_max;
        let line = self.line(order, directory);
        line.leave(order);
        let place = (precedence, order.clone());
        let before = line.waiting.range(..&place).count();
        line.waiting.insert(place);
        line.known.insert(order.clone(), (precedence, names));
        let times = i32::try_from(before / names_max).unwrap_or(i32::MAX).saturating_add(1);
        let pause = TURN_RETRY_PAUSE.saturating_mul(times);
        Err(NotYet { under_way: line.under_way.len(), pause })
    }

    /// Records that an Order is under way.
    pub fn begin(&mut self, order: &ObjectName, directory: &str, names: usize) {
        let line = self.line(order, directory);
        line.leave(order);
        line.under_way.insert(order.clone(), names);
        line.names_under_way += names;
    }

    /// Records that an Order neither is under way nor waits: it has proved its names, has ended, or tries again later.
    pub fn leave(&mut self, order: &ObjectName) {
        if let Some(directory) = self.directory_of.remove(order)
            && let Some(line) = self.directories.get_mut(&directory)
        {
            line.leave(order);
            if line.under_way.is_empty() && line.waiting.is_empty() {
                self.directories.remove(&directory);
            }
        }
    }

    /// Begins waiting Orders as far as there is room, and returns them in the order in which they go.
    pub fn admit(&mut self) -> Vec<ObjectName> {
        let mut next = Vec::new();
        for line in self.directories.values_mut() {
            while line.names_under_way < self.names_max
                && let Some((_, order)) = line.waiting.pop_first()
            {
                let names = line.known.remove(&order).map_or(1, |(_, names)| names);
                line.under_way.insert(order.clone(), names);
                line.names_under_way += names;
                next.push(order);
            }
        }
        next
    }

    /// Returns the line of an Order, after removing the Order from its former line.
    fn line(&mut self, order: &ObjectName, directory: &str) -> &mut Line {
        if self.directory_of.get(order).is_some_and(|before| before != directory) {
            self.leave(order);
        }
        self.directory_of.insert(order.clone(), directory.to_owned());
        self.directories.entry(directory.to_owned()).or_default()
    }
}

impl Line {
    fn leave(&mut self, order: &ObjectName) {
        if let Some(names) = self.under_way.remove(order) {
            self.names_under_way -= names;
        }
        if let Some((precedence, _)) = self.known.remove(order) {
            self.waiting.remove(&(precedence, order.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::cause::About;
    use crate::reconcile::testing::{at, order};

    const CA: &str = "https://ca.example/directory";

    fn named(name: &str) -> ObjectName {
        ObjectName::new("web", name)
    }

    fn made(name: &str, second: i64) -> Order {
        let order = order(name);
        order.change(|order| order.metadata.creation_timestamp = Some(at(second).into())).build()
    }

    fn status(issuing: &str, not_after: Option<i64>) -> CertificateStatus {
        let conditions = json!([{"type": "Issuing", "status": "True", "reason": issuing}]);
        let not_after = not_after.map(|second| Time::new(at(second)));
        serde_json::from_value(json!({"conditions": conditions, "notAfter": not_after})).unwrap()
    }

    /// The names of those that wait, in the order in which they go when one has room at a time.
    fn order_of_turns(waiting: &[(&str, Option<CertificateStatus>)]) -> Vec<String> {
        let mut turns = Turns::new(Limits { max_in_flight: 1 });
        turns.begin(&named("first"), CA, 2);
        for (second, (name, status)) in (0..).zip(waiting) {
            let made = made(name, second);
            let precedence = precedence(&made, status.as_ref(), at(100));
            turns.ask(&named(name), CA, 2, precedence).unwrap_err();
        }
        let mut under_way = named("first");
        let mut went = Vec::new();
        loop {
            turns.leave(&under_way);
            let [next] = &turns.admit()[..] else { return went };
            went.push(next.name.clone());
            under_way = next.clone();
        }
    }

    #[test]
    fn what_a_person_asked_for_goes_first_then_whoever_has_no_certificate_then_what_ends_first() {
        let went = order_of_turns(&[
            ("ends-late", Some(status("Renewing", Some(900)))),
            ("ends-soon", Some(status("Renewing", Some(300)))),
            ("new", Some(status("DoesNotExist", None))),
            ("ended", Some(status("Expired", Some(50)))),
            ("asked-for", Some(status("ManuallyTriggered", Some(900)))),
            ("by-hand", None),
        ]);
        let expected = ["asked-for", "by-hand", "new", "ended", "ends-soon", "ends-late"];
        assert_eq!(went, expected);
    }

    #[test]
    fn of_three_thousand_renewals_a_new_certificate_is_next() {
        let mut turns = Turns::new(Limits { max_in_flight: 60 });
        let renewal = |number: i64| {
            let made = order(&format!("n{number}")).build();
            precedence(&made, Some(&status("Renewing", Some(200 + number))), at(100))
        };
        let ask = |turns: &mut Turns, number: i64| {
            turns.ask(&named(&format!("n{number}")), CA, 1, renewal(number)).err()
        };
        let waiting: Vec<NotYet> = (0..3000).rev().filter_map(|n| ask(&mut turns, n)).collect();
        // As many as there are slots, and as many again.
        assert_eq!((waiting.len(), waiting[0].under_way), (2880, 120));
        let made = order("new").build();
        let new = precedence(&made, Some(&status("DoesNotExist", None)), at(100));
        turns.ask(&named("new"), CA, 1, new).unwrap_err();
        turns.leave(&named("n2999"));
        turns.leave(&named("n2998"));
        assert_eq!(turns.admit(), [named("new"), named("n0")]);
        assert!(turns.admit().is_empty());
    }

    #[test]
    fn a_few_orders_are_not_held_back_and_an_order_of_many_names_is_one_of_them() {
        let mut turns = Turns::new(Limits { max_in_flight: 60 });
        let precedence = precedence(&order("x").build(), None, at(0));
        for (number, names) in [100, 100, 1].into_iter().enumerate() {
            let began = turns.ask(&named(&format!("n{number}")), CA, names, precedence);
            assert_eq!(began.is_ok(), number < 2, "{number}");
            // Whoever has its turn keeps it until it leaves.
            let again = turns.ask(&named(&format!("n{number}")), CA, names, precedence);
            assert_eq!(again.is_ok(), number < 2, "{number}");
        }
        let elsewhere = turns.ask(&named("else"), "https://other.example/directory", 1, precedence);
        assert_eq!(elsewhere, Ok(()));
    }

    #[test]
    fn who_waits_is_never_forgotten_and_asks_again_the_later_the_more_are_before_it() {
        let mut turns = Turns::new(Limits { max_in_flight: 1 });
        let precedence = |second| precedence(&made("x", second), None, at(0));
        turns.begin(&named("a"), CA, 2);
        let pause = |turns: &mut Turns, name: &str, second| {
            turns.ask(&named(name), CA, 1, precedence(second)).unwrap_err().pause.as_secs()
        };
        let pauses = [("b", 1), ("c", 2), ("d", 3), ("b", 1)].map(|(n, s)| pause(&mut turns, n, s));
        assert_eq!(pauses, [30, 30, 60, 30]);
        // One that failed leaves without waking anybody: whoever asks next begins.
        turns.leave(&named("a"));
        assert_eq!(turns.ask(&named("d"), CA, 1, precedence(3)), Ok(()));
        assert_eq!(turns.admit(), [named("b")]);
    }

    #[test]
    fn only_what_has_names_to_prove_takes_a_turn() {
        let pending = |wait: Option<OrderWait>| {
            let mut order = order("x").state(State::Pending).build();
            order.status.url = "https://ca.example/order/1".to_owned();
            order.status.reason = "why".to_owned();
            let waits_for = wait.map(|wait| About::new("why", wait));
            let memory = Memory { waits_for, ..Memory::default() };
            memory.write(Holder::Order, &mut order.metadata.annotations);
            order
        };
        for (wait, expected) in [
            (None, true),
            (Some(OrderWait::Authority), true),
            (Some(OrderWait::Solver), false),
            (Some(OrderWait::OtherOrder), false),
        ] {
            assert_eq!(has_challenges_to_come(&pending(wait)), expected, "{wait:?}");
        }
        for state in [State::Ready, State::Processing, State::Valid, State::Invalid] {
            let mut order = pending(None);
            order.status.state = Some(state);
            assert!(!has_challenges_to_come(&order), "{state}");
        }
        assert!(!has_challenges_to_come(&order("new").build()));
    }
}
