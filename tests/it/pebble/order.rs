//! The program against a real CA: Pebble, strict and refusing one good nonce in five. openssl judges what comes of it.

use std::fs;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::bed::{PATIENCE, Server};
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Pair, Terminal, certificate, issuer, openssl, secret};

const NAME: &str = "www.example.com";

/// Issues one Certificate; `issuer_more` is merged into `spec.acme`, `more` into the Certificate's `spec`.
fn check(options: &PebbleOptions, issuer_more: Value, more: Value) -> (Pebble, Terminal, Pair) {
    let pebble = Pebble::start(options);
    let terminal = Terminal::at(&pebble);
    let issuer = issuer(&pebble.directory(), pebble.tls_ca_pem(), issuer_more);
    terminal.order(&[issuer, certificate("web", &[NAME], more)]);
    assert_eq!((pebble.accounts(), pebble.orders()), (1, 1));
    let pair = terminal.pair("web-tls");
    pair.check(&pebble.root_pem());
    (pebble, terminal, pair)
}

/// Issues with a `privateKey` and returns what openssl says of the key.
fn check_key(private_key: &Value) -> String {
    let more = json!({"privateKey": private_key});
    let (_pebble, _terminal, pair) = check(&PebbleOptions::default(), json!({}), more);
    pair.key_line()
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn several_names_come_in_one_certificate() {
    let names = ["example.com", "www.example.com", "b.example.com", "a.b.example.com"];
    let more = json!({"dnsNames": names, "commonName": "www.example.com"});
    let (_pebble, _terminal, pair) = check(&PebbleOptions::default(), json!({}), more);
    let listed = pair.leaf(&["-ext", "subjectAltName"]);
    let mut listed: Vec<&str> = listed.lines().last().unwrap().split(", ").map(str::trim).collect();
    listed.sort_unstable();
    assert_eq!(
        listed,
        ["DNS:a.b.example.com", "DNS:b.example.com", "DNS:example.com", "DNS:www.example.com"]
    );
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_key_is_rsa_where_nothing_is_said() {
    assert_eq!(check_key(&json!({})), "Private-Key: (2048 bit, 2 primes)");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_rsa_key_has_the_size_asked_for() {
    let key = json!({"algorithm": "RSA", "size": 3072, "encoding": "PKCS8"});
    assert_eq!(check_key(&key), "Private-Key: (3072 bit, 2 primes)");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_ecdsa_key_is_p256_where_nothing_is_said() {
    assert_eq!(check_key(&json!({"algorithm": "ECDSA"})), "Private-Key: (256 bit)");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_ecdsa_key_of_384_bits_is_p384() {
    assert_eq!(check_key(&json!({"algorithm": "ECDSA", "size": 384})), "Private-Key: (384 bit)");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_ed25519_key_is_refused_in_the_words_of_the_ca() {
    let pebble = Pebble::start(&options());
    let terminal = Terminal::at(&pebble);
    let said = terminal.try_order(&[
        issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({})),
        certificate("web", &[NAME], json!({"privateKey": {"algorithm": "Ed25519"}})),
    ]);
    assert_eq!((said.code, pebble.orders()), (Some(2), 1), "{said:?}");
    assert!(said.stderr.contains("badCSR: CSR signature algorithm Ed25519"), "{said:?}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_ca_that_takes_its_time_is_waited_for() {
    let options =
        PebbleOptions { va_sleep: 2, retry_after_authz: 1, retry_after_order: 1, ..options() };
    check(&options, json!({}), json!({}));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_chain_of_several_intermediates_is_delivered_whole() {
    let options = PebbleOptions { chain_length: 3, ..options() };
    let (_pebble, _terminal, pair) = check(&options, json!({}), json!({}));
    let chain = fs::read_to_string(&pair.certificate).unwrap();
    assert_eq!(chain.matches("BEGIN CERTIFICATE").count(), 4);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_preferred_chain_is_taken_from_the_alternates() {
    let pebble = Pebble::start(&PebbleOptions { alternate_roots: 2, ..options() });
    let terminal = Terminal::at(&pebble);
    let root = pebble.root(2);
    let path = terminal.write("preferred.pem", &root);
    let flags = ["-noout", "-subject", "-nameopt", "multiline", "-in", path.to_str().unwrap()];
    let subject = openssl(&[&["x509"], &flags[..]].concat());
    let name = subject.split_once("commonName").unwrap().1.trim_start_matches([' ', '=']).trim();
    let preferred = json!({"preferredChain": name});
    terminal.order(&[
        issuer(&pebble.directory(), pebble.tls_ca_pem(), preferred),
        certificate("web", &[NAME], json!({})),
    ]);
    terminal.pair("web-tls").check(&root);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_profile_is_asked_for_by_name() {
    let week = ["-checkend", "604800"];
    let short = json!({"profile": "shortlived"});
    let (_pebble, _terminal, pair) = check(&options(), short, json!({}));
    assert_eq!(pair.try_leaf(&week), Some(1), "six days are less than a week");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_profile_that_the_ca_does_not_offer_is_refused_with_those_it_does() {
    let pebble = Pebble::start(&options());
    let terminal = Terminal::at(&pebble);
    let said = terminal.try_order(&[
        issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({"profile": "eternal"})),
        certificate("web", &[NAME], json!({})),
    ]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("eternal") && said.stderr.contains("shortlived"), "{said:?}");
    assert_eq!(pebble.orders(), 0);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_address_is_certified_like_a_name() {
    let more = json!({"dnsNames": [], "ipAddresses": ["127.0.0.1"]});
    let (_pebble, _terminal, pair) = check(&options(), json!({}), more);
    let listed = pair.leaf(&["-ext", "subjectAltName"]);
    assert_eq!(listed.lines().last().unwrap().trim(), "IP Address:127.0.0.1");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_external_account_is_bound() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let options =
        PebbleOptions { external_accounts: vec![("kid-1".into(), KEY.into())], ..options() };
    let pebble = Pebble::start(&options);
    let terminal = Terminal::at(&pebble);
    let binding = |key: &str| {
        let reference = json!({"name": key, "key": "secret"});
        let binding = json!({"keyID": "kid-1", "keySecretRef": reference});
        let more = json!({"externalAccountBinding": binding});
        issuer(&pebble.directory(), pebble.tls_ca_pem(), more)
    };
    let web = certificate("web", &[NAME], json!({}));
    let wrong = secret("wrong", "secret", &KEY.replace('z', "A"));
    let said = terminal.try_order(&[wrong, binding("wrong"), web.clone()]);
    assert_eq!((said.code, pebble.accounts()), (Some(7), 0), "{said:?}");
    assert!(!said.stderr.contains(&KEY[1..]), "the key is told: {said:?}");

    terminal.order(&[secret("right", "secret", KEY), binding("right"), web]);
    terminal.pair("web-tls").check(&pebble.root_pem());
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_ca_that_wants_an_external_account_says_so() {
    let account = ("kid-1".to_owned(), "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG4".to_owned());
    let pebble = Pebble::start(&PebbleOptions { external_accounts: vec![account], ..options() });
    let terminal = Terminal::at(&pebble);
    let said = terminal.try_order(&[
        issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({})),
        certificate("web", &[NAME], json!({})),
    ]);
    assert_eq!((said.code, pebble.accounts()), (Some(7), 0), "{said:?}");
    assert!(said.stderr.contains("externalAccountRequired"), "{said:?}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_web_server_that_runs_already_serves_the_answers() {
    let pebble = Pebble::start(&options());
    let terminal = Terminal::at(&pebble);
    let root = terminal.path("htdocs");
    fs::create_dir(&root).unwrap();
    let mut command = Command::new("python3");
    command.args(["-m", "http.server", "--bind", "127.0.0.1", "--directory"]);
    command.arg(&root).arg(terminal.http_port.to_string());
    let _server = Server::start(&command, &terminal.path("http.log"));
    wait_for_port(terminal.http_port);

    let issuer = issuer(&pebble.directory(), pebble.tls_ca_pem(), json!({}));
    let path = terminal.manifests(&[issuer, certificate("web", &[NAME], json!({}))]);
    let resolve = format!("--http01-resolve=*=127.0.0.1:{}", terminal.http_port);
    let order = ["order", "-f", path.to_str().unwrap(), "--http01-webroot=htdocs", "--out=out"];
    let said = terminal.run(&[&order, &["--timeout=60s", &resolve][..]].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    terminal.pair("web-tls").check(&pebble.root_pem());
    let answers = root.join(".well-known/acme-challenge");
    let left = fs::read_dir(&answers).map_or(0, Iterator::count);
    assert_eq!(left, 0, "answers stay in {}", answers.display());
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn names_alone_are_enough() {
    let pebble = Pebble::start(&options());
    let terminal = Terminal::at(&pebble);
    let server = pebble.directory();
    let quick = ["order", "--domain", NAME, "--domain", "example.com", "--server", &server];
    let said = terminal.drive(&quick);
    assert_eq!(said.code, Some(6), "{said:?}");
    assert!(said.stderr.contains("--ca-bundle FILE"), "{said:?}");

    terminal.write("roots.pem", pebble.tls_ca_pem());
    let trusting = [&quick[..], &["--ca-bundle=roots.pem", "--email=me@example.com"]].concat();
    let said = terminal.drive(&trusting);
    assert_eq!(said.code, Some(0), "{said:?}");
    let pair = terminal.pair("www-example-com-tls");
    pair.check(&pebble.root_pem());
    assert_eq!(pair.key_line(), "Private-Key: (256 bit)");

    let more = ["--profile=shortlived", "--key-type=p384"];
    let said = terminal.drive(&[&trusting[..], &more].concat());
    assert_eq!(said.code, Some(0), "{said:?}");
    let pair = terminal.pair("www-example-com-tls");
    pair.check(&pebble.root_pem());
    assert_eq!(pair.key_line(), "Private-Key: (384 bit)");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn names_and_a_binding_are_enough() {
    const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let options =
        PebbleOptions { external_accounts: vec![("kid-1".into(), KEY.into())], ..options() };
    let pebble = Pebble::start(&options);
    let mut terminal = Terminal::at(&pebble);
    terminal.write("roots.pem", pebble.tls_ca_pem());
    terminal.write("hmac", &format!("{KEY}\n"));
    let server = pebble.directory();
    let quick = ["order", "--domain", NAME, "--server", &server, "--ca-bundle=roots.pem"];
    let said = terminal.drive(&quick);
    assert_eq!(said.code, Some(7), "{said:?}");
    assert!(said.stderr.contains("--eab-kid ID --eab-hmac-file FILE"), "{said:?}");

    let bound = [&quick[..], &["--eab-kid=kid-1", "--eab-hmac-file=hmac", "--log=trace"]].concat();
    let said = terminal.drive(&bound);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(!said.stderr.contains(KEY) && !said.stdout.contains(KEY), "the key is told");
    terminal.pair("www-example-com-tls").check(&pebble.root_pem());
    terminal.set("KUBECTL_ACME_EAB_HMAC", KEY);
    let said = terminal.drive(&[&quick[..], &["--eab-kid=kid-1"]].concat());
    assert_eq!(said.code, Some(0), "the same binding from the environment: {said:?}");
}

fn options() -> PebbleOptions {
    PebbleOptions::default()
}

fn wait_for_port(port: u16) {
    let deadline = Instant::now() + PATIENCE;
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nobody listens on {port}");
        sleep(Duration::from_millis(20));
    }
}
