//! Keystores: a key and its certificates in one file under a password, as Java and Windows want them.
//!
//! The formats are written here: `p12-keystore` wraps the key of the profile LegacyRC2 with 40 bits where cert-manager
//! uses 3DES, has no PBMAC1 for Modern2026, and names certificates, unlike cert-manager; no maintained crate writes JKS.

pub mod jks;
pub mod pkcs12;
mod pkcs12_crypto;

#[cfg(test)]
mod testing;

use std::fmt;

/// Key and certificates of a keystore; never printed.
#[derive(Clone)]
pub struct Contents<'a> {
    /// Private key, PKCS#8, DER.
    pub key: &'a [u8],
    /// Certificate of the key and those of its issuers, DER.
    pub chain: &'a [Vec<u8>],
    /// Certificates to be trusted in addition, DER; an ACME server names none.
    pub authorities: &'a [Vec<u8>],
}

impl fmt::Debug for Contents<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contents(.., {} + {})", self.chain.len(), self.authorities.len())
    }
}

/// Reasons why a keystore cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeystoreError {
    /// There is no certificate to put in.
    #[error("there is no certificate for it")]
    Empty,
    /// An alias has more than the 65,535 bytes that the format counts.
    #[error("the alias is too long")]
    LongAlias,
    /// The crypto library failed.
    #[error("the crypto library failed")]
    Library,
}

impl From<aws_lc_rs::error::Unspecified> for KeystoreError {
    fn from(_: aws_lc_rs::error::Unspecified) -> Self {
        Self::Library
    }
}
