//! The harness for DNS: real servers answer, and a resolver finds them by their delegations.

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;

use crate::support::dns::{DnsServer, Setup, Software, Zone};

/// What every server owes: its zones, by their addresses and through a resolver.
fn check(software: Software) {
    let parent = Setup::new(vec![Zone::new("example.org."), Zone::new("example.com.")]);
    let child = Setup::new(vec![Zone::new("sub.example.com.").with("www TXT \"from below\"")]);
    let child = DnsServer::start(software, &child);
    let mut parent = parent;
    parent.zones[1].records = child.delegation("sub.example.com.") + "www TXT \"from above\"\n";
    let parent = DnsServer::start(software, &parent);
    let resolver = DnsServer::recursive(&[&parent, &child]);

    assert_eq!(parent.texts("www.example.com."), ["from above"]);
    assert!(parent.ask("example.com.", RecordType::SOA).metadata.authoritative);
    assert_eq!(resolver.texts("www.example.com."), ["from above"]);
    assert_eq!(resolver.texts("www.sub.example.com."), ["from below"]);
    let missing = resolver.ask("www.example.org.", RecordType::TXT);
    assert_eq!(missing.metadata.response_code, ResponseCode::NXDomain);
    let outside = resolver.ask("example.net.", RecordType::A);
    assert_eq!(outside.metadata.response_code, ResponseCode::NXDomain);
    let foreign = child.ask("example.com.", RecordType::SOA);
    assert_eq!(foreign.metadata.response_code, ResponseCode::Refused);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn bind_serves_zones_that_a_resolver_finds() {
    check(Software::Bind);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn knot_serves_zones_that_a_resolver_finds() {
    check(Software::Knot);
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn powerdns_serves_zones_that_a_resolver_finds() {
    check(Software::PowerDns);
}
