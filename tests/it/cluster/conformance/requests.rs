//! Cases 19 to 28, 35 and 64: what becomes of a CertificateRequest, and of its Order.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kubectl_acme::reconcile::request::Approval;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::stage::{
    Manner, Stage, certificate, held, name, ready, request, secret, signing_request,
};
use crate::support::cluster::eventually;

fn approved() -> Value {
    let message = "Certificate request has been approved by cert-manager.io";
    let condition = json!({
        "type": "Approved", "status": "True", "reason": "cert-manager.io", "message": message,
    });
    json!({"status": {"conditions": [condition]}})
}

/// What an approver, or somebody who denies, writes.
fn verdict(word: &str) -> Value {
    let condition = json!({
        "type": word, "status": "True", "reason": "policy", "message": "says the policy",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    json!({"status": {"conditions": [condition]}})
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_request_is_judged_before_anything_is_ordered() {
    let stage = Stage::open("judged").await;
    stage.apply(&[stage.issuer("acme", held())]);
    let host = stage.host("www");
    let good = || signing_request("", &[&host]);
    stage.apply(&[
        request("foreign", &good(), json!({"issuerRef": {"name": "acme", "group": "example.com"}})),
        request("garbled", "no PEM", json!({})),
        request("stray", &signing_request("else.example.com", &[&host]), json!({})),
        request("address", &signing_request("10.0.0.1", &["10.0.0.1"]), json!({})),
        request("orphan", &good(), json!({"issuerRef": {"name": "later"}})),
    ]);
    let garbled = "Failed to decode CSR in spec.request: …";
    let stray = "The CSR PEM requests a commonName that is not present in the list of dnsNames or \
                 ipAddresses. …\"else.example.com\" does not exist in […] or []";
    for (object, event, message) in
        [("garbled", "RequestParsingError", garbled), ("stray", "InvalidOrder", stray)]
    {
        let object = format!("certificaterequest/{object}");
        let failed = stage.sees(&object, &ready("False", "Failed", message));
        assert!(failed["status"]["failureTime"].is_string());
        stage.hears(&object, &format!("Warning {event} {message}"));
    }
    let ordered = "Waiting on certificate issuance from order …: \"pending\"";
    stage.sees("certificaterequest/address", &approved());
    stage.sees("certificaterequest/address", &ready("False", "Pending", ordered));

    let unknown = "Referenced \"Issuer\" not found: …\"later\" not found";
    let orphan = "certificaterequest/orphan";
    stage.sees(orphan, &ready("False", "Pending", unknown));
    stage.hears(orphan, &format!("Normal IssuerNotFound {unknown}"));
    let mut later = stage.issuer("later", held());
    later["spec"]["acme"]["disableAccountKeyGeneration"] = true.into();
    stage.apply(&[later]);
    let unready = "Referenced issuer does not have a Ready status condition";
    stage.sees(orphan, &ready("False", "Pending", unready));
    let key = KeyPair::generate().unwrap().serialize_pem();
    stage.apply(&[secret("later-account", "tls.key", &key)]);
    stage.sees(orphan, &ready("False", "Pending", ordered));

    let foreign = stage.kubectl.object("certificaterequest/foreign");
    assert_eq!(foreign["status"], Value::Null, "another group's request is left alone");
    assert!(stage.events("certificaterequest/foreign").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_others_approve_or_deny_counts() {
    let mut stage = Stage::set("verdicts");
    stage.work(Manner { approval: Approval::Theirs, ..Manner::default() }).await;
    let (one, two) = (stage.host("one"), stage.host("two"));
    stage.apply(&[
        stage.issuer("acme", json!({})),
        certificate("one", &[&one], json!({})),
        certificate("two", &[&two], json!({})),
    ]);
    stage.sees("issuer/acme", &ready("True", "ACMEAccountRegistered", "…"));
    for object in ["certificaterequest/one-1", "certificaterequest/two-1"] {
        let waits = "Normal WaitingForApproval Not signing CertificateRequest until it is Approved";
        stage.hears(object, waits);
        assert_eq!(stage.kubectl.object(object)["status"]["conditions"], Value::Null);
    }
    assert!(stage.kubectl.items("orders").is_empty());

    stage.patch("certificaterequest/one-1", &verdict("Denied"));
    let denied = "The CertificateRequest was denied by an approval controller";
    let seen = stage.sees("certificaterequest/one-1", &ready("False", "Denied", denied));
    assert!(seen["status"]["failureTime"].is_string());
    let issuing = json!({"type": "Issuing", "status": "False", "reason": "policy"});
    stage.sees("certificate/one", &json!({"status": {"conditions": [issuing]}}));

    stage.patch("certificaterequest/two-1", &verdict("Approved"));
    stage.kubectl.wait_for("certificate/two", "Ready");
    stage.sees("certificaterequest/two-1", &verdict("Approved"));
    let orders = stage.kubectl.items("orders");
    assert_eq!(orders.len(), 1, "what is denied is not ordered");
    assert_eq!(stage.pebble.orders(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_challenge_that_fails_takes_its_order_and_request_along() {
    let stage = Stage::open("fails").await;
    let (good, bad) = (stage.host("good"), stage.host("bad"));
    // Nobody is there: what we see ourselves, the CA does not.
    stage.pebble.dns().add_a(&bad, &["127.0.0.2"]);
    stage.apply(&[certificate("web", &[&bad, &good], json!({}))]);
    let why = format!("…acme: authorization error for {bad}: 4… urn:ietf:params:acme:error:…");
    let invalid = json!({"status": {"state": "invalid", "reason": why, "failureTime": "…"}});
    let order = stage.sees_one("orders", &invalid);
    let challenge = stage.sees_one(
        "challenges",
        &json!({"spec": {"dnsName": bad}, "status": {"state": "invalid", "reason": why}}),
    );
    let said = format!("Warning Failed Accepting challenge authorization failed: {}", &why[3..]);
    stage.hears(&format!("challenge/{}", name(&challenge)), &said);
    let failed = format!(
        "Failed to wait for order resource \"{}\" to become ready: order is in \"invalid\" state: …",
        name(&order)
    );
    stage.sees("certificaterequest/web-1", &ready("False", "Failed", &failed));
    stage.hears("certificaterequest/web-1", &format!("Warning OrderFailed {failed}"));
    let issuing = json!({"type": "Issuing", "status": "False", "reason": "Failed"});
    let certificate = json!({"status": {"conditions": [issuing], "failedIssuanceAttempts": 1}});
    stage.sees("certificate/web", &certificate);
    assert_eq!(stage.kubectl.items("challenges").len(), 2, "they are kept for whoever looks");
    for kind in ["pods", "services", "ingresses"] {
        stage.sees_none(kind);
    }
    assert_eq!(stage.pebble.orders(), 1, "nothing is tried again before the back-off ends");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_order_with_the_certificate_of_another_key_is_made_anew() {
    let stage = Stage::open("otherkey").await;
    stage.apply(&[stage.issuer("acme", held())]);
    stage.apply(&[certificate("web", &[&stage.host("www")], json!({}))]);
    let first = stage.sees_one("orders", &json!({"status": {"state": "pending"}}));
    stage.sees_one("challenges", &json!({"status": {"presented": true}}));
    let key = KeyPair::generate().unwrap();
    let other = CertificateParams::new([stage.host("www")]).unwrap().self_signed(&key).unwrap();
    let status = json!({"state": "valid", "certificate": STANDARD.encode(other.pem())});
    stage.patch(&format!("order/{}", name(&first)), &json!({"status": status}));
    eventually("another Order", || {
        let orders = stage.kubectl.items("orders");
        let uid = &orders.first()?["metadata"]["uid"];
        (*uid != first["metadata"]["uid"]).then_some(())
    });
    let of_new = json!({"status": {"presented": true}, "metadata": {"deletionTimestamp": null}});
    let challenge = stage.sees_one("challenges", &of_new);
    stage.let_go(&challenge);
    stage.kubectl.wait_for("certificate/web", "Ready");
}
