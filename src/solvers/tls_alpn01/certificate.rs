//! Certificate that proves control (RFC 8737 §3).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::digest;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, Error, KeyPair, SanType,
};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;

use crate::model::{Answer, Identifier};

/// Makes a self-signed certificate with the identifier as its only name, and the digest of the key authorization in the
/// critical extension `acmeIdentifier`.
pub(super) fn showing(answer: &Answer) -> Result<Arc<CertifiedKey>, Unmade> {
    let mut parameters = CertificateParams::default();
    parameters.subject_alt_names = vec![match &answer.identifier {
        Identifier::Dns(name) => SanType::DnsName(name.base().to_owned().try_into()?),
        Identifier::Ip(address) => SanType::IpAddress(*address),
    }];
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "ACME challenge");
    let digest = digest::digest(&digest::SHA256, answer.key_authorization.as_bytes());
    parameters.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    let pair = KeyPair::generate()?;
    let certificate = parameters.self_signed(&pair)?;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(pair.serialize_der()));
    let key = any_supported_type(&key).map_err(|error| Unmade(error.to_string()))?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

/// Reason why there is no certificate.
#[derive(Debug)]
pub(super) struct Unmade(String);

impl fmt::Display for Unmade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<Error> for Unmade {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}
