//! Public keys as JSON (RFC 7517): verification, thumbprint (RFC 7638), and comparison with a certificate's key.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::PublicKeyComponents;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED,
    EcdsaVerificationAlgorithm, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::refusal::{Kind, Refusal};

/// Signature algorithms that requests may use; each algorithm fits one kind of key.
pub(super) const ALGORITHMS: [&str; 4] = ["RS256", "ES256", "ES384", "ES512"];

/// Fewest bits of an RSA key; shorter keys are refused, as every public CA does.
const MIN_RSA_BITS: usize = 2048;

/// Curves of account keys (RFC 7518 §6.2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    fn parse(name: &str) -> Option<Self> {
        [Self::P256, Self::P384, Self::P521].into_iter().find(|curve| curve.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::P256 => "P-256",
            Self::P384 => "P-384",
            Self::P521 => "P-521",
        }
    }

    /// Length of one coordinate in octets.
    fn coordinate(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    fn algorithm(self) -> &'static str {
        match self {
            Self::P256 => "ES256",
            Self::P384 => "ES384",
            Self::P521 => "ES512",
        }
    }

    fn verification(self) -> &'static EcdsaVerificationAlgorithm {
        match self {
            Self::P256 => &ECDSA_P256_SHA256_FIXED,
            Self::P384 => &ECDSA_P384_SHA384_FIXED,
            Self::P521 => &ECDSA_P521_SHA512_FIXED,
        }
    }
}

/// Public key of an account, or of a certificate that revokes itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Jwk(Material);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Material {
    /// The point uncompressed: 4, x, y.
    Ec(Curve, Vec<u8>),
    /// Big-endian, without leading zeros.
    Rsa { modulus: Vec<u8>, exponent: Vec<u8> },
}

impl Jwk {
    /// Reads a key of a kind that may sign requests.
    pub(super) fn parse(value: &Value) -> Result<Self, Refusal> {
        let member = |name: &str| {
            value[name].as_str().and_then(|text| BASE64_URL_SAFE_NO_PAD.decode(text).ok())
        };
        let broken = || Refusal::malformed("Unable to validate JWS :: Parse error reading JWK");
        match value["kty"].as_str() {
            Some("EC") => {
                let curve = value["crv"]
                    .as_str()
                    .and_then(Curve::parse)
                    .ok_or_else(|| bad_key(&format!("ECDSA curve {} not allowed", value["crv"])))?;
                let (x, y) = member("x").zip(member("y")).ok_or_else(broken)?;
                if x.len() != curve.coordinate() || y.len() != curve.coordinate() {
                    return Err(broken());
                }
                Ok(Self(Material::Ec(curve, [&[4], &x[..], &y[..]].concat())))
            }
            Some("RSA") => {
                let (modulus, exponent) = member("n").zip(member("e")).ok_or_else(broken)?;
                let (modulus, exponent) = (trim(&modulus), trim(&exponent));
                let bits = bits(&modulus);
                if bits < MIN_RSA_BITS {
                    return Err(bad_key(&format!("key size not supported: {bits}")));
                }
                Ok(Self(Material::Rsa { modulus, exponent }))
            }
            Some(_) | None => Err(bad_key(&format!("unsupported key type {}", value["kty"]))),
        }
    }

    /// Returns the only algorithm with which this key signs requests.
    pub(super) fn algorithm(&self) -> &'static str {
        match &self.0 {
            Material::Ec(curve, _) => curve.algorithm(),
            Material::Rsa { .. } => "RS256",
        }
    }

    /// Returns whether this key made the signature (RFC 7518 §3.3, §3.4).
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match &self.0 {
            Material::Ec(curve, point) => UnparsedPublicKey::new(curve.verification(), point)
                .verify(message, signature)
                .is_ok(),
            Material::Rsa { modulus, exponent } => PublicKeyComponents { n: modulus, e: exponent }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
        }
    }

    /// Returns the key with its required members only.
    pub(super) fn json(&self) -> Value {
        let text = |octets: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(octets);
        match &self.0 {
            Material::Ec(curve, point) => {
                let (x, y) = point[1..].split_at(curve.coordinate());
                json!({ "kty": "EC", "crv": curve.name(), "x": text(x), "y": text(y) })
            }
            Material::Rsa { modulus, exponent } => {
                json!({ "kty": "RSA", "n": text(modulus), "e": text(exponent) })
            }
        }
    }

    /// Returns the thumbprint at the end of key authorizations (RFC 7638; serde_json sorts the members).
    pub(super) fn thumbprint(&self) -> String {
        let canonical = self.json().to_string();
        BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, canonical.as_bytes()))
    }

    /// Returns whether this key is the public key of a certificate or a signing request.
    pub(super) fn is(&self, subject: &SubjectPublicKeyInfo<'_>) -> bool {
        match (&self.0, subject.parsed()) {
            (Material::Ec(_, point), Ok(PublicKey::EC(other))) => point == other.data(),
            (Material::Rsa { modulus, exponent }, Ok(PublicKey::RSA(other))) => {
                *modulus == trim(other.modulus) && *exponent == trim(other.exponent)
            }
            _ => false,
        }
    }
}

fn bad_key(why: &str) -> Refusal {
    let detail = format!("Unable to validate JWS :: invalid request signing key: {why}");
    Refusal::new(Kind::BadPublicKey, detail)
}

/// Returns an unsigned number without leading zero octets.
fn trim(number: &[u8]) -> Vec<u8> {
    number.iter().copied().skip_while(|octet| *octet == 0).collect()
}

fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thumbprint_is_the_one_of_rfc_7638() {
        let key = json!({
            "kty": "RSA", "e": "AQAB", "alg": "RS256", "kid": "2011-04-29",
            "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
        });
        let key = Jwk::parse(&key).map(|key| key.thumbprint()).ok();
        assert_eq!(key.as_deref(), Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"));
    }

    #[test]
    fn a_key_that_may_not_sign_is_refused_with_the_reason() {
        for (key, kind) in [
            (json!({ "kty": "oct", "k": "c2VjcmV0" }), Kind::BadPublicKey),
            (json!({ "kty": "EC", "crv": "secp256k1", "x": "", "y": "" }), Kind::BadPublicKey),
            (json!({ "kty": "EC", "crv": "P-256", "x": "AQ", "y": "AQ" }), Kind::Malformed),
            (json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }), Kind::BadPublicKey),
            (json!({ "kty": "RSA", "n": "!", "e": "AQAB" }), Kind::Malformed),
        ] {
            assert_eq!(Jwk::parse(&key).err().map(|refusal| refusal.kind), Some(kind), "{key}");
        }
    }
}
