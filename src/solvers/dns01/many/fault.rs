//! Errors of the library, without credentials and without texts of foreign servers.

use dns_update::Error;
use serde_json::Value;

use crate::model::provider_refusal::{ProviderFault, ProviderRefusal, is_about_address};
use crate::solvers::SolveError;
use crate::solvers::dns01::credential::{Credential, without};
use crate::solvers::dns01::text::one_line;

/// Fields in which APIs describe errors for people.
const MESSAGE_FIELDS: [&str; 12] = [
    "message",
    "Message",
    "error_description",
    "errorMessage",
    "longmessage",
    "statusDescription",
    "detail",
    "description",
    "reason",
    "error",
    "errors",
    "msg",
];

/// Converts an error of the library.
pub(super) fn error<'a>(
    error: Error,
    what: String,
    provider: &str,
    secrets: impl Iterator<Item = &'a Credential>,
) -> SolveError {
    let rights = format!(
        "{provider} takes other credentials, or wants more rights for these: look at its Secret"
    );
    let zone = format!("let the zone be in the account of these credentials at {provider}");
    let (fault, status) = fault(&error);
    let (said, needs_person, hint) = match error {
        Error::Unauthorized => ("it refuses the credentials".to_owned(), true, Some(rights)),
        Error::NotFound => ("it knows no such zone".to_owned(), true, Some(zone)),
        Error::BadRequest => ("it refuses the request".to_owned(), true, None),
        Error::InvalidRegion => ("region is no region".to_owned(), true, None),
        Error::Unsupported(said) | Error::Client(said) => (said, true, None),
        Error::Api(said) => match refusal(&said) {
            Some(403) => (words(&said), true, Some(rights)),
            Some(400 | 422) => (words(&said), true, None),
            _ => (words(&said), false, None),
        },
        Error::Protocol(said)
        | Error::Parse(said)
        | Error::Response(said)
        | Error::Serialize(said) => (words(&said), false, None),
        other => (words(&other.to_string()), false, None),
    };
    let why = one_line(&without(&said, secrets));
    let fault = if is_about_address(&why) { ProviderFault::AddressRefused } else { fault };
    let refusal = ProviderRefusal { status, ..ProviderRefusal::new(fault, &*what, &*why) };
    SolveError::new(what, why, needs_person).with_remedy(hint).refused(refusal)
}

/// Returns the party at fault, and the HTTP status if the library reports a status.
fn fault(error: &Error) -> (ProviderFault, Option<u16>) {
    let status = match error {
        Error::Api(said) => refusal(said),
        _ => None,
    };
    let fault = match (error, status) {
        (Error::Unauthorized, _) | (_, Some(401)) => ProviderFault::Credentials,
        (_, Some(403)) => ProviderFault::Permission,
        (Error::NotFound, _) | (_, Some(404)) => ProviderFault::NoZone,
        (_, Some(408 | 429 | 500..=599)) => ProviderFault::Busy,
        _ => ProviderFault::Other,
    };
    (fault, status)
}

/// Returns the HTTP status in a text of the library: `HTTP 403: {…}`, `BadRequest {…}`.
fn refusal(said: &str) -> Option<u16> {
    if said.starts_with("BadRequest") {
        return Some(400);
    }
    said.split_once("HTTP ")?.1.get(..3)?.parse().ok()
}

/// Returns the words of the library, and of an answer's body only one of the usual fields:
/// otherwise anyone who names a server in an Issuer could read the server's whole answer.
fn words(said: &str) -> String {
    let said = said.split(" (body: ").next().unwrap_or_default();
    let Some(at) = said.find(['{', '[', '<', '\n']) else {
        return without_queries(status_only(said));
    };
    let (head, body) = said.split_at(at);
    let told = serde_json::from_str(body).ok().and_then(|body| find_message(&body));
    let head = without_queries(head.trim().trim_end_matches(':'));
    match told {
        Some(told) => format!("{head}: {told}"),
        None => head,
    }
}

/// Shortens `HTTP 502: Bad Gateway` to the status.
fn status_only(said: &str) -> &str {
    match said.strip_prefix("HTTP ").and_then(|rest| rest.split_once(':')) {
        Some((number, _)) => &said[.."HTTP ".len() + number.len()],
        None if said.starts_with("BadRequest ") => "BadRequest",
        None => said,
    }
}

/// Finds the text for people in a body.
fn find_message(body: &Value) -> Option<String> {
    match body {
        Value::Object(fields) => {
            MESSAGE_FIELDS.iter().find_map(|word| match fields.get(*word)? {
                Value::String(text) if !text.is_empty() => Some(text.clone()),
                below @ (Value::Object(_) | Value::Array(_)) => find_message(below),
                _ => None,
            })
        }
        Value::Array(items) => items.iter().find_map(|item| match item {
            Value::String(text) => Some(text.clone()),
            item => find_message(item),
        }),
        _ => None,
    }
}

/// Removes the queries of URLs: some providers want credentials there.
fn without_queries(text: &str) -> String {
    let word = |word: &str| match word.split_once('?') {
        Some((start, _)) if start.contains("://") => format!("{start}?…"),
        _ => word.to_owned(),
    };
    text.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(given: Error, expected: &str, needs_person: bool) {
        let secrets = [Credential::new("hush hush")];
        let told = error(given, "cannot".to_owned(), "vultr", secrets.iter());
        assert_eq!((told.why.as_str(), told.needs_person), (expected, needs_person));
    }

    #[test]
    fn a_failure_is_told_in_the_provider_s_words_and_without_credentials() {
        let api = |text: &str| Error::Api(text.to_owned());
        check(Error::Unauthorized, "it refuses the credentials", true);
        check(Error::NotFound, "it knows no such zone", true);
        check(
            api("HTTP 403: {\"error\": \"no right for hush hush\", \"request_id\": \"17\"}"),
            "HTTP 403: no right for ***",
            true,
        );
        check(
            api("BadRequest {\"errors\": [{\"code\": 7, \"message\": \"bad name\"}]}"),
            "BadRequest: bad name",
            true,
        );
        check(api("HTTP 500: internal details of a server"), "HTTP 500", false);
        check(api("HTTP 502: <html>Bad Gateway</html>"), "HTTP 502", false);
        check(
            api(
                "Failed to send request to https://api.example.com/v1?key=hush%20hush&x=1: error sending request",
            ),
            "Failed to send request to https://api.example.com/v1?… error sending request",
            false,
        );
        let given =
            "Failed to deserialize response: expected value (body: secrets of another server)";
        check(
            Error::Serialize(given.to_owned()),
            "Failed to deserialize response: expected value",
            false,
        );
    }
}
