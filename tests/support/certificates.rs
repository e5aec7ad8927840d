//! A CA for the TLS listeners of one test.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};

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
}
