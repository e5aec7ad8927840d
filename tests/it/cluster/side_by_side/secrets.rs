//! What goes into the Secret of a Certificate beside key and chain, by cert-manager's controllers and by ours: other forms and
//! keystores, labels and annotations, a temporary certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::fixture::{Site, condition, is_ready};
use super::in_turn::InTurn;
use super::scenarios::MEMORY;
use super::{arena, report};
use crate::support::cluster::Cluster;
use crate::support::difference::{self, Difference};

use crate::support::pebble::Pebble;
use crate::support::purpose::OUR_NAME;
use crate::support::story;

/// What differs on purpose, beside what we remember in annotations.
pub(super) const DIFFERENCES: &[Difference] = &[OUR_NAME];

const MANIFESTS: &str = "
apiVersion: v1
kind: Secret
metadata: {name: password}
stringData: {word: changeit}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: stored}
spec:
  secretName: stored-tls
  dnsNames: [stored.example.test]
  additionalOutputFormats: [{type: CombinedPEM}, {type: DER}]
  keystores:
    jks: {create: true, alias: web, password: changeit}
    pkcs12: {create: true, profile: Modern2026, passwordSecretRef: {name: password, key: word}}
  secretTemplate: {labels: {tier: front}, annotations: {example.com/owner: web}}
  issuerRef: {name: acme}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: temporary
  annotations:
    cert-manager.io/issue-temporary-certificate: 'true'
    example.com/note: kept
spec:
  secretName: temporary-tls
  commonName: temporary.example.test
  dnsNames: [temporary.example.test]
  subject: {organizations: [Example]}
  privateKey: {algorithm: ECDSA}
  issuerRef: {name: acme}
";

/// The keys of a Secret's data.
fn keys(secret: &Value) -> Vec<&str> {
    let data = secret["data"].as_object();
    data.into_iter().flat_map(|data| data.keys().map(String::as_str)).collect()
}

/// Issues both, and changes what is asked for beside key and chain.
fn act(site: &Site<'_>, pebble: &Pebble) {
    let issuer = json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme"},
        "spec": {"acme": {
            "server": pebble.directory(), "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": "acme-account"},
            "solvers": [{"http01": {"ingress": {"ingressClassName": "bed"}}}],
        }},
    });
    site.kubectl.apply(&issuer.to_string());
    site.until("Issuer", "acme", is_ready);
    site.kubectl.apply(MANIFESTS);
    for name in ["stored", "temporary"] {
        site.until_issued(name, 1);
    }
    let all = ["key.der", "keystore.jks", "keystore.p12", "tls-combined.pem", "tls.crt", "tls.key"];
    let change = |spec: Value, expected: &[&str]| {
        let patch = json!({"spec": spec}).to_string();
        site.kubectl.run(&["patch", "certificate/stored", "--type=merge", "-p", &patch]);
        site.until("Secret", "stored-tls", |secret| keys(secret) == expected);
        // The status follows, or was there before.
        site.until("Certificate", "stored", |certificate| {
            let ready = condition(certificate, "Ready").unwrap();
            ready["observedGeneration"] == certificate["metadata"]["generation"]
        });
    };
    site.until("Secret", "stored-tls", |secret| keys(secret) == all);
    change(
        json!({"additionalOutputFormats": [{"type": "DER"}]}),
        &["key.der", "keystore.jks", "keystore.p12", "tls.crt", "tls.key"],
    );
    change(json!({"keystores": {"jks": null}}), &["key.der", "keystore.p12", "tls.crt", "tls.key"]);
    change(json!({"keystores": null, "additionalOutputFormats": null}), &["tls.crt", "tls.key"]);
    let template =
        json!({"secretTemplate": {"labels": {"tier": null, "team": "web"}, "annotations": null}});
    let patch = json!({"spec": template}).to_string();
    site.kubectl.run(&["patch", "certificate/stored", "--type=merge", "-p", &patch]);
    site.until("Secret", "stored-tls", |secret| {
        let labels = &secret["metadata"]["labels"];
        labels["team"] == "web" && labels["tier"].is_null()
    });
    site.until("Certificate", "stored", |certificate| {
        let ready = condition(certificate, "Ready").unwrap();
        ready["observedGeneration"] == certificate["metadata"]["generation"]
    });
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_stands_beside_key_and_chain_is_the_same() {
    let cluster: &Cluster = &arena();
    let both = InTurn::on(cluster);
    let pebble = both.pebble(None);

    let theirs = both.site("theirs");
    both.theirs(|| act(&theirs, &pebble));
    let theirs_did = theirs.all_turns();

    let ours = both.site("ours");
    both.ours(|| act(&ours, &pebble));

    assert_eq!(
        theirs.all_turns().len(),
        theirs_did.len(),
        "finished work of cert-manager's is left alone"
    );
    let told = (story::tell_apart(&theirs_did), story::tell_apart(&ours.all_turns()));
    let listed = [&MEMORY[..], DIFFERENCES].concat();
    report("secrets", &[("secrets", difference::compare(&told.0, &told.1, &listed))]);
}
