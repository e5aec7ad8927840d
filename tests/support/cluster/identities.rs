//! A cluster's CA, its certificates and kubeconfigs.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde_json::{Value, json};

/// Files that tell the servers of a cluster and their users who they are.
pub(super) struct Identities {
    folder: PathBuf,
    server: String,
    /// What clients must trust.
    pub(super) ca_pem: String,
}

impl Identities {
    /// Makes all of them anew, for an API server on this port.
    pub(super) fn generate(folder: &Path, api_port: u16) -> Self {
        let mut ca = CertificateParams::new([]).unwrap();
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        ca.distinguished_name.push(DnType::CommonName, "kubectl-acme cluster");
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let server = format!("https://127.0.0.1:{api_port}");
        let identities = Self { folder: folder.to_owned(), server, ca_pem: ca.pem() };
        identities.write("ca.pem", &ca.pem());

        let names = ["localhost", "127.0.0.1", "10.0.0.1", "kubernetes.default.svc"];
        let mut api_server = CertificateParams::new(names.map(str::to_owned)).unwrap();
        api_server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().unwrap();
        identities.write("server.pem", &api_server.signed_by(&key, &ca).unwrap().pem());
        identities.write("server.key", &key.serialize_pem());

        let accounts = KeyPair::generate().unwrap();
        identities.write("accounts.key", &accounts.serialize_pem());
        identities.write("accounts.pub", &accounts.public_key_pem());

        for (name, user, group) in [
            ("admin", "admin", Some("system:masters")),
            ("controllers", "system:kube-controller-manager", None),
        ] {
            let mut client = CertificateParams::new([]).unwrap();
            client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            client.distinguished_name.push(DnType::CommonName, user);
            if let Some(group) = group {
                client.distinguished_name.push(DnType::OrganizationName, group);
            }
            let key = KeyPair::generate().unwrap();
            let certificate = client.signed_by(&key, &ca).unwrap();
            let user = json!({
                "client-certificate-data": STANDARD.encode(certificate.pem()),
                "client-key-data": STANDARD.encode(key.serialize_pem()),
            });
            identities.write_kubeconfig(name, &user);
        }
        identities
    }

    /// The kubeconfig of one who may do everything.
    pub(super) fn admin(&self) -> PathBuf {
        self.path("admin.kubeconfig")
    }

    /// Writes a kubeconfig for the bearer of a token.
    pub(super) fn write_token(&self, name: &str, token: &str) -> PathBuf {
        self.write_kubeconfig(name, &json!({"token": token}))
    }

    /// Flags of the API server that name these files.
    pub(super) fn api_server(&self) -> Vec<String> {
        let flags = [
            ("tls-cert-file", "server.pem"),
            ("tls-private-key-file", "server.key"),
            ("client-ca-file", "ca.pem"),
            ("service-account-key-file", "accounts.pub"),
            ("service-account-signing-key-file", "accounts.key"),
            ("cert-dir", "unused"),
        ];
        self.flags(&flags)
    }

    /// Flags of the controller manager that name these files.
    pub(super) fn controllers(&self) -> Vec<String> {
        let flags = [
            ("kubeconfig", "controllers.kubeconfig"),
            ("service-account-private-key-file", "accounts.key"),
            ("root-ca-file", "ca.pem"),
        ];
        self.flags(&flags)
    }

    fn flags(&self, flags: &[(&str, &str)]) -> Vec<String> {
        flags.iter().map(|(flag, file)| format!("--{flag}={}", self.path(file).display())).collect()
    }

    fn write_kubeconfig(&self, name: &str, user: &Value) -> PathBuf {
        let cluster = json!({
            "server": self.server,
            "certificate-authority-data": STANDARD.encode(&self.ca_pem),
        });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "bed",
            "clusters": [{"name": "bed", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "bed", "context": {"cluster": "bed", "user": name}}],
        });
        self.write(&format!("{name}.kubeconfig"), &config.to_string())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}
