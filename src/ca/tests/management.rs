//! The CA's interface for tests beside ACME.

use std::sync::Arc;

use jiff::Timestamp;
use rcgen::KeyPair;
use reqwest::StatusCode;
use serde_json::{Value, json};

use super::client::{Client, Key, base64url, signing_request};
use super::issue::check_chain;
use super::{Answers, Bed, NoNames};
use crate::ca::records::Records;
use crate::ca::{Caa, Config, RecordAccount};
use crate::fetch::{Fetcher, Overrides};

/// A CA whose records are set from outside.
async fn managed(caa: Option<Caa>) -> Bed {
    let records = Arc::new(Records::before(Arc::new(NoNames)));
    let look = Fetcher { resolver: records.clone(), overrides: Overrides::default() };
    let management = Some("127.0.0.1:0".parse().unwrap());
    let config = Config { management, records: Some(records), caa, ..Config::default() };
    Bed::looking(config, Arc::new(look), Answers::default()).await
}

fn url(bed: &Bed, path: &str) -> String {
    format!("http://{}{path}", bed.server.management().unwrap())
}

async fn got(bed: &Bed, path: &str) -> (StatusCode, String) {
    let answer = bed.http.get(url(bed, path)).send().await.unwrap();
    (answer.status(), answer.text().await.unwrap())
}

/// Posts as `curl -d` does.
async fn post(bed: &Bed, path: &str, body: &Value) -> StatusCode {
    let request = bed.http.post(url(bed, path)).body(body.to_string());
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.send().await.unwrap().status()
}

/// Proves the names by their TXT records, set from outside; gives the chain.
async fn issued(client: &Client<'_>, names: &[&str]) -> String {
    let order = client.order(names).await;
    for authorization in order.json()["authorizations"].as_array().unwrap() {
        let authorization = authorization.as_str().unwrap();
        let view = client.read(authorization).await.json();
        let challenges = view["challenges"].as_array().unwrap();
        let dns = challenges.iter().find(|challenge| challenge["type"] == "dns-01").unwrap();
        let text = client.key_authorization(dns["token"].as_str().unwrap());
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
        let host = format!("_acme-challenge.{}.", view["identifier"]["value"].as_str().unwrap());
        let body = json!({"host": host, "value": base64url(digest)});
        assert_eq!(post(client.bed, "/set-txt", &body).await, 200);
        client.ask(dns["url"].as_str().unwrap(), &json!({})).await;
        let settled = client.settled(authorization).await;
        assert_eq!(settled["status"], "valid", "{settled}");
    }
    let order = client.read(order.header("location")).await.json();
    let request = signing_request(names, &KeyPair::generate().unwrap());
    let answer = client.finalize(&order, &request).await.json();
    client.read(answer["certificate"].as_str().unwrap()).await.text
}

#[tokio::test]
async fn dns_01_needs_no_name_server_and_every_chain_can_be_checked() {
    let bed = managed(None).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let names = ["*.bed.test", "bed.test"];
    let chain = issued(&client, &names).await;
    let (status, root) = got(&bed, "/roots/0").await;
    assert_eq!(
        (status, root.as_str()),
        (StatusCode::OK, &*bed.server.root_pem().replace("\r\n", "\n"))
    );
    check_chain(&chain, &root, &["www.bed.test", "bed.test"]);
    let (leaf, _) = chain.split_once("\n\n").unwrap();
    for number in [0, 1] {
        let (_, root) = got(&bed, &format!("/roots/{number}")).await;
        let (_, intermediate) = got(&bed, &format!("/intermediates/{number}")).await;
        check_chain(&format!("{leaf}\n{intermediate}"), &root, &["bed.test"]);
    }
    for path in ["/roots/2", "/roots/x", "/intermediates/2", "/nothing"] {
        assert_eq!(got(&bed, path).await.0, 404, "{path}");
    }
    assert_eq!(got(&bed, "/health").await.0, 200);
}

#[tokio::test]
async fn a_certificate_is_revoked_and_made_due_from_outside() {
    let bed = managed(None).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let chain = issued(&client, &["bed.test"]).await;
    let leaf = pem::parse(&chain).unwrap();
    let (_, leaf) = x509_parser::parse_x509_certificate(leaf.contents()).unwrap();
    let serial = leaf.raw_serial_as_string();
    let status = async || {
        let (status, body) = got(&bed, &format!("/cert-status-by-serial/{serial}")).await;
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()
    };
    let seen = status().await;
    assert_eq!((&seen["Status"], &seen["Reason"]), (&json!("Valid"), &Value::Null));
    assert!(chain.starts_with(seen["Certificate"].as_str().unwrap()));
    assert_eq!(got(&bed, "/cert-status-by-serial/7f").await.0, 404);
    assert_eq!(got(&bed, "/cert-status-by-serial/none").await.0, 400);

    // As Pebble takes it, whatever the case of its members; even what is no JSON.
    let start = Timestamp::now().to_string();
    let window = json!({"suggestedWindow": {"start": start, "end": start}}).to_string();
    let key = leaf.extensions().iter().find_map(|one| match one.parsed_extension() {
        x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(key) => {
            Some(base64url(key.key_identifier.as_ref()?.0))
        }
        _ => None,
    });
    let id = format!("{}.{}", key.unwrap(), base64url(leaf.raw_serial()));
    let renewal = format!("{}/{id}", client.url("renewalInfo"));
    for (members, text) in
        [(["certificate", "ariResponse"], &*window), (["Certificate", "ARIResponse"], "no JSON")]
    {
        let body = json!({members[0]: chain, members[1]: text});
        assert_eq!(post(&bed, "/set-renewal-info/", &body).await, 200);
        let answer = bed.http.get(&renewal).send().await.unwrap();
        assert_eq!(answer.headers()["retry-after"], "21600");
        assert_eq!(answer.text().await.unwrap(), text);
    }
    let body = json!({"certificate": chain, "ariResponse": ""});
    assert_eq!(post(&bed, "/set-renewal-info", &body).await, 200);
    let own = bed.http.get(&renewal).send().await.unwrap().text().await.unwrap();
    assert!(own.contains("suggestedWindow") && own != window, "{own}");

    assert_eq!(post(&bed, "/revoke-by-serial", &json!({"serial": serial, "reason": 4})).await, 200);
    let seen = status().await;
    assert_eq!((&seen["Status"], &seen["Reason"]), (&json!("Revoked"), &json!(4)));
    assert!(seen["RevokedAt"].as_str().unwrap().ends_with(" +0000 UTC"), "{seen}");
    for (body, status) in [
        (json!({"serial": "7f"}), 404),
        (json!({"serial": "none"}), 400),
        (json!({"serial": serial, "reason": 7}), 400),
        (json!({"reason": 1}), 400),
        (json!([]), 400),
    ] {
        assert_eq!(post(&bed, "/revoke-by-serial", &body).await, status, "{body}");
    }
    let stranger = json!({"certificate": bed.server.root_pem(), "ariResponse": "x"});
    assert_eq!(post(&bed, "/set-renewal-info/", &stranger).await, 404);
}

#[tokio::test]
async fn records_are_set_and_cleared_in_the_way_of_pebbles_test_server() {
    let identities = vec!["ca.example".to_owned()];
    let caa = Caa { identities, account: RecordAccount::Own };
    let bed = managed(Some(caa)).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    // What the CA makes of a name, which nobody answers for.
    let kind = async |name: &str| {
        let order = client.order(&[name]).await.json();
        client.authorize(&order).await;
        let url = order["authorizations"][0].as_str().unwrap();
        client.read(url).await.json()["challenges"][0]["error"]["detail"].to_string()
    };
    let says = async |path: &str, body: Value, name: &str, words: &str| {
        assert_eq!(post(&bed, path, &body).await, 200, "{path} {body}");
        let detail = kind(name).await;
        assert!(detail.contains(words), "{path} {body}: {detail}");
    };
    let host = json!({"host": "a.bed.test"});
    says("/set-servfail", host.clone(), "a.bed.test", "SERVFAIL").await;
    says("/clear-servfail", host.clone(), "a.bed.test", "NXDOMAIN").await;
    // Nothing listens at port 80 there.
    let addresses = json!({"host": "a.bed.test", "addresses": ["127.0.0.213"]});
    says("/add-a", addresses, "a.bed.test", "127.0.0.213").await;
    says("/clear-a", host.clone(), "a.bed.test", "NXDOMAIN").await;
    let addresses = json!({"host": "a.bed.test", "addresses": ["127.0.0.1"]});
    assert_eq!(post(&bed, "/add-aaaa", &addresses).await, 400);
    let alias = json!({"host": "a.bed.test", "target": "gone.bed.test."});
    says("/set-cname", alias, "a.bed.test", "NXDOMAIN").await;
    says("/clear-cname", host.clone(), "a.bed.test", "NXDOMAIN").await;
    says("/set-default-ipv4", json!({"ip": "127.0.0.214"}), "b.bed.test", "127.0.0.214").await;
    says("/set-default-ipv4", json!({"ip": ""}), "b.bed.test", "NXDOMAIN").await;

    let policies = json!([{"tag": "issue", "value": "other.example"}]);
    let body = json!({"host": "c.bed.test", "policies": policies});
    assert_eq!(post(&bed, "/add-caa", &body).await, 200);
    let order = client.order(&["c.bed.test"]).await.json();
    let url = order["authorizations"][0].as_str().unwrap();
    let view = client.read(url).await.json();
    let dns = view["challenges"].as_array().unwrap().iter().find(|it| it["type"] == "dns-01");
    let dns = dns.unwrap();
    let text = client.key_authorization(dns["token"].as_str().unwrap());
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes());
    let body = json!({"host": "_acme-challenge.c.bed.test", "value": base64url(digest)});
    assert_eq!(post(&bed, "/set-txt", &body).await, 200);
    client.ask(dns["url"].as_str().unwrap(), &json!({})).await;
    let settled = client.settled(url).await;
    assert!(settled["challenges"][0]["error"].to_string().contains("CAA record"), "{settled}");
    for (path, body) in [
        ("/clear-caa", json!({"host": "c.bed.test"})),
        ("/clear-txt", json!({"host": "_acme-challenge.c.bed.test"})),
        ("/clear-aaaa", host.clone()),
        ("/set-default-ipv6", json!({"ip": ""})),
    ] {
        assert_eq!(post(&bed, path, &body).await, 200, "{path}");
    }
    for (path, body) in [
        ("/set-txt", json!({"host": "a.test"})),
        ("/set-txt", json!({"host": ".", "value": "x"})),
        ("/add-a", json!({"host": "a.test", "addresses": []})),
        ("/add-caa", json!({"host": "a.test", "policies": [{"tag": "issue"}]})),
        ("/set-default-ipv4", json!({"ip": "::1"})),
    ] {
        assert_eq!(post(&bed, path, &body).await, 400, "{path} {body}");
    }
}

#[tokio::test]
async fn a_record_that_stays_proves_a_name_for_the_account_that_it_names() {
    let records = Arc::new(Records::before(Arc::new(NoNames)));
    let look = Fetcher { resolver: records.clone(), overrides: Overrides::default() };
    let config = Config { persistent_records: true, ..Config::default() };
    let bed = Bed::looking(config, Arc::new(look), Answers::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let account = client.account.clone().unwrap();
    for (name, record, expected) in [
        ("a.bed.test", format!("test-ca.invalid; accounturi={account}"), "valid"),
        ("b.bed.test", format!("test-ca.invalid; accounturi={account}9"), "invalid"),
        ("*.c.bed.test", format!("test-ca.invalid; accounturi={account}"), "invalid"),
        (
            "*.d.bed.test",
            format!("test-ca.invalid; accounturi={account}; policy=wildcard"),
            "valid",
        ),
    ] {
        let base = name.trim_start_matches("*.");
        records.add(&format!("_validation-persist.{base} TXT \"{record}\"")).unwrap();
        let order = client.order(&[name]).await.json();
        let url = order["authorizations"][0].as_str().unwrap();
        let view = client.read(url).await.json();
        let challenges = view["challenges"].as_array().unwrap();
        let kept = challenges.iter().find(|it| it["type"] == "dns-persist-01").unwrap();
        client.ask(kept["url"].as_str().unwrap(), &json!({})).await;
        let settled = client.settled(url).await;
        assert_eq!(settled["status"], expected, "{name}: {settled}");
    }
}
