//! Account key roll-over (RFC 8555 §7.3.5): the old key signs what the new key has signed.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use serde_json::Value;

use super::accounts::{account_url, view};
use super::context::Ca;
use super::jwk::Jwk;
use super::jws::{Jws, invalid};
use super::refusal::{Kind, Refusal};
use super::request::Signed;

/// Payload that the new key signs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewKey {
    account: String,
    old_key: Value,
}

/// Gives an account another key.
pub(super) async fn key_change(
    State(ca): State<Arc<Ca>>,
    signed: Signed,
) -> Result<Json<Value>, Refusal> {
    let id = signed.account()?;
    let inner = Jws::parse(signed.raw_payload())?;
    let new_key = inner.embedded_key()?;
    inner.check_signature(&new_key)?;
    if inner.header.kid.is_some() || inner.header.nonce.is_some() {
        return Err(invalid("Inner JWS must have neither kid nor nonce"));
    }
    if inner.header.url.as_deref() != Some(signed.url.as_str()) {
        return Err(invalid("Outer JWS 'url' value does not match inner JWS 'url' value"));
    }
    let change: NewKey = serde_json::from_slice(&inner.payload)
        .map_err(|_| Refusal::malformed("Inner payload did not parse as JSON key change object"))?;
    if signed.kid.as_ref() != Some(&change.account) {
        return Err(invalid("Inner JWS contains an account that is not the one that asks"));
    }
    let old_key = Jwk::parse(&change.old_key)?;
    let mut state = ca.state();
    if let Some((owner, account)) = state.account_of(&new_key) {
        if owner == id && account.key == old_key {
            let detail = "New key specified by rollover request is the same as the old key";
            return Err(Refusal::malformed(detail));
        }
        let detail = "New key is already in use for a different account";
        return Err(
            Refusal::new(Kind::Conflict, detail).with_location(&account_url(&signed.base, owner))
        );
    }
    let Some(account) = state.accounts.get_mut(&id).filter(|account| account.key == old_key) else {
        return Err(invalid(
            "Inner JWS does not contain old key field matching current account key",
        ));
    };
    account.key = new_key;
    Ok(Json(view(&signed.base, id, account)))
}
