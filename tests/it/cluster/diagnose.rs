//! `diagnose` on a real API server: with the least rights, and over many Certificates at once.

use std::process::Output;

use serde_json::{Value, json};

use crate::support::cluster::{Cluster, Kubectl, Namespace};
use crate::support::program;

/// The rules of `deploy/rbac/look.yaml`.
fn rules() -> String {
    let text = include_str!("../../../deploy/rbac/look.yaml");
    let role: Value = serde_yaml::from_str(text.split("\n---\n").next().unwrap()).unwrap();
    role["rules"].to_string()
}

fn diagnose(namespace: &Namespace<'_>, as_whom: &Kubectl, words: &[&str]) -> (Output, Value) {
    let mut command = program::command();
    command.args(["diagnose", "--namespace", namespace.name(), "-o", "json"]).args(words);
    let output = command.env("KUBECONFIG", as_whom.kubeconfig()).output().unwrap();
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    (output, report)
}

fn certificate(name: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name},
        "spec": {
            "secretName": format!("{name}-tls"), "dnsNames": [format!("{name}.example.com")],
            "issuerRef": {"name": "absent"},
        },
    })
}

#[test]
#[ignore = "needs an API server: run by just cluster"]
fn whoever_may_only_look_is_told_the_cause_and_what_was_not_seen() {
    let namespace = Cluster::shared().namespace("diagnose-look");
    namespace.kubectl().apply(&certificate("web").to_string());
    let looker = namespace.service_account("looker", &rules());
    let (output, report) = diagnose(&namespace, &looker, &["web"]);
    assert_eq!(output.status.code(), Some(10), "{report:#}");
    let findings = report["findings"].as_array().unwrap();
    let of = |cause: &str| findings.iter().find(|finding| finding["cause"] == cause);
    let missing = of("CFG-01").unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!(missing["grade"], "certain");
    // What may not be read is no fault of the set-up.
    let unseen = report["unseen"].as_array().unwrap();
    assert!(!unseen.is_empty(), "Secrets may not be read: {report:#}");
    assert!(findings.iter().all(|finding| finding["cause"] != "CTL-07"), "{report:#}");
    assert!(namespace.kubectl().items("certificaterequests").is_empty(), "nothing was written");
}

#[test]
#[ignore = "needs an API server: run by just cluster"]
fn many_certificates_with_one_fault_are_one_block() {
    let namespace = Cluster::shared().namespace("diagnose-many");
    let kubectl = namespace.kubectl();
    let items: Vec<Value> = (0..40).map(|number| certificate(&format!("c{number}"))).collect();
    kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    let (output, report) = diagnose(&namespace, &kubectl, &[]);
    assert_eq!(output.status.code(), Some(10), "{report:#}");
    let count = |cause: &str| {
        report["findings"].as_array().unwrap().iter().filter(|f| f["cause"] == cause).count()
    };
    assert_eq!(count("CFG-01"), 40, "{report:#}");
    let mut command = program::command();
    command.args(["diagnose", "--namespace", namespace.name()]);
    let page = command.env("KUBECONFIG", kubectl.kubeconfig()).output().unwrap();
    let page = String::from_utf8(page.stdout).unwrap();
    assert_eq!(page.matches("CFG-01  ").count(), 1, "{page}");
    assert!(page.contains("and 30 more") && page.lines().count() < 80, "{page}");
}
