//! State that the handlers of requests share, and the CA's view of the network: requests to web servers, lookups in DNS.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use async_trait::async_trait;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::base_url::BaseUrl;
use super::chance::Chance;
use super::config::{Config, Profile};
use super::issuance::IssuingAuthority;
use super::nonces::Nonces;
use super::state::State;
use super::statistics::Counters;
use crate::dns::LookupError;
use crate::fetch::Fetcher;
use crate::fetch::alpn::HandshakeOutcome;
use crate::fetch::outcome::{FetchError, Fetched};
use crate::model::Identifier;
use crate::model::caa::CaaRecordSet;
use crate::surroundings::Environment;

/// State that the request handlers share.
#[derive(Debug)]
pub(super) struct Ca {
    pub(super) config: Config,
    /// Base of URLs for people, and for requests that name no host.
    pub(super) base: BaseUrl,
    pub(super) chance: Chance,
    pub(super) authority: IssuingAuthority,
    pub(super) nonces: Nonces,
    pub(super) state: Mutex<State>,
    pub(super) counters: Counters,
    /// Number of times that a client was asked to wait (Retry-After).
    pub(super) waits: AtomicU64,
    pub(super) look: Arc<dyn Look>,
    pub(super) stop: CancellationToken,
    pub(super) surroundings: Environment,
}

impl FromRequestParts<Arc<Ca>> for BaseUrl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, ca: &Arc<Ca>) -> Result<Self, Infallible> {
        Ok(ca.base.of(&parts.uri, &parts.headers))
    }
}

impl Ca {
    /// Makes a CA with an empty memory.
    pub(super) fn new(
        (config, base): (Config, BaseUrl),
        authority: IssuingAuthority,
        look: Arc<dyn Look>,
        (stop, surroundings): (CancellationToken, Environment),
    ) -> Self {
        Self {
            nonces: Nonces::new(config.refuse_nonces_percent, surroundings.clone()),
            state: Mutex::default(),
            counters: Counters::default(),
            waits: AtomicU64::new(0),
            chance: Chance::new(config.seed),
            config,
            base,
            authority,
            look,
            stop,
            surroundings,
        }
    }

    /// Returns the URL of a path for people. URLs for a client have the host that the client has asked.
    pub(super) fn url(&self, path: &str) -> String {
        self.base.url(path)
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Timestamp {
        self.surroundings.now()
    }

    /// Locks the CA's memory; the lock must not be held across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Returns the profile of that name, or the default profile.
    pub(super) fn profile(&self, name: Option<&str>) -> Option<&Profile> {
        match name {
            Some(name) => self.config.profiles.iter().find(|profile| profile.name == name),
            None => self.config.profiles.first(),
        }
    }

    /// Runs a future in the background until it is done or the server stops.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }
}

/// Source of the CA's validation requests to web servers and of its DNS lookups.
#[async_trait]
pub trait Look: fmt::Debug + Send + Sync {
    /// Requests one URL, following redirects as far as a public CA does; reads no more than 128 bytes.
    async fn get(&self, url: &Url) -> Fetched;

    /// Opens a TLS connection to a host by `acme-tls/1`. The default, for sources of web pages alone, fails.
    async fn greet(&self, identifier: &Identifier) -> HandshakeOutcome {
        let why = format!("nobody greets {identifier} here");
        HandshakeOutcome { address: None, result: Err(FetchError::Connect { why, symptom: None }) }
    }

    /// Looks up the texts at a name. The default, for sources of web pages alone, finds none.
    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        Err(LookupError::NoSuchName { name: name.to_owned() })
    }

    /// Looks up the CAA records at a name. The default, for sources of web pages alone, finds none.
    async fn caa(&self, _name: &str) -> Result<CaaRecordSet, LookupError> {
        Ok(CaaRecordSet::default())
    }
}

#[async_trait]
impl Look for Fetcher {
    async fn get(&self, url: &Url) -> Fetched {
        Self::get(self, url).await
    }

    async fn greet(&self, identifier: &Identifier) -> HandshakeOutcome {
        Self::greet(self, identifier).await
    }

    async fn texts(&self, name: &str) -> Result<Vec<String>, LookupError> {
        self.resolver.texts(name).await
    }

    async fn caa(&self, name: &str) -> Result<CaaRecordSet, LookupError> {
        self.resolver.caa(name).await
    }
}
