//! Checks of every signed request before its own handler (RFC 8555 §6.2 to §6.5).

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::base_url::BaseUrl;
use super::context::Ca;
use super::jwk::Jwk;
use super::jws::{Jws, invalid};
use super::refusal::{Kind, Refusal};
use super::state::Id;

/// Request with a correct signature, nonce and URL.
#[derive(Debug)]
pub(super) struct Signed {
    /// URL to which the request was sent.
    pub(super) url: String,
    /// Host by which the client has reached the CA.
    pub(super) base: BaseUrl,
    /// URL of the account that signed, as in the header.
    pub(super) kid: Option<String>,
    signer: RequestSigner,
    payload: Vec<u8>,
}

/// Signer of a request.
#[derive(Debug)]
enum RequestSigner {
    /// `kid`: an account in good standing.
    Account(Id),
    /// `jwk`: the holder of this key.
    Key(Jwk),
}

impl Signed {
    /// Returns the account that signed; a request signed by a bare key is refused.
    pub(super) fn account(&self) -> Result<Id, Refusal> {
        match self.signer {
            RequestSigner::Account(id) => Ok(id),
            RequestSigner::Key(_) => Err(invalid("No Key ID in JWS header")),
        }
    }

    /// Returns the key that signed; a request signed by an account is refused.
    pub(super) fn key(&self) -> Result<&Jwk, Refusal> {
        match &self.signer {
            RequestSigner::Key(key) => Ok(key),
            RequestSigner::Account(_) => Err(invalid("No embedded JWK in JWS header")),
        }
    }

    /// Returns whether the request changes nothing: a POST-as-GET (§6.3).
    pub(super) fn is_read(&self) -> bool {
        self.payload.is_empty()
    }

    /// Refuses a request that would change a read-only object.
    pub(super) fn must_be_read(&self) -> Result<(), Refusal> {
        if self.is_read() {
            return Ok(());
        }
        Err(invalid("POST-as-GET requests must have an empty payload"))
    }

    /// Returns the decoded payload.
    pub(super) fn payload<T: DeserializeOwned>(&self) -> Result<T, Refusal> {
        serde_json::from_slice(&self.payload)
            .map_err(|_| invalid("Request payload did not parse as JSON"))
    }

    /// Returns the payload, undecoded: a signed request within the signed request.
    pub(super) fn raw_payload(&self) -> &[u8] {
        &self.payload
    }
}

/// Reads a member that is null as an absent member, as servers written in Go do.
pub(super) fn absent_if_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl FromRequest<Arc<Ca>> for Signed {
    type Rejection = Refusal;

    async fn from_request(request: Request, ca: &Arc<Ca>) -> Result<Self, Refusal> {
        check_content_type(request.headers())?;
        let base = ca.base.of(request.uri(), request.headers());
        let url = base.url(request.uri().path_and_query().map_or("/", |path| path.as_str()));
        let body = Bytes::from_request(request, ca)
            .await
            .map_err(|error| Refusal::malformed(format!("Unable to read request body: {error}")))?;
        let jws = Jws::parse(&body)?;
        let (signer, key) = signer(ca, &jws, &base)?;
        jws.check_signature(&key)?;
        spend_nonce(ca, &jws)?;
        check_url(&jws, &url)?;
        Ok(Self { url, base, kid: jws.header.kid, signer, payload: jws.payload })
    }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type == Some("application/jose+json") {
        return Ok(());
    }
    Err(invalid(
        "Invalid Content-Type header on POST. Content-Type must be \"application/jose+json\"",
    ))
}

/// Finds the key that must have signed a request: named by an account's URL or embedded, never both.
fn signer(ca: &Ca, jws: &Jws, base: &BaseUrl) -> Result<(RequestSigner, Jwk), Refusal> {
    match (&jws.header.kid, &jws.header.jwk) {
        (Some(_), Some(_)) => Err(invalid("jwk and kid header fields are mutually exclusive")),
        (None, _) => {
            let key = jws.embedded_key()?;
            Ok((RequestSigner::Key(key.clone()), key))
        }
        (Some(kid), None) => {
            let elsewhere =
                || invalid(&format!("KeyID header contained an invalid account URL: \"{kid}\""));
            let (of, id) = account_in(kid).ok_or_else(elsewhere)?;
            let state = ca.state();
            let account = state.accounts.get(&id);
            // By the host that the client has asked now, or by another host as newAccount gave the URL.
            let is_ours = of == *base || account.is_some_and(|account| of == account.base);
            let Some(account) = account.filter(|_| is_ours) else {
                if !is_ours {
                    return Err(elsewhere());
                }
                let detail = format!("Unable to validate JWS :: Account \"{kid}\" not found");
                return Err(Refusal::new(Kind::AccountDoesNotExist, detail));
            };
            if account.deactivated {
                let detail =
                    "Unable to validate JWS :: Account is not valid, has status \"deactivated\"";
                return Err(Refusal::new(Kind::Unauthorized, detail));
            }
            Ok((RequestSigner::Account(id), account.key.clone()))
        }
    }
}

/// Returns the base and the number in the URL of an account.
fn account_in(url: &str) -> Option<(BaseUrl, Id)> {
    let (base, id) = url.split_once("/acme/account/")?;
    Some((BaseUrl::new(base), id.parse().ok()?))
}

fn spend_nonce(ca: &Ca, jws: &Jws) -> Result<(), Refusal> {
    if jws.header.nonce.as_deref().is_some_and(|nonce| ca.nonces.spend(nonce)) {
        return Ok(());
    }
    ca.counters.count_refused_nonce();
    Err(Refusal::new(Kind::BadNonce, "JWS has an invalid anti-replay nonce"))
}

/// Checks that the request was signed for this URL (§6.4).
fn check_url(jws: &Jws, url: &str) -> Result<(), Refusal> {
    match jws.header.url.as_deref() {
        None => Err(invalid("JWS header parameter 'url' required")),
        Some(signed) if signed != url => Err(invalid(&format!(
            "JWS header parameter 'url' incorrect. Expected \"{url}\" got \"{signed}\""
        ))),
        Some(_) => Ok(()),
    }
}
