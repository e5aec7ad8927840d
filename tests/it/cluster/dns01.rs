//! Certificates by DNS-01 in a real cluster: dynamic updates, and a webhook behind the API server's aggregation.

use std::path::Path;

use axum::Json;
use axum::routing::get;
use serde_json::{Value, json};

use crate::pebble::dns01::{RECORD, Site, THEIRS};
use crate::pebble::dns01_keys;
#[cfg(feature = "many-providers")]
use crate::pebble::dns01_own;
use crate::pebble::dns01_webhook::{self, Desk, GROUP};
use crate::support::cluster::{Arena, Kubectl, Namespace, eventually};
use crate::support::dns::{DnsServer, Software, Updates};
use crate::support::pebble::Pebble;
use crate::support::program;
#[cfg(feature = "many-providers")]
use crate::support::terminal::secret;
use crate::support::tls_server::TlsServer;

/// Orders there what these manifests say, driven by this program.
fn order(path: &Path, resolver: &DnsServer, pebble: &Pebble, namespace: &Namespace<'_>) {
    let output = program::command()
        .args(["order", "-f", path.to_str().unwrap(), "--timeout=3m"])
        .args(["--namespace", namespace.name()])
        .env("KUBECONFIG", namespace.kubectl().kubeconfig())
        .env("KUBECTL_ACME_DNS", resolver.address().to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}\n{}", pebble.log());
    assert!(said.contains("driver: kubectl-acme\n"), "{said}");
}

/// Issues an apex and its wildcard there; nothing of it is left.
fn check(site: &Site, namespace: &Namespace<'_>, algorithm: &str, dns01: &Value) {
    let names = ["example.com", "*.example.com"];
    let manifests = site.manifests(&site.pebble.directory(), algorithm, dns01, &names);
    order(&site.terminal.manifests(&manifests), &site.resolver, &site.pebble, namespace);
    let kubectl = namespace.kubectl();
    assert!(kubectl.run(&["get", "certificate", "web"]).contains("True"));
    assert!(kubectl.items("challenges").is_empty());
    assert_eq!(site.server.texts(RECORD), [THEIRS]);
}

/// One run issues an apex and its wildcard with each algorithm over each protocol, from a namespace of the cluster.
fn check_keys(software: Software, namespace: &str) {
    let arena = Arena::enter();
    let namespace = arena.namespace(namespace);
    let site = dns01_keys::Site::new(software);
    let path = site.terminal.manifests(&site.manifests());
    order(&path, &site.resolver, &site.pebble, &namespace);
    assert!(namespace.kubectl().items("challenges").is_empty());
    site.check_updates();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn bind_is_updated_from_a_cluster_with_each_algorithm_over_each_protocol() {
    check_keys(Software::Bind, "bind");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn knot_is_updated_from_a_cluster_with_each_algorithm_over_each_protocol() {
    check_keys(Software::Knot, "knot");
}

/// What an API server asks to learn whether it runs.
async fn discover() -> Json<Value> {
    let resource = json!({"name": "ours", "singularName": "ours", "namespaced": false,
        "kind": "ChallengePayload", "verbs": ["create"]});
    Json(json!({"kind": "APIResourceList", "apiVersion": "v1",
        "groupVersion": format!("{GROUP}/v1alpha1"), "resources": [resource]}))
}

/// An APIService, taken away again: without its server it is in the way of everything that asks what there is.
struct Aggregated(Kubectl);

impl Aggregated {
    fn new(server: &TlsServer, namespace: &Namespace<'_>) -> Self {
        let kubectl = namespace.kubectl();
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "webhook"},
            "spec": {"type": "ExternalName", "externalName": "localhost"}});
        let api_service = json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": format!("v1alpha1.{GROUP}")},
            "spec": {
                "group": GROUP, "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "insecureSkipTLSVerify": true,
                "service": {"name": "webhook", "namespace": namespace.name(), "port": server.port},
            },
        });
        kubectl.apply(&service.to_string());
        kubectl.apply(&api_service.to_string());
        let path = format!("/apis/{GROUP}/v1alpha1");
        eventually("the webhook", || kubectl.try_run(&["get", "--raw", &path]).ok());
        Self(kubectl)
    }
}

impl Drop for Aggregated {
    fn drop(&mut self) {
        self.0.run(&["delete", "apiservice", &format!("v1alpha1.{GROUP}")]);
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_webhook_is_called_through_the_api_server() {
    let arena = Arena::enter();
    let site = Site::new(Software::Bind, Updates::Unsigned);
    let namespace = arena.namespace("webhook");
    let desk = Desk::open(&site.server);
    let discovery = format!("/apis/{GROUP}/v1alpha1");
    let server = TlsServer::start(desk.router().route(&discovery, get(discover)));
    let _service = Aggregated::new(&server, &namespace);
    check(&site, &namespace, "hmac-sha256", &dns01_webhook::solver());
    desk.was_told(namespace.name());
}

#[cfg(feature = "many-providers")]
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn one_of_the_many_providers_is_served_in_a_cluster() {
    let arena = Arena::enter();
    let site = Site::new(Software::Knot, Updates::Unsigned);
    let desk = dns01_own::Desk::open(&site);
    let key = json!({"name": "dns", "key": "token"});
    let config = json!({"endpoint": desk.url, "apiKeySecretRef": key});
    let webhook = json!({"groupName": "kubectl-acme", "solverName": "pdns", "config": config});
    let namespace = arena.namespace("many");
    namespace.kubectl().apply(&secret("dns", "token", dns01_own::TOKEN).to_string());
    check(&site, &namespace, "hmac-sha256", &json!({"webhook": webhook}));
    let issuer = &namespace.kubectl().items("issuers")[0];
    let kept = &issuer["spec"]["acme"]["solvers"][0]["dns01"]["webhook"];
    assert_eq!(kept, &webhook, "the schema keeps it");
}
