//! The fault lab where a zone has a copy that follows late: what waits for it, what does not, and that it is well in the end.

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use kubectl_acme::ca::Config;
use kubectl_acme::dns::lookup::DirectResolver;
use kubectl_acme::fetch::Fetcher;
use serde_json::{Value, json};

use crate::pebble::diagnose_zone::{NAME, RECORD, ZONE, look};
use crate::support::bed::PATIENCE;
use crate::support::ca::TestCa;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone, loopback};
use crate::support::lab;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Said, Terminal, certificate, issuer};

/// A primary that takes updates, a copy that follows it, and a CA that asks a resolver.
struct Copied {
    primary: DnsServer,
    copy: DnsServer,
    pebble: Pebble,
    terminal: Terminal,
    resolver: DnsServer,
}

impl Copied {
    /// The copy follows after so many seconds; where the primary is hidden, nobody but who updates it knows of it.
    fn start(refresh: u32, is_hidden: bool) -> Self {
        let [first, second]: [IpAddr; 2] = [loopback(), loopback()];
        let mut servers = vec![(format!("ns2.{ZONE}"), second)];
        if !is_hidden {
            servers.insert(0, (format!("ns1.{ZONE}"), first));
        }
        let zone = Zone::new(ZONE).served_by(&servers).updates(Updates::Unsigned);
        let setup = Setup { addresses: vec![first], refresh, ..Setup::new(vec![zone.clone()]) };
        let primary = DnsServer::start(Software::Bind, &setup);
        let copied = zone.clone().updates(Updates::Refused).copy_of(primary.own_address());
        let setup = Setup { addresses: vec![second], ..Setup::new(vec![copied]) };
        let copy = DnsServer::start(Software::Knot, &setup);
        let resolver = DnsServer::recursive_from(&Zone::new(".").with(&zone.delegation()));
        let dns_server = Some(resolver.address().to_string());
        let pebble = Pebble::start(&PebbleOptions { dns_server, ..PebbleOptions::default() });
        let mut terminal = Terminal::at(&pebble);
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        Self { primary, copy, pebble, terminal, resolver }
    }

    /// Orders at Pebble.
    fn order(&self, more: &[&str]) -> Said {
        self.order_at((&self.pebble.directory(), self.pebble.tls_ca_pem()), None, more)
    }

    /// Orders by updates of the primary at that CA; where there is a wait, nobody looks before it is told.
    fn order_at(&self, (url, root): (&str, &str), wait: Option<&str>, more: &[&str]) -> Said {
        let nameserver = self.primary.address().to_string();
        let mut solver = json!({"dns01": {"rfc2136": {"nameserver": nameserver}}});
        if let Some(wait) = wait {
            solver["waitInsteadOfSelfCheck"] = wait.into();
        }
        self.terminal.manifests(&[
            issuer(url, root, json!({"solvers": [solver]})),
            certificate("web", &["example.com"], json!({})),
        ]);
        self.terminal.run(&[&["order", "-f", "manifests.yaml"], more].concat())
    }

    /// Waits until the copy has the record, too.
    fn is_followed(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.copy.texts(RECORD) != self.primary.texts(RECORD) {
            assert!(Instant::now() < deadline, "{}", self.copy.log());
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The guide's "Waiting for dns-01 challenge propagation".
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_waiting_for_propagation_since_a_copy_follows_late() {
    let mut site = Copied::start(3600, false);
    let said = site.order(&["--timeout=10s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    let (said, report) = look(&site.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-02");
    assert!(first["message"].as_str().unwrap().contains("1 of 2"), "{first:#}");
    assert!(first["evidence"].to_string().contains("ns2.example.com"), "{first:#}");
    assert_eq!(said.code, Some(0), "a warning: {report:#}");
    // It should have followed long ago.
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(10);
    site.terminal.set("KUBECTL_ACME_NOW", format!("{later:.0}"));
    let (_, report) = look(&site.terminal, &["web"]);
    let first = lab::names_first(&report, "DNS-06");
    assert!(first["explains"].as_array().unwrap().contains(&json!("D01-02")), "{report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_slow_copy_that_has_followed_is_well() {
    let site = Copied::start(2, false);
    let said = site.order(&["--out=out", "--timeout=60s"]);
    assert_eq!(said.code, Some(0), "{said:?}\n{}", site.copy.log());
    site.terminal.pair("web-tls").check(&site.pebble.root_pem());
    let (_, report) = look(&site.terminal, &["web"]);
    let causes: Vec<&Value> =
        report["findings"].as_array().unwrap().iter().map(|f| &f["cause"]).collect();
    assert_eq!(causes, [&json!("ORD-01")], "{report:#}");
    site.is_followed();
    let (_, report) = look(&site.terminal, &[NAME]);
    lab::names_none(&report, "copies that are alike again");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Pebble: run by just pebble"]
async fn d01_20_the_ca_is_told_after_a_fixed_time_and_a_copy_follows_later() {
    let site = Copied::start(3600, true);
    let resolver = Arc::new(DirectResolver::new(site.resolver.address()));
    // It says what it lacks in Boulder's words.
    let ca = TestCa::start(Config::default(), |eyes| Fetcher { resolver, ..eyes }).await;
    let directory = ca.server.directory_url();
    let authority = (directory.as_str(), ca.server.tls_root_pem());
    let said = site.order_at(authority, Some("1s"), &["--timeout=60s"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let (said, report) = look(&site.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-20");
    assert!(first["message"].as_str().unwrap().contains("1s"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_20_whoever_waited_has_ended_before_a_copy_has_followed() {
    // Time to put the record up, on a busy machine, too.
    let site = Copied::start(15, false);
    let said = site.order(&["--timeout=10s"]);
    assert_eq!(said.code, Some(124), "{said:?}");
    site.is_followed();
    let (said, report) = look(&site.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-20");
    assert!(first["message"].as_str().unwrap().contains("no process waits"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
    let said = site.order(&["--out=out", "--timeout=60s"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}
