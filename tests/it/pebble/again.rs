//! A second run against a real CA: nothing due, renewals, lost state, failed, interrupted and deleted orders.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::bed::free_port;
use crate::support::cluster::eventually;
use crate::support::fault::Fault;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::proxy::Proxy;
use crate::support::terminal::{Said, Terminal, certificate, issuer, openssl, secret};
use crate::support::traffic::Endpoint;

const NAME: &str = "www.example.com";

/// A CA behind a proxy, and somebody who orders from it.
struct Scene {
    pebble: Pebble,
    proxy: Proxy,
    terminal: Terminal,
}

impl Scene {
    fn new(options: &PebbleOptions) -> Self {
        let pebble = Pebble::start(options);
        let proxy = pebble.proxy();
        let terminal = Terminal::at(&pebble);
        Self { pebble, proxy, terminal }
    }

    fn issuer(&self) -> Value {
        issuer(&self.proxy.directory(), self.pebble.tls_ca_pem(), json!({}))
    }

    /// Issues `web` for the first time.
    fn issue(&self, more: Value) -> Said {
        self.terminal.order(&[self.issuer(), certificate("web", &[NAME], more)])
    }

    /// Orders `web` where self-checks find nothing, until time is up; returns the Order's name.
    fn get_stuck(&self) -> String {
        self.get_stuck_with(&format!("--http01-listen=127.0.0.1:{}", free_port()))
    }

    /// The same, where challenges are answered so.
    fn get_stuck_with(&self, answers: &str) -> String {
        let path =
            self.terminal.manifests(&[self.issuer(), certificate("web", &[NAME], json!({}))]);
        let resolve = format!("--http01-resolve=*=127.0.0.1:{}", free_port());
        let order = ["order", "-f", path.to_str().unwrap(), "--out=out", "--timeout=10s"];
        let said = self.terminal.run(&[&order[..], &[answers, &resolve]].concat());
        assert_eq!(said.code, Some(124), "{said:?}");
        self.order_name()
    }

    fn order_name(&self) -> String {
        let orders = self.terminal.objects("orders");
        assert_eq!(orders.len(), 1);
        orders[0]["metadata"]["name"].as_str().unwrap().to_owned()
    }

    fn check(&self, said: &Said) {
        assert_eq!(said.code, Some(0), "{said:?}");
        self.terminal.pair("web-tls").check(&self.pebble.root_pem());
        assert_eq!(self.terminal.objects("challenges"), [] as [Value; 0]);
    }
}

/// Renews a Certificate; returns whether the key stayed.
fn check_renewal(rotation: &str) -> bool {
    let scene = Scene::new(&PebbleOptions::default());
    let key = json!({"algorithm": "ECDSA", "rotationPolicy": rotation});
    scene.issue(json!({"privateKey": key}));
    let read = || {
        let pair = scene.terminal.pair("web-tls");
        (fs::read(pair.key).unwrap(), fs::read(pair.certificate).unwrap())
    };
    let (key, chain) = read();
    let said = scene.terminal.drive(&["certificate", "renew", "web"]);
    scene.check(&said);
    let (new_key, new_chain) = read();
    assert!(new_chain != chain, "the certificate is the old one");
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 2));
    assert_eq!(scene.terminal.objects("certificates")[0]["status"]["revision"], 2);
    new_key == key
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_second_run_finds_nothing_due_and_asks_nobody() {
    let scene = Scene::new(&PebbleOptions::default());
    scene.issue(json!({}));
    scene.proxy.forget();
    let said = scene.issue(json!({}));
    assert_eq!(scene.proxy.counts().total(), 0, "{}", scene.proxy.counts());
    assert!(said.stderr.contains("nothing is due"), "{said:?}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_renewal_makes_a_new_key_where_the_policy_says_always() {
    assert!(!check_renewal("Always"));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_renewal_keeps_the_key_where_the_policy_says_never() {
    assert!(check_renewal("Never"));
}

/// The order of which nobody knows replaces the certificate already, and a CA may fail each time over what it is to replace.
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_renewal_whose_order_was_never_read_is_ordered_without_what_it_replaces() {
    let scene = Scene::new(&PebbleOptions::calm());
    scene.issue(json!({}));
    scene.proxy.forget();
    scene.proxy.inject(Fault::drop_answer().at(Endpoint::NewOrder).times(1));
    let said = scene.terminal.drive(&["certificate", "renew", "web"]);
    scene.check(&said);
    assert_eq!(scene.proxy.counts().at(Endpoint::NewOrder), 2, "{}", scene.proxy.counts());
    assert_eq!(scene.pebble.orders(), 3);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_changed_certificate_is_issued_anew() {
    let scene = Scene::new(&PebbleOptions::default());
    scene.issue(json!({}));
    let said = scene.issue(json!({"dnsNames": [NAME, "example.com"]}));
    scene.check(&said);
    let names = scene.terminal.pair("web-tls").leaf(&["-ext", "subjectAltName"]);
    assert!(names.contains("DNS:example.com"), "{names}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_account_is_recovered_from_its_key_when_the_state_is_lost() {
    let scene = Scene::new(&PebbleOptions::default());
    for flags in [
        &["ecparam", "-genkey", "-noout", "-name", "prime256v1"][..],
        &["genrsa", "-traditional", "2048"],
    ] {
        let before = scene.pebble.accounts();
        let account = secret("acme-account", "tls.key", &openssl(flags));
        for _ in 0..2 {
            // A terminal of its own has no state.
            let terminal = Terminal::at(&scene.pebble);
            let web = certificate("web", &[NAME], json!({}));
            terminal.order(&[account.clone(), scene.issuer(), web]);
            terminal.pair("web-tls").check(&scene.pebble.root_pem());
        }
        assert_eq!(scene.pebble.accounts(), before + 1);
    }
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_authorization_that_the_ca_takes_over_needs_no_challenge() {
    let scene = Scene::new(&PebbleOptions { authz_reuse: 100, ..PebbleOptions::default() });
    scene.issue(json!({}));
    scene.proxy.forget();
    let said = scene.terminal.drive(&["certificate", "renew", "web"]);
    scene.check(&said);
    let counts = scene.proxy.counts();
    assert_eq!((counts.at(Endpoint::NewOrder), counts.at(Endpoint::Challenge)), (1, 0), "{counts}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_failed_validation_ends_it_and_retry_makes_a_fresh_order() {
    let scene = Scene::new(&PebbleOptions::default());
    // Self-checks are led to our listener, the CA finds a closed port.
    let elsewhere = Terminal::elsewhere();
    let path = scene.terminal.manifests(&[scene.issuer(), certificate("web", &[NAME], json!({}))]);
    let listen = format!("--http01-listen=127.0.0.1:{}", elsewhere.http_port);
    let resolve = format!("--http01-resolve=*=127.0.0.1:{}", elsewhere.http_port);
    let order = ["order", "-f", path.to_str().unwrap(), "--timeout=60s", &listen, &resolve];
    let said = scene.terminal.run(&order);
    assert_eq!(said.code, Some(4), "{said:?}");
    assert!(said.stderr.contains(NAME) && said.stderr.contains("urn:"), "{said:?}");
    assert!(!fs::exists(scene.terminal.pair("web-tls").certificate).unwrap());
    assert_eq!(scene.pebble.orders(), 1);

    let said = scene.terminal.drive(&["order", "retry", &scene.order_name()]);
    scene.check(&said);
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 2));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_refusal_ends_the_order_although_another_name_is_stuck() {
    let scene = Scene::new(&PebbleOptions::default());
    let (good, refused, stuck) = ("good.example.com", "refused.example.com", "stuck.example.com");
    // The CA finds nobody there; our own look finds the listener, and nobody for the stuck one.
    scene.pebble.dns().add_a("refused.example.com.", &["127.0.0.11"]);
    let names = json!({"dnsNames": [good, refused, stuck]});
    let path = scene.terminal.manifests(&[scene.issuer(), certificate("web", &[good], names)]);
    let nowhere = format!("--http01-resolve={stuck}=127.0.0.1:{}", free_port());
    let said = scene.terminal.drive(&["order", "-f", path.to_str().unwrap(), &nowhere]);
    assert_eq!(said.code, Some(4), "{said:?}");
    let why = format!("acme: authorization error for {refused}: 400 urn:ietf:params:acme:error:");
    assert!(said.stderr.contains("error: Certificate default/web was not issued: "), "{said:?}");
    assert!(said.stderr.contains(&why), "{said:?}");
    let mut hints = said.stderr.lines().filter(|line| line.starts_with("hint: "));
    assert!(hints.clone().any(|hint| hint.contains(refused)), "{said:?}");
    assert!(!hints.any(|hint| hint.contains(stuck)), "{said:?}");
    let challenges = scene.terminal.objects("challenges");
    let state = |name| {
        let of_name = challenges.iter().find(|challenge| challenge["spec"]["dnsName"] == name);
        of_name.unwrap()["status"]["state"].as_str().unwrap()
    };
    assert_eq!([good, refused, stuck].map(state), ["valid", "invalid", "errored"]);
    let counts = scene.proxy.counts();
    assert_eq!((counts.at(Endpoint::NewOrder), counts.at(Endpoint::Challenge)), (1, 2), "{counts}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_look_at_a_challenge_tells_what_the_ca_holds_of_it() {
    let scene = Scene::new(&PebbleOptions::default());
    let (good, stuck) = ("good.example.com", "stuck.example.com");
    let names = json!({"dnsNames": [good, stuck]});
    let path = scene.terminal.manifests(&[scene.issuer(), certificate("web", &[good], names)]);
    let nowhere = format!("--http01-resolve={stuck}=127.0.0.1:{}", free_port());
    let port = scene.terminal.http_port;
    let listen = format!("--http01-listen=127.0.0.1:{port}");
    let resolve = format!("--http01-resolve=*=127.0.0.1:{port}");
    let order = ["order", "-f", path.to_str().unwrap(), "--timeout=5m", &listen];
    let mut driver = scene.terminal.command(&[&order[..], &[&resolve, &nowhere]].concat());
    let mut driver = driver.stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let challenge = |name: &str, state: &str| {
        eventually(&format!("the challenge of {name} is {state}"), || {
            let challenges = scene.terminal.objects("challenges");
            let is_it = |c: &&Value| c["spec"]["dnsName"] == name && c["status"]["state"] == state;
            let name = &challenges.iter().find(is_it)?["metadata"]["name"];
            name.as_str().map(str::to_owned)
        })
    };
    let (good, stuck) = (challenge(good, "valid"), challenge(stuck, "pending"));
    let look = |name: &str| scene.terminal.run(&["challenge", "check", name, &resolve, &nowhere]);
    let said = look(&good);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stdout.contains("At the CA:   authorization valid, until "), "{said:?}");
    assert!(said.stdout.contains("Verdict:     valid at the CA, "), "{said:?}");
    let said = look(&stuck);
    assert_eq!(said.code, Some(9), "{said:?}");
    assert!(said.stdout.contains("At the CA:   authorization pending, until "), "{said:?}");
    driver.kill().unwrap();
    driver.wait().unwrap();
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_order_that_ran_out_of_time_is_resumed() {
    let scene = Scene::new(&PebbleOptions::default());
    let order = scene.get_stuck();
    let said = scene.terminal.drive(&["order", "resume", &order]);
    scene.check(&said);
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 1));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn the_same_command_goes_on_with_an_order_that_ran_out_of_time() {
    let scene = Scene::new(&PebbleOptions::default());
    scene.get_stuck();
    let said = scene.issue(json!({}));
    scene.check(&said);
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 1));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_order_that_the_ca_has_forgotten_is_made_anew() {
    let scene = Scene::new(&PebbleOptions::default());
    scene.get_stuck();
    let gone = || Fault::problem(404, "malformed", "Order not found");
    scene.proxy.inject(gone().at(Endpoint::Order).times(1));
    scene.proxy.inject(gone().at(Endpoint::Authorization).times(1));
    scene.proxy.inject(gone().at(Endpoint::Challenge).times(1));
    let said = scene.issue(json!({}));
    scene.check(&said);
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 2));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn answers_in_a_document_root_go_with_their_order_whatever_answers_now() {
    let scene = Scene::new(&PebbleOptions::default());
    fs::create_dir(scene.terminal.path("www")).unwrap();
    let folder = scene.terminal.path("www/.well-known/acme-challenge");
    let answers = || fs::read_dir(&folder).map_or(0, Iterator::count);
    let order = scene.get_stuck_with("--http01-webroot=www");
    assert_eq!(answers(), 1);
    let said = scene.terminal.run(&["order", "delete", &order]);
    assert_eq!((said.code, answers()), (Some(0), 0), "{said:?}");

    scene.get_stuck_with("--http01-webroot=www");
    assert_eq!(answers(), 1);
    let said = scene.issue(json!({}));
    scene.check(&said);
    assert_eq!(answers(), 0);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_deleted_order_goes_with_its_challenges_and_may_be_made_again() {
    let scene = Scene::new(&PebbleOptions::default());
    let order = scene.get_stuck();
    assert_eq!(scene.terminal.objects("challenges").len(), 1);
    let said = scene.terminal.run(&["order", "delete", &order]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let left = [scene.terminal.objects("orders"), scene.terminal.objects("challenges")];
    assert!(left.iter().all(Vec::is_empty), "{left:?}");

    let said = scene.issue(json!({}));
    scene.check(&said);
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 2));
}

/// `delete` waits for nobody: the next command has to take the answer down before it can make a Challenge of the same name.
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn an_order_that_is_deleted_while_nobody_works_is_made_again_by_the_next_command() {
    let scene = Scene::new(&PebbleOptions::default());
    let order = scene.get_stuck();
    let said = scene.terminal.run(&["delete", &format!("order/{order}")]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let going = scene.terminal.objects("challenges");
    assert!(!going[0]["metadata"]["deletionTimestamp"].is_null(), "{going:?}");

    let said = scene.issue(json!({}));
    scene.check(&said);
    assert_eq!((scene.pebble.accounts(), scene.pebble.orders()), (1, 2));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_ca_that_asks_for_more_patience_than_there_is_ends_the_wait_at_once() {
    let options = PebbleOptions { retry_after_order: 8_640_000, ..PebbleOptions::calm() };
    let scene = Scene::new(&options);
    let path = scene.terminal.manifests(&[scene.issuer(), certificate("web", &[NAME], json!({}))]);
    let said = scene.terminal.drive(&["order", "-f", path.to_str().unwrap()]);
    assert_eq!(said.code, Some(124), "{said:?}");
    for words in [
        "processing at the CA, which asks to wait until 2",
        "hint: run the same command again after 2",
    ] {
        assert!(said.stderr.contains(words), "{words}\n{said:?}");
    }
}
