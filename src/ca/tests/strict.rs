//! Details that a client must not rely on: order, tokens, an immediate answer, earlier proofs.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use rcgen::KeyPair;
use serde_json::{Value, json};

use super::Bed;
use super::client::{Answer, Client, Key, signing_request};
use crate::ca::{Config, Profile};

const NAMES: &[&str] = &["a.bed.test", "b.bed.test", "c.bed.test"];

/// A strict CA that keeps nobody waiting, and refuses no nonce: this client sends nothing twice.
fn config() -> Config {
    Config {
        finalize_delay: Some(Duration::from_millis(20)),
        retry_after: Some(0),
        refuse_nonces_percent: 0,
        ..Config::strict()
    }
}

fn texts(list: &Value, member: &str) -> Vec<String> {
    let list = list.as_array().unwrap().iter();
    list.map(|one| one[member].as_str().unwrap().to_owned()).collect()
}

/// The names of an order as its authorizations list them.
async fn authorized(client: &Client<'_>, order: &Value) -> Vec<String> {
    let mut names = Vec::new();
    for url in order["authorizations"].as_array().unwrap() {
        let authorization = client.read(url.as_str().unwrap()).await.json();
        names.push(authorization["identifier"]["value"].as_str().unwrap().to_owned());
    }
    names
}

#[tokio::test]
async fn lists_come_in_any_order_and_in_the_same_one_each_time() {
    let bed = Bed::start(Config { reuse_percent: 0, seed: 1, ..config() }).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (mut identifiers, mut authorizations) = (BTreeSet::new(), BTreeSet::new());
    let (mut challenges, mut differ) = (BTreeSet::new(), false);
    for _ in 0..12 {
        let order = client.order(NAMES).await;
        let (url, order) = (order.header("location").to_owned(), order.json());
        assert_eq!(client.read(&url).await.json(), order, "the same at each read");
        let listed = texts(&order["identifiers"], "value");
        let authorized = authorized(&client, &order).await;
        differ |= listed != authorized;
        identifiers.insert(listed);
        authorizations.insert(authorized);
        let url = order["authorizations"][0].as_str().unwrap();
        let offered = client.read(url).await.json()["challenges"].clone();
        for challenge in offered.as_array().unwrap() {
            let is_persistent = challenge["type"] == "dns-persist-01";
            assert_eq!(challenge.get("token").is_none(), is_persistent, "{challenge}");
            assert_eq!(challenge.get("issuer-domain-names").is_some(), is_persistent);
        }
        challenges.insert(texts(&offered, "type"));
    }
    assert!(identifiers.len() > 2 && authorizations.len() > 2 && challenges.len() > 4);
    assert!(differ, "identifiers and authorizations are in one order");
    let kinds: BTreeSet<_> = challenges.iter().flatten().map(String::as_str).collect();
    let all = ["dns-01", "dns-account-01", "dns-persist-01", "http-01", "tls-alpn-01"];
    assert_eq!(kinds, BTreeSet::from(all));
}

/// Answers the HTTP-01 challenges of an order, wherever they stand.
async fn authorize(client: &Client<'_>, order: &Value) {
    for url in order["authorizations"].as_array().unwrap() {
        let url = url.as_str().unwrap();
        let authorization = client.read(url).await.json();
        let challenges = authorization["challenges"].as_array().unwrap();
        let Some(http) = challenges.iter().find(|one| one["type"] == "http-01") else { continue };
        let token = http["token"].as_str().unwrap();
        client.bed.present(token, &client.key_authorization(token));
        client.ask(http["url"].as_str().unwrap(), &json!({})).await;
        client.settled(url).await;
    }
}

async fn finalized(client: &Client<'_>) -> (String, Answer) {
    let answer = client.order(NAMES).await;
    authorize(client, &answer.json()).await;
    let url = answer.header("location").to_owned();
    let order = client.read(&url).await.json();
    assert_eq!(order["status"], "ready");
    let request = signing_request(NAMES, &KeyPair::generate().unwrap());
    (url, client.finalize(&order, &request).await)
}

#[tokio::test]
async fn finalize_takes_a_while_and_says_so_in_seconds_and_by_a_date() {
    let bed = Bed::start(Config { retry_after: Some(7), ..config() }).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let (url, answer) = finalized(&client).await;
    assert_eq!(answer.json()["status"], "processing", "{answer:?}");
    let mut waits = vec![answer.header("retry-after").to_owned()];
    loop {
        let order = client.read(&url).await;
        if order.json()["status"] == "valid" {
            break;
        }
        waits.push(order.header("retry-after").to_owned());
    }
    let (dates, seconds): (Vec<_>, Vec<_>) = waits.iter().partition(|it| it.ends_with(" GMT"));
    assert!(seconds.iter().all(|it| *it == "7"), "{waits:?}");
    assert!(dates.len().abs_diff(seconds.len()) < 2, "{waits:?}");
}

#[tokio::test]
async fn what_was_proven_before_is_taken_over_always_never_or_now_and_then() {
    for (reuse_percent, expected) in [(0, 0..=0), (100, 12..=12), (50, 1..=11)] {
        let bed = Bed::start(Config { reuse_percent, seed: 3, ..config() }).await;
        let client = Client::registered(&bed, Key::generate("ES256")).await;
        finalized(&client).await;
        let mut taken = 0;
        for count in 0..4_u8 {
            // Another wish each time, so that no order comes back.
            let other = format!("x{count}.bed.test");
            let names: Vec<&str> = NAMES.iter().copied().chain([&*other]).collect();
            let order = client.order(&names).await.json();
            for url in order["authorizations"].as_array().unwrap() {
                let authorization = client.read(url.as_str().unwrap()).await.json();
                taken += usize::from(authorization["status"] == "valid");
            }
        }
        assert!(expected.contains(&taken), "{reuse_percent} %: {taken} of 12");
    }
}

#[tokio::test]
async fn every_name_is_taken_as_proven_without_a_look() {
    let config = Config { always_valid: true, ..Config::default() };
    let bed = Bed::start(config).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let order = client.order(&["*.nowhere.test"]).await;
    for url in order.json()["authorizations"].as_array().unwrap() {
        let challenge = client.read(url.as_str().unwrap()).await.json()["challenges"][0].clone();
        client.ask(challenge["url"].as_str().unwrap(), &json!({})).await;
        assert_eq!(client.settled(url.as_str().unwrap()).await["status"], "valid");
    }
}

#[tokio::test]
async fn a_certificate_of_an_hour_is_good_for_an_hour_and_due_in_the_middle_of_it() {
    let profiles = vec![Profile::lasting("hour", Duration::from_hours(1))];
    let config = Config { profiles, always_valid: true, ..Config::default() };
    let bed = Bed::start(config).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let before = Timestamp::now();
    let (url, answer) = finalized(&client).await;
    assert_eq!(answer.json()["status"], "valid", "{answer:?}");
    let certificate = client.read(&url).await.json()["certificate"].as_str().unwrap().to_owned();
    let chain = client.read(&certificate).await.text;
    let leaf = pem::parse(&chain).unwrap();
    let (_, leaf) = x509_parser::parse_x509_certificate(leaf.contents()).unwrap();
    let left = |moment: i64| moment - before.as_second();
    let (start, end) = (leaf.validity().not_before, leaf.validity().not_after);
    assert!((3590..=3660).contains(&left(end.timestamp())), "{end}");
    assert!((-370..0).contains(&left(start.timestamp())), "{start}");
    let key = leaf.extensions().iter().find_map(|one| match one.parsed_extension() {
        x509_parser::extensions::ParsedExtension::AuthorityKeyIdentifier(key) => {
            Some(super::client::base64url(key.key_identifier.as_ref()?.0))
        }
        _ => None,
    });
    let id = format!("{}.{}", key.unwrap(), super::client::base64url(leaf.raw_serial()));
    let url = format!("{}/{id}", client.url("renewalInfo"));
    let window: Value = bed.http.get(url).send().await.unwrap().json().await.unwrap();
    let opens: Timestamp = window["suggestedWindow"]["start"].as_str().unwrap().parse().unwrap();
    assert!((1700..=1900).contains(&left(opens.as_second())), "{opens}");
}
