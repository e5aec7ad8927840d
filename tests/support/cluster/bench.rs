//! A namespace with manifests, and this program at work there.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::pebble::{Pebble, PebbleOptions};
use super::super::program::{self, Running};
use super::super::proxy::Proxy;
use super::super::traffic::Orders;
use super::{Cluster, Kubectl, Namespace};

/// A namespace, a folder with `web.yaml`, and a CA that looks where the cluster serves.
pub struct Bench<'c> {
    /// The namespace.
    pub namespace: Namespace<'c>,
    /// The CA.
    pub pebble: Pebble,
    proxy: Proxy,
    cluster: &'c Cluster,
    folder: TempDir,
}

impl<'c> Bench<'c> {
    /// Writes `web.yaml`: an Issuer, and a Certificate `web` for one name.
    pub fn new(cluster: &'c Cluster, name: &str) -> Self {
        let options =
            PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
        let (pebble, namespace) = (Pebble::start(&options), cluster.namespace(name));
        let (proxy, folder) = (pebble.proxy(), tempfile::tempdir().unwrap());
        let bench = Self { namespace, pebble, proxy, cluster, folder };
        let issuer = bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
        bench.write("web.yaml", &[issuer, bench.certificate("web", "Issuer", "pebble")]);
        bench
    }

    /// kubectl as one who may do everything, in no namespace of its own.
    pub fn everywhere(&self) -> Kubectl {
        self.cluster.kubectl()
    }

    /// An issuer that answers in that way.
    pub fn issuer(&self, kind: &str, name: &str, http01: &Value) -> Value {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"acme": {
                "server": self.proxy.directory(), "caBundle": STANDARD.encode(self.pebble.tls_ca_pem()),
                "privateKeySecretRef": {"name": format!("{name}-account")}, "solvers": [{"http01": http01}],
            }},
        })
    }

    /// A Certificate for one name of this namespace.
    pub fn certificate(&self, name: &str, kind: &str, issuer: &str) -> Value {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name},
            "spec": {
                "secretName": format!("{name}-tls"), "dnsNames": [format!("{name}.{}.example.com", self.namespace.name())],
                "issuerRef": {"kind": kind, "name": issuer},
            },
        })
    }

    /// What stands before the CA.
    pub fn proxy(&self) -> &Proxy {
        &self.proxy
    }

    /// Orders that the CA took, by who asked for them.
    pub fn orders(&self) -> Orders {
        self.proxy.orders()
    }

    /// Looks that the CA took orders of cert-manager and none of ours, and issued so many certificates.
    #[track_caller]
    pub fn only_others_order(&self, issued: usize) {
        let orders = self.orders();
        assert!(orders.ours == 0 && orders.others > 0, "{orders:?}");
        assert_eq!(self.pebble.issued(), issued, "{orders:?}");
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes manifests into the folder.
    pub fn write(&self, file: &str, manifests: &[Value]) {
        let documents: Vec<String> = manifests.iter().map(ToString::to_string).collect();
        fs::write(self.folder.path().join(file), documents.join("\n---\n")).unwrap();
    }

    /// This program in the folder and the namespace, as whoever the kubeconfig of `as_whom` logs in as.
    pub fn command(&self, as_whom: &Kubectl, words: &[&str]) -> Command {
        let mut command = program::command();
        command
            .args(words)
            .env("KUBECONFIG", as_whom.kubeconfig())
            .env("KUBECTL_ACME_NAMESPACE", self.namespace.name())
            .env("KUBECTL_ACME_HTTP01_RESOLVE", format!("*=127.0.0.1:{}", self.cluster.http_port()))
            .current_dir(self.folder.path());
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, as_whom: &Kubectl, words: &[&str]) -> Output {
        self.command(as_whom, words).output().unwrap()
    }

    /// The same where manifests name their namespaces.
    pub fn run_anywhere(&self, as_whom: &Kubectl, words: &[&str]) -> Output {
        self.command(as_whom, words).env_remove("KUBECTL_ACME_NAMESPACE").output().unwrap()
    }

    /// Issues what `web.yaml` asks for, and returns what was said.
    #[track_caller]
    pub fn order(&self, as_whom: &Kubectl, flags: &[&str], expected: i32) -> String {
        let words = [&["order", "-f", "web.yaml", "--timeout=3m"], flags].concat();
        check(&self.run(as_whom, &words), expected)
    }

    /// Starts a command beside the test.
    pub fn start(&self, as_whom: &Kubectl, words: &[&str]) -> Running {
        let log = tempfile::Builder::new().suffix(".log").tempfile_in(self.folder.path()).unwrap();
        let log = log.into_temp_path().keep().unwrap();
        Running::start(&mut self.command(as_whom, words), log)
    }

    /// Names of all that is in the namespace of those kinds, to be compared.
    pub fn names(&self, kinds: &str) -> String {
        self.namespace.kubectl().run(&["get", kinds, "--output=name", "--ignore-not-found"])
    }
}

/// Returns standard error after a look at the exit code.
#[track_caller]
pub fn check(output: &Output, expected: i32) -> String {
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(expected), "{talk}\n{result}");
    talk
}
