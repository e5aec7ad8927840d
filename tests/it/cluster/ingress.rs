//! Ingresses and Gateways in a real cluster: what `order -f` makes of them, alone and where cert-manager drives.

use serde_json::{Value, json};

use crate::support::cluster::{Arena, Bench, Kubectl, eventually};

/// An Ingress for one name of the namespace, with those annotations.
fn ingress(bench: &Bench<'_>, annotations: &Value) -> Value {
    let host = format!("shop.{}.example.com", bench.namespace.name());
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": {"name": "shop", "annotations": annotations},
        "spec": {
            "tls": [{"hosts": [host], "secretName": "shop-tls"}],
            "rules": [{"host": host, "http": {"paths": [{
                "path": "/", "pathType": "Prefix",
                "backend": {"service": {"name": "shop", "port": {"number": 80}}},
            }]}}],
        },
    })
}

fn certificates(kubectl: &Kubectl) -> Vec<String> {
    let all = kubectl.items("certificates");
    all.iter().map(|one| one["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Writes `web.yaml`: an Issuer, and an Ingress that asks for a certificate of it.
fn asked(bench: &Bench<'_>) {
    let issuer = bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
    let asks = json!({"cert-manager.io/issuer": "pebble"});
    bench.write("web.yaml", &[issuer, ingress(bench, &asks)]);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_ingress_with_only_an_annotation_gets_its_certificate_whoever_drives() {
    let arena = Arena::enter();
    let alone = Bench::new(&arena, "alone");
    asked(&alone);
    let kubectl = alone.namespace.kubectl();
    let talk = alone.order(&kubectl, &[], 0);
    assert!(talk.contains("driver: kubectl-acme\n"), "{talk}");
    assert_eq!(certificates(&kubectl), ["shop-tls"]);
    let events = kubectl.run(&["events", "--for", "ingress/shop"]);
    assert!(events.contains("Successfully created Certificate \"shop-tls\""), "{events}");
    let again = alone.order(&kubectl, &[], 0);
    assert!(again.contains("nothing is due"), "{again}");
    assert_eq!(alone.pebble.orders(), 1);

    let peer = arena.peer(&[]);
    peer.wait_until_at_work();
    let shared = Bench::new(&arena, "shared");
    asked(&shared);
    let kubectl = shared.namespace.kubectl();
    let talk = shared.order(&kubectl, &[], 0);
    assert!(talk.contains("driver: cert-manager ("), "{talk}");
    assert_eq!(certificates(&kubectl), ["shop-tls"]);
    shared.only_others_order(1);
    peer.stop();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn run_follows_the_annotations_of_an_ingress() {
    let arena = Arena::enter();
    let bench = Bench::new(&arena, "run");
    let kubectl = bench.namespace.kubectl();
    let issuer = bench.issuer("Issuer", "pebble", &json!({"ingress": {}}));
    kubectl.apply(&issuer.to_string());
    let running = bench.start(
        &bench.everywhere(),
        &[
            "run",
            "--default-issuer-name=pebble",
            "--extra-certificate-annotations=example.com/owner",
        ],
    );
    let by_default = json!({"kubernetes.io/tls-acme": "true", "example.com/owner": "web"});
    kubectl.apply(&ingress(&bench, &by_default).to_string());
    let shop_tls = || {
        let all = kubectl.items("certificates");
        let certificate = all.iter().find(|one| one["metadata"]["name"] == "shop-tls")?.clone();
        (certificate["status"]["revision"] == 1).then_some(certificate)
    };
    let certificate = eventually("the certificate of the Ingress", shop_tls);
    assert_eq!(certificate["spec"]["issuerRef"]["name"], "pebble");
    assert_eq!(certificate["metadata"]["annotations"]["example.com/owner"], "web");
    // Whoever deletes it gets it again, and whoever takes the annotation away loses it.
    kubectl.run(&["delete", "certificate", "shop-tls"]);
    eventually("another certificate of the Ingress", || {
        let all = kubectl.items("certificates");
        all.iter().any(|one| one["metadata"]["uid"] != certificate["metadata"]["uid"]).then_some(())
    });
    kubectl.run(&["annotate", "ingress", "shop", "kubernetes.io/tls-acme-"]);
    eventually("the end of the certificate", || certificates(&kubectl).is_empty().then_some(()));
    drop(running);
}
