//! kubectl's own verbs on everything that we make, while `run` works.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::bed::Server;
use crate::support::cluster::{Arena, Cluster, Kubectl, Namespace, eventually};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::program;

/// Everything that hangs below a Certificate, owned from one to the next.
const BELOW: [&str; 7] =
    ["certificaterequests", "orders", "challenges", "pods", "services", "ingresses", "httproutes"];

/// An Issuer of the CA, or a ClusterIssuer.
fn issuer(pebble: &Pebble, kind: &str, name: &str, solver: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name},
        "spec": {"acme": {
            "server": pebble.directory(), "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": format!("{name}-account")}, "solvers": [solver],
        }},
    })
}

fn certificate(name: &str, kind: &str, issuer: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": name},
        "spec": {
            "secretName": format!("{name}-tls"), "dnsNames": [format!("{name}.example.com")],
            "issuerRef": {"name": issuer, "kind": kind}, "privateKey": {"algorithm": "ECDSA"},
        },
    })
}

fn gateway() -> Value {
    let listener = json!({"name": "http", "port": 80, "protocol": "HTTP"});
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {"gatewayClassName": "bed", "listeners": [listener]},
    })
}

fn ingress() -> Value {
    json!({"ingress": {"ingressClassName": "bed"}})
}

fn route() -> Value {
    json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}})
}

fn apply(kubectl: &Kubectl, objects: &[Value]) {
    kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string());
}

/// Starts `run` for the whole cluster, with the Secrets of ClusterIssuers in that namespace.
fn run(cluster: &Cluster, namespace: &Namespace<'_>, folder: &tempfile::TempDir) -> Server {
    let mut command = program::command();
    command
        .arg("run")
        .arg(format!("--cluster-resource-namespace={}", namespace.name()))
        .arg(format!("--http01-resolve=*=127.0.0.1:{}", cluster.http_port()))
        .arg("--kubeconfig")
        .arg(cluster.kubeconfig());
    Server::start(&command, &folder.path().join("run.log"))
}

/// Words of a text, one space apart.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a table lacks: its headings, or words in its rows.
fn faults_of(table: &str, headings: &str, words: &[&str]) -> Vec<String> {
    let (first, rows) = table.split_once('\n').unwrap_or_default();
    let mut missing: Vec<&str> =
        words.iter().copied().filter(|word| !rows.contains(word)).collect();
    missing.extend((plain(first) != headings).then_some(headings));
    missing.into_iter().map(|word| format!("no {word} in\n{table}")).collect()
}

/// What kubectl's tables show while challenges are held: kind, headings, wide headings, and words of the rows.
const TABLES: [(&str, &str, &str, &[&str]); 10] = [
    (
        "certificates",
        "NAME READY SECRET AGE",
        "NAME READY SECRET ISSUER STATUS AGE",
        &["web", "route", "False", "web-tls"],
    ),
    (
        "certificaterequests",
        "NAME APPROVED DENIED READY ISSUER REQUESTER AGE",
        "NAME APPROVED DENIED READY ISSUER REQUESTER STATUS AGE",
        &["web-1", "route-1", "True", "False"],
    ),
    ("orders", "NAME STATE AGE", "NAME STATE ISSUER REASON AGE", &["web-1-", "pending"]),
    (
        "challenges",
        "NAME STATE DOMAIN AGE",
        "NAME STATE DOMAIN REASON AGE",
        &["web.example.com", "route.example.com", "pending"],
    ),
    ("issuers", "NAME READY AGE", "NAME READY STATUS AGE", &["acme", "True"]),
    ("clusterissuers", "NAME READY AGE", "NAME READY STATUS AGE", &["shared", "True"]),
    (
        "pods",
        "NAME READY STATUS RESTARTS AGE",
        "NAME READY STATUS RESTARTS AGE IP NODE NOMINATED NODE READINESS GATES",
        &["cm-acme-http-solver-", "1/1", "Running"],
    ),
    (
        "services",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE",
        "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE SELECTOR",
        &["cm-acme-http-solver-", "NodePort", "8089"],
    ),
    (
        "ingresses",
        "NAME CLASS HOSTS ADDRESS PORTS AGE",
        "NAME CLASS HOSTS ADDRESS PORTS AGE",
        &["cm-acme-http-solver-", "bed", "web.example.com"],
    ),
    (
        "httproutes",
        "NAME HOSTNAMES AGE",
        "NAME HOSTNAMES AGE",
        &["cm-acme-http-solver-", "route.example.com"],
    ),
];

/// What `kubectl describe` says of each kind.
const SHEETS: [(&str, &[&str]); 10] = [
    ("certificates", &["Reason: DoesNotExist", "Issuing", "Requested", "Generated"]),
    ("certificaterequests", &["Approved", "cert-manager.io", "OrderCreated"]),
    ("orders", &["Initial State: pending", "Finalize URL:", "Created Challenge resource"]),
    (
        "challenges",
        &["Presented: true", "Processing: true", "Waiting until", "Started", "Presented"],
    ),
    ("issuers", &["ACMEAccountRegistered", "Last Private Key Hash"]),
    ("clusterissuers", &["ACMEAccountRegistered"]),
    ("pods", &["acmesolver", "--listen-port=8089", "Controlled By: Challenge/"]),
    ("services", &["acme.cert-manager.io/http01-solver=true", "8089/TCP"]),
    ("ingresses", &["/.well-known/acme-challenge/", "web.example.com"]),
    ("httproutes", &["/.well-known/acme-challenge/", "Exact", "Hostnames:"]),
];

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn kubectl_shows_everything_and_takes_it_away() {
    let cluster = Arena::enter();
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    let pebble = Pebble::start(&options);
    let namespace = cluster.namespace("verbs");
    let (kubectl, folder) = (namespace.kubectl(), tempfile::tempdir().unwrap());
    let _run = run(&cluster, &namespace, &folder);
    let held = |http01: Value| json!({"http01": http01, "waitInsteadOfSelfCheck": "1h"});
    apply(
        &kubectl,
        &[
            gateway(),
            issuer(&pebble, "Issuer", "acme", &held(ingress())),
            issuer(&pebble, "ClusterIssuer", "shared", &held(route())),
        ],
    );
    // Only the first of several reasons to wait becomes an event of a request.
    kubectl.wait_for("issuer/acme", "Ready");
    kubectl.wait_for("clusterissuer/shared", "Ready");
    let certificates =
        [certificate("web", "Issuer", "acme"), certificate("route", "ClusterIssuer", "shared")];
    apply(&kubectl, &certificates);
    eventually("both challenges", || {
        let challenges = kubectl.items("challenges");
        let is_told = |c: &Value| c["status"]["reason"].as_str().unwrap_or_default() != "";
        (challenges.len() == 2 && challenges.iter().all(is_told)).then_some(())
    });
    for pod in kubectl.items("pods") {
        kubectl.wait_for(&format!("pod/{}", pod["metadata"]["name"].as_str().unwrap()), "Ready");
    }

    let mut faults = Vec::new();
    for (kind, headings, wide, words) in TABLES {
        faults.extend(faults_of(&kubectl.run(&["get", kind]), headings, words));
        faults.extend(faults_of(&kubectl.run(&["get", kind, "-o", "wide"]), wide, words));
    }
    for (kind, words) in SHEETS {
        // Of several objects it shows no events by itself.
        let sheet = kubectl.run(&["describe", kind, "--show-events"]);
        let missing = words.iter().filter(|word| !plain(&sheet).contains(*word));
        faults.extend(missing.map(|word| format!("no {word} in\n{sheet}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let of_category = kubectl.run(&["get", "cert-manager", "-o", "name"]);
    for name in ["certificate.cert-manager.io/web", "order.acme.cert-manager.io/web-1-"] {
        assert!(of_category.contains(name), "no {name} in\n{of_category}");
    }
    for kind in ["certificates", "certificaterequests", "orders", "challenges"] {
        let selector = "--field-selector=spec.issuerRef.name=acme";
        let found = kubectl.run(&["get", kind, selector, "-o", "name"]);
        assert!(found.lines().count() == 1 && found.contains("/web"), "{kind}: {found}");
    }
    let order = kubectl.run(&["get", "orders", "-o", "name"]);
    let pending = "--for=jsonpath={.status.state}=pending";
    kubectl.run(&["wait", order.lines().next().unwrap(), pending, "--timeout=60s"]);
    kubectl.run(&["wait", "--for=condition=Ready", "issuer/acme", "clusterissuer/shared"]);

    kubectl.run(&["delete", "certificate", "web", "route", "--timeout=60s"]);
    for kind in BELOW {
        eventually(&format!("the end of {kind}"), || kubectl.items(kind).is_empty().then_some(()));
    }
    let secrets = kubectl.run(&["get", "secrets", "-o", "name"]);
    let left: Vec<_> = secrets.lines().collect();
    assert_eq!(left, ["secret/acme-account", "secret/shared-account"], "accounts stay");

    let free = |http01: Value| json!({"http01": http01});
    apply(
        &kubectl,
        &[
            issuer(&pebble, "Issuer", "acme", &free(ingress())),
            issuer(&pebble, "ClusterIssuer", "shared", &free(route())),
            certificate("web", "Issuer", "acme"),
            certificate("route", "ClusterIssuer", "shared"),
        ],
    );
    let both = ["certificate/web", "certificate/route"];
    kubectl.run(&["wait", "--for=condition=Ready", both[0], both[1], "--timeout=170s"]);
    kubectl.run(&["wait", "--for=delete", "challenge", "--all", "--timeout=170s"]);
    let web = kubectl.run(&["get", "certificate", "web", "-o", "wide"]);
    let faults = faults_of(&web, "NAME READY SECRET ISSUER STATUS AGE", &["True", "up to date"]);
    assert!(faults.is_empty(), "{faults:?}");
    kubectl.run(&["delete", "issuer/acme", "clusterissuer/shared", both[0], both[1]]);
    for kind in BELOW {
        eventually(&format!("the end of {kind}"), || kubectl.items(kind).is_empty().then_some(()));
    }
}
