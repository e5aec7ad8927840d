//! Account keys in the files of other clients: PEM, as lego, acme.sh and openssl write it, and JWK (RFC 7517), as certbot does.

use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::encoding::EcPrivateKeyRfc5915Der;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use der::Tag;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::account::AccountKey;
use super::der::{constructed, element};
use super::keys::{KeyError, PrivateKey};

/// A private key in JSON (RFC 7517, RFC 7518 §6).
#[derive(Deserialize)]
#[serde(tag = "kty")]
enum JsonKey {
    #[serde(rename = "RSA")]
    Rsa {
        n: Octets,
        e: Octets,
        d: Octets,
        p: Octets,
        q: Octets,
        dp: Octets,
        dq: Octets,
        qi: Octets,
    },
    #[serde(rename = "EC")]
    Ec { crv: String, x: Octets, y: Octets, d: Octets },
}

/// Bytes in base64url, which some writers pad.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct Octets(Zeroizing<Vec<u8>>);

impl TryFrom<String> for Octets {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let text = Zeroizing::new(text);
        let bytes = URL_SAFE_NO_PAD.decode(text.trim_end_matches('='));
        // The decoder's message would show a part of the key.
        bytes.map(|bytes| Self(Zeroizing::new(bytes))).map_err(|_| "no base64url".to_owned())
    }
}

impl AccountKey {
    /// Reads a key from the file of any client: PEM in three forms, or JWK.
    ///
    /// # Errors
    /// Fails if the text holds no key, or a key with which no ACME account can sign.
    pub fn from_file(text: &[u8]) -> Result<Self, KeyError> {
        if text.trim_ascii_start().first() != Some(&b'{') {
            return Self::from_pem(text);
        }
        let unreadable = |why: &str| KeyError::Unreadable(why.to_owned());
        let key: JsonKey = serde_json::from_slice(text)
            .map_err(|_| unreadable("it is no private key in JSON (RFC 7517)"))?;
        let der = key.to_der().ok_or_else(|| unreadable("its numbers are those of no key"))?;
        Self::from_key(PrivateKey::from_der(&der)?)
    }
}

impl JsonKey {
    /// RSAPrivateKey (RFC 8017 §A.1.2) or ECPrivateKey (RFC 5915 §3).
    fn to_der(&self) -> Option<Zeroizing<Vec<u8>>> {
        match self {
            Self::Rsa { n, e, d, p, q, dp, dq, qi } => {
                let version = element(Tag::Integer, &[0]);
                let numbers = [n, e, d, p, q, dp, dq, qi].map(Octets::integer);
                let parts: Vec<Vec<u8>> = std::iter::once(version).chain(numbers).collect();
                Some(Zeroizing::new(constructed(Tag::Sequence, &parts)))
            }
            Self::Ec { crv, x, y, d } => {
                let curve = match crv.as_str() {
                    "P-256" => &ECDSA_P256_SHA256_ASN1_SIGNING,
                    "P-384" => &ECDSA_P384_SHA384_ASN1_SIGNING,
                    _ => return None,
                };
                // An uncompressed point: one byte of form, then both coordinates (SEC 1 §2.3.3).
                let point = [&[4][..], &x.0, &y.0].concat();
                let pair = EcdsaKeyPair::from_private_key_and_public_key(curve, &d.0, &point);
                let der: EcPrivateKeyRfc5915Der<'_> = pair.ok()?.private_key().as_der().ok()?;
                Some(Zeroizing::new(der.as_ref().to_vec()))
            }
        }
    }
}

impl Octets {
    /// INTEGER, never below zero.
    fn integer(&self) -> Vec<u8> {
        let first = self.0.iter().position(|byte| *byte != 0).unwrap_or(self.0.len());
        let digits = &self.0[first..];
        let sign: &[u8] = if digits.first().is_none_or(|byte| *byte >= 0x80) { &[0] } else { &[] };
        element(Tag::Integer, &[sign, digits].concat())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::acme::openssl::openssl;
    use crate::model::KeyAlgorithm;

    /// The numbers of a key as openssl tells them.
    fn numbers(pem: &str) -> impl Fn(&str) -> String {
        let text =
            String::from_utf8(openssl(&["pkey", "-noout", "-text"], pem.as_bytes())).unwrap();
        move |label: &str| {
            let (_, after) = text.split_once(&format!("{label}:")).unwrap();
            let digits = after.lines().skip(1).take_while(|line| line.starts_with("    "));
            let digits: String = digits.collect::<String>().replace([' ', ':'], "");
            let bytes: Vec<u8> = (0..digits.len() / 2)
                .map(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
                .skip_while(|byte| *byte == 0)
                .collect();
            URL_SAFE_NO_PAD.encode(bytes)
        }
    }

    #[test]
    fn a_key_of_certbot_is_the_key_that_openssl_knows() {
        let key = AccountKey::generate(KeyAlgorithm::Rsa(2048)).unwrap();
        let pem = key.to_pem().unwrap();
        let of = numbers(&pem);
        let jwk = json!({
            "kty": "RSA", "n": of("modulus"), "e": "AQAB", "d": of("privateExponent"), "p": of("prime1"),
            "q": of("prime2"), "dp": of("exponent1"), "dq": of("exponent2"), "qi": of("coefficient"),
        });
        let read = AccountKey::from_file(jwk.to_string().as_bytes()).unwrap();
        assert_eq!(read.thumbprint(), key.thumbprint());
        assert_eq!(AccountKey::from_file(pem.as_bytes()).unwrap().thumbprint(), key.thumbprint());
    }

    #[test]
    fn an_elliptic_key_in_json_is_read() {
        // RFC 7515 §A.3.
        let jwk = json!({
            "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0", "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI",
        });
        let read = AccountKey::from_file(jwk.to_string().as_bytes()).unwrap();
        assert_eq!(read.algorithm(), KeyAlgorithm::Ecdsa(256));
        let again = AccountKey::from_pem(read.to_pem().unwrap().as_bytes()).unwrap();
        assert_eq!(again.thumbprint(), read.thumbprint());
    }

    #[test]
    fn what_is_no_key_is_refused_and_not_shown() {
        for text in [
            "{}",
            r#"{"kty": "RSA", "n": "secret"}"#,
            r#"{"kty": "oct", "k": "secret"}"#,
            r#"{"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "d": "se=cret"}"#,
            r#"{"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA", "d": "AA"}"#,
            "secret",
        ] {
            let error = AccountKey::from_file(text.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with("cannot read private key: "), "{error}");
            assert!(!error.contains("secret") && !error.contains("cret"), "{error}");
        }
    }
}
