//! Trust in a CA's server by the bundle of an Issuer: each certificate is a root, and is also trusted as a server's.
//!
//! `openssl req -x509` makes certificates that may sign others (CA:TRUE), which verifiers do not take from a server.
//! A user who puts exactly the server's certificate into the bundle trusts it: only names and dates are left to check.

use std::sync::Arc;

use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::chain;

/// Verifies by the certificates of a bundle.
#[derive(Debug)]
struct BundleVerifier {
    certificates: Vec<CertificateDer<'static>>,
    roots: Arc<WebPkiServerVerifier>,
}

/// Builds the TLS configuration of a client that trusts the certificates of a bundle (PEM) alone.
///
/// # Errors
/// Fails with the reason if the bundle holds no certificate, or a certificate cannot be read.
pub(super) fn client_config(bundle: &[u8]) -> Result<ClientConfig, String> {
    let read: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(bundle).collect();
    let certificates = read.map_err(|error| format!("caBundle is not PEM: {error}"))?;
    if certificates.is_empty() {
        return Err("caBundle holds no certificate".to_owned());
    }
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        let added = roots.add(certificate.clone());
        added.map_err(|error| format!("caBundle holds what is no certificate: {error}"))?;
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let roots = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
    let roots = roots.build().map_err(|error| error.to_string())?;
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    let verifier = Arc::new(BundleVerifier { certificates, roots });
    let config = config.dangerous().with_custom_certificate_verifier(verifier);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

impl ServerCertVerifier for BundleVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if !self.certificates.contains(end_entity) {
            let chain = (end_entity, intermediates);
            return self.roots.verify_server_cert(
                chain.0,
                chain.1,
                server_name,
                ocsp_response,
                now,
            );
        }
        verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        let leaf = chain::leaf_of_der(end_entity)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let now = i64::try_from(now.as_secs()).ok().and_then(|at| Timestamp::from_second(at).ok());
        let now = now.ok_or(Error::FailedToGetCurrentTime)?;
        if now < leaf.not_before {
            return Err(Error::InvalidCertificate(CertificateError::NotValidYet));
        }
        if now > leaf.not_after {
            return Err(Error::InvalidCertificate(CertificateError::Expired));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.roots.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.roots.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair, date_time_ymd};

    use super::*;

    /// A certificate that signs itself and may sign others, for one name and the year 2026.
    fn self_signed(name: &str) -> rcgen::Certificate {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2026, 12, 31);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    fn verifier(bundle: &rcgen::Certificate) -> BundleVerifier {
        let certificates = vec![bundle.der().clone()];
        let mut roots = RootCertStore::empty();
        roots.add(bundle.der().clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let roots = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        BundleVerifier { certificates, roots: roots.build().unwrap() }
    }

    #[test]
    fn a_certificate_of_the_bundle_is_trusted_for_its_names_and_dates() {
        let (own, other) = (self_signed("ca.test"), self_signed("ca.test"));
        let check = |shown: &rcgen::Certificate, name: &'static str, now: &str, fits: bool| {
            let name = ServerName::try_from(name).unwrap();
            let now: Timestamp = now.parse().unwrap();
            let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap());
            let now = UnixTime::since_unix_epoch(now);
            let verified = verifier(&own).verify_server_cert(shown.der(), &[], &name, &[], now);
            assert_eq!(verified.is_ok(), fits, "{name:?}: {verified:?}");
        };
        check(&own, "ca.test", "2026-06-01T00:00:00Z", true);
        check(&own, "other.test", "2026-06-01T00:00:00Z", false);
        check(&own, "ca.test", "2025-06-01T00:00:00Z", false);
        check(&own, "ca.test", "2027-06-01T00:00:00Z", false);
        check(&other, "ca.test", "2026-06-01T00:00:00Z", false);
    }
}
