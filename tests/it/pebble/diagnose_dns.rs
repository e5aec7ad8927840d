//! The fault lab where names and records are what is wrong: a zone on a real name server, a resolver before it, Pebble as CA.

use serde_json::{Value, json};

use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone};
use crate::support::lab;
use crate::support::pebble::{Pebble, PebbleOptions};
use crate::support::terminal::{Terminal, certificate, issuer};

const ZONE: &str = "example.com.";
const RECORD: &str = "_acme-challenge.example.com.";

/// A zone, a resolver, and somebody whose certificate waits for a record.
pub(super) struct Lab {
    pub(super) server: DnsServer,
    pub(super) terminal: Terminal,
    pub(super) pebble: Pebble,
    pub(super) resolver: DnsServer,
}

impl Lab {
    pub(super) fn new(records: &[&str]) -> Self {
        Self::remembering(records, 2)
    }

    /// With a zone whose absences are remembered for so many seconds.
    pub(super) fn remembering(records: &[&str], ttl: u32) -> Self {
        Self::at(Software::Bind, records, ttl)
    }

    /// The same at that server program.
    pub(super) fn at(software: Software, records: &[&str], ttl: u32) -> Self {
        Self::start(software, records, ttl, &[])
    }

    /// With zones of other servers.
    pub(super) fn beside(records: &[&str], others: &[&DnsServer]) -> Self {
        Self::start(Software::Bind, records, 2, others)
    }

    fn start(software: Software, records: &[&str], ttl: u32, others: &[&DnsServer]) -> Self {
        let zone = Zone::new(ZONE).updates(Updates::Unsigned);
        let zone = records.iter().fold(zone, |zone, record| zone.with(record));
        let setup = Setup { ttl, ..Setup::new(vec![zone]) };
        let server = DnsServer::start(software, &setup);
        let resolver = DnsServer::recursive(&[&[&server], others].concat());
        let dns_server = Some(resolver.address().to_string());
        let pebble = Pebble::start(&PebbleOptions { dns_server, ..PebbleOptions::default() });
        let mut terminal = Terminal::at(&pebble);
        terminal.set("KUBECTL_ACME_DNS", resolver.address());
        let lab = Self { server, terminal, pebble, resolver };
        lab.asks_for(&["example.com"]);
        lab
    }

    fn issuer(&self) -> Value {
        let solver = json!({
            "dns01": {"rfc2136": {"nameserver": "192.0.2.53"}}, "waitInsteadOfSelfCheck": "0s",
        });
        let solvers = json!({"solvers": [solver]});
        issuer(&self.pebble.directory(), self.pebble.tls_ca_pem(), solvers)
    }

    /// Writes manifests for a certificate of these names.
    pub(super) fn asks_for(&self, domains: &[&str]) {
        self.terminal.manifests(&[self.issuer(), certificate("web", domains, json!({}))]);
    }

    /// The same, proven by a record that stays.
    pub(super) fn asks_for_a_record_that_stays(&self) {
        let mut issuer = self.issuer();
        issuer["spec"]["acme"]["solvers"] = json!([]);
        issuer["metadata"]["annotations"] =
            json!({"kubectl-acme/challenge-type": "dns-persist-01"});
        self.terminal.manifests(&[issuer, certificate("web", &["example.com"], json!({}))]);
    }

    /// Lets time pass: a record that was asked for just now may be on its way.
    pub(super) fn waits(&mut self) {
        let later = jiff::Timestamp::now() + jiff::SignedDuration::from_mins(10);
        self.terminal.set("KUBECTL_ACME_NOW", format!("{later:.0}"));
    }

    /// Orders by hand, and returns the records that have to be made.
    pub(super) fn ordered(&self) -> Vec<Value> {
        let words = ["order", "-f", "manifests.yaml", "--dns01-manual", "-o", "json"];
        let said = self.terminal.run(&words);
        assert_eq!(said.code, Some(13), "{said:?}");
        let report: Value = serde_json::from_str(&said.stdout).unwrap();
        report["records"].as_array().unwrap().clone()
    }

    /// Orders by hand, a while ago; returns the value that the record has to have.
    pub(super) fn wanted(&mut self) -> String {
        self.wanted_at(RECORD)
    }

    /// The same where aliases lead to that record.
    pub(super) fn wanted_at(&mut self, record: &str) -> String {
        let records = self.ordered();
        assert_eq!(records[0]["name"], record);
        self.waits();
        records[0]["value"].as_str().unwrap().to_owned()
    }

    /// What `diagnose` names first, if anything, and all that it names.
    #[track_caller]
    fn check(&self, word: &str, first: Option<&str>) -> Value {
        let said = self.terminal.run(&["diagnose", word, "-o", "json"]);
        let report: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        match first {
            Some(cause) => _ = lab::names_first(&report, cause),
            None => lab::names_none(&report, "the record of DNS-01 is there"),
        }
        let expected = if first.is_some() { 10 } else { 0 };
        assert_eq!(said.code, Some(expected), "{report:#}");
        report
    }
}

impl Lab {
    /// `diagnose` names that cause, whatever else there is.
    #[track_caller]
    fn names(&self, word: &str, cause: &str) {
        let said = self.terminal.run(&["diagnose", word, "-o", "json"]);
        let report: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
        let found = report["findings"].as_array().unwrap();
        assert!(found.iter().any(|finding| finding["cause"] == cause), "{report:#}");
    }
}

/// The guide's "check if you can see the TXT record from the public internet".
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_the_txt_record_is_missing_another_or_in_the_wrong_place() {
    let mut lab = Lab::new(&[]);
    let value = lab.wanted();
    let missing = lab.check("web", Some("D01-01"));
    let evidence = missing["findings"][0]["evidence"].to_string();
    assert!(evidence.contains("_acme-challenge.example.com"), "{evidence}");

    lab.server.publish(ZONE, RECORD, "of-an-older-order");
    let other = lab.check("web", Some("D01-11"));
    assert!(other.to_string().contains("of-an-older-order"), "{other:#}");

    lab.server.publish(ZONE, RECORD, &value);
    lab.check("web", None);
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_10_the_zone_stands_twice_in_the_name() {
    let mut lab = Lab::new(&[]);
    let value = lab.wanted();
    lab.server.publish(ZONE, "_acme-challenge.example.com.example.com.", &value);
    lab.check("web", Some("D01-10"));
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn names_are_looked_at_before_anything_is_ordered() {
    let lab = Lab::new(&[
        "closed CAA 0 issue \"other.example\"",
        "closed A 127.0.0.1",
        "private A 10.255.255.1",
        "dangling CNAME gone.example.com.",
    ]);
    lab.check("nowhere.example.com", Some("HTTP-01"));
    lab.check("dangling.example.com", Some("HTTP-01"));
    lab.names("closed.example.com", "CAA-01");
    lab.names("private.example.com", "HTTP-02");
}
