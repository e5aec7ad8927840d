//! A namespace, a folder with manifests, and the program itself.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::cluster::{Cluster, Namespace};
use crate::support::pebble::Pebble;
use crate::support::program;

/// A namespace with a folder in which the program runs.
pub(super) struct Site<'c> {
    cluster: &'c Cluster,
    pub(super) namespace: Namespace<'c>,
    folder: TempDir,
}

/// How a run ended, in the user's eyes.
#[derive(Debug)]
pub(super) struct Said {
    code: Option<i32>,
    pub(super) result: String,
    pub(super) talk: String,
}

impl Said {
    /// Fails unless the exit code is that, and standard error has each of these texts.
    #[track_caller]
    pub(super) fn check(&self, what: &str, code: i32, says: &[&str]) {
        let Self { talk, result, .. } = self;
        assert_eq!(self.code, Some(code), "{what}:\n{talk}\n{result}");
        for text in says {
            assert!(talk.contains(text), "{what} should say {text:?}:\n{talk}");
        }
        let of_libraries = ["ServiceError", "HyperError", " ERROR ", " WARN ", "Some(", "Output {"];
        assert!(!of_libraries.iter().any(|word| talk.contains(word)), "{what}:\n{talk}");
    }
}

impl<'c> Site<'c> {
    /// Makes a namespace whose name begins so.
    pub(super) fn new(cluster: &'c Cluster, name: &str) -> Self {
        Self { cluster, namespace: cluster.namespace(name), folder: TempDir::new().unwrap() }
    }

    /// The name of the namespace.
    pub(super) fn name(&self) -> &str {
        self.namespace.name()
    }

    /// Writes a file beside which the program runs.
    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Runs the program with a kubeconfig, in the namespace.
    pub(super) fn run_as(&self, kubeconfig: &Path, words: &str) -> Said {
        let output = program::command()
            .args(words.split_whitespace())
            .env("PATH", "/usr/bin:/bin")
            .env("KUBECONFIG", kubeconfig)
            .env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{}", self.cluster.http_port()))
            .current_dir(self.folder.path())
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said {
            code: output.status.code(),
            result: text(&output.stdout),
            talk: text(&output.stderr),
        }
    }

    /// Runs the program as one who may do everything.
    pub(super) fn run(&self, words: &str) -> Said {
        self.run_as(&self.cluster.kubeconfig(), words)
    }

    /// How many Issuers and Certificates there are in the namespace.
    pub(super) fn applied(&self) -> usize {
        let kubectl = self.namespace.kubectl();
        kubectl.items("issuers").len() + kubectl.items("certificates").len()
    }
}

/// An Issuer that nobody asks, and a Certificate of it.
pub(super) fn manifests(namespace: &str) -> Vec<Value> {
    vec![issuer(namespace, "https://ca.example/dir"), certificate(namespace)]
}

/// The same with a CA that answers.
pub(super) fn manifests_of(pebble: &Pebble, namespace: &str) -> Vec<Value> {
    let mut issuer = issuer(namespace, &pebble.directory());
    issuer["spec"]["acme"]["caBundle"] = BASE64_STANDARD.encode(pebble.tls_ca_pem()).into();
    vec![issuer, certificate(namespace)]
}

fn issuer(namespace: &str, server: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
        "metadata": {"name": "pebble", "namespace": namespace},
        "spec": {"acme": {
            "server": server, "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": {"ingress": {}}}],
        }},
    })
}

fn certificate(namespace: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "secretName": "web-tls", "dnsNames": [format!("{namespace}.example.com")],
            "issuerRef": {"name": "pebble"},
        },
    })
}

/// Documents of one file.
pub(super) fn documents(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(ToString::to_string).collect();
    format!("---\n{}\n", documents.join("\n---\n"))
}
