//! What people asked for is kept: by the next command for other names, by a manifest that is applied again, and after a revocation.

use std::collections::BTreeSet;
use std::fs;

use kubectl_acme::ca::Config;
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::terminal::{Said, Terminal, certificate, issuer, site};

async fn desk() -> (TestCa, Terminal) {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let mut terminal = Terminal::elsewhere();
    terminal.http_port = ca.http01.port();
    terminal.write("root.pem", ca.server.tls_root_pem());
    (ca, terminal)
}

/// Orders names without a manifest.
fn order(ca: &TestCa, terminal: &Terminal, words: &[&str]) -> Said {
    let root = terminal.path("root.pem");
    let (url, root) = (ca.server.directory_url(), root.to_str().unwrap().to_owned());
    let words = [&["order", "--server", &url, "--ca-bundle", &root], words].concat();
    terminal.drive(&words)
}

fn succeeds(said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}");
}

/// The Issuer of a Certificate.
fn issuer_of(terminal: &Terminal, name: &str) -> Value {
    let find = |kind: &str, name: &str| {
        let objects = terminal.objects(kind);
        let found = objects.into_iter().find(|object| object["metadata"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}"))
    };
    let certificate = find("certificates", name);
    find("issuers", certificate["spec"]["issuerRef"]["name"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_ordered_without_a_manifest_changes_nothing_of_another_one() {
    let (ca, terminal) = desk().await;
    let short = ["--domain", "p.example.com", "--profile", "shortlived"];
    succeeds(&order(&ca, &terminal, &short));
    let before = issuer_of(&terminal, "p-example-com");
    succeeds(&order(&ca, &terminal, &["--domain", "q.example.com"]));
    let after = issuer_of(&terminal, "p-example-com");
    assert_eq!(before["spec"], after["spec"]);
    assert_eq!(issuer_of(&terminal, "q-example-com")["spec"]["acme"].get("profile"), None);
    let handshake =
        ["--challenge-type", "tls-alpn-01", "--dry-run=server", "--domain", "t.example.com"];
    let said = order(&ca, &terminal, &handshake);
    assert!(said.stdout.contains("tls-alpn-01 created (server dry run)"), "{said:?}");

    let orders = ca.server.orders().len();
    for words in [&short[..], &["--domain", "q.example.com"]] {
        let said = order(&ca, &terminal, words);
        succeeds(&said);
        assert!(said.stderr.contains("nothing is due"), "{said:?}");
    }
    assert_eq!(ca.server.orders().len(), orders);
    let renewed = terminal.drive(&["certificate", "renew", "p-example-com"]);
    succeeds(&renewed);
    let profiles: Vec<Value> = terminal
        .objects("orders")
        .into_iter()
        .filter(|order| order["spec"]["dnsNames"] == json!(["p.example.com"]))
        .map(|order| order["spec"]["profile"].clone())
        .collect();
    assert!(profiles.iter().all(|profile| profile == "shortlived"), "{profiles:?}");

    // Another profile is another certificate, and that is told.
    let said = order(&ca, &terminal, &["--domain", "q.example.com", "--profile", "shortlived"]);
    succeeds(&said);
    assert!(said.stderr.contains("has another spec.acme.profile"), "{said:?}");
    assert_eq!(ca.server.orders().len(), orders + 2);
    let issuers = terminal.objects("issuers");
    let keys: BTreeSet<String> = issuers
        .iter()
        .map(|issuer| issuer["spec"]["acme"]["privateKeySecretRef"]["name"].to_string())
        .collect();
    assert_eq!(keys.len(), 1, "one account for one CA: {keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_annotation_that_people_write_is_taken_from_the_manifest() {
    let (ca, terminal) = desk().await;
    let mut issuer = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    let asked = || {
        terminal.objects("issuers")[0]["metadata"]["annotations"]["kubectl-acme/challenge-type"]
            .clone()
    };
    for kind in [Value::Null, json!("tls-alpn-01"), json!("dns-persist-01"), Value::Null] {
        issuer["metadata"]["annotations"] = if kind.is_null() {
            json!({"note": "x"})
        } else {
            json!({"note": "x", "kubectl-acme/challenge-type": kind})
        };
        terminal.order(std::slice::from_ref(&issuer));
        assert_eq!(asked(), kind);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_revoked_is_replaced_by_the_next_order() {
    let ca = TestCa::start(Config::default(), |fetcher| fetcher).await;
    let terminal = site(&ca, &["www.example.com"]);
    let order = || terminal.drive(&["order", "-f", "manifests.yaml"]);
    succeeds(&order());
    let name = terminal.objects("certificates")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let before = fs::read(terminal.path(&format!("out/{name}-tls/tls.crt"))).unwrap();
    succeeds(&terminal.run(&["certificate", "revoke", &name, "--yes"]));
    let checked = terminal.run(&["certificate", "check", "-o", "json"]);
    assert_eq!(checked.code, Some(10), "{checked:?}");
    assert!(checked.stdout.contains("\"reason\": \"Revoked\""), "{checked:?}");
    succeeds(&order());
    assert_eq!(ca.server.orders().len(), 2);
    assert_ne!(fs::read(terminal.path(&format!("out/{name}-tls/tls.crt"))).unwrap(), before);
    let again = order();
    assert!(again.stderr.contains("nothing is due"), "{again:?}");
    assert_eq!(ca.server.orders().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_certificate_is_on_disk_until_the_real_one_comes() {
    let (ca, terminal) = desk().await;
    let issuer = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    let mut web = certificate("web", &["www.example.com"], json!({}));
    web["metadata"]["annotations"]["cert-manager.io/issue-temporary-certificate"] = "true".into();
    terminal.manifests(&[issuer, web]);
    // Nothing leads to our listener, so that the certificate does not come.
    let listen = "--http01-listen=127.0.0.1:0";
    let resolve = format!("--http01-resolve=*=127.0.0.1:{}", terminal.http_port);
    let said = terminal.run(&[
        "order",
        "-f",
        "manifests.yaml",
        "--out",
        "out",
        "--timeout=5s",
        listen,
        &resolve,
    ]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("is a temporary certificate"), "{said:?}");
    let pair = terminal.pair("web-tls");
    let issuer = pair.leaf(&["-issuer"]);
    assert!(issuer.contains("cert-manager.local"), "{issuer}");
    assert!(pair.key.exists());
    let said = terminal.drive(&["order", "-f", "manifests.yaml"]);
    succeeds(&said);
    assert!(!pair.leaf(&["-issuer"]).contains("cert-manager.local"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_without_solvers_orders_names_that_are_authorized_already() {
    let (ca, terminal) = desk().await;
    let mut issuer = issuer(&ca.server.directory_url(), ca.server.tls_root_pem(), json!({}));
    let web = certificate("web", &["www.example.com"], json!({}));
    terminal.order(&[issuer.clone(), web.clone()]);
    issuer["spec"]["acme"].as_object_mut().unwrap().remove("solvers");
    let same = certificate("same", &["www.example.com"], json!({}));
    terminal.order(&[issuer.clone(), same]);
    let other = certificate("other", &["other.example.com"], json!({}));
    let said = terminal.try_order(&[issuer, other]);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert!(
        said.stderr.contains("hint: add a solver for that name to Issuer default/acme"),
        "{said:?}"
    );
}
