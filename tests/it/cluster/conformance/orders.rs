//! Cases 29 to 34 and 36 to 44: how an Order gets from names to a certificate.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::stage::{Manner, Stage, certificate, held, name, ready};
use crate::support::cluster::eventually;
use crate::support::fault::Fault;
use crate::support::pebble::PebbleOptions;
use crate::support::traffic::Endpoint;

/// An Order in that state.
fn state(state: &str, reason: &str) -> Value {
    json!({"status": {"state": state, "reason": reason}})
}

/// The Order of a Certificate's first request, once it looks like that.
fn order_of(stage: &Stage, certificate: &str, expected: &Value) -> Value {
    let request = format!("{certificate}-1");
    eventually(&format!("the Order of {request} as {expected}"), || {
        stage.kubectl.items("orders").into_iter().find(|order| {
            let owner = &order["metadata"]["ownerReferences"][0]["name"];
            *owner == request && super::stage::fits(expected, Some(order))
        })
    })
}

/// Certificates of the chain that was issued, leaf first: subject and issuer of each.
fn chain(stage: &Stage, secret: &str) -> Vec<(String, String)> {
    let secret = stage.kubectl.object(&format!("secret/{secret}"));
    let pem = STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap();
    names(&pem)
}

fn names(pem: &[u8]) -> Vec<(String, String)> {
    let common = |name: &x509_parser::x509::X509Name<'_>| {
        let first = name.iter_common_name().next();
        first.map_or("", |name| name.as_str().unwrap()).to_owned()
    };
    let certificates = x509_parser::pem::Pem::iter_from_buffer(pem);
    let pair = |pem: Result<x509_parser::pem::Pem, _>| {
        let pem = pem.unwrap();
        let read = pem.parse_x509().unwrap();
        (common(read.subject()), common(read.issuer()))
    };
    certificates.map(pair).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_order_goes_from_names_to_a_certificate() {
    let stage = Stage::open("whole").await;
    let (one, two) = (stage.host("one"), stage.host("two"));
    stage.apply(&[stage.issuer("acme", held())]);
    stage.apply(&[certificate("web", &[&one, &two], json!({}))]);
    let offered = |host: &str| {
        let offered = json!({"type": "http-01", "url": "https://…", "token": "…"});
        json!({
            "identifier": host, "wildcard": false, "initialState": "pending", "challenges": [offered],
        })
    };
    let pending = json!({"status": {
        "state": "pending", "url": "https://…", "finalizeURL": "https://…",
        "authorizations": [offered(&one), offered(&two)], "certificate": null, "reason": null,
    }});
    let order = stage.sees_one("orders", &pending);
    let order_name = format!("order/{}", name(&order));
    let challenges = eventually("both challenges", || {
        let challenges = stage.kubectl.items("challenges");
        let is_up = |c: &Value| c["status"]["presented"] == true;
        (challenges.len() == 2 && challenges.iter().all(is_up)).then_some(challenges)
    });
    for challenge in &challenges {
        let (name, host) = (name(challenge), challenge["spec"]["dnsName"].as_str().unwrap());
        let made =
            format!("Normal Created Created Challenge resource \"{name}\" for domain \"{host}\"");
        stage.hears(&order_name, &made);
        let owner = &challenge["metadata"]["ownerReferences"][0];
        assert_eq!(
            (&owner["uid"], &owner["controller"]),
            (&order["metadata"]["uid"], &true.into())
        );
    }
    // Somebody else's, of nearly the same name: nobody's Order ends it.
    let mut stray = challenges[0].clone();
    stray["metadata"] = json!({"name": format!("{}0", name(&challenges[0]))});
    stray["spec"]["issuerRef"] = json!({"name": "nobody"});
    stage.apply(&[stray]);
    for challenge in &challenges {
        stage.let_go(challenge);
    }
    stage.kubectl.wait_for("certificate/web", "Ready");
    stage.sees(&order_name, &json!({"status": {"state": "valid", "certificate": "…"}}));
    stage.hears(&order_name, "Normal Complete Order completed successfully");
    let left = stage.sees_one("challenges", &json!({"kind": "Challenge"}));
    assert_eq!(name(&left), format!("{}0", name(&challenges[0])));
    let requests = stage.proxy.counts();
    assert_eq!((requests.at(Endpoint::NewOrder), requests.at(Endpoint::Finalize)), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn what_is_proved_already_needs_no_challenge() {
    let options = PebbleOptions { authz_reuse: 100, ..PebbleOptions::calm() };
    let mut stage = Stage::with("reuse", options);
    stage.work(Manner::default()).await;
    let (old, new) = (stage.host("old"), stage.host("new"));
    stage.apply(&[stage.issuer("acme", json!({})), certificate("first", &[&old], json!({}))]);
    stage.kubectl.wait_for("certificate/first", "Ready");
    stage.apply(&[certificate("again", &[&old], json!({}))]);
    stage.kubectl.wait_for("certificate/again", "Ready");
    let order = order_of(&stage, "again", &state("valid", ""));
    let events = stage.events(&format!("order/{}", name(&order)));
    assert!(events.iter().all(|event| !event.contains(" Created ")), "{events:?}");

    stage.apply(&[certificate("both", &[&old, &new], json!({}))]);
    stage.kubectl.wait_for("certificate/both", "Ready");
    let order = order_of(&stage, "both", &state("valid", ""));
    let states = json!({"status": {"authorizations": [
        {"identifier": old, "initialState": "valid"}, {"identifier": new, "initialState": "pending"},
    ]}});
    assert!(super::stage::fits(&states, Some(&order)), "{order}");
    let events = stage.events(&format!("order/{}", name(&order)));
    let made: Vec<_> = events.iter().filter(|event| event.contains(" Created ")).collect();
    assert!(made.len() == 1 && made[0].contains(&new), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_refusal_ends_an_order_and_a_fault_does_not() {
    let stage = Stage::open("refusals").await;
    let refused = |name: &str, hosts: &[&str], issuer: &str, why: &str| {
        let more = json!({"issuerRef": {"name": issuer}});
        stage.apply(&[certificate(name, hosts, more)]);
        let order = order_of(&stage, name, &state("errored", why));
        assert!(order["status"]["failureTime"].is_string(), "{order}");
        let ended = format!("…order is in \"errored\" state: {why}");
        let request = format!("certificaterequest/{name}-1");
        stage.sees(&request, &ready("False", "Failed", &ended));
    };
    let blocked = "Failed to create Order: 4… urn:ietf:params:acme:error:rejectedIdentifier: …";
    refused("blocked", &["blocked-domain.example"], "acme", blocked);
    stage.apply(&[stage.issuer("profile", json!({"profile": "nothing"}))]);
    let unknown = "Failed to create Order: …does not advertise a profile with name nothing…";
    refused("profile", &[&stage.host("profile")], "profile", unknown);
    let bad = "Failed to finalize Order: 400 urn:ietf:params:acme:error:badCSR: no";
    stage.proxy.inject(Fault::problem(400, "badCSR", "no").at(Endpoint::Finalize).times(1));
    refused("finalize", &[&stage.host("finalize")], "acme", bad);

    // cert-manager ends an order that comes too early; we wait as long as the CA says.
    let slow = Fault::problem(429, "rateLimited", "slow").header("Retry-After", "15");
    stage.proxy.inject(slow.at(Endpoint::NewOrder).times(1));
    stage.apply(&[certificate("early", &[&stage.host("early")], json!({}))]);
    let waits = "Failed to create Order: 429 …rateLimited: slow; next try at …";
    order_of(&stage, "early", &json!({"status": {"state": null, "reason": waits}}));
    stage.kubectl.wait_for("certificate/early", "Ready");

    stage.proxy.forget();
    stage.proxy.inject(Fault::status(500).at(Endpoint::NewOrder).times(1));
    stage.apply(&[certificate("later", &[&stage.host("later")], json!({}))]);
    stage.kubectl.wait_for("certificate/later", "Ready");
    let order = order_of(&stage, "later", &state("valid", ""));
    assert_eq!(order["status"]["failureTime"], Value::Null);
    assert_eq!(stage.proxy.counts().at(Endpoint::NewOrder), 2);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_order_outlasts_answers_that_are_late_or_lost() {
    let stage = Stage::open("late").await;
    stage.apply(&[stage.issuer("acme", held())]);
    stage.apply(&[certificate("web", &[&stage.host("www")], json!({}))]);
    let challenge = stage.sees_one("challenges", &json!({"status": {"presented": true}}));
    let order = stage.sees_one("orders", &state("pending", ""));
    let status = &order["status"];
    let urls: Vec<&Value> =
        status["authorizations"].as_array().unwrap().iter().map(|a| &a["url"]).collect();
    let behind = json!({
        "status": "pending", "authorizations": urls, "finalize": status["finalizeURL"],
        "identifiers": [{"type": "dns", "value": stage.host("www")}],
    });
    stage.proxy.forget();
    let late = Fault::status(200).header("Content-Type", "application/json");
    stage.proxy.inject(late.body(&behind.to_string()).at(Endpoint::Order).times(2));
    stage.proxy.inject(Fault::drop_answer().at(Endpoint::Finalize).times(1));
    stage.let_go(&challenge);
    stage.kubectl.wait_for("certificate/web", "Ready");
    let faulty = stage.proxy.exchanges().iter().filter(|exchange| exchange.faulty).count();
    assert_eq!((faulty, stage.pebble.orders()), (3, 1));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn the_chain_is_the_one_preferred() {
    let options = PebbleOptions { alternate_roots: 1, ..PebbleOptions::calm() };
    let mut stage = Stage::with("chains", options);
    stage.work(Manner::default()).await;
    let (first, other) = (stage.pebble.root(0), stage.pebble.root(1));
    let [first, other] = [first, other].map(|pem| names(pem.as_bytes())[0].0.clone());
    stage.apply(&[stage.issuer("acme", json!({"preferredChain": other}))]);
    let issue = |name: &str| {
        stage.apply(&[certificate(name, &[&stage.host(name)], json!({}))]);
        stage.kubectl.wait_for(&format!("certificate/{name}"), "Ready");
        chain(&stage, &format!("{name}-tls"))
    };
    let alternate = issue("alternate");
    assert_eq!(alternate.last().unwrap().1, other);
    // The issuer of the leaf does not count where the chain goes on.
    for (certificate, preferred) in [("unknown", "Nobody"), ("leaf", &*alternate[0].1)] {
        stage.apply(&[stage.issuer("acme", json!({"preferredChain": preferred}))]);
        assert_eq!(issue(certificate).last().unwrap().1, first, "{preferred}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn an_order_follows_the_solvers_of_its_issuer() {
    let stage = Stage::open("follows").await;
    let elsewhere =
        json!({"selector": {"dnsNames": ["else.example.com"]}, "http01": {"ingress": {}}});
    stage.apply(&[stage.issuer("acme", json!({"solvers": [elsewhere]}))]);
    stage.apply(&[certificate("web", &[&stage.host("www")], json!({}))]);
    let why = "Failed to determine a valid solver configuration for the set of domains on the \
               Order: no configured challenge solvers can be used for this challenge";
    let order = stage.sees_one("orders", &state("pending", why));
    stage.hears(&format!("order/{}", name(&order)), &format!("Warning Solver {why}"));
    assert!(stage.kubectl.items("challenges").is_empty());

    let of_class = |class: &str| {
        let solver = json!({"ingress": {"ingressClassName": class}});
        stage.issuer(
            "acme",
            json!({"solvers": [{"http01": solver, "waitInsteadOfSelfCheck": "1h"}]}),
        )
    };
    stage.apply(&[of_class("first")]);
    let first = stage.sees_one("challenges", &json!({"status": {"presented": true}}));
    stage.apply(&[of_class("second")]);
    let second =
        json!({"spec": {"solver": {"http01": {"ingress": {"ingressClassName": "second"}}}}});
    let second = stage.sees_one("challenges", &second);
    assert_ne!(name(&first), name(&second));
    let class = json!({"spec": {"ingressClassName": "second"}});
    stage.sees_one("ingresses", &class);
    stage.apply(&[stage.issuer("acme", json!({}))]);
    stage.kubectl.wait_for("certificate/web", "Ready");
    assert_eq!(stage.pebble.orders(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a cluster: run by just cluster"]
async fn a_duration_is_asked_for_only_where_the_issuer_says_so() {
    let stage = Stage::open("duration").await;
    stage.apply(&[stage.issuer("timed", json!({"enableDurationFeature": true}))]);
    for (issuer, duration, hours) in
        [("acme", Value::Null, None), ("timed", "10h0m0s".into(), Some(10))]
    {
        let more = json!({"duration": "10h", "renewBefore": "1h", "issuerRef": {"name": issuer}});
        stage.apply(&[certificate(issuer, &[&stage.host(issuer)], more)]);
        let found = stage.sees(&format!("certificate/{issuer}"), &ready("True", "Ready", "…"));
        let order = order_of(&stage, issuer, &state("valid", ""));
        assert_eq!(order["spec"]["duration"], duration, "{issuer}");
        let moment = |field: &str| -> jiff::Timestamp {
            found["status"][field].as_str().unwrap().parse().unwrap()
        };
        let life = moment("notAfter").duration_since(moment("notBefore")).as_hours();
        match hours {
            // It is counted from the order on.
            Some(hours) => assert!((hours - 1..=hours).contains(&life), "{life} h"),
            None => assert!(life > 24, "{life} h"),
        }
    }
}
