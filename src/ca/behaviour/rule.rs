//! Rules: at which requests a behaviour shows, how often, and what it does there.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Method, response};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use super::super::base_url::BaseUrl;
use super::super::context::Ca;
use super::super::state::Id;
use super::sending::Sending;
use super::wire::ConnectionBehaviour;

/// Every signed request that a client needs for a certificate.
pub(super) const SIGNED: &[&str] =
    &["newAccount", "newOrder", "order", "authorization", "challenge", "finalize", "certificate"];

/// One request, as far as behaviours look at it.
#[derive(Debug)]
pub(super) struct ObservedRequest {
    /// What it asks, in the words of the statistics.
    pub(super) what: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    /// How many such requests came before.
    pub(super) nth: u64,
    /// How long ago the first such request came.
    pub(super) since_first: Duration,
    /// The host by which its sender has reached the CA.
    pub(super) base: BaseUrl,
    /// How many such requests came within a second, this one included. What has no ceiling of its own counts together.
    pub(super) in_last_second: u64,
    /// How many signed requests were under way at once at most so far, this one included.
    pub(super) most_at_once: u64,
    pub(super) body: Bytes,
}

impl ObservedRequest {
    /// The number in its path.
    pub(super) fn id(&self) -> Option<Id> {
        self.path.split('/').nth(3)?.parse().ok()
    }

    /// Tells whether it only reads: a GET, a HEAD, or a POST-as-GET (RFC 8555 §6.3).
    pub(super) fn is_read(&self) -> bool {
        self.method != Method::POST || self.member("payload").is_some_and(|text| text.is_empty())
    }

    /// The protected header of its signature.
    pub(super) fn header(&self) -> Option<Value> {
        serde_json::from_slice(&self.member("protected")?).ok()
    }

    /// What it asks for.
    pub(super) fn payload(&self) -> Option<Value> {
        serde_json::from_slice(&self.member("payload")?).ok()
    }

    fn member(&self, name: &str) -> Option<Vec<u8>> {
        let jws: Value = serde_json::from_slice(&self.body).ok()?;
        BASE64_URL_SAFE_NO_PAD.decode(jws[name].as_str()?).ok()
    }
}

/// What a deed has before it: the CA, the request, and the value that was given with the behaviour's name.
pub(super) struct RequestScene<'a> {
    pub(super) ca: &'a Arc<Ca>,
    pub(super) asked: &'a ObservedRequest,
    pub(super) value: u64,
}

impl RequestScene<'_> {
    /// The URL of a path, by the host that the client has asked.
    pub(super) fn url(&self, path: &str) -> String {
        self.asked.base.url(path)
    }
}

/// Where a behaviour shows.
pub(super) struct Trigger {
    /// At requests that ask this, in the words of the statistics.
    at: &'static [&'static str],
    only: fn(&RequestScene<'_>) -> bool,
    limit: Limit,
    pub(super) deed: Effect,
}

/// How often a rule is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    None,
    Once,
    /// As often as the value says.
    Value,
}

/// What is done.
pub(super) enum Effect {
    /// Changes what the CA remembers, before it hears of the request.
    Arranges(fn(&RequestScene<'_>)),
    /// Answers in the CA's place, which does not hear of the request.
    Answers(fn(&RequestScene<'_>) -> Response),
    /// Never answers; the CA does not hear of the request.
    IsSilent,
    /// Gives another answer, after the CA did what it was asked.
    Replaces(fn(&RequestScene<'_>) -> Response),
    /// Changes status and headers of the answer.
    Heads(fn(&RequestScene<'_>, &mut response::Parts)),
    /// Changes the object of a good answer.
    Edits(fn(&RequestScene<'_>, &mut Value)),
    /// Writes another chain, out of the certificates (DER, leaf first) that the CA would send.
    Chains(fn(&RequestScene<'_>, &[Vec<u8>]) -> String),
    /// Sends the answer in another way.
    Sends(Sending),
    /// Speaks with everybody in this way.
    Speaks(fn(u64) -> ConnectionBehaviour),
}

impl Trigger {
    /// Follows whenever this is asked.
    pub(super) const fn always(at: &'static [&'static str], deed: Effect) -> Self {
        Self { at, only: |_| true, limit: Limit::None, deed }
    }

    /// Follows the first time that this is asked.
    pub(super) const fn once(at: &'static [&'static str], deed: Effect) -> Self {
        Self { limit: Limit::Once, ..Self::always(at, deed) }
    }

    /// Follows the first times that this is asked, as many as the value says.
    pub(super) const fn times(at: &'static [&'static str], deed: Effect) -> Self {
        Self { limit: Limit::Value, ..Self::always(at, deed) }
    }

    /// Follows only where this is so; other requests do not count.
    pub(super) const fn only(self, only: fn(&RequestScene<'_>) -> bool) -> Self {
        Self { at: self.at, only, limit: self.limit, deed: self.deed }
    }
}

impl fmt::Debug for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule")
            .field("at", &self.at)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// A rule of a behaviour that was asked for.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) rule: &'static Trigger,
    pub(super) value: u64,
    followed: AtomicU64,
}

impl Active {
    pub(super) fn new(rule: &'static Trigger, value: u64) -> Self {
        Self { rule, value, followed: AtomicU64::new(0) }
    }

    /// What there is to see at this request, if the rule is to be followed there; that counts as once.
    pub(super) fn meets<'a>(
        &self,
        ca: &'a Arc<Ca>,
        asked: &'a ObservedRequest,
    ) -> Option<RequestScene<'a>> {
        let scene = RequestScene { ca, asked, value: self.value };
        if !self.rule.at.contains(&asked.what) || !(self.rule.only)(&scene) {
            return None;
        }
        let most = match self.rule.limit {
            Limit::None => u64::MAX,
            Limit::Once => 1,
            Limit::Value => self.value,
        };
        let more = |followed: u64| (followed < most).then_some(followed + 1);
        let count = self.followed.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        count.is_ok().then_some(scene)
    }
}
