//! Interface for tests beside ACME, by plain HTTP on a listener of its own: the roots, the status of a
//! certificate, its revocation or another renewal window, and records for the CA's own lookups.
//!
//! Paths and members are the same as in Pebble's management and in its test server for challenges, if Pebble
//! has them, so that scripts go on working. There is no password: the listener belongs on loopback.

mod body;
mod certificates;
mod dns;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::context::Ca;
use super::reply::{HEALTH, healthy};
use crate::serve::{self, ConnectionSlots, ConnectionTimeouts};

/// Serves until `stop` is cancelled; returns at once if there is no listener.
pub(super) async fn serve(listener: Option<TcpListener>, ca: Arc<Ca>, stop: CancellationToken) {
    let Some(listener) = listener else { return };
    let (router, stopped) = (router(ca), stop.clone());
    let served = move |stream| {
        serve::http(stream, router.clone(), ConnectionTimeouts::KEEP_ALIVE, stopped.clone())
    };
    serve::accept_all(listener, ConnectionSlots::default(), stop, served).await;
}

fn router(ca: Arc<Ca>) -> Router {
    let certificates = Router::new()
        .route("/roots/{number}", get(certificates::root))
        .route("/intermediates/{number}", get(certificates::intermediate))
        .route("/cert-status-by-serial/{serial}", get(certificates::status))
        .route("/set-renewal-info", post(certificates::set_renewal_info))
        .route("/set-renewal-info/", post(certificates::set_renewal_info))
        .route("/revoke-by-serial", post(certificates::revoke));
    let records = dns::CHANGES
        .iter()
        .fold(Router::new(), |router, (path, _)| router.route(path, post(dns::change)));
    let router = Router::new().route(HEALTH, get(healthy)).merge(certificates).merge(records);
    router.with_state(ca)
}
