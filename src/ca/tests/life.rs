//! Long-lived and reused objects, and waiting: keys, orders and authorizations between requests.

use std::sync::Arc;
use std::time::Duration;

use rcgen::KeyPair;
use serde_json::{Value, json};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{DistributionPointName, GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::{CertificateRevocationList, RevokedCertificate};

use super::client::{Client, Key, base64url, identifiers, signing_request};
use super::issue::check_chain;
use super::{Answers, Bed, NoNames, Spellbound, fetcher};
use crate::ca::Config;

const NAMES: &[&str] = &["www.bed.test"];

/// Finalizes an order; gives its URL for the certificate.
async fn issued(client: &Client<'_>, order: &Value, key: &KeyPair) -> String {
    let answer = client.finalize(order, &signing_request(NAMES, key)).await;
    assert_eq!(answer.json()["status"], "valid", "{answer:?}");
    answer.json()["certificate"].as_str().unwrap().to_owned()
}

/// Seconds from the start to the end of the first certificate, both included.
fn validity(chain: &str) -> i64 {
    let leaf = pem::parse(chain).unwrap();
    let (_, leaf) = X509Certificate::from_der(leaf.contents()).unwrap();
    let validity = leaf.validity();
    validity.not_after.timestamp() - validity.not_before.timestamp() + 1
}

#[tokio::test]
async fn accounts_sign_with_every_algorithm_and_certificates_hold_every_sort_of_key() {
    let bed = Bed::start(Config::default()).await;
    for (account, certified) in [
        ("ES256", &rcgen::PKCS_ED25519),
        ("ES384", &rcgen::PKCS_ECDSA_P384_SHA384),
        ("ES512", &rcgen::PKCS_ECDSA_P521_SHA512),
        ("RS256", &rcgen::PKCS_RSA_SHA256),
    ] {
        let client = Client::registered(&bed, Key::generate(account)).await;
        let key = KeyPair::generate_for(certified).unwrap();
        let (_, order) = client.ready_order(NAMES).await;
        let certificate = client.read(&issued(&client, &order, &key).await).await;
        let leaf = pem::parse(&certificate.text).unwrap();
        let (_, leaf) = X509Certificate::from_der(leaf.contents()).unwrap();
        assert_eq!(leaf.public_key().subject_public_key.data, key.public_key_raw(), "{account}");
        check_chain(&certificate.text, bed.server.root_pem(), NAMES);
    }
}

#[tokio::test]
async fn the_alternate_chain_leads_to_the_other_root_and_back() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (_, order) = client.ready_order(NAMES).await;
    let url = issued(&client, &order, &KeyPair::generate().unwrap()).await;
    let usual = client.read(&url).await;
    assert_eq!(usual.header("content-type"), "application/pem-certificate-chain");
    let alternate = client.read(&usual.link("alternate")).await;
    check_chain(&alternate.text, bed.server.alternate_root_pem(), NAMES);
    assert_eq!(client.read(&alternate.link("alternate")).await.text, usual.text);
    assert_ne!(alternate.text, usual.text);
}

#[tokio::test]
async fn a_profile_and_a_wished_end_shorten_the_certificate() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let in_two_days = jiff::Timestamp::now() + Duration::from_hours(48);
    for (wish, hours) in [
        (json!({}), 90 * 24),
        (json!({ "profile": "shortlived" }), 160),
        (json!({ "notAfter": in_two_days.to_string() }), 49),
    ] {
        let mut wish = wish;
        wish["identifiers"] = identifiers(NAMES).into();
        let order = client.ask("newOrder", &wish).await.json();
        assert_eq!(order["profile"], wish["profile"]);
        client.authorize(&order).await;
        let url = issued(&client, &order, &KeyPair::generate().unwrap()).await;
        let seconds = validity(&client.read(&url).await.text);
        assert!((seconds - hours * 3600).abs() <= 2, "{wish}: {seconds} s");
    }
}

#[tokio::test]
async fn a_pending_order_is_given_back_and_a_valid_authorization_taken_over() {
    for reuse in [true, false] {
        let config =
            Config { reuse_orders: reuse, reuse_authorizations: reuse, ..Config::default() };
        let bed = Bed::start(config).await;
        let client = Client::registered(&bed, Key::generate("ES256")).await;
        let (first, second) = (client.order(NAMES).await, client.order(NAMES).await);
        assert_eq!((first.status, second.status), (201, 201));
        assert_eq!(first.header("location") == second.header("location"), reuse);
        client.authorize(&first.json()).await;
        let first = client.read(first.header("location")).await.json();
        issued(&client, &first, &KeyPair::generate().unwrap()).await;
        let third = client.order(&["a.bed.test", "www.bed.test"]).await.json();
        let shared = third["authorizations"][1] == first["authorizations"][0];
        assert_eq!(shared, reuse);
        let orders = client.read(client.account_object().await["orders"].as_str().unwrap()).await;
        let count = if reuse { 2 } else { 3 };
        assert_eq!(orders.json()["orders"].as_array().map(Vec::len), Some(count));
    }
}

#[tokio::test]
async fn an_order_of_validated_names_is_born_ready() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (_, order) = client.ready_order(NAMES).await;
    issued(&client, &order, &KeyPair::generate().unwrap()).await;
    assert_eq!(client.order(NAMES).await.json()["status"], "ready");
}

#[tokio::test]
async fn issuing_may_take_a_while_and_says_how_long() {
    let finalize_delay = Some(Duration::from_millis(20));
    let bed = Bed::start(Config { finalize_delay, ..Config::default() }).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (url, order) = client.ready_order(NAMES).await;
    let request = signing_request(NAMES, &KeyPair::generate().unwrap());
    let answer = client.finalize(&order, &request).await;
    assert_eq!(answer.json()["status"], "processing");
    assert_eq!(answer.header("retry-after"), "3");
    while client.read(&url).await.json()["status"] == "processing" {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(client.read(&url).await.json()["status"], "valid");
}

#[tokio::test]
async fn a_validation_under_way_is_pending_and_may_be_asked_for_twice() {
    let config = Config { retry_after: Some(7), ..Config::default() };
    let bed = Bed::looking(config, Arc::new(Spellbound), Answers::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let order = client.order(NAMES).await;
    let url = order.json()["authorizations"][0].as_str().unwrap().to_owned();
    let authorization = client.read(&url).await;
    assert_eq!(authorization.header("retry-after"), "");
    let challenge = authorization.json()["challenges"][0]["url"].as_str().unwrap().to_owned();
    for _ in 0..2 {
        let answer = client.ask(&challenge, &json!({})).await;
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!("pending")));
        assert_eq!(answer.header("retry-after"), "7");
        assert_eq!(answer.link("up"), url);
    }
    assert_eq!(client.read(&url).await.header("retry-after"), "7");
    assert_eq!(client.read(order.header("location")).await.header("retry-after"), "7");
    bed.server.stop().await;
}

#[tokio::test]
async fn a_name_that_is_not_there_and_a_closed_port_are_told_apart() {
    // Nothing listens on the discard port.
    let look = fetcher("closed.bed.test", "127.0.0.1:9".parse().unwrap(), Arc::new(NoNames));
    let bed = Bed::looking(Config::default(), look, Answers::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    for (name, kind, words) in [
        ("closed.bed.test", "connection", "127.0.0.1: Fetching http://closed.bed.test/.well-known"),
        ("nowhere.bed.test", "dns", "DNS problem: NXDOMAIN looking up A for nowhere.bed.test"),
    ] {
        let order = client.order(&[name]).await.json();
        client.authorize(&order).await;
        let authorization = client.read(order["authorizations"][0].as_str().unwrap()).await.json();
        assert_eq!(authorization["status"], "invalid");
        let error = &authorization["challenges"][0]["error"];
        assert_eq!(error["type"], format!("urn:ietf:params:acme:error:{kind}"));
        assert!(error["detail"].as_str().unwrap().starts_with(words), "{error}");
    }
}

#[tokio::test]
async fn a_deactivated_authorization_takes_its_order_along() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (url, order) = client.ready_order(NAMES).await;
    let authorization = order["authorizations"][0].as_str().unwrap();
    let answer = client.ask(authorization, &json!({ "status": "deactivated" })).await;
    assert_eq!(answer.json()["status"], "deactivated");
    assert_eq!(client.read(&url).await.json()["status"], "invalid");
    assert_eq!(client.order(NAMES).await.json()["status"], "pending");
}

#[tokio::test]
async fn a_certificate_is_revoked_by_its_own_key() {
    let bed = Bed::start(Config::default()).await;
    let mut client = Client::registered(&bed, Key::generate("ES256")).await;
    let (_, order) = client.ready_order(NAMES).await;
    let key = KeyPair::generate().unwrap();
    let chain = client.read(&issued(&client, &order, &key).await).await.text;
    let certificate = base64url(pem::parse(&chain).unwrap().contents());
    // A stranger's key first, then the certificate's own.
    client.account = None;
    for (key, status) in [(Key::generate("ES256"), 403), (Key::of(&key), 200)] {
        client.key = key;
        let answer = client.ask("revokeCert", &json!({ "certificate": certificate })).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
}

#[tokio::test]
async fn an_account_is_found_again_by_its_key_alone() {
    let bed = Bed::start(Config::default()).await;
    let mut client = Client::registered(&bed, Key::generate("RS256")).await;
    let account = client.account.take();
    let answer = client.ask("newAccount", &json!({ "onlyReturnExisting": true })).await;
    assert_eq!(answer.status, 200);
    assert_eq!(Some(answer.header("location")), account.as_deref());
}

/// Returns the octets that anybody gets at a URL.
async fn plain(bed: &Bed, url: &str) -> Vec<u8> {
    let answer = bed.http.get(url).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{url}");
    answer.bytes().await.unwrap().to_vec()
}

/// Serial numbers and reasons of a list, once its issuer and its signature are found to be those of that certificate.
async fn listed(bed: &Bed, url: &str, issuer: &[u8]) -> Vec<(String, Option<u8>)> {
    let der = plain(bed, url).await;
    let (_, list) = CertificateRevocationList::from_der(&der).unwrap();
    let (_, issuer) = X509Certificate::from_der(issuer).unwrap();
    assert_eq!(list.issuer().as_raw(), issuer.subject().as_raw());
    list.verify_signature(issuer.public_key()).unwrap();
    assert!(list.next_update().unwrap() > list.last_update());
    let entry = |entry: &RevokedCertificate<'_>| {
        let serial = entry.raw_serial_as_string().replace(':', "");
        (serial, entry.reason_code().map(|(_, reason)| reason.0))
    };
    list.iter_revoked_certificates().map(entry).collect()
}

#[tokio::test]
async fn what_was_revoked_stands_in_a_list_that_is_got_without_tls_and_is_to_be_renewed_at_once() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (_, order) = client.ready_order(NAMES).await;
    let chain = client.read(&issued(&client, &order, &KeyPair::generate().unwrap()).await).await;
    let chain = pem::parse_many(&chain.text).unwrap();
    let (_, leaf) = X509Certificate::from_der(chain[0].contents()).unwrap();
    let (mut url, mut key) = (String::new(), Vec::new());
    for extension in leaf.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::CRLDistributionPoints(points) => {
                let Some(DistributionPointName::FullName(names)) = &points[0].distribution_point
                else {
                    panic!("{points:?}");
                };
                let GeneralName::URI(uri) = names[0] else { panic!("{names:?}") };
                url = uri.to_owned();
            }
            ParsedExtension::AuthorityKeyIdentifier(of) => {
                key = of.key_identifier.as_ref().unwrap().0.to_vec();
            }
            _ => {}
        }
    }
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    assert_eq!(listed(&bed, &url, chain[1].contents()).await, []);
    let serial = leaf.raw_serial_as_string().replace(':', "");
    let renewal = format!("{}.{}", base64url(&key), base64url(leaf.raw_serial()));
    let renewal = format!("{}/{renewal}", client.url("renewalInfo"));
    let window = async || {
        let window: Value = serde_json::from_slice(&plain(&bed, &renewal).await).unwrap();
        let at = |end: &str| window["suggestedWindow"][end].as_str().unwrap().parse().unwrap();
        let page = window["explanationURL"].as_str().map(ToOwned::to_owned);
        ((at("start"), at("end")), page)
    };
    let now = jiff::Timestamp::now();
    let ((start, end), page): ((jiff::Timestamp, jiff::Timestamp), _) = window().await;
    let (two_months, days) = (now + Duration::from_hours(60 * 24), Duration::from_hours(48));
    assert!(start > two_months - days && end < two_months + days && start < end, "{start} {end}");
    assert_eq!(page, None);

    assert!(bed.server.revoke(&serial, 1) && !bed.server.revoke("7f", 1));
    assert_eq!(listed(&bed, &url, chain[1].contents()).await, [(serial, Some(1))]);
    assert!(window().await.0.1 < now);

    // A drill moves the windows of what was issued before it.
    let moved = (now + Duration::from_hours(1), now + Duration::from_hours(2));
    bed.server.move_windows(moved, "https://ca.test/drill");
    let ((start, _), page) = window().await;
    assert_eq!(
        (start.as_second(), page.as_deref()),
        (moved.0.as_second(), Some("https://ca.test/drill"))
    );
    let (_, order) = client.ready_order(NAMES).await;
    issued(&client, &order, &KeyPair::generate().unwrap()).await;
    for (id, status) in [("nothing", 400), ("AAAA.AAAA", 404)] {
        let url = format!("{}/{id}", client.url("renewalInfo"));
        assert_eq!(bed.http.get(url).send().await.unwrap().status(), status, "{id}");
    }
    // Whoever speaks plain HTTP on a port for TLS is told so, and gets nothing else.
    let other = bed.http.get(url.replace("/crl", "/directory")).send().await.unwrap();
    assert_eq!(other.status(), 400);
}
