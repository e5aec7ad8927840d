//! What went through a proxy.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

/// What a request is for, told by the paths of Pebble and of our own CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Endpoint {
    /// The directory.
    Directory,
    /// newNonce.
    Nonce,
    /// newAccount.
    NewAccount,
    /// One account.
    Account,
    /// newOrder.
    NewOrder,
    /// Reading an order.
    Order,
    /// Reading an authorization.
    Authorization,
    /// Accepting or reading a challenge.
    Challenge,
    /// finalize.
    Finalize,
    /// Downloading a chain.
    Certificate,
    /// Everything else: revocation, key change, renewal information.
    Other,
}

impl Endpoint {
    /// Tells a request by its path.
    pub fn of(path: &str) -> Self {
        // Ours stand below /acme/, save the directory.
        let path = path.strip_prefix("/acme").unwrap_or(path);
        match path.split('/').nth(1).unwrap_or_default() {
            "dir" | "directory" => Self::Directory,
            "nonce-plz" | "new-nonce" => Self::Nonce,
            "sign-me-up" | "new-account" => Self::NewAccount,
            "my-account" | "account" => Self::Account,
            "order-plz" | "new-order" => Self::NewOrder,
            "my-order" | "order" => Self::Order,
            "authZ" | "authorization" => Self::Authorization,
            "chalZ" | "challenge" => Self::Challenge,
            "finalize-order" | "finalize" => Self::Finalize,
            "certZ" | "certificate" => Self::Certificate,
            _ => Self::Other,
        }
    }
}

/// One request and its answer.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// What it was for.
    pub endpoint: Endpoint,
    /// Method and path.
    pub request: String,
    /// What the client calls itself (`User-Agent`).
    pub agent: String,
    /// Status of the answer that the client got; none when its connection was dropped.
    pub status: Option<u16>,
    /// Whether the CA refused the nonce.
    pub nonce_refused: bool,
    /// Whether a fault was injected.
    pub faulty: bool,
    /// When the request had come in.
    pub started: Instant,
    /// When the answer was there.
    pub finished: Instant,
}

/// Orders that a CA took, by who asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// This program.
    pub ours: usize,
    /// Anybody else. cert-manager asks twice now and then: it decides by a copy that may be behind what it has written.
    pub others: usize,
}

impl Orders {
    /// Counts exchanges.
    pub fn of<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Self {
        let mut orders = Self::default();
        for exchange in exchanges {
            if (exchange.endpoint, exchange.status) != (Endpoint::NewOrder, Some(201)) {
                continue;
            }
            if exchange.agent.starts_with("kubectl-acme/") {
                orders.ours += 1;
            } else {
                orders.others += 1;
            }
        }
        orders
    }

    /// All of them.
    pub fn total(self) -> usize {
        self.ours + self.others
    }
}

/// Requests that were carried out, by what they were for; refused nonces are counted apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// By endpoint, without those whose nonce was refused.
    pub requests: BTreeMap<Endpoint, usize>,
    /// How many were refused for their nonce.
    pub nonces_refused: usize,
}

impl Counts {
    /// Counts exchanges.
    pub fn of<'a>(exchanges: impl IntoIterator<Item = &'a Exchange>) -> Self {
        let mut counts = Self::default();
        for exchange in exchanges {
            if exchange.nonce_refused {
                counts.nonces_refused += 1;
            } else {
                *counts.requests.entry(exchange.endpoint).or_default() += 1;
            }
        }
        counts
    }

    /// How many requests of one kind.
    pub fn at(&self, endpoint: Endpoint) -> usize {
        self.requests.get(&endpoint).copied().unwrap_or_default()
    }

    /// How many requests in all.
    pub fn total(&self) -> usize {
        self.requests.values().sum()
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (endpoint, count) in &self.requests {
            write!(f, "{count} {endpoint:?}, ")?;
        }
        write!(f, "{} in all, {} nonces refused", self.total(), self.nonces_refused)
    }
}
