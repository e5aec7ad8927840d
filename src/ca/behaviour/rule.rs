//! Behaviours of the kit: the name and the value of each, and its rules: the requests at which it shows, the number of
//! times, and the effect.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::http::{Method, response};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value as Json;

use super::super::base_url::BaseUrl;
use super::super::context::Ca;
use super::super::state::Id;
use super::sending::Sending;
use super::wire::ConnectionBehaviour;

/// Every signed request that a client needs for a certificate.
pub(super) const SIGNED_RESOURCES: &[&str] =
    &["newAccount", "newOrder", "order", "authorization", "challenge", "finalize", "certificate"];

/// Parts of a request that behaviours examine.
#[derive(Debug)]
pub(super) struct ObservedRequest {
    /// Requested resource, in the words of the statistics.
    pub(super) what: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    /// Number of earlier requests of this resource.
    pub(super) nth: u64,
    /// Time since the first request of this resource.
    pub(super) since_first: Duration,
    /// Host by which the client has reached the CA.
    pub(super) base: BaseUrl,
    /// Number of such requests within a second, with this one. Resources without a ceiling of their own count together.
    pub(super) in_last_second: u64,
    /// Most signed requests that were under way at once so far, this request included.
    pub(super) most_at_once: u64,
    pub(super) body: Bytes,
}

impl ObservedRequest {
    /// Returns the number in the path.
    pub(super) fn id(&self) -> Option<Id> {
        self.path.split('/').nth(3)?.parse().ok()
    }

    /// Returns whether the request only reads: a GET, a HEAD, or a POST-as-GET (RFC 8555 §6.3).
    pub(super) fn is_read(&self) -> bool {
        self.method != Method::POST || self.member("payload").is_some_and(|text| text.is_empty())
    }

    /// Returns the protected header of the request's signature.
    pub(super) fn header(&self) -> Option<Json> {
        serde_json::from_slice(&self.member("protected")?).ok()
    }

    /// Returns the payload.
    pub(super) fn payload(&self) -> Option<Json> {
        serde_json::from_slice(&self.member("payload")?).ok()
    }

    fn member(&self, name: &str) -> Option<Vec<u8>> {
        let jws: Json = serde_json::from_slice(&self.body).ok()?;
        BASE64_URL_SAFE_NO_PAD.decode(jws[name].as_str()?).ok()
    }
}

/// Input of an effect: the CA, the request, and the value that was given with the behaviour's name.
pub(super) struct RequestScene<'a> {
    pub(super) ca: &'a Arc<Ca>,
    pub(super) asked: &'a ObservedRequest,
    pub(super) value: u64,
}

impl RequestScene<'_> {
    /// Returns the URL of a path, by the host that the client has asked.
    pub(super) fn url(&self, path: &str) -> String {
        self.asked.base.url(path)
    }
}

/// Rule of a behaviour: the requests, a condition, a limit and an effect.
pub(super) struct Trigger {
    /// Resources at which the rule applies, in the words of the statistics.
    at: &'static [&'static str],
    only: fn(&RequestScene<'_>) -> bool,
    limit: Limit,
    pub(super) deed: Effect,
}

/// Number of times that a rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    None,
    Once,
    /// As many times as the value.
    Value,
}

/// Effect of a rule.
pub(super) enum Effect {
    /// Changes the CA's memory before the CA gets the request.
    Arranges(fn(&RequestScene<'_>)),
    /// Answers in the CA's place; the CA does not get the request.
    Answers(fn(&RequestScene<'_>) -> Response),
    /// Never answers; the CA does not get the request.
    IsSilent,
    /// Sends another answer, after the CA has processed the request.
    Replaces(fn(&RequestScene<'_>) -> Response),
    /// Changes status and headers of the answer.
    Heads(fn(&RequestScene<'_>, &mut response::Parts)),
    /// Changes the object of a good answer.
    Edits(fn(&RequestScene<'_>, &mut Json)),
    /// Writes another chain, out of the certificates (DER, leaf first) that the CA would send.
    Chains(fn(&RequestScene<'_>, &[Vec<u8>]) -> String),
    /// Sends the answer in another way.
    Sends(Sending),
    /// Serves all connections in this way.
    Speaks(fn(u64) -> ConnectionBehaviour),
}

impl Trigger {
    /// Applies at every request of these resources.
    pub(super) const fn always(at: &'static [&'static str], deed: Effect) -> Self {
        Self { at, only: |_| true, limit: Limit::None, deed }
    }

    /// Applies at the first request of these resources.
    pub(super) const fn once(at: &'static [&'static str], deed: Effect) -> Self {
        Self { limit: Limit::Once, ..Self::always(at, deed) }
    }

    /// Applies at the first requests of these resources, as many as the value.
    pub(super) const fn times(at: &'static [&'static str], deed: Effect) -> Self {
        Self { limit: Limit::Value, ..Self::always(at, deed) }
    }

    /// Applies only if the condition holds; other requests do not count.
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

/// Rule of a requested behaviour.
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

    /// Returns the scene of this request if the rule applies to the request, and counts the application.
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

/// One deviation of a server or the network, which a client has to survive.
#[derive(Debug)]
pub struct Behaviour {
    /// Row of the behaviour; variants of one deviation share a row.
    pub row: u8,
    /// Name by which the behaviour is requested.
    pub name: &'static str,
    /// Meaning of the value behind the name.
    pub value: Value,
    /// Effect on the server or the network.
    pub does: &'static str,
    /// Right reaction of a client.
    pub reaction: &'static str,
    pub(super) rules: &'static [Trigger],
}

/// Meaning of the value behind a behaviour's name, with the default value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// The behaviour takes no value.
    None,
    /// Number of repetitions.
    Times(u64),
    /// Number of seconds.
    Seconds(u64),
    /// Number of the objects that the behaviour concerns.
    Number(u64),
    /// The HTTP status.
    Status(u64),
}

impl Value {
    /// Returns the value that counts if no value is given; `None` if the behaviour takes no value.
    pub fn default_value(self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Times(value)
            | Self::Seconds(value)
            | Self::Number(value)
            | Self::Status(value) => Some(value),
        }
    }

    /// Returns the word for people.
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Times(_) => "times",
            Self::Seconds(_) => "seconds",
            Self::Number(_) => "number",
            Self::Status(_) => "status",
        }
    }
}
