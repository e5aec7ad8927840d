//! Renewal information (RFC 9773): a window around two thirds of the life, around half of a life below ten days, and at
//! once for revoked certificates, as at Boulder. A drill moves the windows of all certificates issued before the drill.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State as Shared};
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::response::Response;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::ParsedExtension;
use x509_parser::prelude::FromDer;

use super::context::Ca;
use super::refusal::{Kind, Refusal};
use super::reply::{add, answer};
use super::state::{Issued, Order, State, Status, rfc3339};
use crate::model::text::hex;

/// Time until the next request, in seconds, as at Boulder.
const RETRY_AFTER_SECONDS: u32 = 6 * 60 * 60;
/// Lives below this length have their window around their half.
const SHORT_LIFE: SignedDuration = SignedDuration::from_hours(10 * 24);
/// Time by which the window of a revoked certificate lies in the past, and the window's length.
const REVOKED_WINDOW: (SignedDuration, SignedDuration) =
    (SignedDuration::from_hours(1), SignedDuration::from_mins(30));

/// Sends the window of a certificate, to unsigned requests (§4.1).
pub(super) async fn renewal_info(
    Shared(ca): Shared<Arc<Ca>>,
    Path(id): Path<String>,
) -> Result<Response, Refusal> {
    let (key, serial) = read(&id).ok_or_else(|| {
        Refusal::malformed(
            "While parsing ARI CertID an error occurred: expected two base64url parts",
        )
    })?;
    let state = ca.state();
    let serial = hex(&serial);
    let issued = state
        .certificates
        .get(&serial)
        .filter(|issued| authority_key(&issued.der).is_some_and(|of_issuer| of_issuer == key));
    let Some(issued) = issued else {
        return Err(Refusal::not_found("Requested certificate was not found"));
    };
    if let Some(text) = &issued.renewal_info {
        let headers = [
            (CONTENT_TYPE, "application/json".to_owned()),
            (RETRY_AFTER, RETRY_AFTER_SECONDS.to_string()),
        ];
        let mut response = Response::new(text.clone().into());
        for (name, value) in headers {
            add(response.headers_mut(), name, &value);
        }
        return Ok(response);
    }
    let moved = state.moved_window.as_ref().filter(|moved| issued.at <= moved.at);
    let (start, end) = match moved {
        Some(moved) => moved.window,
        None => window(issued, ca.now())
            .ok_or_else(|| Refusal::not_found("Requested certificate has no validity"))?,
    };
    let mut document = json!({"suggestedWindow": {"start": rfc3339(start), "end": rfc3339(end)}});
    if let Some(page) = moved.map(|moved| &moved.explanation).filter(|page| !page.is_empty()) {
        document["explanationURL"] = json!(page);
    }
    Ok(answer(Json(document), [(RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())]))
}

/// Refuses an order that cannot replace the certificate that the order names, as Boulder does (§5).
pub(super) fn check_replacement(state: &State, order: &Order) -> Result<(), Refusal> {
    let Some(id) = &order.replaces else { return Ok(()) };
    let refused = |kind: Kind, why: &str| {
        let detail = format!("Could not validate ARI 'replaces' field :: {why}");
        Err(Refusal::new(kind, detail))
    };
    let Some((key, serial)) = read(id) else {
        return refused(Kind::Malformed, "Invalid path");
    };
    let serial = hex(&serial);
    let Some(old) = state.certificates.get(&serial) else {
        return refused(Kind::Malformed, "certificate being replaced by this order was not found");
    };
    if authority_key(&old.der).is_none_or(|of_issuer| of_issuer != key) {
        let why = "path contained an Authority Key Identifier that did not match a known issuer";
        return refused(Kind::Malformed, why);
    }
    if old.account != order.account {
        let why = "requester account did not request the certificate being replaced by this order";
        return refused(Kind::Unauthorized, why);
    }
    if !old.identifiers.iter().any(|identifier| order.identifiers.contains(identifier)) {
        let why = "identifiers in this order do not match any identifiers in the certificate being replaced";
        return refused(Kind::Malformed, why);
    }
    let is_of_it = |other: &&Order| {
        replaced(other).is_some_and(|replaced| replaced == serial)
            && state.order_status(other) != Status::Invalid
    };
    if state.orders.values().any(|other| is_of_it(&other)) {
        let why = format!(
            "cannot indicate an order replaces certificate with serial \"{serial}\", which already has a replacement order"
        );
        return refused(Kind::AlreadyReplaced, &why);
    }
    Ok(())
}

/// Returns the serial number of the certificate that an order replaces, in hexadecimal.
pub(super) fn replaced(order: &Order) -> Option<String> {
    read(order.replaces.as_deref()?).map(|(_, serial)| hex(&serial))
}

/// Reads the issuer's key identifier and the serial number from an identifier of a certificate.
fn read(id: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (key, serial) = id.split_once('.')?;
    let read = |part: &str| BASE64_URL_SAFE_NO_PAD.decode(part).ok();
    Some((read(key)?, read(serial)?))
}

fn authority_key(der: &[u8]) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(key) => {
            key.key_identifier.as_ref().map(|key| key.0.to_vec())
        }
        _ => None,
    })
}

/// Returns the window of a certificate whose window was not moved. The life counts from the issue,
/// not from the backdated start: otherwise the window of a short life would open at once.
fn window(issued: &Issued, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    if issued.revoked.is_some() {
        let (behind, length) = REVOKED_WINDOW;
        let start = now.checked_sub(behind).ok()?;
        return Some((start, start.checked_add(length).ok()?));
    }
    let (_, certificate) = X509Certificate::from_der(&issued.der).ok()?;
    let end = Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()?;
    around(issued.at, end)
}

/// Returns a fiftieth of a life, around the ideal moment of renewal.
fn around(start: Timestamp, end: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let life = end.duration_since(start);
    let left = if life < SHORT_LIFE { life / 2 } else { life / 3 };
    let ideal = end.checked_sub(left).ok()?;
    let margin = life / 100;
    Some((ideal.checked_sub(margin).ok()?, ideal.checked_add(margin).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hours: i64, start: i64, end: i64) {
        let at = |hour: i64| Timestamp::from_second(hour * 3600).unwrap();
        assert_eq!(around(at(0), at(hours)), Some((at(start), at(end))), "{hours}");
    }

    #[test]
    fn windows_lie_around_two_thirds_of_a_life_and_around_the_half_of_a_short_one() {
        check(300, 197, 203);
        check(200, 98, 102);
    }
}
