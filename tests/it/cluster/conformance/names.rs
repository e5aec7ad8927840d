//! Cases 1 to 4: names are hashes over what is asked for, byte for byte cert-manager's.

use serde_json::{Value, json};

use super::stage::{Stage, certificate, held, name, ready, request, signing_request};
use crate::support::cluster::eventually;

/// Applies a request, sees the Order of that name, and takes both away.
fn check(stage: &Stage, request: &Value, order: &str) {
    stage.apply(std::slice::from_ref(request));
    stage.sees(&format!("order/{order}"), &json!({"spec": {"request": "…"}}));
    stage.kubectl.run(&["delete", "certificaterequest", name(request), "--cascade=foreground"]);
    stage.sees_none("orders");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn orders_have_the_names_of_cert_manager() {
    let stage = Stage::open("orders").await;
    stage.apply(&[stage.issuer("test-issuer", held()), stage.issuer("i", held())]);
    for issuer in ["issuer/test-issuer", "issuer/i"] {
        stage.sees(issuer, &ready("True", "ACMEAccountRegistered", "…"));
    }
    let reference = json!({"name": "test-issuer", "kind": "Issuer", "group": "cert-manager.io"});
    let of = |name: &str, common_name: &str, names: &[&str]| {
        let asked = signing_request(common_name, names);
        request(name, &asked, json!({"issuerRef": reference}))
    };
    let names = ["example.com", "foo.com"];
    // Twice: another key makes no other name.
    for _ in 0..2 {
        check(&stage, &of("test-cr", "example.com", &names), "test-cr-1733622556");
    }
    check(&stage, &of("test-cr", "10.0.0.1", &["10.0.0.1"]), "test-cr-3104426127");

    let long = "test-comparison-that-is-at-the-fifty-two-character-l";
    let of_i = |name: &str| {
        request(name, &signing_request("", &["example.com"]), json!({"issuerRef": {"name": "i"}}))
    };
    check(&stage, &of_i(long), &format!("{long}-3937811163"));
    let mut made = Vec::new();
    for ending in ["a", "b"] {
        let request = of_i(&format!("{long}{ending}"));
        stage.apply(std::slice::from_ref(&request));
        let order = stage.sees_one("orders", &json!({"metadata": {"name": format!("{long}-…")}}));
        made.push(name(&order).to_owned());
        let request = name(&request);
        stage.kubectl.run(&["delete", "certificaterequest", request, "--cascade=foreground"]);
    }
    assert_ne!(made[0], made[1], "the whole name is hashed");

    stage.patch("issuer/test-issuer", &json!({"spec": {"acme": {"profile": "shortlived"}}}));
    let asked = of("test-cr", "example.com", &names);
    stage.apply(&[asked]);
    let order = stage.sees_one("orders", &json!({"spec": {"profile": "shortlived"}}));
    assert_ne!(name(&order), "test-cr-1733622556");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn challenges_and_their_objects_have_the_names_of_cert_manager() {
    let stage = Stage::open("challenges").await;
    let order = json!({
        "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "metadata": {"name": "testorder"},
        "spec": {
            "request": "AAAA", "dnsNames": ["test.com"],
            "issuerRef": {"name": "testissuer", "kind": "Issuer", "group": "cert-manager.io"},
        },
    });
    stage.apply(&[order]);
    let offered = json!({"url": "http://chalurl", "token": "token", "type": "http-01"});
    let authorization = json!({
        "url": "http://authzurl", "identifier": "test.com", "wildcard": false,
        "initialState": "pending", "challenges": [offered],
    });
    let status = json!({
        "url": "https://ca.example/order", "finalizeURL": "https://ca.example/finalize",
        "state": "pending", "authorizations": [authorization],
    });
    stage.patch("order/testorder", &json!({"status": status}));
    let solver = json!({"selector": {"dnsNames": ["test.com"]}, "http01": {"ingress": {}}});
    stage.apply(&[stage.issuer("testissuer", json!({"solvers": [solver]}))]);
    stage.sees("challenge/testorder-2580184217", &json!({"status": {"presented": true}}));
    let labels = json!({
        "acme.cert-manager.io/http-domain": "244122414",
        "acme.cert-manager.io/http-token": "108921378",
        "acme.cert-manager.io/http01-solver": "true",
    });
    for kind in ["pods", "services", "ingresses"] {
        let expected = json!({"metadata": {
            "labels": labels, "generateName": "cm-acme-http-solver-",
            "ownerReferences": [{"kind": "Challenge", "name": "testorder-2580184217"}],
        }});
        stage.sees_one(kind, &expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn requests_keep_certificate_names_of_233_characters() {
    let stage = Stage::open("long").await;
    let nobody = json!({"issuerRef": {"name": "nobody"}, "secretName": "short"});
    let fits = "c".repeat(233);
    stage.apply(&[certificate(&fits, &["www.example.com"], nobody.clone())]);
    stage.sees(&format!("certificaterequest/{fits}-1"), &json!({"kind": "CertificateRequest"}));
    stage.kubectl.run(&["delete", "certificate", &fits, "--cascade=foreground"]);

    stage.apply(&[certificate(&"c".repeat(234), &["www.example.com"], nobody)]);
    let hashed = eventually("the request", || {
        let requests = stage.kubectl.items("certificaterequests");
        requests.first().map(|request| name(request).to_owned())
    });
    let hash = hashed.strip_prefix(&format!("{}-", "c".repeat(168)));
    let hash = hash.and_then(|rest| rest.strip_suffix("-1")).unwrap_or_default();
    let is_hash = hash.len() == 64 && hash.chars().all(|c| c.is_ascii_hexdigit());
    assert!(is_hash, "{hashed}");
}
