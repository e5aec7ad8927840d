//! CAA by the rules of RFC 8659, and refusals in Boulder's words.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::rdata::CAA;
use hickory_resolver::proto::rr::rdata::caa::KeyValue;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use jiff::SignedDuration;
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::Bed;
use super::client::{Client, Key, base64url, signing_request};
use crate::ca::tls_alpn::account_label;
use crate::ca::{Caa, Config, NO_ACCOUNT, RecordAccount};
use crate::dns::lookup::DirectResolver;
use crate::dns::testing::{World, Zone};

/// A record `issue` for one CA.
fn issue(authority: &str, parameters: Vec<KeyValue>) -> RData {
    RData::CAA(CAA::new_issue(false, Some(Name::from_ascii(authority).unwrap()), parameters))
}

fn parameter(tag: &str, value: &str) -> Vec<KeyValue> {
    vec![KeyValue::new(tag, value)]
}

/// The error of the challenge that was tried; null when it passed.
async fn error(client: &Client<'_>, host: &str) -> Value {
    let order = client.order(&[host]).await.json();
    client.authorize(&order).await;
    let url = order["authorizations"][0].as_str().unwrap();
    client.read(url).await.json()["challenges"][0]["error"].clone()
}

#[tokio::test]
async fn records_are_looked_for_from_the_name_upwards_and_who_is_not_meant_is_refused() {
    let account = "https://ca.example/acct/1";
    let bed = Zone::new("bed.test.")
        .with("ours.bed.test.", issue("ca.example", Vec::new()))
        .with("theirs.bed.test.", issue("other.example", Vec::new()))
        .with("bound.bed.test.", issue("ca.example", parameter("accounturi", account)))
        .with("moved.bed.test.", issue("ca.example", parameter("accounturi", "https://x/2")))
        .with("dns.bed.test.", issue("ca.example", parameter("validationmethods", "dns-01")))
        .cname("alias.bed.test.", "theirs.bed.test.");
    let broken = Zone::new("broken.test.").saying(RecordType::CAA, ResponseCode::ServFail);
    let world = World::start(vec![Zone::new("."), bed, broken], &[]).await;
    let identities = vec!["ca.example".to_owned()];
    let caa = Some(Caa { identities, account: RecordAccount::Elsewhere(account.to_owned()) });
    let resolver = Arc::new(DirectResolver::new(world.address));
    let bed = Bed::resolving(Config { caa, ..Config::default() }, resolver).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    assert_eq!(client.directory["meta"]["caaIdentities"], json!(["ca.example"]));
    for host in ["bed.test", "ours.bed.test", "www.ours.bed.test", "bound.bed.test"] {
        assert_eq!(error(&client, host).await, Value::Null, "{host}");
    }
    for (host, owner) in [
        ("theirs.bed.test", "theirs.bed.test"),
        ("a.b.theirs.bed.test", "theirs.bed.test"),
        ("alias.bed.test", "alias.bed.test"),
        ("moved.bed.test", "moved.bed.test"),
        ("dns.bed.test", "dns.bed.test"),
    ] {
        let expected = json!({
            "type": "urn:ietf:params:acme:error:caa",
            "detail": format!("While processing CAA for {host}: CAA record for {owner} prevents issuance"),
            "status": 403,
        });
        assert_eq!(error(&client, host).await, expected);
    }
    let expected = json!({
        "type": "urn:ietf:params:acme:error:dns",
        "detail": "While processing CAA for www.broken.test: DNS problem: SERVFAIL looking up CAA for www.broken.test - \
                   the domain's nameservers may be malfunctioning",
        "status": 400,
    });
    assert_eq!(error(&client, "www.broken.test").await, expected);
}

#[tokio::test]
async fn the_label_of_an_account_is_a_method_of_its_own() {
    let only = |method: &str| issue("ca.example", parameter("validationmethods", method));
    let zone = Zone::new("bed.test.")
        .with("account.bed.test.", only("dns-account-01"))
        .with("dns.bed.test.", only("dns-01,dns-persist-01"));
    let world = World::start(vec![Zone::new("."), zone.clone()], &[]).await;
    let identities = vec!["ca.example".to_owned()];
    let caa = Some(Caa { identities, account: RecordAccount::Own });
    let resolver = Arc::new(DirectResolver::new(world.address));
    let bed = Bed::resolving(Config { caa, ..Config::default() }, resolver).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let label = account_label(client.account.as_deref().unwrap());
    for (host, refused) in [("account.bed.test", false), ("dns.bed.test", true)] {
        let order = client.order(&[host]).await.json();
        let authorization = order["authorizations"][0].as_str().unwrap();
        let offered = client.read(authorization).await.json()["challenges"].clone();
        let is_it = |challenge: &&Value| challenge["type"] == "dns-account-01";
        let challenge = offered.as_array().unwrap().iter().find(is_it).unwrap();
        let text = client.key_authorization(challenge["token"].as_str().unwrap());
        let text = base64url(digest(&SHA256, text.as_bytes()));
        let zone = zone.clone().txt(&format!("_{label}._acme-challenge.{host}."), &[&text]);
        world.resolver.replace(vec![Zone::new("."), zone]);
        client.ask(challenge["url"].as_str().unwrap(), &json!({})).await;
        let settled = client.settled(authorization).await;
        let expected = if refused { "urn:ietf:params:acme:error:caa".into() } else { Value::Null };
        assert_eq!(settled["challenges"][0]["error"]["type"], expected, "{settled}");
    }
}

#[tokio::test]
async fn a_record_for_one_account_is_for_none_that_is_yet_to_be_made_and_that_is_told() {
    let bound = |authority| issue(authority, parameter("accounturi", "https://ca.example/acct/1"));
    let bed = Zone::new("bed.test.")
        .with("open.bed.test.", issue("ca.example", Vec::new()))
        .with("bound.bed.test.", bound("ca.example"))
        .with("theirs.bed.test.", bound("other.example"));
    let world = World::start(vec![Zone::new("."), bed], &[]).await;
    let caa =
        Some(Caa { identities: vec!["ca.example".to_owned()], account: RecordAccount::Unmade });
    let resolver = Arc::new(DirectResolver::new(world.address));
    let bed = Bed::resolving(Config { caa, ..Config::default() }, resolver).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    assert_eq!(error(&client, "open.bed.test").await, Value::Null);
    for (host, more) in [("bound", format!(": {NO_ACCOUNT}")), ("theirs", String::new())] {
        let host = format!("{host}.bed.test");
        let detail = error(&client, &host).await["detail"].clone();
        let expected = format!(
            "While processing CAA for {host}: CAA record for {host} prevents issuance{more}"
        );
        assert_eq!(detail, expected);
    }
}

/// Lets the validations of all authorizations lie that far back.
fn pass(bed: &Bed, time: SignedDuration) {
    for authorization in bed.server.ca.state().authorizations.values_mut() {
        if let Some(validation) = &mut authorization.validation {
            validation.at -= time;
        }
    }
}

#[tokio::test]
async fn records_that_were_read_long_ago_are_read_again_before_anything_is_issued() {
    let zones = |one: &str, two: &str| {
        let zone = Zone::new("bed.test.")
            .with("one.bed.test.", issue(one, Vec::new()))
            .with("two.bed.test.", issue(two, Vec::new()));
        vec![Zone::new("."), zone]
    };
    let (ours, theirs) = ("ca.example", "other.example");
    let world = World::start(zones(ours, ours), &[]).await;
    let caa = Some(Caa { identities: vec![ours.to_owned()], account: RecordAccount::Own });
    let resolver = Arc::new(DirectResolver::new(world.address));
    let bed = Bed::resolving(Config { caa, ..Config::default() }, resolver).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let names = ["one.bed.test", "two.bed.test"];
    let (url, order) = client.ready_order(&names).await;
    let request = signing_request(&names, &KeyPair::generate().unwrap());
    let why = |name: &str| {
        format!(
            "rechecking caa: While processing CAA for {name}: CAA record for {name} prevents issuance"
        )
    };

    pass(&bed, SignedDuration::from_hours(8));
    world.resolver.replace(zones(theirs, ours));
    let refused = client.finalize(&order, &request).await;
    let detail = format!("Error finalizing order :: {}", why("one.bed.test"));
    assert_eq!(refused.refusal(), (403, "caa".to_owned(), detail));
    world.resolver.replace(zones(theirs, theirs));
    let refused = client.finalize(&order, &request).await.json();
    let problem = |name: &str| {
        json!({
            "type": "urn:ietf:params:acme:error:caa", "status": 403, "detail": why(name),
            "identifier": {"type": "dns", "value": name},
        })
    };
    assert_eq!(refused["subproblems"], json!(names.map(problem)));
    assert_eq!(client.read(&url).await.json()["status"], "ready", "it may be mended");
    world.resolver.replace(zones(ours, ours));
    assert_eq!(client.finalize(&order, &request).await.json()["status"], "valid");
}

#[tokio::test]
async fn records_that_were_read_a_while_ago_still_count() {
    let zones = |authority: &str| {
        vec![Zone::new("."), Zone::new("bed.test.").with("bed.test.", issue(authority, Vec::new()))]
    };
    let world = World::start(zones("ca.example"), &[]).await;
    let caa = Some(Caa { identities: vec!["ca.example".to_owned()], account: RecordAccount::Own });
    let resolver = Arc::new(DirectResolver::new(world.address));
    let bed = Bed::resolving(Config { caa, ..Config::default() }, resolver).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (_, order) = client.ready_order(&["bed.test"]).await;
    pass(&bed, SignedDuration::from_hours(6));
    world.resolver.replace(zones("other.example"));
    let request = signing_request(&["bed.test"], &KeyPair::generate().unwrap());
    assert_eq!(client.finalize(&order, &request).await.json()["status"], "valid");
}

#[tokio::test]
async fn without_an_identity_nobody_asks_for_records() {
    let zone = Zone::new("bed.test.").with("bed.test.", issue("other.example", Vec::new()));
    let world = World::start(vec![Zone::new("."), zone], &[]).await;
    let resolver = Arc::new(DirectResolver::new(world.address));
    let bed = Bed::resolving(Config::default(), resolver).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    assert_eq!(error(&client, "bed.test").await, Value::Null);
    assert_eq!(world.resolver.questions(), [""; 0]);
}
