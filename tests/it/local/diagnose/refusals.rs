//! What a CA refuses, what stands in manifests, and whoever waits for others: each on our own CA, on loopback.

use std::thread;
use std::time::Duration;

use kubectl_acme::ca::Config;
use serde_json::json;

use super::{Lab, NAME};
use crate::support::bed::free_port;
use crate::support::lab;
use crate::support::terminal::certificate;

/// Orders one name at a CA of these habits, without success, and looks.
async fn check(cause: &str, behaviour: &str, code: i32) {
    let lab = Lab::with(Config::default(), &[behaviour]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    lab.names_first(&["web"], cause, code);
}

#[tokio::test(flavor = "multi_thread")]
async fn acc_04_the_account_was_deactivated() {
    check("ACC-04", "account-deactivated", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acc_09_the_ca_has_new_terms() {
    check("ACC-09", "user-action-required", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_18_the_signing_request_is_refused() {
    check("CFG-18", "bad-csr", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cfg_19_the_key_is_refused() {
    check("CFG-19", "bad-public-key", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lim_06_the_account_is_paused() {
    check("LIM-06", "new-order-paused", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lim_04_too_many_orders() {
    check("LIM-04", "new-order-429=600", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lim_07_the_ca_is_busy() {
    check("LIM-07", "gateway-page=100", 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_06_the_order_has_expired() {
    let order_lifetime = Duration::from_secs(8);
    let mut lab = Lab::with(Config { order_lifetime, ..Config::default() }, &[]).await;
    lab.stuck_at(free_port());
    thread::sleep(order_lifetime);
    lab.names_first(&["web"], "ORD-06", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn caa_09_the_ca_is_kept_out_when_it_issues() {
    check("CAA-09", "caa-at-finalize", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn env_05_the_ca_refuses_every_nonce() {
    check("ENV-05", "bad-nonce-storm", 10).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn acc_03_the_order_is_at_another_ca() {
    let mut lab = Lab::new().await;
    lab.stuck_at(free_port());
    let other = Lab::new().await;
    lab.terminal.manifests(&[other.issuer(json!({}))]);
    let moved =
        lab.terminal.run(&["order", "-f", "manifests.yaml", "--timeout=10s", &lab.listen()]);
    assert!(moved.code.is_some(), "{moved:?}");
    lab.names_first(&["web"], "ACC-03", 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn ord_02_a_pause_follows_a_failure() {
    let lab = Lab::with(Config::default(), &["order-invalid-with-error"]).await;
    let said = lab.order(&[lab.issuer(json!({})), certificate("web", &[NAME], json!({}))]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let (_, report) = lab.diagnose(&["web"]);
    let first = lab::names_first(&report, "HTTP-03");
    let explained = first["explains"].as_array().unwrap();
    assert!(explained.contains(&json!("ORD-02")), "{report:#}");
}
