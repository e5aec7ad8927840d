//! The list of revoked certificates (RFC 5280 §5). Anybody gets it by plain HTTP on the CA's own port, as CAs have it: whoever
//! asks whether to trust a certificate cannot begin by trusting one.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::context::Ca;
use super::issuance::RevokedSerial;

/// Where the list lies.
const PATH: &str = "/crl";
/// How long a list counts.
const GOOD_FOR: Duration = Duration::from_hours(24);
/// What a browser is told that speaks plain HTTP where TLS is spoken.
const WRONG_PROTOCOL: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// The URL of the list, by the URL of the CA.
pub(super) fn url(base: &str) -> String {
    format!("{}{PATH}", base.replacen("https://", "http://", 1))
}

/// What is served without TLS.
pub(super) fn router(ca: Arc<Ca>) -> Router {
    Router::new().route(PATH, get(list)).fallback(wrong_protocol).with_state(ca)
}

/// Gives the list of all certificates that were revoked so far.
async fn list(State(ca): State<Arc<Ca>>) -> Response {
    let revoked: Vec<RevokedSerial> = {
        let state = ca.state();
        let revoked = state.certificates.iter().filter_map(|(serial, issued)| {
            let revocation = issued.revoked?;
            let serial = u128::from_str_radix(serial, 16).ok()?;
            Some(RevokedSerial { serial, at: revocation.at, reason: revocation.reason })
        });
        revoked.collect()
    };
    match ca.authority.revocation_list(&revoked, &url(&ca.base), ca.now(), GOOD_FOR) {
        Ok(der) => ([(CONTENT_TYPE, "application/pkix-crl")], der).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot sign the list of revoked certificates");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

async fn wrong_protocol() -> (StatusCode, &'static str) {
    (StatusCode::BAD_REQUEST, WRONG_PROTOCOL)
}
