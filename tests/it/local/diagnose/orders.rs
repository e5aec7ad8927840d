//! Accounts and orders at our own CA: keys that are another account's, orders that are over, refused or left.

use std::thread;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::ca::Config;
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::{Lab, NAME, reply, server};
use crate::support::bed::free_port;
use crate::support::lab;
use crate::support::terminal::{certificate, secret};

/// A Secret with that key.
fn account_key(name: &str, key: &KeyPair) -> Value {
    secret(name, "tls.key", &key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn acc_05_the_account_key_is_replaced_while_a_self_check_fails() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    let key = KeyPair::generate().unwrap();
    let certificate = certificate("web", &[NAME], json!({}));
    lab.terminal.manifests(&[
        account_key("acme-account", &key),
        lab.issuer(json!({})),
        certificate,
    ]);
    lab.names_first(&["-f", "manifests.yaml"], "ACC-05", 10);
    // What stood in the manifests alone stands in the store now, and somebody has worked with it.
    let order = ["order", "-f", "manifests.yaml", "--timeout=8s", &lab.listen(), &lab.resolve()];
    let said = lab.terminal.run(&order);
    assert!(said.code.is_some(), "{said:?}");
    let first = lab.names_first(&["web"], "ACC-05", 10);
    assert_eq!(first["grade"], "certain", "{first:#}");
    let evidence = first["evidence"].to_string();
    assert!(evidence.contains("Secret default/acme-account"), "{evidence}");
}

#[tokio::test(flavor = "multi_thread")]
async fn acc_11_the_new_key_has_an_account_already() {
    let lab = Lab::new().await;
    let (own, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut second = lab.issuer(json!({"privateKeySecretRef": {"name": "other-account"}}));
    second["metadata"]["name"] = json!("other");
    lab.issue(&[
        account_key("acme-account", &own),
        account_key("other-account", &other),
        lab.issuer(json!({})),
        second,
    ]);
    let accounts = lab.ca.server.statistics().of("newAccount");
    lab.terminal.manifests(&[account_key("acme-account", &other), lab.issuer(json!({}))]);
    let first = lab.names_first(&["-f", "manifests.yaml"], "ACC-11", 10);
    let evidence = first["evidence"].to_string();
    let urls: Vec<Value> = lab
        .terminal
        .objects("issuers")
        .iter()
        .map(|issuer| issuer["status"]["acme"]["uri"].clone())
        .collect();
    assert_eq!(urls.len(), 2);
    assert!(urls.iter().all(|url| evidence.contains(url.as_str().unwrap())), "{urls:?} {evidence}");
    assert!(
        lab.ca.server.statistics().of("newAccount") > accounts,
        "whose it is, the CA was asked"
    );

    // A key that has no account can be the new one.
    let fresh = KeyPair::generate().unwrap();
    lab.terminal.manifests(&[account_key("acme-account", &fresh), lab.issuer(json!({}))]);
    let (said, report) = lab.diagnose(&["-f", "manifests.yaml"]);
    lab::names_none(&report, "a new account key that no account has");
    assert_eq!(said.code, Some(0), "{report:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_15_the_predecessor_is_replaced_by_every_order() {
    let lab = Lab::with(Config::default(), &["already-replaced=1000"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let first = lab.names_first(&["web"], "ORD-15", 10);
    assert!(first["explains"].as_array().unwrap().contains(&json!("ORD-04")), "{first:#}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lim_03_five_validations_have_failed_and_the_next_order_is_refused() {
    let elsewhere = server(Some(reply("404 Not Found", "", "not here")));
    let lab = Lab::seeing(elsewhere, &["failed-validations-limit"]).await;
    let mut said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    let (listen, resolve) = (lab.listen(), lab.resolve());
    for failures in 1..=5 {
        assert_ne!(said.code, Some(0), "{said:?}");
        assert_eq!(lab.ca.server.statistics().of("newOrder"), failures, "{said:?}");
        assert_eq!(lab.ca.server.statistics().of("challenge"), failures, "{said:?}");
        let (_, report) = lab.diagnose(&["web"]);
        assert_ne!(report["findings"][0]["cause"], "LIM-03", "{report:#}");
        said = lab.terminal.run(&["order", "retry", "web", "--timeout=30s", &listen, &resolve]);
    }
    assert_eq!(said.code, Some(5), "{said:?}");
    let first = lab.names_first(&["web"], "LIM-03", 10);
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("(5) for \"www.example.com\" in the last 1h0m0s"), "{first:#}");
    let refused = lab.ca.server.statistics();
    assert_eq!((refused.of("newOrder"), refused.of("challenge")), (6, 5));
}

#[tokio::test(flavor = "multi_thread")]
async fn hyg_04_orders_were_begun_and_left() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    let (_, before) = lab.diagnose(&["issuer/acme"]);
    lab::names_none(&before, "an order that somebody works on");
    let deleted = lab.terminal.run(&["delete", "certificate", "web"]);
    assert_eq!(deleted.code, Some(0), "{deleted:?}");
    let deadline = Timestamp::now() + SignedDuration::from_secs(60);
    while !lab.terminal.objects("orders").is_empty() {
        assert!(Timestamp::now() < deadline, "the Order goes with its Certificate");
        thread::sleep(Duration::from_millis(100));
    }
    let first = lab.names_first(&["issuer/acme"], "HYG-04", 0);
    let evidence = first["evidence"][0].clone();
    assert!(evidence["came"].as_str().unwrap().starts_with("pending, until "), "{first:#}");
}

/// The guide's item "check the authorization URL on the status of the Order or Challenge": diagnose has asked there.
#[tokio::test(flavor = "multi_thread")]
async fn guide_the_authorization_says_why_where_the_order_does_not() {
    let lab = Lab::with(Config::default(), &["order-invalid-without-error"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let (_, report) = lab.diagnose(&["web"]);
    let first = lab::names_first(&report, "HTTP-03");
    let shown = &first["evidence"][0];
    assert_eq!(shown["asked"], format!("authorization of {NAME} at the CA"), "{report:#}");
    assert!(shown["came"].as_str().unwrap().contains("Invalid response from"), "{report:#}");
}
