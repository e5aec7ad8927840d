//! Answers, their changes and headers, from which behaviours are built.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::response::Parts;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value as Json, json};

use crate::ca::behaviour::rule::RequestScene;
use crate::ca::reply;

/// Builds a problem document (RFC 8555 §6.7).
pub(crate) fn problem(status: u16, kind: &str, detail: &str) -> Response {
    document(&json!({
        "type": format!("urn:ietf:params:acme:error:{kind}"),
        "detail": detail,
        "status": status,
    }))
}

/// Builds an answer from a problem document; the answer has the document's status.
pub(crate) fn document(document: &Json) -> Response {
    let status = document["status"].as_u64().unwrap_or(500);
    let headers = [(CONTENT_TYPE, "application/problem+json")];
    (status_code(status), headers, document.to_string()).into_response()
}

/// Builds a page such as no ACME server writes.
pub(crate) fn page(status: u64, text: &'static str) -> Response {
    (status_code(status), [(CONTENT_TYPE, "text/html")], text).into_response()
}

/// Builds an answer without a body.
pub(crate) fn empty(status: u64) -> Response {
    (status_code(status), Body::empty()).into_response()
}

fn status_code(status: u64) -> StatusCode {
    let status = u16::try_from(status).ok().and_then(|status| StatusCode::from_u16(status).ok());
    status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// Adds a header to an answer; a text that no header may have is left out.
pub(crate) fn with(mut response: Response, name: HeaderName, value: &str) -> Response {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
    response
}

pub(crate) fn with_retry_after(response: Response, value: &str) -> Response {
    with(response, RETRY_AFTER, value)
}

/// Sets a header; a text that no header may have is left out.
pub(crate) fn set(head: &mut Parts, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        head.headers.insert(name, value);
    }
}

/// Returns the moment so many seconds from now, as HTTP writes it (RFC 9110 §5.6.7).
pub(crate) fn http_date(seconds: i64) -> String {
    let moment = Timestamp::now().saturating_add(SignedDuration::from_secs(seconds));
    reply::http_date(moment.unwrap_or(Timestamp::MAX))
}

/// Returns the moment so many seconds from now in the form of RFC 850, which recipients have to read as well.
pub(crate) fn http_date_of_old(seconds: i64) -> String {
    let moment = Timestamp::now().saturating_add(SignedDuration::from_secs(seconds));
    moment.unwrap_or(Timestamp::MAX).strftime("%A, %d-%b-%y %H:%M:%S GMT").to_string()
}

/// Replaces the status `from` of an object by `to`.
pub(crate) fn restate(object: &mut Json, from: &str, to: &str) {
    if object["status"] == from {
        object["status"] = to.into();
    }
}

/// Answers as a replica that does not know the object yet.
pub(crate) fn unheard_of(_: &RequestScene<'_>) -> Response {
    problem(404, "malformed", "not found")
}

/// Returns whether fewer seconds than the value have passed since the first such request.
pub(crate) fn within_seconds(scene: &RequestScene<'_>) -> bool {
    scene.asked.since_first.as_secs() < scene.value
}
