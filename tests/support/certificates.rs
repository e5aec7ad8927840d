//! A CA for the TLS listeners of one test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

/// A certificate for `localhost` and 127.0.0.1, and the CA that signed it; all of it PEM.
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
    /// Makes both anew.
    pub fn generate() -> Self {
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "kubectl-acme tests");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();

        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut leaf = CertificateParams::new(names).unwrap();
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        leaf.use_authority_key_identifier_extension = true;
        leaf.distinguished_name.push(DnType::CommonName, "localhost");
        let key = KeyPair::generate().unwrap();
        let certificate = leaf.signed_by(&key, &ca).unwrap();
        Self { ca: ca.pem(), certificate: certificate.pem(), key: key.serialize_pem() }
    }
}
