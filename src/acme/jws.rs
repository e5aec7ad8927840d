//! Signed requests: flattened JWS (RFC 7515 §7.2.2) with ES256, ES384 and RS256 (RFC 7518).

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeyPair as RsaKeyPair;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Serialize;

use super::keys::{KeyError, PrivateKey};
use super::replies::ExternalAccount;
use crate::model::KeyAlgorithm;

/// A key ready to sign.
pub(super) enum Signer {
    Ecdsa { algorithm: &'static str, curve: &'static str, pair: EcdsaKeyPair },
    Rsa(RsaKeyPair),
}

/// Signer of a request: the key itself, or the account that the CA has for the key (RFC 8555 §6.2).
#[derive(Clone, Copy)]
pub(super) enum Identity<'a> {
    Key,
    Account(&'a str),
}

/// A public key (RFC 7517). The members stand in the order that a thumbprint wants (RFC 7638 §3).
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum Jwk {
    Ec { crv: &'static str, kty: &'static str, x: String, y: String },
    Rsa { e: String, kty: &'static str, n: String },
}

#[derive(Serialize)]
struct Header<'a> {
    alg: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    jwk: Option<Jwk>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    nonce: Option<&'a str>,
    url: &'a str,
}

/// Payload that a new key signs about the account that the key takes over.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Takeover<'a> {
    account: &'a str,
    old_key: &'a Jwk,
}

/// A flattened JWS.
#[derive(Debug, Serialize)]
pub(super) struct Jws {
    protected: String,
    payload: String,
    signature: String,
}

impl Signer {
    /// Prepares a key; ACME has no algorithm in common use for P-521 and Ed25519 accounts.
    pub(super) fn new(key: &PrivateKey) -> Result<Self, KeyError> {
        let broken = || KeyError::Unusable(key.algorithm(), "the crypto library failed");
        let (algorithm, curve, signing) = match key.algorithm() {
            KeyAlgorithm::Rsa(_) => {
                return RsaKeyPair::from_pkcs8(key.pkcs8()).map(Self::Rsa).map_err(|_| broken());
            }
            KeyAlgorithm::Ecdsa(256) => ("ES256", "P-256", &ECDSA_P256_SHA256_FIXED_SIGNING),
            KeyAlgorithm::Ecdsa(384) => ("ES384", "P-384", &ECDSA_P384_SHA384_FIXED_SIGNING),
            KeyAlgorithm::Ecdsa(_) | KeyAlgorithm::Ed25519 => {
                return Err(KeyError::Unusable(
                    key.algorithm(),
                    "an ACME account wants RSA, ECDSA P-256 or ECDSA P-384",
                ));
            }
        };
        let pair = EcdsaKeyPair::from_pkcs8(signing, key.pkcs8()).map_err(|_| broken())?;
        Ok(Self::Ecdsa { algorithm, curve, pair })
    }

    /// Public half of the key.
    pub(super) fn jwk(&self) -> Jwk {
        match self {
            Self::Ecdsa { curve, pair, .. } => {
                // An uncompressed point: one byte of form, then both coordinates (SEC 1 §2.3.3).
                let point = pair.public_key().as_ref().get(1..).unwrap_or_default();
                let (x, y) = point.split_at(point.len() / 2);
                Jwk::Ec { crv: curve, kty: "EC", x: encode(x), y: encode(y) }
            }
            Self::Rsa(pair) => {
                let key = pair.public_key();
                Jwk::Rsa {
                    e: encode(key.exponent().big_endian_without_leading_zero()),
                    kty: "RSA",
                    n: encode(key.modulus().big_endian_without_leading_zero()),
                }
            }
        }
    }

    /// Signs one request; no payload means POST-as-GET (RFC 8555 §6.3).
    pub(super) fn request(
        &self,
        identity: Identity<'_>,
        nonce: &str,
        url: &str,
        payload: Option<&[u8]>,
    ) -> Result<Jws, Unspecified> {
        let (jwk, kid) = match identity {
            Identity::Key => (Some(self.jwk()), None),
            Identity::Account(account) => (None, Some(account)),
        };
        let header = Header { alg: self.algorithm(), jwk, kid, nonce: Some(nonce), url };
        flatten(&header, payload.unwrap_or_default(), |input| self.sign(input))
    }

    /// Signs, with a new key, that the key takes over an account; the old key signs the result (RFC 8555 §7.3.5).
    pub(super) fn takes_over(
        &self,
        account: &str,
        old_key: &Jwk,
        url: &str,
    ) -> Result<Jws, Unspecified> {
        let header =
            Header { alg: self.algorithm(), jwk: Some(self.jwk()), kid: None, nonce: None, url };
        let payload = json(&Takeover { account, old_key });
        flatten(&header, &payload, |input| self.sign(input))
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ecdsa { algorithm, .. } => algorithm,
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, input: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        match self {
            Self::Ecdsa { pair, .. } => Ok(pair.sign(&random, input)?.as_ref().to_vec()),
            Self::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, input, &mut signature)?;
                Ok(signature)
            }
        }
    }
}

impl Jwk {
    /// Thumbprint (RFC 7638), base64url.
    pub(super) fn thumbprint(&self) -> String {
        encode(digest(&SHA256, &json(self)).as_ref())
    }
}

/// Builds the proof that an account at the CA's web site is ours: its MAC over our public key (RFC 8555 §7.3.4).
pub(super) fn binding(
    external: &ExternalAccount,
    jwk: &Jwk,
    url: &str,
) -> Result<Jws, Unspecified> {
    let header = Header { alg: "HS256", jwk: None, kid: Some(&external.key_id), nonce: None, url };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &external.mac_key);
    flatten(&header, &json(jwk), |input| Ok(hmac::sign(&key, input).as_ref().to_vec()))
}

fn flatten(
    header: &Header<'_>,
    payload: &[u8],
    sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, Unspecified>,
) -> Result<Jws, Unspecified> {
    let protected = encode(&json(header));
    let payload = encode(payload);
    let signature = sign(format!("{protected}.{payload}").as_bytes())?;
    Ok(Jws { protected, payload, signature: encode(&signature) })
}

/// JSON of our own structures, none of which can fail to serialize.
pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use ::der::Tag;
    use serde_json::{Value, json};
    use zeroize::Zeroizing;

    use super::*;
    use crate::acme::der;
    use crate::acme::keys::KeyEncoding;
    use crate::acme::openssl::{file, openssl};

    fn decode(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// openssl finds the signature good, and the header says what was asked.
    fn check(algorithm: KeyAlgorithm, alg: &str, hash: &str) {
        let key = PrivateKey::generate(algorithm).unwrap();
        let signer = Signer::new(&key).unwrap();
        let jws = signer
            .request(
                Identity::Account("https://ca/acct/1"),
                "nonce-1",
                "https://ca/order",
                Some(b"{}"),
            )
            .unwrap();
        let header: Value = serde_json::from_slice(&decode(&jws.protected)).unwrap();
        assert_eq!(
            header,
            json!({"alg": alg, "kid": "https://ca/acct/1", "nonce": "nonce-1", "url": "https://ca/order"})
        );
        assert_eq!(decode(&jws.payload), b"{}");

        let mut signature = decode(&jws.signature);
        if let KeyAlgorithm::Ecdsa(_) = algorithm {
            signature = ecdsa_der(&signature);
        }
        let pem = key.to_pem(KeyEncoding::Pkcs8).unwrap();
        let public = file(&openssl(&["pkey", "-pubout"], pem.as_bytes()));
        let signature = file(&signature);
        let said = openssl(
            &[
                "dgst",
                hash,
                "-verify",
                public.path().to_str().unwrap(),
                "-signature",
                signature.path().to_str().unwrap(),
            ],
            format!("{}.{}", jws.protected, jws.payload).as_bytes(),
        );
        assert_eq!(said, b"Verified OK\n");
    }

    /// The form openssl wants: two INTEGERs instead of two halves.
    fn ecdsa_der(fixed: &[u8]) -> Vec<u8> {
        let integer = |half: &[u8]| {
            let zeroes = half.iter().take_while(|b| **b == 0).count();
            let mut number = half[zeroes..].to_vec();
            if number[0] & 0x80 != 0 {
                number.insert(0, 0);
            }
            der::element(Tag::Integer, &number)
        };
        let (r, s) = fixed.split_at(fixed.len() / 2);
        der::constructed(Tag::Sequence, &[integer(r), integer(s)])
    }

    #[test]
    fn es256_is_what_openssl_verifies() {
        check(KeyAlgorithm::Ecdsa(256), "ES256", "-sha256");
    }

    #[test]
    fn es384_is_what_openssl_verifies() {
        check(KeyAlgorithm::Ecdsa(384), "ES384", "-sha384");
    }

    #[test]
    fn rs256_is_what_openssl_verifies() {
        check(KeyAlgorithm::Rsa(2048), "RS256", "-sha256");
    }

    #[test]
    fn a_new_account_signs_with_its_key_and_reads_with_an_empty_payload() {
        let signer = Signer::new(&PrivateKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap()).unwrap();
        let jws = signer.request(Identity::Key, "n", "https://ca/new", None).unwrap();
        let header: Value = serde_json::from_slice(&decode(&jws.protected)).unwrap();
        assert_eq!(header["jwk"]["crv"], "P-256");
        assert_eq!(header["kid"], Value::Null);
        assert_eq!(jws.payload, "");
    }

    #[test]
    fn the_thumbprint_is_that_of_the_standard() {
        // The example of RFC 7638 §3.1.
        let key = Jwk::Rsa {
            e: "AQAB".to_owned(),
            kty: "RSA",
            n: "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw"
                .to_owned(),
        };
        assert_eq!(key.thumbprint(), "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs");
    }

    #[test]
    fn a_binding_is_the_mac_over_the_public_key() {
        let signer = Signer::new(&PrivateKey::generate(KeyAlgorithm::Ecdsa(384)).unwrap()).unwrap();
        let external = ExternalAccount {
            key_id: "kid-1".to_owned(),
            mac_key: Zeroizing::new(b"a mac key of the CA".to_vec()),
        };
        let jws = binding(&external, &signer.jwk(), "https://ca/new-account").unwrap();
        let header: Value = serde_json::from_slice(&decode(&jws.protected)).unwrap();
        assert_eq!(
            header,
            json!({"alg": "HS256", "kid": "kid-1", "url": "https://ca/new-account"})
        );
        assert_eq!(decode(&jws.payload), json(&signer.jwk()));
        let mac = openssl(
            &["dgst", "-sha256", "-hmac", "a mac key of the CA", "-binary"],
            format!("{}.{}", jws.protected, jws.payload).as_bytes(),
        );
        assert_eq!(decode(&jws.signature), mac);
    }

    #[test]
    fn keys_that_no_account_can_have_are_refused() {
        for algorithm in [KeyAlgorithm::Ecdsa(521), KeyAlgorithm::Ed25519] {
            let key = PrivateKey::generate(algorithm).unwrap();
            assert!(Signer::new(&key).is_err(), "{algorithm}");
        }
    }
}
