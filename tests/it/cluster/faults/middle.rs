//! Refusals in the middle of an issuance that this program drives.

use std::thread;

use super::site::{Site, documents, manifests_of};
use super::webhook::{Mood, Webhook};
use crate::support::cluster::api_gate::{ApiGate, Step};
use crate::support::cluster::{Arena, Cluster, eventually};
use crate::support::pebble::{Pebble, PebbleOptions};

fn pebble(cluster: &Cluster) -> Pebble {
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    Pebble::start(&options)
}

/// What a webhook guards, and how the line ends that says so.
const GUARDED: [(&str, &str, &str); 6] = [
    ("", "secrets", "cannot write Secret "),
    ("cert-manager.io", "certificaterequests", "cannot write CertificateRequest "),
    ("acme.cert-manager.io", "orders", "cannot write Order "),
    ("acme.cert-manager.io", "challenges", "cannot write Challenge "),
    ("", "pods", "the cluster refuses to create pods in namespace "),
    (
        "networking.k8s.io",
        "ingresses",
        "the cluster refuses to create ingresses.networking.k8s.io in namespace ",
    ),
];

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_webhook_that_refuses_a_step_ends_the_command() {
    let cluster = Arena::enter();
    let (pebble, webhook) = (pebble(&cluster), Webhook::start(Mood::Refuses));
    let site = Site::new(&cluster, "middle");
    let namespaces: Vec<_> = GUARDED
        .iter()
        .map(|(group, resource, _)| {
            let namespace = cluster.namespace(resource);
            webhook.guard(&namespace, group, resource);
            namespace
        })
        .collect();
    let objects: Vec<_> =
        namespaces.iter().flat_map(|namespace| manifests_of(&pebble, namespace.name())).collect();
    site.write("all.yaml", &documents(&objects));
    let said = site.run("order -f all.yaml --timeout=5m");
    said.check("refusals", 8, &[]);
    let refusal = "admission webhook \"guard.example.com\" denied the request: not on Fridays";
    for (namespace, (_, resource, says)) in namespaces.iter().zip(GUARDED) {
        let error = said.talk.lines().position(|line| {
            line.starts_with("error: ")
                && line.contains(namespace.name())
                && line.ends_with(refusal)
        });
        let error = error.unwrap_or_else(|| panic!("{resource}:\n{}", said.talk));
        let lines: Vec<&str> = said.talk.lines().skip(error).take(2).collect();
        assert!(lines[0].contains(says) && lines[1].starts_with("hint: "), "{resource}: {lines:?}");
        Webhook::withdraw(namespace);
    }
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_webhook_that_fails_and_a_quota_that_is_full_are_waited_for() {
    let cluster = Arena::enter();
    let (pebble, webhook) = (pebble(&cluster), Webhook::start(Mood::Fails));
    let site = Site::new(&cluster, "passes");
    let kubectl = site.namespace.kubectl();
    site.write("web.yaml", &documents(&manifests_of(&pebble, site.name())));
    webhook.guard(&site.namespace, "acme.cert-manager.io", "orders");
    kubectl.run(&["create", "quota", "full", "--hard=pods=0"]);
    // The controller that would say so does not run here.
    let patch = r#"{"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}"#;
    kubectl.run(&["patch", "quota", "full", "--subresource=status", "--type=merge", "-p", patch]);
    let said = thread::scope(|scope| {
        let command = scope.spawn(|| site.run("order -f web.yaml --timeout=3m"));
        eventually("a call of the webhook", || (webhook.asked() > 0).then_some(()));
        Webhook::withdraw(&site.namespace);
        eventually("a call for a Pod", || {
            let refused = |challenge: &serde_json::Value| {
                let events = kubectl.run(&["get", "events", "-o", "jsonpath={.items[*].message}"]);
                let reason = challenge["status"]["reason"].as_str().unwrap_or_default().to_owned();
                (reason + &events).contains("exceeded quota")
            };
            kubectl.items("challenges").iter().any(refused).then_some(())
        });
        kubectl.run(&["delete", "quota", "full"]);
        command.join().unwrap()
    });
    said.check(
        "what passes",
        0,
        &["failed calling webhook \"guard.example.com\"", "exceeded quota: full"],
    );
    assert_eq!(pebble.orders(), 1);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn errors_of_the_api_server_and_forgotten_watches_are_gone_on_from() {
    let cluster = Arena::enter();
    let pebble = pebble(&cluster);
    let site = Site::new(&cluster, "stumbles");
    site.write("web.yaml", &documents(&manifests_of(&pebble, site.name())));
    let gate = ApiGate::before(&cluster.kubeconfig());
    gate.stumble(site.name());
    site.run_as(&gate.kubeconfig(), "order -f web.yaml --timeout=3m").check("stumbling", 0, &[]);
    let (failed, forgotten) = gate.stumbled();
    for resource in ["secrets", "certificaterequests", "orders", "challenges", "pods", "services"] {
        let is_it = |step: &&Step| step.verb == "POST" && step.resource == resource;
        assert!(failed.iter().any(|step| is_it(&step)), "{resource}: {failed:?}");
    }
    for resource in ["certificates", "certificaterequests", "orders", "challenges"] {
        let is_it = |path: &String| path.ends_with(&format!("/{resource}"));
        assert!(forgotten.iter().any(is_it), "{resource}: {forgotten:?}");
    }
    assert_eq!(pebble.orders(), 1, "writes that fail make no second order");
    for kind in ["challenges", "pods", "services", "ingresses"] {
        assert!(site.namespace.kubectl().standing(kind).is_empty(), "{kind} stay");
    }
}
