//! Objects that are not ours, and lead to Certificates.

use serde_json::{Value, json};

use super::{certificate, diagnose};
use crate::support::cluster::{Cluster, Namespace};
use crate::support::program;

/// An Ingress with a Secret for its certificate.
fn ingress(name: &str, secret: &str) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": name, "annotations": {"cert-manager.io/cluster-issuer": "absent"}},
        "spec": {
            "tls": [{"hosts": ["web.example.com"], "secretName": secret}],
            "rules": [{"host": "web.example.com", "http": {"paths": [{
                "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "shop", "port": {"number": 80}}},
            }]}}],
        },
    })
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {"gatewayClassName": "bed", "listeners": [{
            "name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "web-tls"}]},
        }]},
    })
}

/// Standard error of a `diagnose` that ends with that code.
#[track_caller]
fn fails(namespace: &Namespace<'_>, word: &str, code: i32) -> String {
    let mut command = program::command();
    command.args(["diagnose", "--namespace", namespace.name(), word]);
    let output = command.env("KUBECONFIG", namespace.kubectl().kubeconfig()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{word}: {said}");
    said
}

#[test]
#[ignore = "needs an API server: run by just cluster"]
fn an_object_leads_to_the_certificates_that_belong_to_it() {
    let namespace = Cluster::shared().namespace("diagnose-from");
    let kubectl = namespace.kubectl();
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "shop"}, "spec": {"ports": [{"port": 80}]},
    });
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "shop"},
        "spec": {"parentRefs": [{"name": "edge"}]},
    });
    for object in [certificate("web"), ingress("shop", "web-tls"), gateway(), service, route] {
        kubectl.apply(&object.to_string());
    }
    for word in ["ingress/shop", "gtw/edge", "httproute/shop", "svc/shop", "secret/web-tls"] {
        let (output, report) = diagnose(&namespace, &kubectl, &[word]);
        assert_eq!(output.status.code(), Some(10), "{word}: {report:#}");
        let findings = report["findings"].as_array().unwrap();
        assert!(findings.iter().any(|finding| finding["cause"] == "CFG-01"), "{word}: {report:#}");
    }
}

#[test]
#[ignore = "needs an API server: run by just cluster"]
fn a_gateway_leads_to_certificates_of_other_namespaces() {
    let apps = Cluster::shared().namespace("diagnose-apps");
    apps.kubectl().apply(&certificate("web").to_string());
    let infra = Cluster::shared().namespace("diagnose-infra");
    let mut shared = gateway();
    let secret = &mut shared["spec"]["listeners"][0]["tls"]["certificateRefs"][0];
    secret["namespace"] = apps.name().into();
    infra.kubectl().apply(&shared.to_string());
    let (output, report) = diagnose(&infra, &infra.kubectl(), &["gateway/edge"]);
    assert_eq!(output.status.code(), Some(10), "{report:#}");
    let first = &report["findings"][0];
    assert_eq!(first["cause"], "CFG-01", "{report:#}");
    assert!(first["message"].to_string().contains(apps.name()), "{first:#}");

    // Of one that leads nowhere at least its own status is told.
    let mut astray = gateway();
    astray["metadata"]["name"] = "astray".into();
    astray["spec"]["listeners"][0]["tls"]["certificateRefs"] = json!([{"name": "nobodys"}]);
    infra.kubectl().apply(&astray.to_string());
    let condition = json!({
        "type": "ResolvedRefs", "status": "False", "reason": "InvalidCertificateRef", "message": "no such Secret",
        "lastTransitionTime": "2026-11-28T10:00:00Z",
    });
    let listeners = json!([{
        "name": "https", "attachedRoutes": 0, "supportedKinds": [], "conditions": [condition],
    }]);
    let patch = json!({"status": {"listeners": listeners}}).to_string();
    let deed = ["patch", "gateway/astray", "--subresource=status", "--type=merge", "-p", &patch];
    infra.kubectl().run(&deed);
    let said = fails(&infra, "gateway/astray", 1);
    let words = "listener https says ResolvedRefs False: InvalidCertificateRef: no such Secret";
    assert!(said.contains(words), "{said}");
}

/// The guide's item "If none is present, check the ingress annotations": what leads nowhere says what was looked for.
#[test]
#[ignore = "needs an API server: run by just cluster"]
fn guide_an_ingress_has_no_certificate() {
    let namespace = Cluster::shared().namespace("diagnose-astray");
    let kubectl = namespace.kubectl();
    kubectl.apply(&certificate("web").to_string());
    kubectl.apply(&ingress("shop", "shop-tls").to_string());
    let said = fails(&namespace, "ingress/shop", 1);
    for words in [
        &*format!("error: no Certificate belongs to Ingress {}/shop\n", namespace.name()),
        &format!(
            "Certificates that the object owns; Certificates with the Secret {}/shop-tls",
            namespace.name()
        ),
        "annotation cert-manager.io/cluster-issuer asks for a Certificate, but no controller has created it yet",
    ] {
        assert!(said.contains(words), "{said}");
    }
    assert!(fails(&namespace, "ingress/shpo", 1).contains("did you mean shop?"));
    assert!(fails(&namespace, "secret/web-tsl", 1).contains("did you mean web-tls?"));
    assert!(fails(&namespace, "gateway/edge", 1).contains("Gateway \"edge\" not found"));
    assert!(
        fails(&namespace, "deployment/shop", 2)
            .contains("ingress, gateway, listenerset, httproute")
    );
}
