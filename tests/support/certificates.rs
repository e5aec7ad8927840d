//! A CA for the TLS listeners of one test.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A certificate, and the CA that signed it; all of it PEM.
#[derive(Clone)]
pub struct LocalCertificates {
    /// What clients must trust.
    pub ca: String,
    /// Leaf.
    pub certificate: String,
    /// Key of the leaf, PKCS#8.
    pub key: String,
}

impl LocalCertificates {
    /// Makes both anew, for `localhost` and 127.0.0.1.
    pub fn generate() -> Self {
        Self::for_names(&["localhost", "127.0.0.1"])
    }

    /// Makes both anew, for these names and addresses.
    pub fn for_names(names: &[&str]) -> Self {
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "kubectl-acme tests");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();

        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut leaf = CertificateParams::new(names).unwrap();
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &ca).unwrap();
        Self { ca: ca.pem(), certificate: certificate.pem(), key: key.serialize_pem() }
    }

    /// What takes TLS connections with them.
    pub fn acceptor(&self) -> TlsAcceptor {
        let chain = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![chain], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}
