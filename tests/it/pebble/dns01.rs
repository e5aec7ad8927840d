//! Certificates by DNS-01 from a real CA, which asks a real resolver, which asks real servers that we update.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::bed::PATIENCE;
use crate::support::dns::{DnsServer, Key, Setup, Software, Updates, Zone};
use crate::support::fault::Fault;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Said, Terminal, certificate, issuer, secret};
use crate::support::traffic::Endpoint;

pub(crate) const RECORD: &str = "_acme-challenge.example.com.";
pub(crate) const THEIRS: &str = "another party's";

/// A zone with another party's text at the name, a resolver, a CA that asks it, and a person before a terminal.
pub(crate) struct Site {
    pub(crate) server: DnsServer,
    pub(crate) resolver: DnsServer,
    pub(crate) pebble: Pebble,
    pub(crate) terminal: Terminal,
}

impl Site {
    pub(crate) fn new(software: Software, updates: Updates) -> Self {
        Self::with(DnsServer::start(software, &Setup::new(zones(updates))))
    }

    pub(crate) fn with(server: DnsServer) -> Self {
        let resolver = DnsServer::recursive(&[&server]);
        let asked = resolver.address();
        Self::looked_at_by(server, resolver, asked)
    }

    /// The same with a CA that asks that resolver.
    fn looked_at_by(server: DnsServer, resolver: DnsServer, asked: SocketAddr) -> Self {
        let dns_server = Some(asked.to_string());
        let pebble = Pebble::start(&PebbleOptions { dns_server, ..PebbleOptions::default() });
        let mut terminal = Terminal::at(&pebble);
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        Self { server, resolver, pebble, terminal }
    }

    /// The key for an algorithm, as solvers name it.
    pub(crate) fn solver(&self, algorithm: &str, more: &Value) -> Value {
        let mut fields = json!({
            "nameserver": self.server.address().to_string(),
            "tsigKeyName": algorithm,
            "tsigAlgorithm": algorithm.replace('-', "").to_uppercase(),
            "tsigSecretSecretRef": {"name": "tsig", "key": "secret"},
        });
        fields.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"rfc2136": fields})
    }

    /// Manifests for names by a dns01 solver, with the key of that algorithm.
    pub(crate) fn manifests(
        &self,
        directory: &str,
        algorithm: &str,
        dns01: &Value,
        names: &[&str],
    ) -> Vec<Value> {
        let keys = Key::all();
        let key = keys.iter().find(|key| key.algorithm == algorithm).unwrap();
        vec![
            secret("tsig", "secret", &format!("{}\n", key.secret)),
            issuer(directory, self.pebble.tls_ca_pem(), json!({"solvers": [{"dns01": dns01}]})),
            certificate("web", names, json!({})),
        ]
    }

    fn try_order(&self, algorithm: &str, dns01: &Value, names: &[&str]) -> Said {
        let directory = self.pebble.directory();
        self.terminal.try_order(&self.manifests(&directory, algorithm, dns01, names))
    }

    /// Orders names, and looks what is left in the zone.
    fn order(&self, algorithm: &str, dns01: &Value, names: &[&str]) -> Said {
        let said = self.try_order(algorithm, dns01, names);
        assert_eq!(said.code, Some(0), "{said:?}\n{}", self.pebble.log());
        self.terminal.pair("web-tls").check(&self.pebble.root_pem());
        assert_eq!(self.server.texts(RECORD), [THEIRS], "ours are gone, theirs are there");
        said
    }
}

fn zones(updates: Updates) -> Vec<Zone> {
    let zone = Zone::new("example.com.")
        .updates(updates)
        .with(&format!("_acme-challenge TXT \"{THEIRS}\""))
        .with("_acme-challenge.alias CNAME _acme-challenge.elsewhere.example.org.");
    vec![zone, Zone::new("example.org.").updates(Updates::Signed)]
}

/// An apex with its wildcard, whose texts stand at one name, and another name beside them.
fn check(software: Software, algorithm: &str, protocol: &str) {
    let site = Site::new(software, Updates::Signed);
    let solver = site.solver(algorithm, &json!({"protocol": protocol}));
    site.order(algorithm, &solver, &["example.com", "*.example.com", "www.example.com"]);
    let listed = site.terminal.pair("web-tls").leaf(&["-ext", "subjectAltName"]);
    assert!(listed.contains("DNS:*.example.com"), "{listed}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_and_its_apex_are_issued_through_bind() {
    check(Software::Bind, "hmac-md5", "UDP");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_and_its_apex_are_issued_through_knot() {
    check(Software::Knot, "hmac-sha512", "TCP");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_is_issued_by_its_name_and_the_environment() {
    let mut site = Site::new(Software::Knot, Updates::Signed);
    site.terminal.write("roots.pem", site.pebble.tls_ca_pem());
    let server = site.pebble.directory();
    let quick = ["order", "--domain=*.example.com", "--server", &server, "--ca-bundle=roots.pem"];
    let quick = [&quick[..], &["--dns01=rfc2136"]].concat();
    site.terminal.set("RFC2136_NAMESERVER", site.server.address());
    site.terminal.set("RFC2136_TSIG_KEY", "hmac-sha256");
    let said = site.terminal.drive(&quick);
    assert_eq!((said.code, site.pebble.accounts()), (Some(2), 0), "{said:?}");
    assert!(said.stderr.contains("RFC2136_TSIG_SECRET is not set"), "{said:?}");

    let keys = Key::all();
    let key = keys.iter().find(|key| key.algorithm == "hmac-sha256").unwrap();
    site.terminal.set("RFC2136_TSIG_SECRET", &key.secret);
    let said = site.terminal.drive(&quick);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    assert!(!said.stderr.contains(&*key.secret), "the key is told: {said:?}");
    site.terminal.pair("wildcard-example-com-tls").check(&site.pebble.root_pem());
    assert_eq!(site.server.texts(RECORD), [THEIRS], "ours are gone, theirs are there");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_is_rehearsed_without_a_word_to_the_ca() {
    let site = Site::new(Software::Knot, Updates::Signed);
    let solver = site.solver("hmac-sha256", &json!({}));
    let manifests =
        site.manifests(&site.pebble.directory(), "hmac-sha256", &solver, &["*.example.com"]);
    let path = site.terminal.manifests(&manifests);
    let said = site.terminal.drive(&["order", "-f", path.to_str().unwrap(), "--rehearse"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!((site.pebble.accounts(), site.pebble.orders()), (0, 0));
    assert_eq!(site.server.texts(RECORD), [THEIRS]);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_rehearsal_that_is_interrupted_leaves_nothing_in_the_zone() {
    let site = Site::new(Software::Knot, Updates::Signed);
    let solver = site.solver("hmac-sha256", &json!({}));
    let mut manifests =
        site.manifests(&site.pebble.directory(), "hmac-sha256", &solver, &["*.example.com"]);
    manifests[1]["spec"]["acme"]["solvers"][0]["waitInsteadOfSelfCheck"] = "1h".into();
    let path = site.terminal.manifests(&manifests);
    let mut child = published(&site, &["order", "-f", path.to_str().unwrap(), "--rehearse"]);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(site.server.texts(RECORD), [THEIRS]);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn the_ttl_of_others_stays_as_it_is_and_is_waited_out_between_apex_and_wildcard() {
    let server = Setup { ttl: 4, ..Setup::new(zones(Updates::Signed)) };
    let site = Site::with(DnsServer::start(Software::Bind, &server));
    let solver = site.solver("hmac-sha256", &json!({}));
    let said = site.order("hmac-sha256", &solver, &["example.com", "*.example.com"]);
    let wait = "the CA has asked for _acme-challenge.example.com. before";
    assert!(!said.stderr.contains(wait), "both were there when it asked first: {said:?}");
    assert_eq!(site.server.ttl(RECORD), Some(4));
}

/// Knot Resolver keeps for five seconds what has a TTL of 0: whoever put up the second value after the CA's first look would have it
/// see the first again.
#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_wildcard_and_its_base_are_issued_where_the_ca_s_resolver_keeps_what_it_saw() {
    for software in [Software::Bind, Software::Knot, Software::PowerDns] {
        let server = DnsServer::start(software, &Setup::new(zones(Updates::Signed)));
        let resolver = DnsServer::recursive(&[&server]);
        let keeping = DnsServer::keeping(&resolver, "example.com.");
        let site = Site::looked_at_by(server, resolver, keeping.address());
        let solver = site.solver("hmac-sha256", &json!({}));
        let said = site.order("hmac-sha256", &solver, &["www.example.com", "*.www.example.com"]);
        assert!(!said.stderr.contains("Waiting until"), "{said:?}");
        assert_eq!(site.pebble.orders(), 1, "{said:?}");
    }
}

/// Where values are put up one after another, the second is accepted when the first is forgotten.
#[test]
#[ignore = "needs name servers: run by just pebble"]
fn certificates_for_one_name_wait_for_what_the_ca_s_resolver_keeps() {
    let server = DnsServer::start(Software::Knot, &Setup::new(zones(Updates::Signed)));
    let resolver = DnsServer::recursive(&[&server]);
    let keeping = DnsServer::keeping(&resolver, "example.com.");
    let site = Site::looked_at_by(server, resolver, keeping.address());
    let solver = site.solver("hmac-sha256", &json!({}));
    let directory = site.pebble.directory();
    let mut manifests = site.manifests(&directory, "hmac-sha256", &solver, &["www.example.com"]);
    manifests.push(certificate("wild", &["*.www.example.com"], json!({})));
    let said = site.terminal.try_order(&manifests);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.pebble.log());
    let wait = "its resolver may keep that answer for 5 s, although the record's TTL is 0";
    assert!(said.stderr.contains(wait), "{said:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn an_alias_is_followed_where_the_solver_says_so() {
    let site = Site::new(Software::Knot, Updates::Signed);
    let mut solver = site.solver("hmac-sha1", &json!({}));
    solver["cnameStrategy"] = "Follow".into();
    site.order("hmac-sha1", &solver, &["*.alias.example.com"]);
    let asked = site.server.asked();
    let updated: Vec<&str> = asked
        .iter()
        .filter(|asked| format!("{:?}", asked.code) == "Update")
        .map(|asked| asked.name.as_str())
        .collect();
    assert!(updated.len() >= 2, "once there and once away, unless a step is repeated");
    assert!(updated.iter().all(|zone| *zone == "example.org."), "{updated:?}");
}

/// Starts an order and waits until its text is there; the CA is never told.
fn published(site: &Site, words: &[&str]) -> Child {
    let mut command = site.terminal.command(words);
    command
        .arg(format!("--http01-listen=127.0.0.1:{}", site.terminal.http_port))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while site.server.texts(RECORD).len() < 2 {
        assert!(Instant::now() < deadline, "nothing is published");
        sleep(Duration::from_millis(10));
    }
    child
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn what_a_killed_process_published_is_gone_after_the_next_run() {
    let site = Site::new(Software::Bind, Updates::Signed);
    let proxy = site.pebble.proxy();
    proxy.inject(Fault::hold().at(Endpoint::Challenge));
    let solver = site.solver("hmac-sha256", &json!({}));
    let manifests = site.manifests(&proxy.directory(), "hmac-sha256", &solver, &["*.example.com"]);
    let path = site.terminal.manifests(&manifests);
    let words = ["order", "-f", path.to_str().unwrap(), "--timeout=60s"];
    let mut child = published(&site, &words);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(site.server.texts(RECORD).len(), 2, "it had no time to tidy up");
    proxy.calm_down();
    let said = site.terminal.drive(&words[..3]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(site.server.texts(RECORD), [THEIRS]);
}

/// What is said when the server refuses.
fn check_refusal(change: impl FnOnce(&mut Value), key: &str, expected: &str) {
    let site = Site::new(Software::Bind, Updates::Signed);
    let mut solver = site.solver("hmac-sha256", &json!({}));
    change(&mut solver["rfc2136"]);
    let said = site.try_order(key, &solver, &["*.example.com"]);
    assert_eq!(said.code, Some(9), "{said:?}");
    let address = site.server.address().to_string();
    let stderr = said.stderr.replace(&address, "SERVER");
    assert!(stderr.contains(expected), "{stderr}");
    assert_eq!((site.pebble.accounts(), site.pebble.orders()), (0, 0), "the CA heard nothing");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_key_that_the_server_does_not_know_is_told() {
    check_refusal(
        |fields| fields["tsigKeyName"] = "stranger".into(),
        "hmac-sha256",
        "DNS update failed. Server replied: NOTAUTH (BADKEY)",
    );
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_secret_of_another_key_is_told() {
    check_refusal(|_| {}, "hmac-sha512", "DNS update failed. Server replied: NOTAUTH (BADSIG)");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn an_update_without_a_key_is_told() {
    check_refusal(
        |fields| {
            let address = fields["nameserver"].clone();
            *fields = json!({"nameserver": address});
        },
        "hmac-sha256",
        "hint: name a TSIG key that SERVER knows",
    );
}

/// A provider that cannot be reached: the order is made, and waits.
fn check_unreachable(dns01: &Value, why: &str) {
    let site = Site::new(Software::Knot, Updates::Signed);
    let names = ["*.example.com"];
    let manifests = site.manifests(&site.pebble.directory(), "hmac-sha256", dns01, &names);
    let path = site.terminal.manifests(&manifests);
    let words = ["order", "-f", path.to_str().unwrap(), "--timeout=8s"];
    let said = site.terminal.run(&words);
    assert_eq!(said.code, Some(9), "{said:?}");
    let whose =
        "warning: Certificate default/web: *.example.com: the dns01 solver of Issuer default/acme";
    let warning = format!("{whose} cannot be asked now: {why}");
    assert!(said.stderr.contains(&warning), "{said:?}");
    assert_eq!(site.pebble.orders(), 1, "it may be back soon: {said:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn a_provider_that_cannot_be_asked_is_only_warned_of_before_an_order() {
    let nobody = json!({"rfc2136": {"nameserver": "127.0.0.1:1"}});
    check_unreachable(&nobody, "DNS update failed: 127.0.0.1:1 has nobody listening\n");
    // That resolver knows nothing of the rest of the world.
    let elsewhere = json!({"digitalocean": {"tokenSecretRef": {"name": "tsig", "key": "secret"}}});
    check_unreachable(&elsewhere, "while querying the DigitalOcean API for GET ");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn who_keeps_running_tells_what_a_provider_refuses() {
    let site = Site::new(Software::Bind, Updates::Signed);
    let mut solver = site.solver("hmac-sha256", &json!({}));
    solver["rfc2136"]["tsigKeyName"] = "stranger".into();
    let names = ["*.example.com"];
    // Nothing is ordered: that CA is not there.
    let manifests = site.manifests("https://127.0.0.1:1/", "hmac-sha256", &solver, &names);
    let path = site.terminal.manifests(&manifests);
    let said = site.terminal.run(&["order", "-f", path.to_str().unwrap(), "--timeout=1s"]);
    assert_eq!(said.code, Some(9), "what is applied stays: {said:?}");
    let log = site.terminal.path("log");
    let listen = format!("--http01-listen=127.0.0.1:{}", site.terminal.http_port);
    let mut run = site.terminal.command(&["run", &listen]);
    let mut child =
        run.stdout(Stdio::null()).stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let refusal = "the dns01 solver of Issuer default/acme cannot be used: DNS update failed. Server replied: \
                   NOTAUTH (BADKEY)";
    let deadline = Instant::now() + PATIENCE;
    while !std::fs::read_to_string(&log).unwrap().contains(refusal) {
        let said = std::fs::read_to_string(&log).unwrap();
        assert!(Instant::now() < deadline, "it says only: {said}");
        sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
