//! Paths of the CA (RFC 8555 §7.1), the headers of every answer, and the answers to unsigned requests.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, LINK};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use serde_json::{Value, json};

use super::base_url::BaseUrl;
use super::behaviour::Behaviours;
use super::behaviour::middleware::{self, BehaviourLayer};
use super::context::Ca;
use super::refusal::Refusal;
use super::reply::{HEALTH, REPLAY_NONCE, add, healthy};
use super::{accounts, authorizations, certificates, orders, renewal, revocation, rollover};

const TERMS: &str = "This CA is a rehearsal. Nobody trusts its certificates, and nobody should.\n";

/// Returns all routes, with the layers around the handlers.
pub(super) fn router(ca: Arc<Ca>, behaviours: &Arc<Behaviours>) -> Router {
    let routes = Router::new()
        .route("/", get(terms))
        .route("/terms", get(terms))
        .route("/directory", get(directory))
        .route(HEALTH, get(healthy))
        .route("/acme/new-nonce", get(new_nonce))
        .route("/acme/new-account", post(accounts::new_account))
        .route("/acme/account/{id}", post(accounts::account))
        .route("/acme/orders/{id}", post(accounts::orders))
        .route("/acme/key-change", post(rollover::key_change))
        .route("/acme/new-order", post(orders::new_order))
        .route("/acme/order/{id}", post(orders::order))
        .route("/acme/finalize/{id}", post(certificates::finalize))
        .route("/acme/certificate/{serial}", post(certificates::certificate))
        .route("/acme/certificate/{serial}/{chain}", post(certificates::certificate_chain))
        .route("/acme/authorization/{id}", post(authorizations::authorization))
        .route("/acme/challenge/{id}/{method}", post(authorizations::challenge))
        .route("/acme/revoke-cert", post(revocation::revoke))
        .route("/acme/renewal-info/{id}", get(renewal::renewal_info))
        .fallback(no_such_page)
        .method_not_allowed_fallback(method_not_allowed);
    let stage = BehaviourLayer { ca: Arc::clone(&ca), behaviours: Arc::clone(behaviours) };
    let routes =
        middleware::inside(routes, &stage).layer(from_fn_with_state(Arc::clone(&ca), accompany));
    middleware::outside(routes, &stage).with_state(ca)
}

/// Counts the request, and adds the headers of all answers: a fresh nonce for a POST, the directory's link, no caching.
async fn accompany(State(ca): State<Arc<Ca>>, request: Request, next: Next) -> Response {
    let path = request.uri().path();
    ca.counters.count_request(path);
    let base = ca.base.of(request.uri(), request.headers());
    let is_directory = path == "/directory";
    let asks_nonce = path == "/acme/new-nonce";
    let wants_nonce = request.method() == Method::POST || asks_nonce;
    // A nonce must not come out of a cache (RFC 8555 §7.2).
    let caching = if asks_nonce { "no-store" } else { "public, max-age=0, no-cache" };
    let mut response = next.run(request).await;
    tracing::debug!(status = response.status().as_u16(), "answered");
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(caching));
    if !is_directory {
        add(headers, LINK, &format!("<{}>;rel=\"index\"", base.url("/directory")));
    }
    if wants_nonce && let Ok(nonce) = ca.nonces.give() {
        add(headers, REPLAY_NONCE, &nonce);
    }
    response
}

async fn directory(State(ca): State<Arc<Ca>>, base: BaseUrl) -> Json<Value> {
    let profiles: BTreeMap<_, _> = ca
        .config
        .profiles
        .iter()
        .map(|profile| (profile.name.as_str(), profile.description.as_str()))
        .collect();
    let identities = ca.config.caa.as_ref().map(|caa| caa.identities.clone()).unwrap_or_default();
    let mut directory = json!({
        "keyChange": base.url("/acme/key-change"),
        "newAccount": base.url("/acme/new-account"),
        "newNonce": base.url("/acme/new-nonce"),
        "newOrder": base.url("/acme/new-order"),
        "renewalInfo": base.url("/acme/renewal-info"),
        "revokeCert": base.url("/acme/revoke-cert"),
        "meta": {
            "caaIdentities": identities,
            "externalAccountRequired": ca.config.external_account_required,
            "profiles": profiles,
            "termsOfService": base.url("/terms"),
            "website": base.url("/"),
        },
    });
    if let Some(places) = directory.as_object_mut() {
        places.retain(|name, _| ca.config.without.iter().all(|endpoint| endpoint.word() != name));
    }
    Json(directory)
}

/// Answers newNonce; [`accompany`] adds the nonce: 200 for HEAD, 204 for GET (§7.2).
async fn new_nonce(method: Method) -> StatusCode {
    if method == Method::HEAD { StatusCode::OK } else { StatusCode::NO_CONTENT }
}

async fn terms() -> &'static str {
    TERMS
}

async fn no_such_page() -> Refusal {
    Refusal::not_found("Page not found")
}

async fn method_not_allowed(request: Request) -> Refusal {
    let path = request.uri().path();
    let readable = matches!(path, "/" | "/terms" | "/directory" | "/acme/new-nonce" | HEALTH)
        || path.starts_with("/acme/renewal-info/");
    Refusal::method_not_allowed(if readable { "GET, HEAD" } else { "POST" })
}
