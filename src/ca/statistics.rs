//! Number of requests to the CA, by resource.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Numbers of requests, refused requests included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Requests by the RFC's word for the resource: `directory`, `newNonce`, `newAccount`,
    /// `account`, `orders`, `newOrder`, `order`, `authorization`, `challenge`, `finalize`,
    /// `certificate`, `keyChange`, `renewalInfo`, `revokeCert`; `other` for the rest.
    pub requests: BTreeMap<&'static str, u64>,
    /// Requests refused with `badNonce`; they are among `requests` too.
    pub refused_nonces: u64,
}

impl Statistics {
    /// Returns the number of all requests.
    pub fn total(&self) -> u64 {
        self.requests.values().sum()
    }

    /// Returns the number of requests of one resource.
    pub fn of(&self, what: &str) -> u64 {
        self.requests.get(what).copied().unwrap_or_default()
    }
}

/// Counters behind the statistics.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<Statistics>);

impl Counters {
    pub(super) fn count_request(&self, path: &str) {
        self.change(|statistics| *statistics.requests.entry(what(path)).or_default() += 1);
    }

    pub(super) fn count_refused_nonce(&self) {
        self.change(|statistics| statistics.refused_nonces += 1);
    }

    pub(super) fn read(&self) -> Statistics {
        self.0.lock().clone()
    }

    fn change(&self, change: impl FnOnce(&mut Statistics)) {
        change(&mut self.0.lock());
    }
}

/// Returns the RFC's word for the resource of a path.
pub(super) fn what(path: &str) -> &'static str {
    let Some(rest) = path.strip_prefix("/acme/") else {
        return if path == "/directory" { "directory" } else { "other" };
    };
    match rest.split('/').next().unwrap_or_default() {
        "account" => "account",
        "authorization" => "authorization",
        "certificate" => "certificate",
        "challenge" => "challenge",
        "finalize" => "finalize",
        "key-change" => "keyChange",
        "new-account" => "newAccount",
        "new-nonce" => "newNonce",
        "new-order" => "newOrder",
        "order" => "order",
        "orders" => "orders",
        "renewal-info" => "renewalInfo",
        "revoke-cert" => "revokeCert",
        _ => "other",
    }
}
