//! Dynamic updates, signed, on BIND, Knot and PowerDNS.

use kubectl_acme::dns::tsig::{self, Algorithm};
use kubectl_acme::dns::update::{Change, Protocol, Update, UpdateError, UpdateRefusal, Updater};

use crate::support::dns::{DnsServer, Key, Setup, Software, Updates, Zone};

const NAME: &str = "_acme-challenge.example.com.";

/// The key of the servers for an algorithm.
fn key(algorithm: &str) -> tsig::Key {
    let key = Key::all().into_iter().find(|key| key.algorithm == algorithm).unwrap();
    let ours = Algorithm::parse(&algorithm.replace('-', "").to_uppercase()).unwrap();
    tsig::Key::new(&key.name, ours, &key.secret).unwrap()
}

fn zones() -> Setup {
    Setup::new(vec![
        Zone::new("example.com.").updates(Updates::Signed),
        Zone::new("open.example.").updates(Updates::Unsigned),
        Zone::new("closed.example."),
    ])
}

fn updater(server: &DnsServer, protocol: Protocol, key: Option<tsig::Key>) -> Updater {
    Updater::new(server.address(), protocol, key)
}

fn update<'a>(zone: &'a str, name: &'a str, text: &'a str, change: Change) -> Update<'a> {
    Update { zone, name, text, change }
}

/// Adds and removes beside another party's text, with each algorithm over each protocol, twice each.
async fn check(software: Software) {
    let server = DnsServer::start(software, &zones());
    let theirs = updater(&server, Protocol::Tcp, Some(key("hmac-sha512")));
    let add = Change::Add { ttl: 60 };
    theirs.send(&update("example.com.", NAME, "theirs", add)).await.unwrap();
    for algorithm in Key::ALGORITHMS {
        for protocol in [Protocol::Udp, Protocol::Tcp] {
            let ours = updater(&server, protocol, Some(key(algorithm)));
            for _ in 0..2 {
                ours.send(&update("example.com.", NAME, "ours", add)).await.unwrap();
            }
            assert_eq!(server.texts(NAME), ["ours", "theirs"], "{algorithm} {protocol:?}");
            for _ in 0..2 {
                ours.send(&update("example.com.", NAME, "ours", Change::Remove)).await.unwrap();
            }
            assert_eq!(server.texts(NAME), ["theirs"], "{algorithm} {protocol:?}");
        }
    }
    let unsigned = updater(&server, Protocol::Udp, None);
    unsigned.send(&update("open.example.", "a.open.example.", "ours", add)).await.unwrap();
    assert_eq!(server.texts("a.open.example."), ["ours"]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn bind_takes_every_algorithm_over_every_protocol() {
    check(Software::Bind).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn knot_takes_every_algorithm_over_every_protocol() {
    check(Software::Knot).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn powerdns_takes_every_algorithm_over_every_protocol() {
    check(Software::PowerDns).await;
}

/// What a server refuses, and in which words.
async fn check_refusals(software: Software) {
    let server = DnsServer::start(software, &zones());
    let good = || Some(key("hmac-sha256"));
    let stranger = tsig::Key::new("stranger.", Algorithm::Sha256, "c2VjcmV0").unwrap();
    let impostor = tsig::Key::new("hmac-sha256.", Algorithm::Sha256, "c2VjcmV0").unwrap();
    // Each has its own words for what its rules do not allow; PowerDNS has one for all.
    let (not_auth, no) = (UpdateRefusal::Code(9), UpdateRefusal::Code(5));
    let [unknown, forged, unsigned, closed, elsewhere] = match software {
        Software::Bind => [UpdateRefusal::BadKey, UpdateRefusal::BadSignature, no, no, not_auth],
        Software::Knot => [
            UpdateRefusal::BadKey,
            UpdateRefusal::BadSignature,
            not_auth,
            UpdateRefusal::BadKey,
            UpdateRefusal::UnsignedCode(9),
        ],
        // It signs what it refuses to a key that it knows.
        Software::PowerDns => {
            let bare = UpdateRefusal::UnsignedCode(5);
            [bare, bare, no, no, no]
        }
    };
    for protocol in [Protocol::Udp, Protocol::Tcp] {
        for (zone, key, expected) in [
            ("example.com.", Some(stranger.clone()), unknown),
            ("example.com.", Some(impostor.clone()), forged),
            ("example.com.", None, unsigned),
            ("closed.example.", good(), closed),
            ("elsewhere.example.", good(), elsewhere),
        ] {
            let name = format!("_acme-challenge.{zone}");
            let asked = updater(&server, protocol, key);
            let add = Change::Add { ttl: 60 };
            let seen = asked.send(&update(zone, &name, "ours", add)).await;
            assert_eq!(
                seen,
                Err(UpdateError::Refused(expected)),
                "{software:?} {protocol:?} {zone}"
            );
        }
    }
    assert_eq!(server.texts(NAME), [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn bind_refuses_strangers_and_foreign_zones() {
    check_refusals(Software::Bind).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn knot_refuses_strangers_and_foreign_zones() {
    check_refusals(Software::Knot).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs name servers: run by just pebble"]
async fn powerdns_refuses_strangers_and_foreign_zones() {
    check_refusals(Software::PowerDns).await;
}
