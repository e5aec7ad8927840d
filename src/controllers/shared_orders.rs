//! Orders under way that got one and the same order from their CA.

use std::collections::HashMap;

use parking_lot::Mutex;

use crate::model::{ObjectName, Order, Record, State};

/// Index from every change seen; an Order may have another order by now.
#[derive(Debug, Default)]
pub struct SharedOrders(Mutex<OrderIndex>);

#[derive(Debug, Default)]
struct OrderIndex {
    /// Orders by URL, in the sequence in which they got the order.
    orders: HashMap<String, Vec<ObjectName>>,
    urls: HashMap<ObjectName, String>,
    /// Orders that have not been woken yet for a change of an Order.
    unheard: HashMap<ObjectName, Vec<ObjectName>>,
}

impl SharedOrders {
    /// Records the order that an Order has, `None` once it has ended; returns the others with that order or the last.
    pub fn note(&self, name: &ObjectName, url: Option<&str>) -> Vec<ObjectName> {
        let mut known = self.0.lock();
        let before = match url {
            Some(url) => known.urls.insert(name.clone(), url.to_owned()),
            None => known.urls.remove(name),
        };
        let mut others = known.unheard.remove(name).unwrap_or_default();
        if let Some(before) = before.filter(|before| Some(before.as_str()) != url) {
            let sharing = known.orders.entry(before.clone()).or_default();
            sharing.retain(|other| other != name);
            others.extend(sharing.iter().cloned());
            if sharing.is_empty() {
                known.orders.remove(&before);
            }
        }
        if let Some(url) = url {
            let sharing = known.orders.entry(url.to_owned()).or_default();
            if !sharing.contains(name) {
                sharing.push(name.clone());
            }
            others.extend(sharing.iter().filter(|other| *other != name).cloned());
        }
        others
    }

    /// Records the orders of Orders of which no change has arrived yet.
    pub fn meet(&self, orders: &[Record]) {
        for order in orders {
            if !self.0.lock().urls.contains_key(&order.key.name) {
                self.note(&order.key.name, url_under_way(order));
            }
        }
    }

    /// Records the order that an Order has got, as soon as it is written; the change by that write wakes the others.
    pub fn got(&self, name: &ObjectName, url: &str) {
        let others = self.note(name, Some(url));
        let mut known = self.0.lock();
        known.unheard.entry(name.clone()).or_default().extend(others);
    }

    /// Records that an Order is gone, perhaps before that change arrives: the change wakes the others then.
    pub fn forget(&self, name: &ObjectName) {
        let others = self.note(name, None);
        if !others.is_empty() {
            self.0.lock().unheard.entry(name.clone()).or_default().extend(others);
        }
    }

    /// Returns the other Orders with this order of a CA, in sequence, and whether each got it before this one.
    pub fn with(&self, name: &ObjectName, url: &str) -> Vec<(ObjectName, bool)> {
        let known = self.0.lock();
        let sharing = known.orders.get(url).map_or(&[][..], Vec::as_slice);
        let own = sharing.iter().position(|other| other == name).unwrap_or(sharing.len());
        let others = sharing.iter().enumerate().filter(|(at, _)| *at != own);
        others.map(|(at, other)| (other.clone(), at < own)).collect()
    }
}

/// Returns the URL of the order that an Order has at its CA, until the Order has ended.
pub(super) fn url_under_way(record: &Record) -> Option<&str> {
    let state = State::of_acme(record.text("/status/state"));
    let url = Some(record.text("/status/url")).filter(|url| !url.is_empty());
    url.filter(|_| !state.is_some_and(State::is_final))
}

/// Returns whether an Order has not ended.
pub(super) fn is_under_way(order: &Order) -> bool {
    !order.metadata.is_deleted() && !order.has_ended()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(orders: &[ObjectName]) -> Vec<&str> {
        orders.iter().map(|order| order.name.as_str()).collect()
    }

    #[test]
    fn whoever_waits_for_an_order_that_is_gone_hears_of_it_with_the_change() {
        let shared = SharedOrders::default();
        let [a, b] = ["a", "b"].map(|name| ObjectName::new("web", name));
        shared.note(&a, Some("1"));
        shared.note(&b, Some("1"));
        shared.forget(&a);
        assert_eq!(named(&shared.note(&a, None)), ["b"]);
        assert!(shared.note(&a, None).is_empty(), "once");
    }

    #[test]
    fn what_was_there_before_takes_no_place_of_what_is_known_since() {
        let shared = SharedOrders::default();
        let [a, b] = ["a", "b"].map(|name| ObjectName::new("web", name));
        let there = |name: &ObjectName, url: &str| {
            let object = json!({
                "apiVersion": "acme.cert-manager.io/v1", "kind": "Order",
                "metadata": {"name": name.name, "namespace": name.namespace},
                "status": {"state": "pending", "url": url},
            });
            Record::new(object).unwrap()
        };
        shared.got(&a, "2");
        shared.meet(&[there(&a, "1"), there(&b, "2")]);
        assert_eq!(shared.with(&b, "2"), [(a, true)]);
        assert!(shared.with(&b, "1").is_empty());
    }

    #[test]
    fn whoever_shares_is_told_of_every_change_until_the_end() {
        let shared = SharedOrders::default();
        let [a, b] = ["a", "b"].map(|name| ObjectName::new("web", name));
        for (order, url, told) in [
            (&a, Some("1"), &[][..]),
            (&b, Some("1"), &["a"]),
            (&a, Some("1"), &["b"]),
            (&a, Some("2"), &["b"]),
            (&a, Some("1"), &["b"]),
            (&b, None, &["a"]),
        ] {
            assert_eq!(named(&shared.note(order, url)), told, "{order} {url:?}");
        }
        assert_eq!(shared.with(&b, "1"), [(a.clone(), true)]);
        assert_eq!(shared.with(&a, "1"), []);
        shared.forget(&a);
        assert!(shared.0.lock().orders.is_empty());
    }

    #[test]
    fn whoever_waits_for_an_order_that_another_has_left_hears_of_it_with_the_next_change() {
        let shared = SharedOrders::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| ObjectName::new("web", name));
        for (order, url) in [(&a, "1"), (&b, "1"), (&c, "2")] {
            shared.note(order, Some(url));
        }
        // It has asked anew before the change that it forgot the old one was heard.
        shared.got(&a, "2");
        assert_eq!(shared.with(&b, "1"), []);
        let told = shared.note(&a, Some("2"));
        assert!(told.contains(&b) && told.contains(&c), "{told:?}");
        assert_eq!(named(&shared.note(&a, Some("2"))), ["c"]);
    }

    #[test]
    fn whoever_got_an_order_first_stays_first() {
        let shared = SharedOrders::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| ObjectName::new("web", name));
        for order in [&c, &a, &b, &c] {
            shared.note(order, Some("1"));
        }
        assert_eq!(shared.with(&a, "1"), [(c.clone(), true), (b.clone(), false)]);
        assert_eq!(shared.with(&c, "1"), [(a, false), (b, false)]);
    }
}
