//! Resources that any client gets by plain HTTP on the CA's own port, as at public CAs: a client
//! that checks whether a certificate is revoked cannot begin by trusting a certificate.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};

use super::base_url::BaseUrl;
use super::config::RevocationSource;
use super::context::Ca;
use super::issuance::RevocationUrls;
use super::reply::{HEALTH, healthy};
use super::{ocsp, revocation_list};

/// Answer to a browser that uses plain HTTP on a TLS port.
const WRONG_PROTOCOL: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// Returns the URLs of revocation for a certificate, by the host at which its account reaches the CA.
pub(super) fn urls(ca: &Ca, base: &BaseUrl) -> RevocationUrls {
    let told =
        |by: RevocationSource, url: String| ca.config.revocation.contains(&by).then_some(url);
    let base = base.plain();
    RevocationUrls {
        list: told(RevocationSource::List, base.url(revocation_list::PATH)),
        responder: told(RevocationSource::Responder, base.url(ocsp::PATH)),
    }
}

/// Returns the routes without TLS.
pub(super) fn router(ca: Arc<Ca>) -> Router {
    Router::new()
        .route(revocation_list::PATH, get(revocation_list::list))
        .route(ocsp::PATH, post(ocsp::posted))
        .route(ocsp::GET_PATH, get(ocsp::got))
        .route(HEALTH, get(healthy))
        .fallback(wrong_protocol)
        .with_state(ca)
}

async fn wrong_protocol() -> (StatusCode, &'static str) {
    (StatusCode::BAD_REQUEST, WRONG_PROTOCOL)
}
