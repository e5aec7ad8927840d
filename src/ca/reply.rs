//! Answers to signed requests: status, document and headers.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};

/// The header with a fresh nonce (§6.5.1).
pub(crate) const REPLAY_NONCE: HeaderName = HeaderName::from_static("replay-nonce");

/// Adds a header to an answer; values of ours are always such as a header may have.
pub(crate) fn add(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.append(name, value);
    }
}

/// An answer with headers of its own.
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
