//! `certificate check` beside Pebble: windows that the CA says, and CAA records that have changed since a certificate was issued.

use std::sync::Arc;

use kubectl_acme::ca::{Caa, Config, RecordAccount};
use kubectl_acme::dns::lookup::DirectResolver;
use kubectl_acme::fetch::Fetcher;
use kubectl_acme::model::{Key, Kind, ObjectName};
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::{Part, Store as _};
use serde_json::{Value, json};

use crate::support::ca::TestCa;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Said, Terminal, certificate, issuer};

/// Reason and detail of the first reason for the one certificate, or its verdict.
fn first(said: &Said, code: i32) -> (String, String) {
    assert_eq!(said.code, Some(code), "{said:?}");
    let report: Value = serde_json::from_str(&said.stdout).unwrap();
    let one = &report["certificates"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match one["reasons"].get(0) {
        Some(reason) => (text(&reason["reason"]), text(&reason["detail"])),
        None => (text(&one["verdict"]), one["unknown"].to_string()),
    }
}

fn checked(terminal: &Terminal, code: i32) -> (String, String) {
    first(&terminal.run(&["certificate", "check", "-o", "json"]), code)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Pebble: run by just pebble"]
async fn a_changed_caa_record_is_found_and_the_certificate_replaced_by_the_ca_that_it_names() {
    let caa_identities = vec!["ca.example".to_owned()];
    let pebble = Pebble::start(&PebbleOptions { caa_identities, ..PebbleOptions::calm() });
    let mut terminal = Terminal::at(&pebble);
    terminal.set("KUBECTL_ACME_DNS", pebble.dns().address());
    let own = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
    terminal.order(&[own.clone(), certificate("www", &["www.example.com"], json!({}))]);
    assert_eq!(checked(&terminal, 0).0, "keep");

    pebble.dns().add_caa("example.com", "issue", "other.example");
    let found = checked(&terminal, 10);
    let detail = "CAA of example.com for www.example.com: 0 issue \"other.example\"";
    assert_eq!(found, ("CaaForbids".to_owned(), detail.to_owned()));
    // It is not asked for what it would refuse.
    let orders = pebble.orders();
    let said = terminal.drive(&["certificate", "check", "--renew"]);
    assert_eq!(said.code, Some(10), "{said:?}");
    let why = format!(
        "Certificate default/www was not replaced: the CA would refuse the order: {detail}"
    );
    assert!(said.stderr.contains(&why), "{said:?}");
    assert_eq!(pebble.orders(), orders);
    // Where name servers fail, nothing is known, and nothing good is said.
    pebble.dns().clear("example.com");
    pebble.dns().add_servfail("www.example.com");
    let (verdict, why) = checked(&terminal, 11);
    assert!(verdict == "unknown" && why.contains("SERVFAIL"), "{verdict} {why}");
    pebble.dns().clear("www.example.com");
    pebble.dns().add_caa("example.com", "issue", "other.example");

    // The domain belongs to another CA now, which looks at the records itself.
    let caa = Caa { identities: vec!["other.example".to_owned()], account: RecordAccount::Own };
    let config = Config { caa: Some(caa), ..Config::default() };
    let address = pebble.dns().address().parse().unwrap();
    let other = TestCa::start(config, |fetcher| Fetcher {
        resolver: Arc::new(DirectResolver::new(address)),
        ..fetcher
    })
    .await;
    let mut manifest =
        issuer(&other.server.directory_url(), other.server.tls_root_pem(), json!({}));
    manifest["metadata"]["name"] = json!("other");
    manifest["spec"]["acme"]["privateKeySecretRef"] = json!({"name": "other-account"});
    terminal.order(&[manifest]);
    let store = LocalStore::open(&terminal.path("state"), Access::ReadWrite).unwrap();
    let key = Key::new(Kind::Certificate, ObjectName::new("default", "www"));
    let mut record = store.get(&key).await.unwrap().unwrap();
    record.object["spec"]["issuerRef"] = json!({"name": "other"});
    store.replace(record, Part::Whole).await.unwrap();
    drop(store);
    let found = checked(&terminal, 10);
    assert_eq!(found, ("IssuerDiffers".to_owned(), "it is from Issuer acme".to_owned()));
    terminal.http_port = other.http01.port();
    let said = terminal.drive(&["certificate", "check", "--renew", "-o", "json"]);
    assert_eq!(first(&said, 0).0, "IssuerDiffers");
    assert!(said.stdout.contains("\"outcome\": \"replaced\""), "{said:?}");
    assert_eq!(checked(&terminal, 0).0, "keep");
    terminal.pair("www-tls").check(other.server.root_pem());
    assert_eq!((other.server.orders().len(), pebble.orders()), (1, orders));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_window_that_the_ca_has_moved_is_told_with_the_page_that_says_why() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let terminal = Terminal::at(&pebble);
    let own = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
    terminal.order(&[own, certificate("www", &["www.example.com"], json!({}))]);
    let seen = terminal.run(&["certificate", "show", "www"]);
    assert!(seen.stdout.contains("Renewal Window:"), "{seen:?}");
    let pem = std::fs::read_to_string(&terminal.pair("www-tls").certificate).unwrap();
    let page = "https://ca.example/incident";
    let window = json!({"start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"});
    pebble.say_of_renewal(&pem, &json!({"suggestedWindow": window, "explanationURL": page}));
    let found = checked(&terminal, 10);
    assert_eq!(found, ("RenewalWindow".to_owned(), format!("its CA says why: {page}")));
    let seen = terminal.run(&["certificate", "show", "www"]);
    let line = format!(
        "2026-01-01T00:00:00Z to 2026-01-02T00:00:00Z (OVER: to be renewed now), see {page}"
    );
    assert!(seen.stdout.contains(&line), "{seen:?}");
}
