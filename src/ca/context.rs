//! What the handlers of requests share.

use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio_util::sync::CancellationToken;

use super::config::{Config, Profile};
use super::issuance::IssuingAuthority;
use super::look::Look;
use super::nonces::Nonces;
use super::state::State;
use super::statistics::Counters;
use crate::surroundings::Surroundings;

/// Everything the request handlers share.
#[derive(Debug)]
pub(super) struct Ca {
    pub(super) config: Config,
    /// Beginning of every URL: scheme, host and port.
    pub(super) base: String,
    pub(super) authority: IssuingAuthority,
    pub(super) nonces: Nonces,
    pub(super) state: Mutex<State>,
    pub(super) counters: Counters,
    pub(super) look: Arc<dyn Look>,
    pub(super) stop: CancellationToken,
    pub(super) surroundings: Surroundings,
}

impl Ca {
    /// A CA that remembers nothing yet; every URL of it begins with `base`.
    pub(super) fn new(
        (config, base): (Config, String),
        authority: IssuingAuthority,
        look: Arc<dyn Look>,
        (stop, surroundings): (CancellationToken, Surroundings),
    ) -> Self {
        Self {
            nonces: Nonces::new(config.refuse_nonces_percent, surroundings.clone()),
            state: Mutex::default(),
            counters: Counters::default(),
            config,
            base,
            authority,
            look,
            stop,
            surroundings,
        }
    }

    /// The URL of a path of ours.
    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// The moment it is.
    pub(super) fn now(&self) -> Timestamp {
        self.surroundings.now()
    }

    /// What the CA remembers; not to be held across an await.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The profile of that name, or the default one.
    pub(super) fn profile(&self, name: Option<&str>) -> Option<&Profile> {
        match name {
            Some(name) => self.config.profiles.iter().find(|profile| profile.name == name),
            None => self.config.profiles.first(),
        }
    }

    /// Runs something in the background until it is done or the server stops.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        tokio::spawn(async move {
            stop.run_until_cancelled(work).await;
        });
    }
}
