//! Authorizations and their challenges (RFC 8555 §7.5): read, answered, deactivated.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderName;
use axum::http::header::{LINK, LOCATION, RETRY_AFTER};
use axum::response::Response;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Ca;
use super::protocol::answer;
use super::refusal::{Refusal, identifier_json};
use super::request::Signed;
use super::state::{Authorization, Id, Status, Validation, rfc3339};
use super::validation::validate;
use crate::fetch::Hop;

/// What an authorization is to become (§7.5.2).
#[derive(Deserialize)]
struct Change {
    status: String,
}

/// Reads or deactivates an authorization.
pub(super) async fn authorization(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let mut state = ca.state();
    let authorization = state.authorization(id, signed.account()?, Timestamp::now())?;
    if !signed.is_read() {
        let change: Change = signed.payload()?;
        if change.status != "deactivated" {
            return Err(Refusal::malformed("Invalid status value"));
        }
        if !matches!(authorization.status, Status::Pending | Status::Valid) {
            return Err(Refusal::malformed(
                "Only pending and valid authorizations can be deactivated",
            ));
        }
        authorization.status = Status::Deactivated;
    }
    let view = json!({
        "identifier": identifier_json(&authorization.identifier),
        "status": authorization.status,
        "expires": rfc3339(authorization.expires),
        "challenges": [challenge_view(&ca, id, authorization)],
    });
    let wait = retry_after(&ca, authorization.being_validated);
    Ok(answer(Json(view), wait))
}

/// Reads a challenge, or takes the client's word that it is ready to be looked at.
pub(super) async fn challenge(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let account = signed.account()?;
    let mut state = ca.state();
    let thumbprint = state.accounts.get(&account).map(|account| account.key.thumbprint());
    let authorization = state.authorization(id, account, Timestamp::now())?;
    if !signed.is_read() {
        signed.payload::<Value>()?;
        match authorization.status {
            Status::Pending if authorization.being_validated => {}
            Status::Pending => {
                authorization.being_validated = true;
                let thumbprint = thumbprint.unwrap_or_default();
                ca.spawn(validate(Arc::clone(&ca), id, thumbprint));
            }
            // Asked once more, it simply shows that it is valid.
            Status::Valid => {}
            Status::Deactivated | Status::Invalid | Status::Processing | Status::Ready => {
                let detail = "Unable to update challenge :: authorization must be pending";
                return Err(Refusal::malformed(detail));
            }
        }
    }
    let up = ca.url(&format!("/acme/authorization/{id}"));
    let headers = [(LINK, format!("<{up}>;rel=\"up\"")), (LOCATION, challenge_url(&ca, id))];
    let wait = retry_after(&ca, authorization.being_validated);
    let view = challenge_view(&ca, id, authorization);
    Ok(answer(Json(view), headers.into_iter().chain(wait)))
}

/// The header that tells a client when to ask again, where the configuration wants one.
pub(super) fn retry_after(ca: &Ca, is_moving: bool) -> Option<(HeaderName, String)> {
    let seconds = ca.config.retry_after.filter(|_| is_moving)?;
    Some((RETRY_AFTER, seconds.to_string()))
}

fn challenge_url(ca: &Ca, id: Id) -> String {
    ca.url(&format!("/acme/challenge/{id}/http-01"))
}

/// The challenge object (§8); its authorization's status is its own.
fn challenge_view(ca: &Ca, id: Id, authorization: &Authorization) -> Value {
    let mut view = json!({
        "type": "http-01",
        "url": challenge_url(ca, id),
        "status": Status::Pending,
        "token": authorization.token,
    });
    if let Some(Validation { at, hops, refusal }) = &authorization.validation {
        view["validated"] = rfc3339(*at).into();
        view["status"] = json!(if refusal.is_some() { Status::Invalid } else { Status::Valid });
        if let Some(refusal) = refusal {
            view["error"] = refusal.document();
        }
        let records: Vec<_> = hops.iter().filter_map(record).collect();
        if !records.is_empty() {
            view["validationRecord"] = records.into();
        }
    }
    view
}

/// One request that the CA made, as Boulder shows it.
fn record(hop: &Hop) -> Option<Value> {
    let address = hop.address?;
    let url = url::Url::parse(&hop.url).ok()?;
    Some(json!({
        "url": hop.url,
        "hostname": url.host_str(),
        "port": address.port().to_string(),
        "addressesResolved": [address.ip()],
        "addressUsed": address.ip(),
    }))
}
