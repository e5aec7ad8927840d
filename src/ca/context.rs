//! State that the handlers of requests share.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::base_url::BaseUrl;
use super::chance::Chance;
use super::config::{Config, Profile};
use super::issuance::IssuingAuthority;
use super::look::Look;
use super::nonces::Nonces;
use super::state::State;
use super::statistics::Counters;
use crate::surroundings::Surroundings;

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
    pub(super) surroundings: Surroundings,
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
        (stop, surroundings): (CancellationToken, Surroundings),
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
