//! Ingresses and Gateways on this machine: their annotations ask for certificates, and what is not asked for any more goes.

use serde_json::{Value, json};

use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Terminal, issuer};

fn ingress(annotations: &Value, tls: &Value) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "shop", "labels": {"team": "web"}, "annotations": annotations},
        "spec": {"tls": tls, "rules": [{"host": "www.example.com"}]},
    })
}

fn names(terminal: &Terminal, kind: &str) -> Vec<String> {
    let all = terminal.objects(kind);
    all.iter().map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_ingress_gets_the_certificate_that_its_annotation_asks_for_and_loses_it_with_the_annotation() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let terminal = Terminal::at(&pebble);
    let acme = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
    let asks = json!({
        "cert-manager.io/issuer": "acme", "cert-manager.io/private-key-algorithm": "ECDSA",
    });
    let tls = |secret: &str, host: &str| json!({"hosts": [host], "secretName": secret});
    let both = json!([tls("shop-tls", "www.example.com"), tls("blog-tls", "blog.example.com")]);
    terminal.order(&[acme, ingress(&asks, &both)]);
    for (secret, host) in [("shop-tls", "www.example.com"), ("blog-tls", "blog.example.com")] {
        let pair = terminal.pair(secret);
        pair.check(&pebble.root_pem());
        assert!(pair.leaf(&["-ext", "subjectAltName"]).contains(&format!("DNS:{host}")));
        assert_eq!(pair.key_line(), "Private-Key: (256 bit)");
    }
    let certificates = terminal.objects("certificate");
    let owner = &certificates[0]["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Ingress"), &json!("shop")));
    assert_eq!(certificates[0]["metadata"]["labels"], json!({"team": "web"}));
    assert_eq!(pebble.orders(), 2);

    let again = terminal.order(&[ingress(&asks, &both)]);
    assert!(again.stderr.contains("nothing is due"), "{again:?}");
    terminal.order(&[ingress(&asks, &json!([both[0]]))]);
    assert_eq!(names(&terminal, "certificate"), ["shop-tls"]);
    terminal.try_order(&[ingress(&json!({}), &both)]);
    assert_eq!(names(&terminal, "certificate"), Vec::<String>::new());
    assert_eq!(pebble.orders(), 2);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_annotations_of_the_quick_start_are_read_and_a_gateway_asks_as_well() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let terminal = Terminal::at(&pebble);
    let acme = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
    let old = json!({"certmanager.k8s.io/issuer": "acme"});
    let tls = json!([{"hosts": ["www.example.com"], "secretName": "quickstart-example-tls"}]);
    let gateway = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
        "metadata": {"name": "edge", "annotations": {"cert-manager.io/issuer": "acme"}},
        "spec": {"gatewayClassName": "bed", "listeners": [{
            "name": "https", "port": 443, "protocol": "HTTPS", "hostname": "edge.example.com",
            "tls": {"certificateRefs": [{"name": "edge-tls"}]},
        }]},
    });
    let said = terminal.order(&[acme, ingress(&old, &tls), gateway]);
    let warning = "cert-manager has not read these annotations since 0.11: certmanager.k8s.io/issuer is now \
                   cert-manager.io/issuer";
    assert!(said.stderr.contains(warning), "{said:?}");
    for secret in ["quickstart-example-tls", "edge-tls"] {
        terminal.pair(secret).check(&pebble.root_pem());
    }
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn what_cannot_be_read_is_named_and_nothing_is_written() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let terminal = Terminal::at(&pebble);
    let acme = || issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
    let tls = json!([{"hosts": ["www.example.com"], "secretName": "shop-tls"}]);
    for (annotations, expected) in [
        (
            json!({"cert-manager.io/issuer": "acme", "cert-manager.io/cluster-issuer": "acme"}),
            "Could not determine issuer for ingress due to bad annotations: both \"cert-manager.io/issuer\" and \
             \"cert-manager.io/cluster-issuer\" may not be set",
        ),
        (
            json!({"cert-manager.io/issuer": "acme", "cert-manager.io/duration": "90 days"}),
            "invalid ingress annotation \"cert-manager.io/duration\": time: invalid duration \"90 days\"",
        ),
    ] {
        let said = terminal.try_order(&[acme(), ingress(&annotations, &tls)]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(
            said.stderr.contains("Ingress shop: ") && said.stderr.contains(expected),
            "{said:?}"
        );
    }
    assert!(names(&terminal, "issuer").is_empty() && names(&terminal, "certificate").is_empty());
    // A Certificate of that name which is not the Ingress's stays as it is.
    let by_default = ingress(&json!({"kubernetes.io/tls-acme": "true"}), &tls);
    let said = terminal.try_order(&[acme(), by_default.clone()]);
    assert!(said.stderr.contains("--default-issuer-name"), "{said:?}");
    assert!(names(&terminal, "certificate").is_empty());
}
