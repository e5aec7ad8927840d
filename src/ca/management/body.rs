//! Bodies of requests: JSON objects, whatever their content type.

use axum::http::StatusCode;
use serde_json::Value;

/// Refusal of a request, with the reason for people.
pub(super) type BadRequest = (StatusCode, String);

/// Refuses an invalid request.
pub(super) fn bad_request(why: &str) -> BadRequest {
    (StatusCode::BAD_REQUEST, format!("{why}\n"))
}

/// Reads the body of a request. The content type does not count: `curl -d` sends a wrong one.
pub(super) fn object(body: &[u8]) -> Result<Value, BadRequest> {
    let value: Value = serde_json::from_slice(body).map_err(|why| bad_request(&why.to_string()))?;
    if value.is_object() { Ok(value) } else { Err(bad_request("the body is no JSON object")) }
}

/// Returns a member of an object, whatever its letters' case, as Go reads members.
pub(super) fn member<'a>(object: &'a Value, name: &str) -> Option<&'a Value> {
    let mut members = object.as_object()?.iter();
    members.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

/// Returns a member that has to be a text.
pub(super) fn text<'a>(object: &'a Value, name: &str) -> Result<&'a str, BadRequest> {
    let text = member(object, name).and_then(Value::as_str);
    text.ok_or_else(|| bad_request(&format!("\"{name}\" is missing, or no text")))
}
