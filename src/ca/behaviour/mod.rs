//! Behaviours: named deviations that an ACME client has to survive. Without a requested behaviour the CA is a good one.
//!
//! The beginning of a kit for clients. A behaviour is a few rules ([`rule`]); a rule works at one of the layers around the
//! CA ([`middleware`], [`wire`]), so that the CA's own code knows nothing of behaviours. The tables of the kit are in
//! [`mod@kit`], by subject; the numbers of their rows come from the list of 56 things that a server or the network may do.

mod kit;
pub(super) mod middleware;
mod rule;
mod sending;
pub(super) mod wire;

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::http::request::Parts;
use parking_lot::Mutex;

use self::rule::{Active, Effect, ObservedRequest};
pub use self::rule::{Behaviour, Value};
use super::base_url::BaseUrl;
use super::statistics;

/// Requested behaviour, with its value.
#[derive(Clone, Copy, Debug)]
pub struct RequestedBehaviour {
    behaviour: &'static Behaviour,
    value: u64,
}

/// Error of a behaviour that cannot be requested.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BehaviourError {
    /// No behaviour has this name.
    #[error("no behaviour is called {0:?}")]
    Name(String),
    /// The behaviour takes no value.
    #[error("{name} takes no value, not {given:?}")]
    NoValue {
        /// The behaviour.
        name: &'static str,
        /// Value that was given.
        given: String,
    },
    /// The value is no number.
    #[error("{name} takes a number ({takes}), not {given:?}")]
    Value {
        /// The behaviour.
        name: &'static str,
        /// Meaning of the behaviour's value.
        takes: &'static str,
        /// Value that was given.
        given: String,
    },
}

impl RequestedBehaviour {
    /// Reads `NAME` or `NAME=VALUE`.
    ///
    /// # Errors
    /// Fails when no behaviour has that name, or the behaviour does not take such a value.
    pub fn parse(text: &str) -> Result<Self, BehaviourError> {
        let (name, given) = match text.split_once('=') {
            Some((name, given)) => (name, Some(given)),
            None => (text, None),
        };
        let behaviour = kit().find(|behaviour| behaviour.name == name);
        let behaviour = behaviour.ok_or_else(|| BehaviourError::Name(name.to_owned()))?;
        let value = match (behaviour.value.default_value(), given) {
            (default, None) => default.unwrap_or_default(),
            (None, Some(given)) => {
                return Err(BehaviourError::NoValue {
                    name: behaviour.name,
                    given: given.to_owned(),
                });
            }
            (Some(_), Some(given)) => given.parse().map_err(|_| BehaviourError::Value {
                name: behaviour.name,
                takes: behaviour.value.word(),
                given: given.to_owned(),
            })?,
        };
        Ok(Self { behaviour, value })
    }
}

/// Returns all behaviours, by their rows.
pub fn kit() -> impl Iterator<Item = &'static Behaviour> {
    kit::ALL.iter().copied().flatten()
}

/// Behaviours of a running CA.
#[derive(Debug, Default)]
pub(super) struct Behaviours {
    active: Vec<Active>,
    seen: Mutex<BTreeMap<&'static str, (Instant, u64)>>,
    /// Times of the requests of the last second, by resource with a ceiling of its own.
    recent: Mutex<BTreeMap<&'static str, VecDeque<Instant>>>,
    at_once: Mutex<AtOnce>,
}

/// Number of signed requests under way, now and at most.
#[derive(Debug, Default)]
struct AtOnce {
    now: u64,
    most: u64,
}

/// One signed request, under way until this guard is dropped.
#[derive(Debug)]
pub(super) struct UnderWay<'a>(&'a Behaviours);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.at_once.lock().now -= 1;
    }
}

impl Behaviours {
    /// Sets up the requested behaviours.
    pub(super) fn new(wanted: &[RequestedBehaviour]) -> Self {
        let active = wanted.iter().flat_map(|RequestedBehaviour { behaviour, value }| {
            behaviour.rules.iter().map(|rule| Active::new(rule, *value))
        });
        Self { active: active.collect(), ..Self::default() }
    }

    /// Returns the way in which connections are served.
    pub(super) fn wire(&self) -> wire::ConnectionBehaviour {
        let wires = self.active.iter().filter_map(|active| match active.rule.deed {
            Effect::Speaks(wire) => Some(wire(active.value)),
            _ => None,
        });
        // With HTTP/2 an incomplete answer ends only a stream, which is a behaviour of its own.
        let cuts = |active: &Active| matches!(active.rule.deed, Effect::Sends(_));
        let usual = || {
            if self.active.iter().any(cuts) {
                return wire::ConnectionBehaviour::Http1;
            }
            wire::ConnectionBehaviour::default()
        };
        wires.last().unwrap_or_else(usual)
    }

    /// Counts a request as under way if the request is signed.
    fn begin(&self, path: &str) -> Option<UnderWay<'_>> {
        if matches!(statistics::what(path), "directory" | "newNonce" | "renewalInfo" | "other") {
            return None;
        }
        let mut at_once = self.at_once.lock();
        at_once.now += 1;
        at_once.most = at_once.most.max(at_once.now);
        Some(UnderWay(self))
    }

    /// Counts a request among the requests of the last second.
    fn in_last_second(&self, what: &'static str, now: Instant) -> u64 {
        let own = ["directory", "newNonce", "newAccount", "newOrder", "revokeCert", "renewalInfo"];
        let sort = if own.contains(&what) { what } else { "other" };
        let mut recent = self.recent.lock();
        let recent = recent.entry(sort).or_default();
        while recent.front().is_some_and(|at| now - *at > Duration::from_secs(1)) {
            recent.pop_front();
        }
        recent.push_back(now);
        recent.len().try_into().unwrap_or(u64::MAX)
    }

    /// Records a request.
    fn note(&self, base: &BaseUrl, head: &Parts, body: Bytes) -> ObservedRequest {
        let (what, now) = (statistics::what(head.uri.path()), Instant::now());
        let mut seen = self.seen.lock();
        let (first, count) = seen.entry(what).or_insert((now, 0));
        let (since_first, nth) = (now.duration_since(*first), *count);
        *count += 1;
        ObservedRequest {
            what,
            method: head.method.clone(),
            path: head.uri.path().to_owned(),
            nth,
            since_first,
            base: base.of(&head.uri, &head.headers),
            in_last_second: self.in_last_second(what, now),
            most_at_once: self.at_once.lock().most,
            body,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_that_is_a_cas_has_a_behaviour() {
        let rows: BTreeSet<u8> = kit().map(|behaviour| behaviour.row).collect();
        // Behaviours of web servers and name servers are not part of this list.
        let expected: BTreeSet<u8> = (1..=56).filter(|row| ![53, 54].contains(row)).collect();
        assert_eq!(rows, expected);
        assert!(kit().is_sorted_by_key(|behaviour| behaviour.row));
    }

    #[test]
    fn names_are_plain_and_each_is_there_once() {
        let names: BTreeSet<_> = kit().map(|behaviour| behaviour.name).collect();
        assert_eq!(names.len(), kit().count());
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(names.iter().all(|name| name.chars().all(plain)), "{names:?}");
    }

    #[test]
    fn a_value_is_a_number_where_there_is_one_to_give() {
        let check = |text: &str, expected: Result<u64, &str>| {
            let parsed = RequestedBehaviour::parse(text).map(|wanted| wanted.value);
            assert_eq!(parsed.map_err(|why| why.to_string()), expected.map_err(str::to_owned));
        };
        check("bad-nonce-once", Ok(1));
        check("bad-nonce-once=3", Ok(3));
        check("new-order-429", Ok(1));
        check("empty-token", Ok(0));
        check("nothing-of-ours", Err("no behaviour is called \"nothing-of-ours\""));
        check("bad-nonce-once=few", Err("bad-nonce-once takes a number (times), not \"few\""));
        check("empty-token=1", Err("empty-token takes no value, not \"1\""));
    }
}
