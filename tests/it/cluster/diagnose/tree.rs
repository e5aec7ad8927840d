//! `tree` and `wait` on objects of a real API server.

use serde_json::{Value, json};

use super::certificate;
use crate::support::cluster::{Cluster, Namespace};
use crate::support::program;

/// Makes an object below another one; its UID.
fn below(namespace: &Namespace<'_>, mut object: Value, owner: (&Value, &str)) -> Value {
    let (owner, uid) = owner;
    object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": uid, "controller": true,
    }]);
    made(namespace, &object)
}

fn made(namespace: &Namespace<'_>, object: &Value) -> Value {
    namespace.kubectl().apply(&object.to_string());
    let (kind, name) =
        (object["kind"].as_str().unwrap(), object["metadata"]["name"].as_str().unwrap());
    namespace.kubectl().object(&format!("{}s/{name}", kind.to_lowercase()))
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap()
}

#[test]
#[ignore = "needs an API server: run by just cluster"]
fn a_tree_ends_with_what_solvers_have_made() {
    let namespace = Cluster::shared().namespace("diagnose-tree");
    let root = made(&namespace, &certificate("web"));
    let issuer = json!({"name": "absent"});
    let request = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
        "metadata": {"name": "web-1"}, "spec": {"request": "YQ==", "issuerRef": issuer},
    });
    let request = below(&namespace, request, (&root, uid(&root)));
    let order = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Order",
        "metadata": {"name": "web-1-5"}, "spec": {"request": "YQ==", "issuerRef": issuer, "dnsNames": ["web.example.com"]},
    });
    let order = below(&namespace, order, (&request, uid(&request)));
    let challenge = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge", "metadata": {"name": "web-1-5-7"},
        "spec": {
            "url": "https://ca/1", "authorizationURL": "https://ca/2", "dnsName": "web.example.com",
            "type": "HTTP-01", "token": "t", "key": "t.k", "issuerRef": issuer,
            "solver": {"http01": {"ingress": {}}},
        },
    });
    let challenge = below(&namespace, challenge, (&order, uid(&order)));
    let service = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "cm-acme-http-solver-x", "labels": {"acme.cert-manager.io/http01-solver": "true"}},
        "spec": {"ports": [{"port": 8089}]},
    });
    below(&namespace, service.clone(), (&challenge, uid(&challenge)));
    let mut other = service;
    other["metadata"]["name"] = json!("cm-acme-http-solver-y");
    made(&namespace, &other);
    let run = |words: &[&str]| {
        let mut command = program::command();
        command.args(words).args(["--namespace", namespace.name()]);
        command.env("KUBECONFIG", namespace.kubectl().kubeconfig()).output().unwrap()
    };
    let output = run(&["tree", "certificate/web"]);
    let tree = String::from_utf8(output.stdout).unwrap();
    let rows: Vec<&str> = tree.lines().skip(1).collect();
    assert_eq!(rows.len(), 5, "{tree}");
    assert!(rows[3].starts_with("    └─Challenge/web-1-5-7 (web.example.com) "), "{tree}");
    assert!(rows[4].starts_with("      └─Service/cm-acme-http-solver-x "), "{tree}");
    // Whoever may not read all of it is told what is missing.
    let rules = json!([
        {"apiGroups": ["cert-manager.io", "acme.cert-manager.io"], "resources": ["certificates", "certificaterequests", "orders"], "verbs": ["get", "list"]},
    ]);
    let looker = namespace.service_account("few", &rules.to_string());
    let run_as_looker = |words: &[&str]| {
        let mut command = program::command();
        command.args(words).args(["--namespace", namespace.name()]);
        command.env("KUBECONFIG", looker.kubeconfig()).output().unwrap()
    };
    let output = run_as_looker(&["tree", "certificate/web"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 4);
    let missing = format!(
        "no permission to list in namespace {}, so not shown: challenges.acme.cert-manager.io\n",
        namespace.name()
    );
    assert_eq!(String::from_utf8(output.stderr).unwrap(), missing);
    let output = run_as_looker(&["tree", "certificate/web", "-o", "json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["unread"][0]["resource"], "challenges.acme.cert-manager.io", "{report:#}");

    let gone = run(&["wait", "order/web-1-6", "--for=delete"]);
    assert_eq!(gone.status.code(), Some(0), "{gone:?}");
    let late = run(&["wait", "order/web-1-5", "--for=issued", "--timeout=0"]);
    assert_eq!(late.status.code(), Some(124), "{late:?}");
    let absent = run(&["wait", "order/web-1-6", "--for=issued"]);
    assert_eq!(absent.status.code(), Some(1), "as kubectl: {absent:?}");
    let refused = run_as_looker(&["wait", "challenge/web-1-5-7", "--for=issued"]);
    assert_eq!(refused.status.code(), Some(8), "{refused:?}");
}
