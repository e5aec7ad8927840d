//! The fault lab where a zone is what is wrong, or who sees it: delegations, copies, signatures, caches and split DNS on real
//! name servers.

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use serde_json::{Value, json};

use crate::pebble::diagnose_dns::Lab;
use crate::pebble::dns_damaged::Signed;
use crate::pebble::dns_look::Bed;
use crate::support::bed::PATIENCE;
use crate::support::dns::recursor::WITHHOLDS_SOA;
use crate::support::dns::{DnsServer, Setup, Software, Updates, Zone};
use crate::support::lab;
use crate::support::terminal::{Said, Terminal, certificate, issuer};

pub(super) const ZONE: &str = "example.com.";
pub(super) const RECORD: &str = "_acme-challenge.example.com.";
/// What is asked about: a name that a record has to prove.
pub(super) const NAME: &str = "*.example.com";

/// What `diagnose` says with words of its own.
#[track_caller]
pub(super) fn look(terminal: &Terminal, words: &[&str]) -> (Said, Value) {
    let said = terminal.run(&[&["diagnose", "-o", "json"], words].concat());
    let report = serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{said:?}"));
    (said, report)
}

/// A terminal that asks that resolver.
pub(super) fn asking(resolver: SocketAddr) -> Terminal {
    let mut terminal = Terminal::elsewhere();
    terminal.set("KUBECTL_ACME_DNS", resolver);
    terminal
}

/// What is said of a name by way of a resolver.
#[track_caller]
pub(super) fn diagnosed(resolver: &DnsServer, name: &str) -> (Said, Value) {
    look(&asking(resolver.address()), &[name])
}

/// Looks until that cause is named first, or nothing is where it is empty: servers read their zones, and resolvers forget, a moment
/// later.
#[track_caller]
pub(super) fn names_soon(resolver: &DnsServer, cause: &str) -> Value {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let (_, report) = diagnosed(resolver, NAME);
        let first = report["findings"][0]["cause"].as_str().unwrap_or_default();
        if first == cause || Instant::now() > deadline {
            return report;
        }
        thread::sleep(Duration::from_millis(200));
    }
}

/// A server of one zone with these records.
pub(super) fn server(zone: &str, records: &[&str]) -> DnsServer {
    let zone = Zone::new(zone).updates(Updates::Unsigned);
    let zone = records.iter().fold(zone, |zone, record| zone.with(record));
    DnsServer::start(Software::Bind, &Setup::new(vec![zone]))
}

/// A top-level domain that has these lines beside its own.
pub(super) fn top_level(lines: &str) -> DnsServer {
    DnsServer::start(Software::Knot, &Setup::new(vec![Zone::new("com.").with(lines)]))
}

/// The guide's "cert-manager identifies the wrong zone for your domain name": a resolver filters SOA records.
#[test]
#[ignore = "needs name servers: run by just pebble"]
fn guide_the_wrong_zone_since_soa_records_are_filtered() {
    let own = server(ZONE, &[]);
    let inner = DnsServer::recursive(&[&own]);
    let resolver = DnsServer::validating(&inner, &[]);
    let flag = resolver.folder().join(WITHHOLDS_SOA);
    fs::write(&flag, "").unwrap();
    let (said, report) = diagnosed(&resolver, NAME);
    let first = lab::names_first(&report, "D01-04");
    // This program finds the zone by its name servers; cert-manager would not.
    assert_eq!((said.code, &first["grade"]), (Some(0), &json!("possible")), "{report:#}");
    assert!(first["evidence"].to_string().contains("ns.example.com."), "{first:#}");
    fs::remove_file(flag).unwrap();
    lab::names_none(&names_soon(&resolver, ""), "a resolver gives SOA records");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_02_a_zone_is_not_what_was_signed() {
    let mut site = Signed::start();
    site.sign(true);
    let report = names_soon(&site.bed.resolver, "DNS-02");
    let first = lab::names_first(&report, "DNS-02");
    assert!(first["evidence"].to_string().contains("without validation"), "{first:#}");
    site.sign(false);
    lab::names_none(&names_soon(&site.bed.resolver, ""), "a zone that is signed well");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_02_the_parent_vouches_for_a_zone_that_is_not_signed() {
    let own = server(ZONE, &[]);
    let digest = "ab".repeat(32);
    let ds = format!("{}example DS 12345 13 2 {digest}", own.delegation(ZONE));
    let top = top_level(&ds);
    // It does not validate: what servers say is enough to tell.
    let resolver = DnsServer::recursive(&[&top, &own]);
    let (said, report) = diagnosed(&resolver, NAME);
    let first = lab::names_first(&report, "DNS-02");
    assert!(first["evidence"].to_string().contains("12345"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_06_a_secondary_has_an_older_copy() {
    let bed = Bed::start(&[Software::Bind, Software::Knot], "", |_, zone| vec![zone]);
    lab::names_none(&diagnosed(&bed.resolver, NAME).1, "two servers with the same copy");
    bed.servers[0].publish(ZONE, RECORD, "new");
    let (said, report) = diagnosed(&bed.resolver, NAME);
    let first = lab::names_first(&report, "DNS-06");
    assert_eq!(said.code, Some(0), "{first:#}");
    let view = &report["views"][0];
    assert_eq!(
        (&view["name"], &view["type"]),
        (&json!(&RECORD[..RECORD.len() - 1]), &json!("TXT"))
    );
    assert_eq!(view["sees"].as_array().unwrap().len(), 2, "{view:#}");
    let page = asking(bed.resolver.address()).run(&["diagnose", NAME]);
    assert!(page.stdout.contains("Different views of _acme-challenge.example.com TXT"), "{page:?}");
    assert!(page.stdout.lines().all(|line| line.chars().count() <= 80), "{page:?}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_09_parent_and_zone_name_different_servers() {
    let own = server(ZONE, &[]);
    let [one, two] = ["ns", "old"].map(|label| format!("{label}.example.com."));
    let address = own.addresses[0];
    let lines = format!("{ZONE} NS {one}\n{ZONE} NS {two}\n{one} A {address}\n{two} A {address}");
    let top = top_level(&lines);
    let resolver = DnsServer::recursive(&[&top, &own]);
    let (said, report) = diagnosed(&resolver, NAME);
    let first = lab::names_first(&report, "DNS-09");
    assert!(first["message"].as_str().unwrap().contains("old.example.com"), "{first:#}");
    assert_eq!(said.code, Some(0), "a warning: {report:#}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn cfg_11_the_domain_is_not_registered() {
    let own = server(ZONE, &["@ AAAA ::1"]);
    let empty = top_level("");
    let resolver = DnsServer::recursive(&[&empty]);
    let (said, report) = diagnosed(&resolver, NAME);
    let first = lab::names_first(&report, "CFG-11");
    assert!(first["message"].as_str().unwrap().contains("example.com"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
    let top = top_level(&own.delegation(ZONE));
    let resolver = DnsServer::recursive(&[&top, &own]);
    lab::names_none(&diagnosed(&resolver, NAME).1, "a domain with IPv6 alone");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn caa_08_the_records_are_those_of_a_target() {
    let own = server(ZONE, &["www CNAME host.example.net."]);
    let host = server("example.net.", &["host A 127.0.0.1", "host CAA 0 issue \"other.example\""]);
    let resolver = DnsServer::recursive(&[&own, &host]);
    let (_, report) = diagnosed(&resolver, "*.www.example.com");
    let first = lab::names_first(&report, "CAA-08");
    assert!(first["message"].as_str().unwrap().contains("host.example.net"), "{first:#}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn http_09_the_name_is_known_outside_only() {
    let inner = server(ZONE, &[]);
    let outer = server(ZONE, &["www A 127.0.0.1"]);
    let resolver = DnsServer::recursive(&[&inner]);
    let terminal = asking(resolver.address());
    let other = format!("--resolver={}", outer.address());
    let (said, report) = look(&terminal, &["www.example.com", &other]);
    lab::names_first(&report, "HTTP-09");
    assert_eq!(said.code, Some(10), "{report:#}");
    let sees = report["views"][0]["sees"].as_array().unwrap();
    let wrong = |vantage: &str| {
        sees.iter().find(|row| row["vantage"] == vantage).map(|row| row["isWrong"].clone())
    };
    assert_eq!(wrong("resolver"), Some(json!(true)), "{report:#}");
    assert_eq!(wrong("other resolver"), Some(json!(false)), "{report:#}");
    // Nobody outside is asked unless somebody says so.
    let (_, alone) = look(&terminal, &["www.example.com"]);
    lab::names_first(&alone, "HTTP-01");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_03_a_resolver_remembers_that_the_record_was_not_there() {
    let mut lab = Lab::remembering(&[], 600);
    let value = lab.wanted();
    // A resolver that was too busy to find out remembers nothing.
    let deadline = Instant::now() + PATIENCE;
    let ask = || lab.resolver.ask(RECORD, RecordType::TXT).metadata.response_code;
    while ask() != ResponseCode::NXDomain {
        assert!(Instant::now() < deadline, "the resolver does not say that the record is absent");
        thread::sleep(Duration::from_millis(100));
    }
    lab.server.publish(ZONE, RECORD, &value);
    let (said, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-03");
    assert!(first["message"].as_str().unwrap().contains(" s more"), "{first:#}");
    assert_eq!(said.code, Some(0), "a warning: {report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_08_and_d01_18_a_wildcard_answers_for_the_record() {
    let mut lab = Lab::new(&["* TXT \"v=spf1 -all\""]);
    lab.wanted();
    let (_, report) = look(&lab.terminal, &["web"]);
    lab::names_first(&report, "D01-01");
    assert_eq!(report["findings"][1]["cause"], "D01-18", "{report:#}");
    let mut lab = Lab::new(&["* CNAME host.example.com.", "host A 127.0.0.1"]);
    lab.wanted_at("host.example.com.");
    let (_, report) = look(&lab.terminal, &["web"]);
    lab::names_first(&report, "D01-08");
}

/// The guide's "able to see it from the public internet but not from inside the cluster", and the reverse.
#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn guide_the_record_is_seen_from_one_side_alone() {
    let mut lab = Lab::new(&["@ A 127.0.0.1"]);
    let value = lab.wanted();
    let outer = server(ZONE, &["@ A 127.0.0.2"]);
    let other = format!("--resolver={}", outer.address());
    outer.publish(ZONE, RECORD, &value);
    let (said, report) = look(&lab.terminal, &["web", &other]);
    lab::names_first(&report, "D01-16");
    assert_eq!(said.code, Some(10), "{report:#}");
    lab.server.publish(ZONE, RECORD, &value);
    let (_, report) = look(&lab.terminal, &["web", &other]);
    lab::names_none(&report, "split DNS with the record on both sides");
    assert_ne!(report["views"], json!([]), "the addresses differ");

    let bare = server(ZONE, &[]);
    let other = format!("--resolver={}", bare.address());
    let (said, report) = look(&lab.terminal, &["web", &other]);
    lab::names_first(&report, "D01-19");
    assert_eq!(said.code, Some(10), "{report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn hyg_01_values_of_old_orders_are_left() {
    let mut lab = Lab::new(&[]);
    let value = lab.wanted();
    for old in [value.as_str(), &"a".repeat(43), &"b".repeat(43)] {
        lab.server.publish(ZONE, RECORD, old);
    }
    let (said, report) = look(&lab.terminal, &["web"]);
    lab::names_first(&report, "HYG-01");
    assert_eq!(said.code, Some(0), "a warning: {report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn a_challenge_that_is_led_to_another_zone_is_well() {
    let mut lab = Lab::new(&["_acme-challenge CNAME web.proofs.example.com."]);
    let value = lab.wanted_at("web.proofs.example.com.");
    lab.server.publish(ZONE, "web.proofs.example.com.", &value);
    let (_, report) = look(&lab.terminal, &["web"]);
    lab::names_none(&report, "the record of DNS-01 is led elsewhere by a CNAME");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn per_03_to_per_07_a_record_that_stays_is_read_part_by_part() {
    let lab = Lab::new(&[]);
    let solvers = json!({"solvers": []});
    let mut issuer = issuer(&lab.pebble.directory(), lab.pebble.tls_ca_pem(), solvers);
    issuer["metadata"]["annotations"] = json!({"kubectl-acme/challenge-type": "dns-persist-01"});
    let names = ["malformed", "stranger", "account", "narrow", "over", "good"];
    let domains = names.map(|name| match name {
        "narrow" => "*.narrow.example.com".to_owned(),
        name => format!("{name}.example.com"),
    });
    let domains = domains.each_ref().map(String::as_str);
    lab.terminal.manifests(&[issuer, certificate("web", &domains, json!({}))]);
    let said = lab.terminal.run(&["order", "-f", "manifests.yaml", "--out=out", "-o", "json"]);
    assert_eq!(said.code, Some(13), "{said:?}");
    let ordered: Value = serde_json::from_str(&said.stdout).unwrap();
    for record in ordered["records"].as_array().unwrap().iter().filter(|r| r["type"] == "TXT") {
        let (at, good) = (record["name"].as_str().unwrap(), record["value"].as_str().unwrap());
        let (ca, account) = good.split_once("; accounturi=").unwrap();
        let text = match at.split('.').nth(1).unwrap() {
            "malformed" => format!("{good};"),
            "stranger" => format!("ca.invalid; accounturi={account}"),
            "account" => format!("{ca}; accounturi={account}0"),
            "narrow" => good.replace("; policy=wildcard", ""),
            "over" => format!("{good}; persistUntil=1700000000"),
            _ => good.to_owned(),
        };
        lab.server.publish(ZONE, at, &text);
    }
    let (said, report) = look(&lab.terminal, &["web"]);
    assert_eq!(said.code, Some(10), "{report:#}");
    let found = report["findings"].as_array().unwrap();
    let of = |domain: &str| {
        let of_domain = found.iter().filter(|finding| finding["subject"] == domain);
        json!({"findings": of_domain.collect::<Vec<_>>()})
    };
    let expected = [
        ("malformed.example.com", "PER-07"),
        ("stranger.example.com", "PER-03"),
        ("account.example.com", "PER-04"),
        ("*.narrow.example.com", "PER-05"),
        ("over.example.com", "PER-06"),
    ];
    for (domain, cause) in expected {
        lab::names_first(&of(domain), cause);
    }
    lab::names_none(&of("good.example.com"), "a record that has all that is wanted");
    assert_eq!(found.len(), expected.len(), "{report:#}");
}
