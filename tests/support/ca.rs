//! Our own CA in the process of the test, and one port of loopback to which every name leads.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use kubectl_acme::ca::{self, Config, Look, Server};
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::model::Blob;
use serde_json::{Value, json};
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer as _;

use super::bed;

/// A CA at work, and where its validation looks.
#[derive(Debug)]
pub struct TestCa {
    /// The CA.
    pub server: Server,
    /// Where answers to HTTP-01 are looked for; free until somebody listens there.
    pub http01: SocketAddr,
}

impl TestCa {
    /// Starts it; `look` makes its eyes from those that find everything at [`Self::http01`].
    pub async fn start<L: Look + 'static>(config: Config, look: impl FnOnce(Fetcher) -> L) -> Self {
        let http01 = SocketAddr::from((Ipv4Addr::LOCALHOST, bed::free_port()));
        let server = ca::serve(config, Arc::new(look(fetcher(http01)))).await.unwrap();
        Self { server, http01 }
    }

    /// Eyes for which every name is at [`Self::http01`].
    pub fn fetcher(&self) -> Fetcher {
        fetcher(self.http01)
    }

    /// An Issuer `acme` of this CA, whose account key is in Secret `acme-account`.
    pub fn issuer(&self) -> Value {
        json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "default"},
            "spec": {"acme": {
                "server": self.server.directory_url(),
                "caBundle": Blob(self.server.tls_root_pem().as_bytes().to_vec()),
                "privateKeySecretRef": {"name": "acme-account"},
                "solvers": [{"http01": {"ingress": {}}}],
            }},
        })
    }
}

/// A Certificate of Issuer `acme` with Secret `NAME-tls`.
pub fn certificate(name: &str, names: &[&str], algorithm: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "secretName": format!("{name}-tls"),
            "dnsNames": names,
            "privateKey": {"algorithm": algorithm},
            "issuerRef": {"name": "acme"},
        },
    })
}

/// Tells whether the first certificate of a PEM text is for that private key; both are read by other code than ours.
pub fn is_pair(certificate: &[u8], key: &[u8]) -> bool {
    let (_, leaf) = x509_parser::pem::parse_x509_pem(certificate).unwrap();
    let key = rcgen::KeyPair::from_pem(std::str::from_utf8(key).unwrap()).unwrap();
    let of_leaf = leaf.parse_x509().unwrap().tbs_certificate.subject_pki.raw.to_vec();
    of_leaf == rcgen::PublicKeyData::subject_public_key_info(&key)
}

/// Tells whether a signing request in PEM is for that private key; both are read by other code than ours.
pub fn is_request_for(request: &[u8], key: &[u8]) -> bool {
    let (_, request) = x509_parser::pem::parse_x509_pem(request).unwrap();
    let (_, request) = X509CertificationRequest::from_der(&request.contents).unwrap();
    let key = rcgen::KeyPair::from_pem(std::str::from_utf8(key).unwrap()).unwrap();
    let wanted = request.certification_request_info.subject_pki.raw.to_vec();
    wanted == rcgen::PublicKeyData::subject_public_key_info(&key)
}

fn fetcher(http01: SocketAddr) -> Fetcher {
    let everything: (IpAddr, Option<u16>) = (http01.ip(), Some(http01.port()));
    let overrides =
        Overrides { hosts: [("*".to_owned(), everything)].into(), ..Overrides::default() };
    Fetcher { resolver: Arc::new(SystemResolver::new()), overrides }
}
