//! TLS without trust: a server under validation has no good certificate yet.

use std::sync::{Arc, LazyLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use crate::model::names::ACME_TLS;

/// Configuration that takes any certificate, as CAs do when a redirect leads to HTTPS.
static CONFIG: LazyLock<Result<Arc<ClientConfig>, Error>> = LazyLock::new(|| build_config(&[]));
/// Configuration that takes any certificate, for the response of TLS-ALPN-01 alone (RFC 8737 §3).
static ACME: LazyLock<Result<Arc<ClientConfig>, Error>> =
    LazyLock::new(|| build_config(&[ACME_TLS]));

fn build_config(protocols: &[&[u8]]) -> Result<Arc<ClientConfig>, Error> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let verifier = Arc::new(AnyCertificate(Arc::clone(&provider)));
    with_verifier(provider, verifier, protocols)
}

/// Builds a configuration with that verifier: TLS 1.2 and 1.3.
pub(super) fn with_verifier(
    provider: Arc<CryptoProvider>,
    verifier: Arc<dyn ServerCertVerifier>,
    protocols: &[&[u8]],
) -> Result<Arc<ClientConfig>, Error> {
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

/// Returns the configuration of all connections without trust: TLS 1.2 and 1.3, certificates not verified.
pub(super) fn config() -> Result<Arc<ClientConfig>, Error> {
    CONFIG.clone()
}

/// Returns the configuration that asks for the response of TLS-ALPN-01.
pub(super) fn acme_config() -> Result<Arc<ClientConfig>, Error> {
    ACME.clone()
}

#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
