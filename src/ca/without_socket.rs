//! The CA within the calling process: no socket, no TLS, and the caller's own time.

use std::io;
use std::sync::Arc;

use axum::Router;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::base_url::BaseUrl;
use super::behaviour::{Behaviours, RequestedBehaviour};
use super::config::Config;
use super::context::{Ca, Look};
use super::issuance::IssuingAuthority;
use super::orders::order_url;
use super::protocol;
use super::state::Status;
use crate::surroundings::Environment;

/// CA without a socket; its work in the background ends when this value is dropped.
#[derive(Debug)]
pub struct CalledCa {
    ca: Arc<Ca>,
    router: Router,
    _stop: DropGuard,
}

impl CalledCa {
    /// Makes a CA whose URLs begin with `base`.
    ///
    /// # Errors
    /// Fails if keys cannot be made.
    pub fn new(
        (config, base): (Config, &str),
        behaviours: &[RequestedBehaviour],
        look: Arc<dyn Look>,
        surroundings: Environment,
    ) -> io::Result<Self> {
        let authority = IssuingAuthority::new(surroundings.clone()).map_err(io::Error::other)?;
        let stop = CancellationToken::new();
        let around = (stop.clone(), surroundings);
        let ca = Arc::new(Ca::new((config, BaseUrl::new(base)), authority, look, around));
        let router = protocol::router(Arc::clone(&ca), &Arc::new(Behaviours::new(behaviours)));
        Ok(Self { ca, router, _stop: stop.drop_guard() })
    }

    /// Returns the URL of the directory, to which clients are pointed (RFC 8555 §7.1.1).
    pub fn directory_url(&self) -> String {
        self.ca.url("/directory")
    }

    /// Returns the router that answers requests.
    pub fn router(&self) -> Router {
        self.router.clone()
    }

    /// Returns the state of an order in the RFC's word; `None` if the CA does not know the order.
    pub fn order_state(&self, url: &str) -> Option<&'static str> {
        let state = self.ca.state();
        let mut orders = state.orders.iter();
        let found = orders.find(|(id, _)| order_url(&self.ca.base, **id) == url);
        found.map(|(_, order)| state.order_status(order).word())
    }

    /// Deactivates the authorizations of an order, as a CA may at any time.
    pub fn spoil(&self, url: &str) {
        let mut state = self.ca.state();
        let found = state.orders.iter().find(|(id, _)| order_url(&self.ca.base, **id) == url);
        let ids = found.map(|(_, order)| order.authorizations.clone()).unwrap_or_default();
        for id in ids {
            if let Some(authorization) = state.authorizations.get_mut(&id) {
                authorization.status = Status::Deactivated;
            }
        }
    }

    /// Forgets an order.
    pub fn forget_order(&self, url: &str) {
        self.ca.state().orders.retain(|id, _| order_url(&self.ca.base, *id) != url);
    }

    /// Forgets all accounts.
    pub fn forget_accounts(&self) {
        self.ca.state().accounts.clear();
    }
}
