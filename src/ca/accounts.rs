//! Accounts (RFC 8555 §7.3): creation, external account binding, lookup by key, change, deactivation, and the list of an
//! account's orders.

use std::collections::BTreeMap;
use std::sync::Arc;

use aws_lc_rs::hmac;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header::{LINK, LOCATION};
use axum::http::{HeaderName, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::base_url::BaseUrl;
use super::config::MacKey;
use super::contact;
use super::context::Ca;
use super::jwk::Jwk;
use super::jws::Jws;
use super::refusal::{Kind, Refusal};
use super::reply::answer;
use super::request::{Signed, absent_if_null};
use super::state::{Account, Id, Status, rfc3339};

/// The only MAC algorithm taken in external account bindings, as at the public CAs.
const BINDING_ALGORITHM: &str = "HS256";

/// Payload of newAccount (§7.3).
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct NewAccount {
    #[serde(deserialize_with = "absent_if_null")]
    contact: Vec<String>,
    #[serde(deserialize_with = "absent_if_null")]
    terms_of_service_agreed: bool,
    #[serde(deserialize_with = "absent_if_null")]
    only_return_existing: bool,
    external_account_binding: Option<Value>,
}

/// Changes of an account (§7.3.2, §7.3.6); an absent member stays unchanged.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct AccountUpdate {
    contact: Option<Vec<String>>,
    status: Option<String>,
}

/// Makes an account, or finds the account that this key already has.
pub(super) async fn new_account(
    State(ca): State<Arc<Ca>>,
    signed: Signed,
) -> Result<Response, Refusal> {
    let key = signed.key()?;
    let wish: NewAccount = signed.payload()?;
    let mut state = ca.state();
    if let Some((id, account)) = state.account_of(key) {
        if account.deactivated {
            let detail = "An account with the provided public key exists but is deactivated";
            return Err(Refusal::new(Kind::Unauthorized, detail));
        }
        account.base = signed.base.clone();
        let body = (StatusCode::OK, Json(view(&signed.base, id, account)));
        return Ok(answer(body, [(LOCATION, account_url(&signed.base, id))]));
    }
    drop(state);
    if wish.only_return_existing {
        let detail = "No account exists with the provided key";
        return Err(Refusal::new(Kind::AccountDoesNotExist, detail));
    }
    if !wish.terms_of_service_agreed {
        return Err(Refusal::malformed("must agree to terms of service"));
    }
    contact::check(&wish.contact)?;
    let binding = bind(&ca, &signed, wish.external_account_binding)?;
    let account = Account {
        key: key.clone(),
        contact: wish.contact,
        created: ca.now(),
        deactivated: false,
        binding,
        base: signed.base.clone(),
    };
    let mut state = ca.state();
    let id = state.next_id();
    let account = state.accounts.entry(id).or_insert(account);
    let body = (StatusCode::CREATED, Json(view(&signed.base, id, account)));
    let location = (LOCATION, account_url(&signed.base, id));
    Ok(answer(body, [location, terms_link(&signed.base)]))
}

/// Reads, changes or deactivates an account.
pub(super) async fn account(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Response, Refusal> {
    check_owner(&signed, id)?;
    let change: AccountUpdate =
        if signed.is_read() { AccountUpdate::default() } else { signed.payload()? };
    if let Some(contact) = &change.contact {
        contact::check(contact)?;
    }
    let deactivate = match change.status.as_deref() {
        None | Some("valid") => false,
        Some("deactivated") => true,
        Some(_) => return Err(Refusal::malformed("Unable to update account :: invalid status")),
    };
    let mut state = ca.state();
    let Some(account) = state.accounts.get_mut(&id) else {
        return Err(Refusal::not_found("No such account"));
    };
    if let Some(contact) = change.contact {
        account.contact = contact;
    }
    account.deactivated |= deactivate;
    Ok(answer(Json(view(&signed.base, id, account)), [terms_link(&signed.base)]))
}

/// Lists the orders that are neither expired nor invalid (§7.1.2.1).
pub(super) async fn orders(
    State(ca): State<Arc<Ca>>,
    Path(id): Path<Id>,
    signed: Signed,
) -> Result<Json<Value>, Refusal> {
    check_owner(&signed, id)?;
    signed.must_be_read()?;
    let now = ca.now();
    let state = ca.state();
    let urls: Vec<_> = state
        .orders
        .iter()
        .filter(|(_, order)| order.account == id && order.expires > now)
        .filter(|(_, order)| state.order_status(order) != Status::Invalid)
        .map(|(order, _)| signed.base.url(&format!("/acme/order/{order}")))
        .collect();
    Ok(Json(json!({ "orders": urls })))
}

/// Returns the URL of an account, which is also its `kid`.
pub(super) fn account_url(base: &BaseUrl, id: Id) -> String {
    base.url(&format!("/acme/account/{id}"))
}

/// Returns the URL of an account as newAccount gave it last; records in DNS name this URL.
pub(super) fn given_url(ca: &Ca, id: Id) -> String {
    let state = ca.state();
    account_url(state.accounts.get(&id).map_or(&ca.base, |account| &account.base), id)
}

/// Returns the account object (§7.1.2).
pub(super) fn view(base: &BaseUrl, id: Id, account: &Account) -> Value {
    let status = if account.deactivated { Status::Deactivated } else { Status::Valid };
    let mut view = json!({
        "status": status,
        "key": account.key.json(),
        "createdAt": rfc3339(account.created),
        "termsOfServiceAgreed": true,
        "orders": base.url(&format!("/acme/orders/{id}")),
    });
    if !account.contact.is_empty() {
        view["contact"] = json!(account.contact);
    }
    if let Some(binding) = &account.binding {
        view["externalAccountBinding"] = binding.clone();
    }
    view
}

/// Checks the external account binding, if this CA requires a binding or has external accounts.
fn bind(ca: &Ca, signed: &Signed, binding: Option<Value>) -> Result<Option<Value>, Refusal> {
    let Some(binding) = binding else {
        if ca.config.external_account_required {
            let detail = "This CA requires an external account binding";
            return Err(Refusal::new(Kind::ExternalAccountRequired, detail));
        }
        return Ok(None);
    };
    if ca.config.external_accounts.is_empty() {
        return Ok(None);
    }
    check_binding(&binding, signed.key()?, &signed.url, &ca.config.external_accounts)?;
    Ok(Some(binding))
}

fn check_owner(signed: &Signed, id: Id) -> Result<(), Refusal> {
    if signed.account()? == id {
        return Ok(());
    }
    Err(Refusal::new(Kind::Unauthorized, "Request signing key did not match account key"))
}

fn terms_link(base: &BaseUrl) -> (HeaderName, String) {
    (LINK, format!("<{}>;rel=\"terms-of-service\"", base.url("/terms")))
}

/// Checks an external account binding (§7.3.4) that came with the newAccount request of this key to this URL: a MAC over
/// the account's key, made with a key obtained beforehand.
fn check_binding(
    binding: &Value,
    key: &Jwk,
    url: &str,
    external_accounts: &BTreeMap<String, MacKey>,
) -> Result<(), Refusal> {
    let inner = Jws::parse(binding.to_string().as_bytes())?;
    if inner.header.alg != BINDING_ALGORITHM {
        let detail = format!("External account binding must be signed with {BINDING_ALGORITHM}");
        return Err(
            Refusal::new(Kind::BadSignatureAlgorithm, detail).with_algorithms(&[BINDING_ALGORITHM])
        );
    }
    if inner.header.nonce.is_some() {
        return Err(malformed_binding("must not have a nonce"));
    }
    if inner.header.url.as_deref() != Some(url) {
        return Err(malformed_binding("is for another URL"));
    }
    let bound: Value = serde_json::from_slice(&inner.payload)
        .map_err(|_| malformed_binding("payload is no JWK"))?;
    if Jwk::parse(&bound)? != *key {
        return Err(malformed_binding("binds another key than the one of this request"));
    }
    let Some(kid) = &inner.header.kid else {
        return Err(malformed_binding("has no key identifier"));
    };
    let Some(MacKey(mac_key)) = external_accounts.get(kid) else {
        let detail = format!("External account \"{kid}\" is unknown");
        return Err(Refusal::new(Kind::Unauthorized, detail));
    };
    let (message, mac) = inner.sealed();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, mac_key), message, mac).map_err(|_| {
        let detail = format!("External account binding was not made with the key of \"{kid}\"");
        Refusal::new(Kind::Unauthorized, detail)
    })
}

fn malformed_binding(why: &str) -> Refusal {
    Refusal::malformed(format!("External account binding {why}"))
}
