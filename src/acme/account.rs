//! Account keys: generated, read from a Secret, or written to a Secret; never printed.
//!
//! A key generated for a store of our own is ECDSA P-256, which is quick to generate and to sign with. A key generated
//! for a cluster is RSA 2048, because cert-manager can use no other. The caller that starts the controllers chooses.
//! Keys that are given may use any supported algorithm.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::jws::Signer;
use super::keys::{KeyEncoding, KeyError, PrivateKey};
use crate::model::KeyAlgorithm;

/// Signature algorithms of accounts, each with the key that is generated for the algorithm.
const SIGNERS: [(&str, KeyAlgorithm); 3] = [
    ("ES256", KeyAlgorithm::Ecdsa(256)),
    ("ES384", KeyAlgorithm::Ecdsa(384)),
    ("RS256", KeyAlgorithm::Rsa(2048)),
];

/// The key of an account. Cheap to clone.
#[derive(Clone)]
pub struct AccountKey(Arc<KeyParts>);

struct KeyParts {
    key: PrivateKey,
    signer: Signer,
    thumbprint: String,
}

impl AccountKey {
    /// Makes a key: RSA, ECDSA P-256 or ECDSA P-384. cert-manager can use RSA accounts only.
    pub fn generate(algorithm: KeyAlgorithm) -> Result<Self, KeyError> {
        Self::from_key(PrivateKey::generate(algorithm)?)
    }

    /// Reads a key: PKCS#1, SEC1 or PKCS#8.
    pub fn from_pem(text: &[u8]) -> Result<Self, KeyError> {
        Self::from_key(PrivateKey::from_pem(text)?)
    }

    /// Chooses the key to generate for an account whose CA takes these signature algorithms (names of RFC 7518): the
    /// quickest that we can sign with; `None` if the CA takes none of ours.
    pub fn algorithm_among(taken: &[String]) -> Option<KeyAlgorithm> {
        SIGNERS.iter().find(|(name, _)| taken.iter().any(|t| t == name)).map(|(_, made)| *made)
    }

    /// Makes an account key of a private key.
    ///
    /// # Errors
    /// Fails if ACME has no signature algorithm for the key.
    pub fn from_key(key: PrivateKey) -> Result<Self, KeyError> {
        let signer = Signer::new(&key)?;
        let thumbprint = signer.jwk().thumbprint();
        Ok(Self(Arc::new(KeyParts { key, signer, thumbprint })))
    }

    /// Algorithm and size of the key.
    pub fn algorithm(&self) -> KeyAlgorithm {
        self.0.key.algorithm()
    }

    /// The key as cert-manager stores it: `RSA PRIVATE KEY`, or `EC PRIVATE KEY`.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, KeyError> {
        self.0.key.to_pem(KeyEncoding::Pkcs1)
    }

    /// JWK thumbprint (RFC 7638), base64url.
    pub fn thumbprint(&self) -> &str {
        &self.0.thumbprint
    }

    /// Value of `status.acme.lastPrivateKeyHash` of an Issuer, in standard base64: for an RSA key SHA-256 of the PKCS#1
    /// form, as cert-manager computes it; for other keys, which cert-manager cannot use, SHA-256 of the public key.
    pub fn hash(&self) -> String {
        let hash = match self.0.key.pkcs1() {
            Some(pkcs1) => digest(&SHA256, &pkcs1),
            None => digest(&SHA256, self.0.key.public_key()),
        };
        STANDARD.encode(hash)
    }

    pub(super) fn signer(&self) -> &Signer {
        &self.0.signer
    }
}

impl fmt::Debug for AccountKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AccountKey({}, ..)", self.algorithm())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::openssl::openssl;

    #[test]
    fn a_key_survives_its_secret() {
        for (algorithm, tag) in [
            (KeyAlgorithm::Rsa(2048), "RSA PRIVATE KEY"),
            (KeyAlgorithm::Ecdsa(256), "EC PRIVATE KEY"),
            (KeyAlgorithm::Ecdsa(384), "EC PRIVATE KEY"),
        ] {
            let key = AccountKey::generate(algorithm).unwrap();
            let pem = key.to_pem().unwrap();
            assert!(pem.starts_with(&format!("-----BEGIN {tag}-----")));
            let again = AccountKey::from_pem(pem.as_bytes()).unwrap();
            assert_eq!(again.thumbprint(), key.thumbprint());
            assert_eq!(again.hash(), key.hash());
        }
    }

    #[test]
    fn the_hash_of_an_rsa_key_is_cert_managers() {
        let key = AccountKey::generate(KeyAlgorithm::Rsa(2048)).unwrap();
        let pem = key.to_pem().unwrap();
        let der = openssl(&["rsa", "-traditional", "-outform", "DER"], pem.as_bytes());
        let hash = openssl(&["dgst", "-sha256", "-binary"], &der);
        assert_eq!(key.hash(), STANDARD.encode(hash));
    }

    #[test]
    fn a_key_is_made_for_an_algorithm_that_the_ca_takes() {
        for (taken, made) in [
            (&["RS256"][..], Some(KeyAlgorithm::Rsa(2048))),
            (&["RS256", "ES256"], Some(KeyAlgorithm::Ecdsa(256))),
            (&["EdDSA", "ES384"], Some(KeyAlgorithm::Ecdsa(384))),
            (&["EdDSA"], None),
            (&[], None),
        ] {
            let taken: Vec<String> = taken.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(AccountKey::algorithm_among(&taken), made, "{taken:?}");
        }
    }

    #[test]
    fn an_account_key_does_not_print() {
        let key = AccountKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
        assert_eq!(format!("{key:?}"), "AccountKey(ECDSA P-256, ..)");
    }
}
