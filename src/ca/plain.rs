//! What anybody gets by plain HTTP on the CA's own port, as CAs have it: whoever asks whether to trust a certificate cannot begin by
//! trusting one.

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

/// What a browser is told that speaks plain HTTP where TLS is spoken.
const WRONG_PROTOCOL: &str = "Client sent an HTTP request to an HTTPS server.\n";

/// Where a certificate says that its revocation is told, by the host at which its account reaches the CA.
pub(super) fn urls(ca: &Ca, base: &BaseUrl) -> RevocationUrls {
    let told =
        |by: RevocationSource, url: String| ca.config.revocation.contains(&by).then_some(url);
    let base = base.plain();
    RevocationUrls {
        list: told(RevocationSource::List, base.url(revocation_list::PATH)),
        responder: told(RevocationSource::Responder, base.url(ocsp::PATH)),
    }
}

/// What is served without TLS.
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
