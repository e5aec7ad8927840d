//! Requests of every wrong shape, and what each is told.

use rcgen::KeyPair;
use serde_json::{Value, json};

use super::Bed;
use super::client::{Answer, Client, Key, base64url, identifiers, signing_request};
use crate::ca::Config;
use crate::model::DnsName;

const JOSE: &str = "application/jose+json";

/// Fails unless it was refused with this status and type, for a reason that contains these words.
fn check(answer: &Answer, (status, kind, words): (u16, &str, &str)) {
    let seen = answer.refusal();
    assert_eq!((seen.0, seen.1.as_str()), (status, kind), "{}", seen.2);
    assert!(seen.2.contains(words), "{}", seen.2);
    assert_ne!(answer.header("replay-nonce"), "", "an answer to a POST without a nonce");
}

/// Sends a newOrder whose protected header was bent.
async fn bent(client: &Client<'_>, bend: impl FnOnce(&mut Value)) -> Answer {
    let url = client.url("newOrder");
    let mut header = client.header(&url).await;
    bend(&mut header);
    let body = client.key.sign(&header, &json!({ "identifiers": [] }).to_string());
    client.send(&url, JOSE, body.to_string()).await
}

#[tokio::test]
async fn a_bent_header_is_refused_with_the_reason() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let set = |name: &'static str, value: Value| move |header: &mut Value| header[name] = value;
    let account = client.account.clone().unwrap();
    let elsewhere = "https://elsewhere.test/acme/account/1";
    for (name, value, expected) in [
        ("nonce", json!("made-up"), (400, "badNonce", "invalid anti-replay nonce")),
        ("nonce", Value::Null, (400, "badNonce", "invalid anti-replay nonce")),
        ("url", json!("https://elsewhere.test/"), (400, "malformed", "'url' incorrect")),
        ("url", Value::Null, (400, "malformed", "'url' required")),
        ("alg", json!("HS256"), (400, "badSignatureAlgorithm", "unsupported algorithm \"HS256\"")),
        ("alg", json!("none"), (400, "badSignatureAlgorithm", "unsupported algorithm \"none\"")),
        ("alg", json!("ES384"), (400, "malformed", "does not match the key")),
        ("kid", json!(elsewhere), (400, "malformed", "invalid account URL")),
        ("kid", json!(format!("{account}999")), (400, "accountDoesNotExist", "not found")),
        ("kid", Value::Null, (400, "malformed", "No embedded JWK")),
        ("jwk", client.key.jwk(), (400, "malformed", "mutually exclusive")),
        ("crit", json!(["b64"]), (400, "malformed", "critical extension")),
    ] {
        check(&bent(&client, set(name, value)).await, expected);
    }
    let by_key = bent(&client, |header| {
        header["kid"] = Value::Null;
        header["jwk"] = client.key.jwk();
    });
    check(&by_key.await, (400, "malformed", "No Key ID in JWS header"));
}

#[tokio::test]
async fn a_nonce_is_taken_once_and_a_refused_one_brings_a_fresh_one() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let nonce = client.nonce().await;
    let reuse = |header: &mut Value| header["nonce"] = nonce.as_str().into();
    check(&bent(&client, reuse).await, (400, "malformed", "did not specify any identifiers"));
    let refused = bent(&client, reuse).await;
    check(&refused, (400, "badNonce", "invalid anti-replay nonce"));
    let fresh = |header: &mut Value| header["nonce"] = refused.header("replay-nonce").into();
    check(&bent(&client, fresh).await, (400, "malformed", "did not specify any identifiers"));
    assert_eq!(bed.server.statistics().refused_nonces, 1);
}

#[tokio::test]
async fn good_nonces_are_refused_when_the_configuration_wants_it() {
    let bed = Bed::start(Config { refuse_nonces_percent: 100, ..Config::default() }).await;
    let client = Client::new(&bed, Key::generate("ES256")).await;
    let answer = client.ask("newAccount", &json!({ "termsOfServiceAgreed": true })).await;
    check(&answer, (400, "badNonce", "invalid anti-replay nonce"));
}

#[tokio::test]
async fn a_bent_body_is_refused_with_the_reason() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let url = client.url("newOrder");
    let good = client.key.sign(&client.header(&url).await, "no JSON");
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body.to_string()
    };
    let other = Key::generate("ES256").sign(&client.header(&url).await, "{}");
    for (content_type, body, words) in [
        ("application/json", good.to_string(), "Invalid Content-Type header"),
        (JOSE, "{}".to_owned(), "Parse error reading JWS"),
        (JOSE, with("header", json!({})), "\"header\" field not allowed"),
        (JOSE, with("signatures", json!([])), "\"signatures\" field not allowed"),
        (JOSE, with("signature", json!("AAAA")), "JWS verification error"),
        (JOSE, with("payload", json!("e30")), "JWS verification error"),
        (JOSE, other.to_string(), "JWS verification error"),
        (JOSE, good.to_string(), "did not parse as JSON"),
    ] {
        check(&client.send(&url, content_type, body).await, (400, "malformed", words));
    }
}

#[tokio::test]
async fn a_new_account_that_is_not_as_it_should_be_is_refused() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::new(&bed, Key::generate("ES256")).await;
    for (wish, expected) in [
        (json!({}), (400, "malformed", "must agree to terms")),
        (json!({ "onlyReturnExisting": true }), (400, "accountDoesNotExist", "No account exists")),
        (
            json!({ "termsOfServiceAgreed": true, "contact": ["mailto:me"] }),
            (400, "invalidContact", "unable to parse"),
        ),
        (
            json!({ "termsOfServiceAgreed": true, "contact": ["tel:+1"] }),
            (400, "unsupportedContact", "only contact scheme"),
        ),
    ] {
        check(&client.ask("newAccount", &wish).await, expected);
    }
}

#[tokio::test]
async fn a_new_order_that_cannot_be_is_refused() {
    let blocked = vec![DnsName::parse("blocked.test").unwrap()];
    let bed = Bed::start(Config { blocked, ..Config::default() }).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let www = identifiers(&["www.bed.test"]);
    for (wish, expected) in [
        (
            json!({ "identifiers": identifiers(&["a.blocked.test"]) }),
            (400, "rejectedIdentifier", "forbidden by policy"),
        ),
        (
            json!({ "identifiers": identifiers(&["*.bed.test", "www.bed.test"]) }),
            (400, "malformed", "redundant with a wildcard domain"),
        ),
        (
            json!({ "identifiers": www, "profile": "gold" }),
            (400, "invalidProfile", "\"gold\" not recognized"),
        ),
        (
            json!({ "identifiers": www, "notBefore": "2030-01-01T00:00:00Z" }),
            (400, "malformed", "NotBefore"),
        ),
        (
            json!({ "identifiers": www, "notAfter": "2000-01-01T00:00:00Z" }),
            (400, "malformed", "NotAfter must lie"),
        ),
    ] {
        check(&client.ask("newOrder", &wish).await, expected);
    }
    let two = json!({ "identifiers": identifiers(&["a.blocked.test", "*.blocked.test"]) });
    let answer = client.ask("newOrder", &two).await.json();
    assert_eq!(answer["subproblems"][0]["identifier"]["value"], "a.blocked.test");
    assert_eq!(answer["subproblems"][1]["identifier"]["value"], "*.blocked.test");
}

#[tokio::test]
async fn a_signing_request_that_does_not_fit_leaves_the_order_ready() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::registered(&bed, Key::generate("ES256")).await;
    let pending = client.order(&["pending.bed.test"]).await.json();
    let key = KeyPair::generate().unwrap();
    let early = client.finalize(&pending, &signing_request(&["pending.bed.test"], &key)).await;
    check(&early, (403, "orderNotReady", "(\"pending\")"));

    let (url, order) = client.ready_order(&["www.bed.test"]).await;
    let good = signing_request(&["www.bed.test"], &key);
    let mut broken = good.clone();
    *broken.last_mut().unwrap() ^= 1;
    let unfit = "does not specify same identifiers";
    for (request, expected) in [
        (signing_request(&["a.bed.test"], &key), (403, "unauthorized", unfit)),
        (signing_request(&["a.bed.test", "www.bed.test"], &key), (403, "unauthorized", unfit)),
        (signing_request(&[], &key), (400, "badCSR", "at least one identifier")),
        (broken, (400, "badCSR", "invalid signature")),
        (b"0\0".to_vec(), (400, "malformed", "Error parsing")),
        ([&good[..], b"0"].concat(), (400, "malformed", "trailing data")),
    ] {
        check(&client.finalize(&order, &request).await, expected);
    }
    assert_eq!(client.read(&url).await.json()["status"], "ready");
    assert_eq!(client.finalize(&order, &good).await.json()["status"], "valid");
    check(&client.finalize(&order, &good).await, (403, "orderNotReady", "(\"valid\")"));
}

#[tokio::test]
async fn the_account_key_is_not_certified() {
    let bed = Bed::start(Config::default()).await;
    let key = KeyPair::generate().unwrap();
    let client = Client::registered(&bed, Key::of(&key)).await;
    let (_, order) = client.ready_order(&["www.bed.test"]).await;
    let answer = client.finalize(&order, &signing_request(&["www.bed.test"], &key)).await;
    check(&answer, (400, "malformed", "must be different than account key"));
}

#[tokio::test]
async fn what_is_not_ones_own_is_not_shown() {
    let bed = Bed::start(Config::default()).await;
    let owner = Client::registered(&bed, Key::generate("ES256")).await;
    let other = Client::registered(&bed, Key::generate("ES256")).await;
    let (url, order) = owner.ready_order(&["www.bed.test"]).await;
    let request = signing_request(&["www.bed.test"], &KeyPair::generate().unwrap());
    let issued = owner.finalize(&order, &request).await.json();
    let authorization = order["authorizations"][0].as_str().unwrap();
    for (url, expected) in [
        (url.as_str(), (404, "malformed", "No order found")),
        (authorization, (403, "unauthorized", "doesn't match")),
        (issued["certificate"].as_str().unwrap(), (403, "unauthorized", "did not issue")),
        (owner.account.as_deref().unwrap(), (403, "unauthorized", "did not match account key")),
        (&other.url("newOrder").replace("new-order", "order/999"), (404, "malformed", "No order")),
    ] {
        check(&other.read(url).await, expected);
    }
    let revocation = json!({ "certificate": base64url("no certificate") });
    let refused = other.ask("revokeCert", &revocation).await;
    check(&refused, (400, "malformed", "Unable to parse certificate DER"));
}

#[tokio::test]
async fn a_key_is_changed_only_by_both_keys_and_never_to_one_in_use() {
    let bed = Bed::start(Config::default()).await;
    let mut client = Client::registered(&bed, Key::generate("ES256")).await;
    let other = Client::registered(&bed, Key::generate("ES256")).await;
    let url = client.url("keyChange");
    let change = |new: &Key, old: &Key| {
        let header = json!({ "alg": new.algorithm, "jwk": new.jwk(), "url": url });
        let payload = json!({ "account": client.account, "oldKey": old.jwk() });
        new.sign(&header, &payload.to_string())
    };
    let new = Key::generate("ES384");
    let mut unsigned = change(&new, &client.key);
    unsigned["signature"] = "AAAA".into();
    for (inner, expected) in [
        (change(&other.key, &client.key), (409, "conflict", "already in use")),
        (change(&client.key, &client.key), (400, "malformed", "same as the old key")),
        (change(&new, &other.key), (400, "malformed", "old key field")),
        (unsigned, (400, "malformed", "JWS verification error")),
    ] {
        check(&client.ask("keyChange", &inner).await, expected);
    }
    assert_eq!(client.ask("keyChange", &change(&new, &client.key)).await.status, 200);
    let old = client.order(&["www.bed.test"]).await;
    check(&old, (400, "malformed", "does not match the key"));
    client.key = new;
    assert_eq!(client.order(&["www.bed.test"]).await.status, 201);
}

#[tokio::test]
async fn only_nonces_pages_and_the_directory_are_given_to_anybody() {
    let bed = Bed::start(Config::default()).await;
    let client = Client::new(&bed, Key::generate("ES256")).await;
    for (resource, status, nonce) in
        [("newNonce", 204, true), ("newOrder", 405, false), ("/nothing", 404, false)]
    {
        let url = match resource.strip_prefix('/') {
            Some(path) => bed.server.directory_url().replace("directory", path),
            None => client.url(resource),
        };
        let answer = bed.http.get(url).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{resource}");
        assert_eq!(answer.headers().contains_key("replay-nonce"), nonce, "{resource}");
    }
    let meta = &client.directory["meta"];
    assert_eq!(meta["externalAccountRequired"], false);
    assert_eq!(meta["profiles"]["shortlived"], "160 hours");
    let terms = bed.http.get(meta["termsOfService"].as_str().unwrap()).send().await.unwrap();
    assert!(terms.text().await.unwrap().contains("Nobody trusts"));
}
