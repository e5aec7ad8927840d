//! `diagnose` on a real API server.

mod belonging;
mod looking;
mod path;

use std::process::Output;

use serde_json::{Value, json};

use crate::support::cluster::{Kubectl, Namespace};
use crate::support::program;

/// The rules of `deploy/rbac/look.yaml`.
pub(super) fn rules() -> String {
    let text = include_str!("../../../../deploy/rbac/look.yaml");
    let role: Value = serde_yaml::from_str(text.split("\n---\n").next().unwrap()).unwrap();
    role["rules"].to_string()
}

pub(super) fn diagnose(
    namespace: &Namespace<'_>,
    as_whom: &Kubectl,
    words: &[&str],
) -> (Output, Value) {
    let mut command = program::command();
    command.args(["diagnose", "--namespace", namespace.name(), "-o", "json"]).args(words);
    let output = command.env("KUBECONFIG", as_whom.kubeconfig()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output, report)
}

pub(super) fn certificate(name: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name},
        "spec": {
            "secretName": format!("{name}-tls"), "dnsNames": [format!("{name}.example.com")],
            "issuerRef": {"name": "absent"},
        },
    })
}
