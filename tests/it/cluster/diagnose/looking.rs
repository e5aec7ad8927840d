//! `diagnose` with the least rights, and over many Certificates at once.

use serde_json::{Value, json};

use super::{certificate, diagnose, rules};
use crate::support::cluster::Cluster;
use crate::support::program;

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
    assert!(page.contains("and 38 more") && page.lines().count() < 25, "{page}");
}

/// 25 Certificates for each of four faults.
fn stuck(faults: [Value; 4]) -> Vec<Value> {
    let of = |(fault, change): (usize, Value)| {
        (0..25).map(move |number| {
            let mut certificate = certificate(&format!("c{fault}-{number}"));
            for (field, value) in change.as_object().unwrap() {
                certificate["spec"][field] = value.clone();
            }
            certificate
        })
    };
    faults.into_iter().enumerate().flat_map(of).collect()
}

#[test]
#[ignore = "needs an API server: run by just cluster"]
fn a_hundred_that_are_stuck_for_four_causes_fit_one_screen() {
    let namespace = Cluster::shared().namespace("diagnose-hundred");
    let kubectl = namespace.kubectl();
    let issuer = |name: &str, solver: Value| {
        json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": name},
            "spec": {"acme": {
                "server": "https://127.0.0.1:1/dir", "privateKeySecretRef": {"name": "account"}, "solvers": [solver],
            }},
        })
    };
    let fitting = json!({"dns01": {"rfc2136": {"nameserver": "192.0.2.53"}}});
    let other = json!({"http01": {"ingress": {}}, "selector": {"dnsZones": ["example.net"]}});
    let fault = |issuer: &str, change: Value| {
        let mut fault = json!({"issuerRef": {"name": issuer}});
        fault.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        fault
    };
    let key = json!({"privateKey": {"algorithm": "RSA", "size": 1024}});
    let mut items = stuck([
        fault("absent", json!({})),
        fault("other", json!({})),
        fault("unreachable", json!({})),
        fault("unreachable", key),
    ]);
    items.extend([issuer("other", other), issuer("unreachable", fitting)]);
    kubectl.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    let mut command = program::command();
    command.args(["diagnose", "--namespace", namespace.name()]);
    command.args(["--http01-resolve", "*=127.0.0.1:1"]);
    let page = command.env("KUBECONFIG", kubectl.kubeconfig()).output().unwrap();
    assert_eq!(page.status.code(), Some(10), "{page:?}");
    let page = String::from_utf8(page.stdout).unwrap();
    for cause in ["CFG-01  ", "CFG-04  ", "ENV-03  ", "ORD-14  "] {
        assert_eq!(page.matches(cause).count(), 1, "{page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    assert!(page.lines().count() <= 60, "{} lines: {page}", page.lines().count());
}
