//! Private keys: made, read and written in every form that cert-manager and openssl know.

use std::fmt;

use async_trait::async_trait;
use aws_lc_rs::encoding::{AsDer, EcPrivateKeyRfc5915Der, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, ECDSA_P521_SHA512_ASN1_SIGNING,
    EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair as _,
};
use pem::{EncodeConfig, LineEnding, Pem};
use zeroize::Zeroizing;

use crate::model::KeyAlgorithm;

const PKCS8: &str = "PRIVATE KEY";
const PKCS1: &str = "RSA PRIVATE KEY";
const SEC1: &str = "EC PRIVATE KEY";
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
/// Reason given for a key that no reader takes.
const UNUSABLE: &str =
    "it is damaged, or none of RSA (2048 to 8192 bits), ECDSA (P-256, P-384, P-521) and Ed25519";

/// Written form of a key, in cert-manager's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyEncoding {
    /// `PKCS1`: `RSA PRIVATE KEY` (RFC 8017), `EC PRIVATE KEY` (RFC 5915); Ed25519 has no such form and stays PKCS#8.
    #[default]
    Pkcs1,
    /// `PKCS8`: `PRIVATE KEY` (RFC 5208).
    Pkcs8,
}

/// Error of reading, making or using a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text holds no key that we can use.
    #[error("cannot read private key: {0}")]
    Unreadable(String),
    /// A key of that algorithm cannot be made.
    #[error("cannot make {0} key: {1}")]
    Unmakeable(KeyAlgorithm, &'static str),
    /// The key is good, but not for this purpose.
    #[error("cannot use {0} key: {1}")]
    Unusable(KeyAlgorithm, &'static str),
}

/// A private key, checked when read; neither prints nor stays in memory after use.
#[derive(Clone)]
pub struct PrivateKey {
    algorithm: KeyAlgorithm,
    pkcs8: Zeroizing<Vec<u8>>,
    public_key: Vec<u8>,
}

/// Makes the keys of certificates and accounts.
#[async_trait]
pub trait KeyMaker: fmt::Debug + Send + Sync {
    /// Makes a key of that algorithm.
    ///
    /// # Errors
    /// Fails if no key of that algorithm can be made.
    async fn make(&self, algorithm: KeyAlgorithm) -> Result<PrivateKey, KeyError>;
}

impl PrivateKey {
    /// Makes a key. RSA 2048 takes some 50 ms of computing, RSA 4096 half a second, RSA 8192 several seconds.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, KeyError> {
        let broken = |_: Unspecified| KeyError::Unmakeable(algorithm, "the crypto library failed");
        let made = match algorithm {
            KeyAlgorithm::Rsa(bits) => {
                let size = rsa_size(bits).ok_or(KeyError::Unmakeable(
                    algorithm,
                    "only 2048, 3072, 4096 and 8192 bits can be made",
                ))?;
                of_rsa(&RsaKeyPair::generate(size).map_err(broken)?)
            }
            KeyAlgorithm::Ecdsa(bits) => {
                let curve = curve(bits).ok_or(KeyError::Unmakeable(
                    algorithm,
                    "only the curves P-256, P-384 and P-521 are known",
                ))?;
                of_ecdsa(bits, &EcdsaKeyPair::generate(curve).map_err(broken)?)
            }
            KeyAlgorithm::Ed25519 => of_ed25519(&Ed25519KeyPair::generate().map_err(broken)?),
        };
        made.map_err(broken)
    }

    /// Reads the first private key of a PEM text, in any of the three forms; other blocks are passed over.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        let unreadable = |why: &str| KeyError::Unreadable(why.to_owned());
        let blocks = pem::parse_many(text).map_err(|e| unreadable(&e.to_string()))?;
        let block = blocks
            .into_iter()
            .find(|b| matches!(b.tag(), PKCS8 | PKCS1 | SEC1 | ENCRYPTED))
            .ok_or_else(|| unreadable("there is no PEM block of a private key"))?;
        if block.tag() == ENCRYPTED || block.headers().get("Proc-Type").is_some() {
            return Err(unreadable("it is encrypted"));
        }
        let tag = block.tag().to_owned();
        let der = Zeroizing::new(block.into_contents());
        let read = match tag.as_str() {
            PKCS1 => rsa_from_pkcs1(&der),
            SEC1 => ecdsa_from_der(&der),
            _ => rsa_from_pkcs8(&der).or_else(|| ecdsa_from_der(&der)).or_else(|| ed25519(&der)),
        };
        read.ok_or_else(|| unreadable(UNUSABLE))
    }

    /// Reads a private key, DER, in any of the three forms.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let readers = [rsa_from_pkcs8, rsa_from_pkcs1, ecdsa_from_der, ed25519];
        let read = readers.into_iter().find_map(|read| read(der));
        read.ok_or_else(|| KeyError::Unreadable(UNUSABLE.to_owned()))
    }

    /// Algorithm and size of the key.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.algorithm
    }

    /// The public half as SubjectPublicKeyInfo (RFC 5280 §4.1.2.7), DER; equal exactly when the keys are.
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// The key as PEM.
    pub fn to_pem(&self, encoding: KeyEncoding) -> Result<Zeroizing<String>, KeyError> {
        let broken = || KeyError::Unusable(self.algorithm, "the crypto library failed");
        let (tag, der) = match (encoding, self.algorithm) {
            (KeyEncoding::Pkcs1, KeyAlgorithm::Rsa(_)) => (PKCS1, self.pkcs1().ok_or_else(broken)?),
            (KeyEncoding::Pkcs1, KeyAlgorithm::Ecdsa(_)) => (SEC1, self.sec1().ok_or_else(broken)?),
            (KeyEncoding::Pkcs1, KeyAlgorithm::Ed25519) | (KeyEncoding::Pkcs8, _) => {
                (PKCS8, self.pkcs8.clone())
            }
        };
        Ok(Zeroizing::new(to_pem(tag, &der)))
    }

    /// PKCS#8, version 1, DER.
    pub fn pkcs8(&self) -> &[u8] {
        &self.pkcs8
    }

    /// RSAPrivateKey (RFC 8017 §A.1.2), DER; `None` for other keys.
    pub(super) fn pkcs1(&self) -> Option<Zeroizing<Vec<u8>>> {
        let KeyAlgorithm::Rsa(_) = self.algorithm else { return None };
        let info = pkcs8::PrivateKeyInfoRef::try_from(self.pkcs8()).ok()?;
        Some(Zeroizing::new(info.private_key.as_bytes().to_vec()))
    }

    /// ECPrivateKey with the curve's name inside (RFC 5915 §3), DER; `None` for other keys.
    fn sec1(&self) -> Option<Zeroizing<Vec<u8>>> {
        let KeyAlgorithm::Ecdsa(bits) = self.algorithm else { return None };
        let pair = EcdsaKeyPair::from_pkcs8(curve(bits)?, self.pkcs8()).ok()?;
        let der: EcPrivateKeyRfc5915Der<'_> = pair.private_key().as_der().ok()?;
        Some(Zeroizing::new(der.as_ref().to_vec()))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey({}, ..)", self.algorithm)
    }
}

/// Encodes one PEM block with LF line ends, which all readers take.
pub(super) fn to_pem(tag: &str, der: &[u8]) -> String {
    pem::encode_config(&Pem::new(tag, der), EncodeConfig::new().set_line_ending(LineEnding::LF))
}

fn rsa_size(bits: u32) -> Option<KeySize> {
    match bits {
        2048 => Some(KeySize::Rsa2048),
        3072 => Some(KeySize::Rsa3072),
        4096 => Some(KeySize::Rsa4096),
        8192 => Some(KeySize::Rsa8192),
        _ => None,
    }
}

fn curve(bits: u32) -> Option<&'static EcdsaSigningAlgorithm> {
    match bits {
        256 => Some(&ECDSA_P256_SHA256_ASN1_SIGNING),
        384 => Some(&ECDSA_P384_SHA384_ASN1_SIGNING),
        521 => Some(&ECDSA_P521_SHA512_ASN1_SIGNING),
        _ => None,
    }
}

fn rsa_from_pkcs1(der: &[u8]) -> Option<PrivateKey> {
    of_rsa(&RsaKeyPair::from_der(der).ok()?).ok()
}

fn rsa_from_pkcs8(der: &[u8]) -> Option<PrivateKey> {
    of_rsa(&RsaKeyPair::from_pkcs8(der).ok()?).ok()
}

/// Reads SEC1 and PKCS#8 alike.
fn ecdsa_from_der(der: &[u8]) -> Option<PrivateKey> {
    [256, 384, 521].into_iter().find_map(|bits| {
        of_ecdsa(bits, &EcdsaKeyPair::from_private_key_der(curve(bits)?, der).ok()?).ok()
    })
}

/// Reads PKCS#8 of both versions; OpenSSL before 3.5 writes and reads only the first.
fn ed25519(der: &[u8]) -> Option<PrivateKey> {
    of_ed25519(&Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).ok()?).ok()
}

fn of_rsa(pair: &RsaKeyPair) -> Result<PrivateKey, Unspecified> {
    let pkcs8: Pkcs8V1Der<'_> = pair.as_der()?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
    let bits = u32::try_from(pair.public_modulus_len() * 8).map_err(|_| Unspecified)?;
    Ok(private_key(KeyAlgorithm::Rsa(bits), pkcs8.as_ref(), public.as_ref()))
}

fn of_ecdsa(bits: u32, pair: &EcdsaKeyPair) -> Result<PrivateKey, Unspecified> {
    let pkcs8 = pair.to_pkcs8v1()?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
    Ok(private_key(KeyAlgorithm::Ecdsa(bits), pkcs8.as_ref(), public.as_ref()))
}

fn of_ed25519(pair: &Ed25519KeyPair) -> Result<PrivateKey, Unspecified> {
    let pkcs8 = pair.to_pkcs8v1()?;
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der()?;
    Ok(private_key(KeyAlgorithm::Ed25519, pkcs8.as_ref(), public.as_ref()))
}

fn private_key(algorithm: KeyAlgorithm, pkcs8: &[u8], public_key: &[u8]) -> PrivateKey {
    PrivateKey { algorithm, pkcs8: Zeroizing::new(pkcs8.to_vec()), public_key: public_key.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::openssl::openssl;

    const ALL: [KeyAlgorithm; 5] = [
        KeyAlgorithm::Rsa(2048),
        KeyAlgorithm::Ecdsa(256),
        KeyAlgorithm::Ecdsa(384),
        KeyAlgorithm::Ecdsa(521),
        KeyAlgorithm::Ed25519,
    ];

    /// The key goes through that form and back, and openssl finds the same public half in it.
    fn check(key: &PrivateKey, encoding: KeyEncoding, tag: &str) {
        let pem = key.to_pem(encoding).unwrap();
        assert!(pem.starts_with(&format!("-----BEGIN {tag}-----\n")), "{key:?}");
        let again = PrivateKey::from_pem(pem.as_bytes()).unwrap();
        assert_eq!(again.algorithm(), key.algorithm());
        assert_eq!(again.public_key(), key.public_key());
        assert_eq!(*again.to_pem(encoding).unwrap(), *pem);
        let theirs = openssl(&["pkey", "-pubout", "-outform", "DER"], pem.as_bytes());
        assert_eq!(theirs, key.public_key(), "{key:?} as {tag}");
    }

    #[test]
    fn openssl_reads_every_key_in_every_form() {
        for algorithm in ALL {
            let key = PrivateKey::generate(algorithm).unwrap();
            assert_eq!(key.algorithm(), algorithm);
            check(&key, KeyEncoding::Pkcs8, PKCS8);
            let old = match algorithm {
                KeyAlgorithm::Rsa(_) => PKCS1,
                KeyAlgorithm::Ecdsa(_) => SEC1,
                KeyAlgorithm::Ed25519 => PKCS8,
            };
            check(&key, KeyEncoding::Pkcs1, old);
        }
    }

    #[test]
    fn keys_made_by_openssl_are_read() {
        for (arguments, algorithm) in [
            (&["genrsa", "-traditional", "2048"][..], KeyAlgorithm::Rsa(2048)),
            (&["genrsa", "2560"], KeyAlgorithm::Rsa(2560)),
            (&["ecparam", "-genkey", "-name", "prime256v1"], KeyAlgorithm::Ecdsa(256)),
            (&["ecparam", "-genkey", "-noout", "-name", "secp384r1"], KeyAlgorithm::Ecdsa(384)),
            (
                &["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-521"],
                KeyAlgorithm::Ecdsa(521),
            ),
            (&["genpkey", "-algorithm", "ed25519"], KeyAlgorithm::Ed25519),
        ] {
            let key = PrivateKey::from_pem(&openssl(arguments, b"")).unwrap();
            assert_eq!(key.algorithm(), algorithm, "{arguments:?}");
        }
    }

    #[test]
    fn what_is_no_usable_key_is_refused_with_the_reason() {
        let encrypted = openssl(&["genrsa", "-aes128", "-passout", "pass:x", "2048"], b"");
        let old =
            openssl(&["genrsa", "-traditional", "-aes128", "-passout", "pass:x", "2048"], b"");
        for (pem, reason) in [
            (&b""[..], "no PEM block"),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "no PEM block"),
            (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "damaged"),
            (&encrypted, "encrypted"),
            (&old, "encrypted"),
            (&openssl(&["genrsa", "1024"], b""), "2048 to 8192"),
            (&openssl(&["ecparam", "-genkey", "-name", "secp256k1"], b""), "P-256"),
        ] {
            let error = PrivateKey::from_pem(pem).map(|k| k.algorithm()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
        for algorithm in
            [KeyAlgorithm::Rsa(1024), KeyAlgorithm::Rsa(2560), KeyAlgorithm::Ecdsa(224)]
        {
            assert!(PrivateKey::generate(algorithm).is_err(), "{algorithm}");
        }
    }

    #[test]
    fn a_key_does_not_print() {
        let key = PrivateKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
        assert_eq!(format!("{key:?}"), "PrivateKey(ECDSA P-256, ..)");
    }
}
