//! Signed requests: a flattened JSON Web Signature (RFC 7515 §7.2.2) as RFC 8555 §6.2 allows it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::Value;

use super::jwk::{ALGORITHMS, Jwk};
use super::refusal::{Kind, Refusal};

/// Parsed request; its content is trusted only after [`Jws::check_signature`].
#[derive(Debug)]
pub(super) struct Jws {
    /// The protected header.
    pub(super) header: Header,
    /// Payload; empty for a POST-as-GET (RFC 8555 §6.3).
    pub(super) payload: Vec<u8>,
    signing_input: String,
    signature: Vec<u8>,
}

/// The protected header.
#[derive(Debug, Deserialize)]
pub(super) struct Header {
    pub(super) alg: String,
    pub(super) jwk: Option<Value>,
    pub(super) kid: Option<String>,
    pub(super) nonce: Option<String>,
    pub(super) url: Option<String>,
    crit: Option<Value>,
}

/// Members of the flattened form, and two members that would make the JWS another form.
#[derive(Deserialize)]
struct Flattened {
    protected: String,
    payload: String,
    signature: String,
    header: Option<Value>,
    signatures: Option<Value>,
}

impl Jws {
    /// Parses a request.
    pub(super) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let broken = || invalid("Parse error reading JWS");
        let flattened: Flattened = serde_json::from_slice(body).map_err(|_| broken())?;
        if flattened.header.is_some() {
            return Err(invalid(
                "JWS \"header\" field not allowed. All headers must be in \"protected\" field",
            ));
        }
        if flattened.signatures.is_some() {
            return Err(invalid(
                "JWS \"signatures\" field not allowed. Only the \"signature\" field should contain a signature",
            ));
        }
        let decode = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| broken());
        let header: Header =
            serde_json::from_slice(&decode(&flattened.protected)?).map_err(|_| broken())?;
        if header.crit.is_some() {
            return Err(invalid("JWS header contains a critical extension that is not understood"));
        }
        Ok(Self {
            header,
            payload: decode(&flattened.payload)?,
            signature: decode(&flattened.signature)?,
            signing_input: format!("{}.{}", flattened.protected, flattened.payload),
        })
    }

    /// Checks that the algorithm is supported and fits the key, and that the key signed this request.
    pub(super) fn check_signature(&self, key: &Jwk) -> Result<(), Refusal> {
        let algorithm = self.header.alg.as_str();
        if !ALGORITHMS.contains(&algorithm) {
            let detail = format!(
                "Unable to validate JWS :: JWS signature header contains unsupported algorithm \"{algorithm}\", \
                 expected one of [{}]",
                ALGORITHMS.join(" ")
            );
            return Err(
                Refusal::new(Kind::BadSignatureAlgorithm, detail).with_algorithms(&ALGORITHMS)
            );
        }
        if algorithm != key.algorithm() {
            return Err(invalid(&format!(
                "JWS signature header algorithm \"{algorithm}\" does not match the key, expected \"{}\"",
                key.algorithm()
            )));
        }
        if !key.verifies(self.signing_input.as_bytes(), &self.signature) {
            return Err(invalid("JWS verification error"));
        }
        Ok(())
    }

    /// Returns the key in the header, of which the request itself is the only proof.
    pub(super) fn embedded_key(&self) -> Result<Jwk, Refusal> {
        match &self.header.jwk {
            Some(jwk) => Jwk::parse(jwk),
            None => Err(invalid("No embedded JWK in JWS header")),
        }
    }

    /// Returns the octets over which a MAC or signature is made, and the MAC or signature.
    pub(super) fn sealed(&self) -> (&[u8], &[u8]) {
        (self.signing_input.as_bytes(), &self.signature)
    }
}

/// Builds a refusal with the fault of a signed request.
pub(super) fn invalid(why: &str) -> Refusal {
    Refusal::malformed(format!("Unable to validate JWS :: {why}"))
}
