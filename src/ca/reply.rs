//! Answers to signed requests: status, document and headers.

use std::sync::atomic::Ordering;

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use jiff::{SignedDuration, Timestamp};

use super::context::Ca;

/// Header with a fresh nonce (§6.5.1).
pub(crate) const REPLAY_NONCE: HeaderName = HeaderName::from_static("replay-nonce");

/// Path at which clients see that the server is there, with TLS and without.
pub(crate) const HEALTH: &str = "/health";

/// Reports that the server is there.
pub(crate) async fn healthy() -> &'static str {
    "ok\n"
}

/// Adds a header to an answer; the CA only passes values that a header may have.
pub(crate) fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.append(name, value);
    }
}

/// Asks a client to wait so many seconds; every other time by a date, if the configuration asks for dates.
pub(crate) fn retry_after_header(ca: &Ca, seconds: u32) -> (HeaderName, String) {
    let count = ca.waits.fetch_add(1, Ordering::Relaxed);
    let text = if ca.config.retry_after_dates && count % 2 == 1 {
        // A date has whole seconds: the next one is never too early.
        let wait = SignedDuration::from_secs(i64::from(seconds) + 1);
        http_date(ca.now().saturating_add(wait).unwrap_or(Timestamp::MAX))
    } else {
        seconds.to_string()
    };
    (RETRY_AFTER, text)
}

/// Returns a moment as HTTP writes it (RFC 9110 §5.6.7).
pub(crate) fn http_date(moment: Timestamp) -> String {
    moment.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Builds an answer with headers of its own.
pub(crate) fn answer(
    body: impl IntoResponse,
    headers: impl IntoIterator<Item = (HeaderName, String)>,
) -> Response {
    let mut response = body.into_response();
    for (name, value) in headers {
        add(response.headers_mut(), name, &value);
    }
    response
}
