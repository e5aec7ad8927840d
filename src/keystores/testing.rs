//! Certificate chain to put into keystores, and the programs that have to read keystores: Java's keytool and openssl.

use std::io::Write as _;
use std::process::Command;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
};

use super::Contents;
use crate::acme::{KeyEncoding, PrivateKey};
use crate::model::KeyAlgorithm;

/// Key, its certificate without a subject, and the certificate of the CA.
pub(super) struct Chain {
    key: PrivateKey,
    certificates: Vec<Vec<u8>>,
}

impl Chain {
    /// Makes a chain.
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "root ü");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let root = params.self_signed(&key).unwrap().der().to_vec();
        let issuer = Issuer::new(params, key);
        let key = PrivateKey::generate(KeyAlgorithm::Rsa(2048)).unwrap();
        let pair = KeyPair::from_pem(&key.to_pem(KeyEncoding::Pkcs8).unwrap()).unwrap();
        let mut params = CertificateParams::new(["www.example.com".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        let leaf = params.signed_by(&pair, &issuer).unwrap().der().to_vec();
        Self { key, certificates: vec![leaf, root] }
    }

    /// Returns the contents of a keystore with the given authorities.
    pub(super) fn contents<'a>(&'a self, authorities: &'a [Vec<u8>]) -> Contents<'a> {
        Contents { key: self.key.pkcs8(), chain: &self.certificates, authorities }
    }

    /// Returns the certificate of the CA.
    pub(super) fn authority(&self) -> Vec<u8> {
        self.certificates[1].clone()
    }

    /// Returns the text between the delimiters of the PEM blocks of the key and of each certificate, without line breaks.
    pub(super) fn pem_bodies(&self) -> Vec<String> {
        let certificates =
            self.certificates.iter().map(|der| pem::Pem::new("CERTIFICATE", &der[..]));
        let blocks = certificates.chain([pem::Pem::new("PRIVATE KEY", self.key.pkcs8())]);
        let body = |block: pem::Pem| {
            let text = pem::encode(&block).replace("\r\n", "\n");
            text.lines().filter(|line| !line.starts_with("-----")).collect()
        };
        blocks.map(body).collect()
    }
}

/// Returns keytool's description of a keystore; fails the test if keytool does not read the keystore.
pub(super) fn keytool(keystore: &[u8], kind: &str, password: &str) -> String {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(keystore).unwrap();
    let output = Command::new("keytool")
        .args(["-J-Dfile.encoding=UTF-8", "-J-Dsun.jnu.encoding=UTF-8", "-J-Duser.language=en"])
        .args(["-J-Dstdout.encoding=UTF-8", "-list", "-v", "-storetype", kind, "-keystore"])
        .arg(file.path())
        .args(["-storepass:env", "KEYSTORE_PASSWORD"])
        .env("KEYSTORE_PASSWORD", password)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("tests need keytool on the PATH");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "keytool: {said}");
    said
}

/// Returns the parts that openssl extracts from a PKCS#12 file, and its description of these parts.
pub(super) fn openssl(keystore: &[u8], password: &str, flags: &[&str]) -> (String, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(keystore).unwrap();
    let output = Command::new("openssl")
        .args(["pkcs12", "-info", "-legacy", "-nodes", "-passin", "env:KEYSTORE_PASSWORD", "-in"])
        .arg(file.path())
        .args(flags)
        .env("KEYSTORE_PASSWORD", password)
        .env("LC_ALL", "C.UTF-8")
        .output()
        .expect("tests need openssl on the PATH");
    let [out, said] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "openssl: {said}");
    (out, said)
}
