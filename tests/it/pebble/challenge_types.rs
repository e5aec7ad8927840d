//! dns-account-01, dns-persist-01 and tls-alpn-01, from a real CA that offers them.

use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::pebble::dns01::{RECORD, Site, THEIRS};
use crate::support::bed::{PATIENCE, free_port};
use crate::support::ca::TestCa;
use crate::support::dns::{Software, Updates};
use crate::support::fault::Fault;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::terminal::{Said, Terminal, certificate, issuer};
use crate::support::traffic::Endpoint;

const ZONE: &str = "example.com.";
const STAYS: &str = "_validation-persist.example.com.";
const DIGEST: &str = "hmac-sha256";
/// The manifests of a site, whose issuer asks for a type.
fn asking(site: &Site, proxy: &Proxy, kind: &str, names: &[&str]) -> Vec<Value> {
    let solver = site.solver(DIGEST, &json!({}));
    let mut documents = site.manifests(&proxy.directory(), DIGEST, &solver, names);
    let issuer = documents.iter_mut().find(|document| document["kind"] == "Issuer").unwrap();
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": kind});
    documents
}

fn is_issued(site: &Site, said: &Said) {
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    site.terminal.pair("web-tls").check(&site.pebble.root_pem());
}

/// Starts an order and waits until a Challenge has presented its answer; the CA is never told.
fn presented(terminal: &Terminal, words: &[&str]) -> (Child, Value) {
    let mut command = terminal.command(words);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    let challenge = loop {
        let challenges = terminal.objects("challenges");
        let up = challenges.into_iter().find(|c| c["status"]["presented"] == true);
        if let Some(challenge) = up {
            break challenge;
        }
        assert!(Instant::now() < deadline, "nothing is presented");
        sleep(Duration::from_millis(50));
    };
    (child, challenge)
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_and_its_apex_are_issued_by_the_account_s_own_record() {
    let site = Site::new(Software::Knot, Updates::Signed);
    let proxy = site.pebble.proxy();
    let names = ["example.com", "*.example.com"];
    let said = site.terminal.try_order(&asking(&site, &proxy, "dns-account-01", &names));
    is_issued(&site, &said);
    assert_eq!(site.server.texts(RECORD), [THEIRS], "nothing was done there");
    let told = site.terminal.run(&["timeline", "certificate/web"]).stdout;
    let verified = "Domain \"example.com\" verified with \"DNS-ACCOUNT-01\" validation";
    assert!(told.contains(verified), "{told}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn what_a_killed_process_published_for_its_account_is_gone_after_the_next_run() {
    let site = Site::new(Software::Bind, Updates::Signed);
    let proxy = site.pebble.proxy();
    proxy.inject(Fault::hold().at(Endpoint::Challenge));
    let documents = asking(&site, &proxy, "dns-account-01", &["*.example.com"]);
    let path = site.terminal.manifests(&documents);
    let words = ["order", "-f", path.to_str().unwrap(), "--timeout=60s"];
    let (mut child, challenge) = presented(&site.terminal, &words);
    let label = challenge["spec"]["accountLabel"].as_str().unwrap();
    assert_eq!(challenge["spec"]["type"], "DNS-ACCOUNT-01");
    let record = format!("_{label}._acme-challenge.example.com.");
    assert_eq!(site.server.texts(&record).len(), 1, "{challenge}");
    let name = challenge["metadata"]["name"].as_str().unwrap();
    let described = site.terminal.run(&["describe", &format!("challenge/{name}")]).stdout;
    assert!(described.contains("DNS-ACCOUNT-01"), "{described}");
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(site.server.texts(&record).len(), 1, "it had no time to tidy up");
    proxy.calm_down();
    is_issued(&site, &site.terminal.drive(&words[..3]));
    assert_eq!(site.server.texts(&record), [] as [&str; 0]);
    assert_eq!(site.server.texts(RECORD), [THEIRS]);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_persistent_record_stays_and_does_for_the_next_order() {
    let site = Site::new(Software::Bind, Updates::Signed);
    let proxy = site.pebble.proxy();
    let names = ["example.com", "*.example.com"];
    let said = site.terminal.try_order(&asking(&site, &proxy, "dns-persist-01", &names));
    is_issued(&site, &said);
    let stays = site.server.texts(STAYS);
    let [record] = &stays[..] else { panic!("one does for both: {stays:?}") };
    assert!(record.ends_with("; policy=wildcard") && record.contains("; accounturi="), "{record}");
    let said = site.terminal.drive(&["certificate", "renew", "web"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(site.server.texts(STAYS), stays);
    assert_eq!(proxy.counts().at(Endpoint::NewOrder), 2);
}

/// A site where a person makes the records of an issuer without solvers.
fn by_hand(names: &[&str]) -> (Site, Proxy) {
    let site = Site::new(Software::Bind, Updates::Unsigned);
    let proxy = site.pebble.proxy();
    let mut issuer = issuer(&proxy.directory(), site.pebble.tls_ca_pem(), json!({"solvers": []}));
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": "dns-persist-01"});
    site.terminal.manifests(&[issuer, certificate("web", names, json!({}))]);
    (site, proxy)
}

/// Orders, and returns what was said with the records to make.
fn order_by_hand(site: &Site, more: &[&str]) -> (Said, Vec<(String, String)>) {
    let words = ["order", "-f", "manifests.yaml", "--out=out", "-o", "json"];
    let said = site.terminal.run(&[&words[..], more].concat());
    let report: Value = serde_json::from_str(&said.stdout).unwrap_or_default();
    let text = |record: &Value, field: &str| record[field].as_str().unwrap().to_owned();
    let items = report["records"].as_array().cloned().unwrap_or_default();
    let records = items.iter().filter(|item| item["type"] == "TXT");
    let records = records.map(|record| (text(record, "name"), text(record, "value")));
    (said, records.collect())
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_person_makes_the_persistent_record_once() {
    let (site, proxy) = by_hand(&["example.com"]);
    let (said, records) = order_by_hand(&site, &[]);
    assert_eq!(said.code, Some(13), "{said:?}");
    let [(name, value)] = &records[..] else { panic!("{said:?}") };
    assert_eq!(name, STAYS);
    assert_eq!(proxy.counts().at(Endpoint::Challenge), 0, "the CA was told nothing");
    let value = format!("{value}; persistUntil=9999999999");
    site.server.publish(ZONE, name, &value);
    let (said, _) = order_by_hand(&site, &["--timeout=60s"]);
    is_issued(&site, &said);
    assert!(!said.stderr.contains("not needed any more"), "{said:?}");
    let said = site.terminal.run(&["certificate", "renew", "web", "--timeout=60s"]);
    assert_eq!(said.code, Some(0), "nobody is asked again: {said:?}");
    // A provider leaves a good record alone, too.
    let address = site.server.address().to_string();
    let solvers = json!([{"dns01": {"rfc2136": {"nameserver": address}}}]);
    let mut issuer =
        issuer(&proxy.directory(), site.pebble.tls_ca_pem(), json!({"solvers": solvers}));
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": "dns-persist-01"});
    site.terminal.order(&[issuer, certificate("again", &["example.com"], json!({}))]);
    assert_eq!(site.server.texts(STAYS), [value], "what a person made stays, and is enough");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn every_fault_of_a_persistent_record_is_told_before_the_ca_hears_of_it() {
    let names = ["malformed", "stranger", "account", "narrow", "over", "newer"];
    let domains = names.map(|name| match name {
        "narrow" => "*.narrow.example.com".to_owned(),
        name => format!("{name}.example.com"),
    });
    let domains = domains.each_ref().map(String::as_str);
    let (site, proxy) = by_hand(&domains);
    let (said, records) = order_by_hand(&site, &[]);
    assert_eq!((said.code, records.len()), (Some(13), names.len()), "{said:?}");
    let hash = "https://ca.example/sha-256/5SQm7n6tPh2-PlLbCKGnViTXX5z19SCN4cPGQHSk-kw";
    let spoilt = |name: &str, good: &str| {
        let (ca, account) = good.split_once("; accounturi=").unwrap();
        match name {
            "malformed" => format!("{good};"),
            "stranger" => format!("ca.invalid; accounturi={account}"),
            "account" => format!("{ca}; accounturi={account}0"),
            "narrow" => good.replace("; policy=wildcard", ""),
            "over" => format!("{good}; persistUntil=1700000000"),
            _ => format!("{ca}; accounturi={hash}"),
        }
    };
    let good = |name: &str| {
        let record = format!("_validation-persist.{name}.example.com.");
        records.iter().find(|(name, _)| *name == record).unwrap().clone()
    };
    for name in names {
        let (record, value) = good(name);
        site.server.publish(ZONE, &record, &spoilt(name, &value));
    }
    let (said, _) = order_by_hand(&site, &["--timeout=5s"]);
    assert_eq!(said.code, Some(13), "{said:?}");
    let told = [
        ("malformed", "has an empty parameter: no semicolon may stand at the end"),
        ("stranger", "is for the CA ca.invalid, and must be for "),
        ("account", "0, and must have accounturi="),
        ("narrow", "lacks policy=wildcard, which a wildcard needs"),
        ("over", "is over since 2023-11-14T22:13:20Z (persistUntil)"),
        ("newer", "the form of a newer draft, which this CA does not speak"),
    ];
    let challenges = site.terminal.objects("challenges");
    for (name, fault) in told {
        assert!(said.stderr.contains(fault), "{name}: {said:?}");
        let domain = format!("{name}.example.com");
        let challenge = challenges.iter().find(|c| c["spec"]["dnsName"] == domain).unwrap();
        let check = site.terminal.run(&[
            "challenge",
            "check",
            challenge["metadata"]["name"].as_str().unwrap(),
        ]);
        assert_eq!(check.code, Some(9), "{check:?}");
        let (_, value) = good(name);
        assert!(check.stdout.contains(fault), "{check:?}");
        assert!(check.stdout.contains(&format!("Corrected:   {value:?}")), "{check:?}");
    }
    assert_eq!(proxy.counts().at(Endpoint::Challenge), 0, "the CA was told nothing");
    for name in names {
        let (record, value) = good(name);
        site.server.publish(ZONE, &record, &value);
    }
    let (said, _) = order_by_hand(&site, &["--timeout=60s"]);
    is_issued(&site, &said);
}

/// A terminal whose listener and self-check for TLS-ALPN-01 are where Pebble looks.
fn listening(pebble: &Pebble) -> Terminal {
    let mut terminal = Terminal::at(pebble);
    let address = format!("127.0.0.1:{}", pebble.tls_port());
    terminal.set("KUBECTL_ACME_TLS_ALPN_LISTEN", &address);
    terminal.set("KUBECTL_ACME_TLS_ALPN_RESOLVE", format!("*={address}"));
    terminal
}

/// Manifests of an issuer that asks for TLS-ALPN-01.
fn by_handshake(directory: &str, tls_ca_pem: &str, names: &[&str], more: Value) -> [Value; 2] {
    let mut issuer = issuer(directory, tls_ca_pem, json!({}));
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": "tls-alpn-01"});
    [issuer, certificate("web", names, more)]
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn names_and_addresses_are_issued_by_a_handshake() {
    let pebble = Pebble::start(&PebbleOptions::default());
    let terminal = listening(&pebble);
    let names = ["www.example.com", "example.com"];
    let more = json!({"ipAddresses": ["127.0.0.1"]});
    let [issuer, certificate] =
        by_handshake(&pebble.directory(), pebble.tls_ca_pem(), &names, more);
    let said = terminal.order(&[issuer, certificate]);
    terminal.pair("web-tls").check(&pebble.root_pem());
    let listed = terminal.pair("web-tls").leaf(&["-ext", "subjectAltName"]);
    assert!(listed.contains("DNS:www.example.com") && listed.contains("127.0.0.1"), "{listed}");
    assert!(said.stderr.contains("issued"), "{said:?}");
    let told = terminal.run(&["timeline", "certificate/web"]).stdout;
    let verified = "Domain \"www.example.com\" verified with \"TLS-ALPN-01\" validation";
    assert!(told.contains(verified), "{told}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_few_names_are_issued_by_a_handshake_without_manifests() {
    let pebble = Pebble::start(&PebbleOptions::default());
    let mut terminal = listening(&pebble);
    terminal.set("SSL_CERT_FILE", terminal.write("ca.pem", pebble.tls_ca_pem()).display());
    let said = terminal.drive(&[
        "order",
        "--domain=www.example.com",
        &format!("--server={}", pebble.directory()),
        "--challenge-type=tls-alpn-01",
    ]);
    assert_eq!(said.code, Some(0), "{said:?}");
    terminal.pair("www-example-com-tls").check(&pebble.root_pem());
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_ca_hears_nothing_while_another_program_answers_on_port_443() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let proxy = pebble.proxy();
    let mut terminal = listening(&pebble);
    // The CA's own directory speaks TLS, and no acme-tls/1.
    let elsewhere = format!("*=127.0.0.1:{}", pebble.directory_port());
    terminal.set("KUBECTL_ACME_TLS_ALPN_RESOLVE", &elsewhere);
    let names = ["www.example.com"];
    let documents = by_handshake(&proxy.directory(), pebble.tls_ca_pem(), &names, json!({}));
    let path = terminal.manifests(&documents);
    let words = ["order", "-f", path.to_str().unwrap(), "--timeout=15s"];
    let said = terminal.run(&words);
    assert_eq!(said.code, Some(124), "{said:?}");
    let reason = "failed to perform self check TLS handshake for 'www.example.com'";
    assert!(said.stderr.contains(reason), "{said:?}");
    assert_eq!(proxy.counts().at(Endpoint::Challenge), 0, "the CA was told nothing");
    let challenge = terminal.objects("challenges").remove(0);
    let name = challenge["metadata"]["name"].as_str().unwrap();
    let seen = terminal.run(&["challenge", "check", name, "--show-commands"]);
    assert_eq!(seen.code, Some(9), "{seen:?}");
    assert!(seen.stdout.contains("-servername www.example.com -alpn acme-tls/1"), "{seen:?}");
    let led = format!("--tls-alpn-resolve=*=127.0.0.1:{}", pebble.tls_port());
    let said = terminal.run(&["order", "-f", path.to_str().unwrap(), &led]);
    assert_eq!(said.code, Some(0), "once it leads here: {said:?}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn openssl_sees_what_a_check_of_a_handshake_sees() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let mut terminal = listening(&pebble);
    let nowhere = format!("*=127.0.0.1:{}", free_port());
    terminal.set("KUBECTL_ACME_TLS_ALPN_RESOLVE", nowhere);
    let documents =
        by_handshake(&pebble.directory(), pebble.tls_ca_pem(), &["www.example.com"], json!({}));
    let path = terminal.manifests(&documents);
    // It answers, and sees nothing of it.
    let (mut order, challenge) = presented(&terminal, &["order", "-f", path.to_str().unwrap()]);
    let led = format!("--tls-alpn-resolve=*=127.0.0.1:{}", pebble.tls_port());
    let name = challenge["metadata"]["name"].as_str().unwrap();
    let seen = terminal.run(&["challenge", "check", name, "--show-commands", &led]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    let seen = seen.reproduced().remove(0).1.stdout;
    order.kill().unwrap();
    order.wait().unwrap();
    assert!(seen.contains("DNS:www.example.com"), "{seen}");
    assert!(seen.contains("1.3.6.1.5.5.7.1.31: critical"), "{seen}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn what_a_handshake_cannot_do_is_told_before_the_ca_hears_of_it() {
    let pebble = Pebble::start(&PebbleOptions::calm());
    let terminal = listening(&pebble);
    let order = |names: &[&str]| {
        let documents = by_handshake(&pebble.directory(), pebble.tls_ca_pem(), names, json!({}));
        terminal.try_order(&documents)
    };
    let said = order(&["www.example.com", "*.example.com"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    let why =
        "Certificate default/web: *.example.com: tls-alpn-01 cannot show control of a wildcard";
    assert!(said.stderr.contains(why), "{said:?}");
    let taken = TcpListener::bind(("127.0.0.1", pebble.tls_port())).unwrap();
    let said = order(&["www.example.com"]);
    assert_eq!(said.code, Some(9), "{said:?}");
    let why = format!("cannot listen on {}: another program", taken.local_addr().unwrap());
    assert!(said.stderr.contains(&why) && said.stderr.contains("--tls-alpn-listen"), "{said:?}");
    assert_eq!((pebble.accounts(), pebble.orders()), (0, 0), "the CA heard nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_type_that_the_ca_does_not_offer_is_told_with_those_it_offers() {
    let ca = TestCa::start(kubectl_acme::ca::Config::default(), |fetcher| fetcher).await;
    let terminal = Terminal::elsewhere();
    let (directory, root) = (ca.server.directory_url(), ca.server.tls_root_pem());
    let mut documents = by_handshake(&directory, root, &["www.example.com"], json!({}));
    documents[0]["metadata"]["annotations"] =
        json!({"kubectl-acme/challenge-type": "dns-persist-01"});
    let said = tokio::task::spawn_blocking(move || terminal.try_order(&documents)).await.unwrap();
    assert_eq!(said.code, Some(9), "{said:?}");
    let why = "the issuer asks for dns-persist-01 (kubectl-acme/challenge-type), and for www.example.com the CA offers http-01, tls-alpn-01, dns-01, dns-account-01";
    assert!(said.stderr.contains(why), "{said:?}");
    let hint = "remove the annotation kubectl-acme/challenge-type from Issuer default/acme";
    assert!(said.stderr.contains(hint), "{said:?}");
}

/// Rehearses an issuer that asks for a type.
fn rehearse(kind: &str, names: &[&str], how: &str) -> Said {
    let terminal = Terminal::elsewhere();
    // Nobody is there, and nobody asks.
    let mut documents = by_handshake("https://ca.invalid/directory", "", names, json!({}));
    documents[0]["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": kind});
    documents[0]["spec"]["acme"]["caBundle"].take();
    let path = terminal.manifests(&documents);
    terminal.run(&["order", "-f", path.to_str().unwrap(), "--timeout=60s", how])
}

#[test]
fn a_handshake_is_rehearsed_on_loopback() {
    let said = rehearse("tls-alpn-01", &["www.example.com"], "--rehearse=loopback");
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("web-tls"), "{said:?}");
}

#[test]
fn a_record_that_stays_is_not_rehearsed() {
    let said = rehearse("dns-persist-01", &["www.example.com"], "--rehearse=loopback");
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("a record for the CA of a rehearsal would stay"), "{said:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn the_account_s_own_record_is_rehearsed_without_a_word_to_the_ca() {
    let site = Site::new(Software::Knot, Updates::Signed);
    let proxy = site.pebble.proxy();
    let path =
        site.terminal.manifests(&asking(&site, &proxy, "dns-account-01", &["*.example.com"]));
    let said = site.terminal.drive(&["order", "-f", path.to_str().unwrap(), "--rehearse"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(site.pebble.orders(), 0, "the CA heard nothing");
}
