//! Authorizations and their challenges (RFC 8555 §7.5): reading, responding, deactivation.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::HeaderName;
use axum::http::header::{LINK, LOCATION};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::base_url::BaseUrl;
use super::chance::Choice;
use super::context::Ca;
use super::refusal::{Refusal, identifier_json};
use super::reply::{answer, retry_after_header};
use super::request::Signed;
use super::state::{Authorization, Id, Method, Status, Validation, rfc3339};
use super::validation::validate;
use crate::fetch::outcome::Hop;
use crate::model::Identifier;

/// Change of an authorization (§7.5.2).
#[derive(Deserialize)]
struct AuthorizationUpdate {
    status: String,
}

/// Reads or deactivates an authorization.
pub(super) async fn authorization(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let mut state = ca.state();
    let authorization = state.authorization(id, signed.account()?, ca.now())?;
    if !signed.is_read() {
        let change: AuthorizationUpdate = signed.payload()?;
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
    // After the validation only the tried challenge is left, as at Boulder.
    let tried = authorization.validation.as_ref().map(|validation| validation.method);
    let methods = list_methods(&ca, id, authorization).into_iter();
    let methods = methods.filter(|method| tried.is_none_or(|tried| tried == *method));
    let view = |method| challenge_view(&ca, &signed.base, (id, authorization), method);
    let challenges: Vec<_> = methods.map(view).collect();
    let (base, is_wildcard) = match &authorization.identifier {
        Identifier::Dns(name) if name.is_wildcard() => (Identifier::parse(name.base()).ok(), true),
        identifier => (Some(identifier.clone()), false),
    };
    let mut view = json!({
        "identifier": base.as_ref().map(identifier_json),
        "status": authorization.status,
        "expires": rfc3339(authorization.expires),
        "challenges": challenges,
    });
    if is_wildcard {
        view["wildcard"] = true.into();
    }
    let wait = retry_after(&ca, authorization.being_validated);
    Ok(answer(Json(view), wait))
}

/// Reads a challenge, or takes the client's response that the challenge is ready for validation.
pub(super) async fn challenge(
    State(ca): State<Arc<Ca>>,
    Path((id, method)): Path<(Id, String)>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let account = signed.account()?;
    let mut state = ca.state();
    let thumbprint = state.accounts.get(&account).map(|account| account.key.thumbprint());
    let authorization = state.authorization(id, account, ca.now())?;
    let mut offered = list_methods(&ca, id, authorization).into_iter();
    let Some(method) = offered.find(|offered| offered.word() == method) else {
        return Err(Refusal::not_found("No such challenge"));
    };
    if !signed.is_read() {
        signed.payload::<Value>()?;
        match authorization.status {
            Status::Pending if authorization.being_validated => {}
            Status::Pending => {
                authorization.being_validated = true;
                let thumbprint = thumbprint.unwrap_or_default();
                ca.spawn(validate(Arc::clone(&ca), id, method, thumbprint));
            }
            // A response to a valid challenge only shows the challenge.
            Status::Valid => {}
            Status::Deactivated | Status::Invalid | Status::Processing | Status::Ready => {
                let detail = "Unable to update challenge :: authorization must be pending";
                return Err(Refusal::malformed(detail));
            }
        }
    }
    let up = signed.base.url(&format!("/acme/authorization/{id}"));
    let location = challenge_url(&signed.base, id, method);
    let headers = [(LINK, format!("<{up}>;rel=\"up\"")), (LOCATION, location)];
    let wait = retry_after(&ca, authorization.being_validated);
    let view = challenge_view(&ca, &signed.base, (id, authorization), method);
    Ok(answer(Json(view), headers.into_iter().chain(wait)))
}

/// Returns the header that tells a client when to ask again; `None` without such a setting, or if nothing is under way.
pub(super) fn retry_after(ca: &Ca, is_moving: bool) -> Option<(HeaderName, String)> {
    let seconds = ca.config.retry_after.filter(|_| is_moving)?;
    Some(retry_after_header(ca, seconds))
}

/// Returns the challenge types that can prove an identifier, in the order in which they are listed.
fn list_methods(ca: &Ca, id: Id, authorization: &Authorization) -> Vec<Method> {
    let mut methods = Method::on_offer(&authorization.identifier).to_vec();
    if ca.config.persistent_records && matches!(authorization.identifier, Identifier::Dns(_)) {
        methods.push(Method::DnsPersist01);
    }
    if ca.config.shuffled {
        ca.chance.shuffle(&mut methods, (Choice::Challenges, id));
    }
    methods
}

fn challenge_url(base: &BaseUrl, id: Id, method: Method) -> String {
    base.url(&format!("/acme/challenge/{id}/{}", method.word()))
}

/// Returns the challenge object (§8); its status is not the status of the authorization.
fn challenge_view(
    ca: &Ca,
    base: &BaseUrl,
    (id, authorization): (Id, &Authorization),
    method: Method,
) -> Value {
    let mut view = json!({
        "type": method.word(),
        "url": challenge_url(base, id, method),
        "status": Status::Pending,
    });
    if method == Method::DnsPersist01 {
        view["issuer-domain-names"] = json!(ca.config.issuer_domain_names());
    } else {
        view["token"] = authorization.token.as_str().into();
    }
    let tried = authorization.validation.as_ref().filter(|tried| tried.method == method);
    if let Some(Validation { at, hops, refusal, .. }) = tried {
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

/// Returns one request of the CA's validation, as Boulder shows the request.
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
