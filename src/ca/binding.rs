//! External account binding (RFC 8555 §7.3.4): a MAC over the account's key, made with a key obtained beforehand.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use serde_json::Value;

use super::config::MacKey;
use super::jwk::Jwk;
use super::jws::Jws;
use super::refusal::{Kind, Refusal};

/// The only MAC algorithm taken, as at the public CAs.
const ALGORITHM: &str = "HS256";

/// Checks a binding that came with the newAccount request of this key to this URL.
pub(super) fn check(
    binding: &Value,
    key: &Jwk,
    url: &str,
    external_accounts: &BTreeMap<String, MacKey>,
) -> Result<(), Refusal> {
    let inner = Jws::parse(binding.to_string().as_bytes())?;
    if inner.header.alg != ALGORITHM {
        let detail = format!("External account binding must be signed with {ALGORITHM}");
        return Err(Refusal::new(Kind::BadSignatureAlgorithm, detail).with_algorithms(&[ALGORITHM]));
    }
    if inner.header.nonce.is_some() {
        return Err(malformed("must not have a nonce"));
    }
    if inner.header.url.as_deref() != Some(url) {
        return Err(malformed("is for another URL"));
    }
    let bound: Value =
        serde_json::from_slice(&inner.payload).map_err(|_| malformed("payload is no JWK"))?;
    if Jwk::parse(&bound)? != *key {
        return Err(malformed("binds another key than the one of this request"));
    }
    let Some(kid) = &inner.header.kid else {
        return Err(malformed("has no key identifier"));
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

fn malformed(why: &str) -> Refusal {
    Refusal::malformed(format!("External account binding {why}"))
}
