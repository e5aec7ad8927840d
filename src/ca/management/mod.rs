//! What a test asks of the CA beside ACME, by plain HTTP on a listener of its own: the roots, what became of a certificate, an early
//! end or another renewal window for one, and records for the CA's own look-ups.
//!
//! Paths and members are those of Pebble's management and of its test server for challenges where those have them, so that scripts
//! go on working. There is no password: the listener belongs on loopback.

mod certificates;
mod dns;

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::context::Ca;
use super::protocol::{HEALTH, healthy};
use crate::serve::{self, ConnectionSlots, Patience};

/// Why a request is refused, for people.
type Refused = (StatusCode, String);

/// Serves until told to stop; returns at once if there is nothing to listen on.
pub(super) async fn serve(listener: Option<TcpListener>, ca: Arc<Ca>, stop: CancellationToken) {
    let Some(listener) = listener else { return };
    let (router, stopped) = (router(ca), stop.clone());
    let served = move |stream| serve::http(stream, router.clone(), Patience::LONG, stopped.clone());
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

fn bad_request(why: impl ToString) -> Refused {
    (StatusCode::BAD_REQUEST, format!("{}\n", why.to_string()))
}

/// Reads the body of a request. Content types do not count: `curl -d` names a wrong one.
fn object(body: &[u8]) -> Result<Value, Refused> {
    let value: Value = serde_json::from_slice(body).map_err(bad_request)?;
    if value.is_object() { Ok(value) } else { Err(bad_request("the body is no JSON object")) }
}

/// A member of an object, whatever its letters' case, as Go reads it.
fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let mut members = object.as_object()?.iter();
    members.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn text<'a>(object: &'a Value, name: &str) -> Result<&'a str, Refused> {
    let text = member(object, name).and_then(Value::as_str);
    text.ok_or_else(|| bad_request(format!("\"{name}\" is missing, or no text")))
}
