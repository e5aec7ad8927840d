//! Resources that any client gets by plain HTTP on the CA's own port, as at public CAs: a client
//! that checks whether a certificate is revoked cannot begin by trusting a certificate.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use super::base_url::BaseUrl;
use super::config::RevocationSource;
use super::context::Ca;
use super::issuance::{RevocationUrls, RevokedSerial};
use super::ocsp;
use super::reply::{HEALTH, healthy};

/// Answer to a browser that uses plain HTTP on a TLS port.
const WRONG_PROTOCOL: &str = "Client sent an HTTP request to an HTTPS server.\n";
/// Path of the list of revoked certificates.
const LIST_PATH: &str = "/crl";
/// Time for which a list of revoked certificates counts.
const LIST_VALIDITY: Duration = Duration::from_hours(24);

/// Returns the URLs of revocation for a certificate, by the host at which its account reaches the CA.
pub(super) fn urls(ca: &Ca, base: &BaseUrl) -> RevocationUrls {
    let told =
        |by: RevocationSource, url: String| ca.config.revocation.contains(&by).then_some(url);
    let base = base.plain();
    RevocationUrls {
        list: told(RevocationSource::List, base.url(LIST_PATH)),
        responder: told(RevocationSource::Responder, base.url(ocsp::PATH)),
    }
}

/// Returns the routes without TLS.
pub(super) fn router(ca: Arc<Ca>) -> Router {
    Router::new()
        .route(LIST_PATH, get(list))
        .route(ocsp::PATH, post(ocsp::posted))
        .route(ocsp::GET_PATH, get(ocsp::got))
        .route(HEALTH, get(healthy))
        .fallback(wrong_protocol)
        .with_state(ca)
}

async fn wrong_protocol() -> (StatusCode, &'static str) {
    (StatusCode::BAD_REQUEST, WRONG_PROTOCOL)
}

/// Sends the list of all certificates revoked so far (RFC 5280 §5).
async fn list(State(ca): State<Arc<Ca>>, request: Request) -> Response {
    let revoked: Vec<RevokedSerial> = {
        let state = ca.state();
        let revoked = state.certificates.iter().filter_map(|(serial, issued)| {
            let revocation = issued.revoked?;
            let serial = u128::from_str_radix(serial, 16).ok()?;
            Some(RevokedSerial { serial, at: revocation.at, reason: revocation.reason })
        });
        revoked.collect()
    };
    // The URL must equal the URL in the certificate (RFC 5280 §6.3.3).
    let url = ca.base.plain().of(request.uri(), request.headers()).url(LIST_PATH);
    match ca.authority.revocation_list(&revoked, &url, ca.now(), LIST_VALIDITY) {
        Ok(der) => ([(CONTENT_TYPE, "application/pkix-crl")], der).into_response(),
        Err(error) => {
            tracing::error!(%error, "cannot sign the list of revoked certificates");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
