//! The fault lab where the servers of a zone are what is wrong: some lack the zone, refuse, are silent, or cannot stand how CAs ask.

use std::time::Instant;

use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::RecordType;
use serde_json::json;

use crate::pebble::diagnose_dns::Lab;
use crate::pebble::diagnose_zone::{NAME, RECORD, ZONE, diagnosed, look, names_soon, top_level};
use crate::pebble::dns_look::Bed;
use crate::support::bed::PATIENCE;
use crate::support::dns::relay::Spoilt;
use crate::support::dns::{DnsServer, Setup, Software, Zone};
use crate::support::lab;

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_01_a_zone_is_delegated_to_servers_that_do_not_have_it() {
    let lame = DnsServer::start(Software::Knot, &Setup::new(vec![Zone::new("example.org.")]));
    let top = top_level(&lame.delegation(ZONE));
    let inner = DnsServer::recursive(&[&top, &lame]);
    let resolver = DnsServer::validating(&inner, &[]);
    let (said, report) = diagnosed(&resolver, NAME);
    let first = lab::names_first(&report, "DNS-01");
    assert_eq!((said.code, &first["grade"]), (Some(10), &json!("certain")), "{report:#}");
    let evidence = first["evidence"].to_string();
    assert!(evidence.contains("REFUSED") && evidence.contains("ns.example.com"), "{evidence}");
    assert_eq!(report["findings"].as_array().unwrap().len(), 1, "{report:#}");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_03_a_server_refuses_while_another_one_answers() {
    let bed = Bed::start(&[Software::Bind, Software::Bind], "", |number, zone| {
        vec![if number == 2 { zone.refused() } else { zone }]
    });
    let (said, report) = diagnosed(&bed.resolver, NAME);
    let first = lab::names_first(&report, "DNS-03");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("ns2.example.com") && message.contains("REFUSED"), "{message}");
    assert_eq!(said.code, Some(10), "{report:#}");
    let same = Bed::start(&[Software::Bind, Software::Bind], "", |_, zone| vec![zone]);
    lab::names_none(&diagnosed(&same.resolver, NAME).1, "two servers that answer");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_04_a_server_is_silent_or_has_no_tcp() {
    let all = [Software::Bind, Software::Knot, Software::PowerDns];
    let bed = Bed::start(&all, "", |_, zone| vec![zone]);
    lab::names_none(&diagnosed(&bed.resolver, NAME).1, "three servers by UDP and TCP");
    bed.servers[1].be_silent(true);
    let (said, report) = diagnosed(&bed.resolver, NAME);
    let first = lab::names_first(&report, "DNS-04");
    assert!(first["message"].as_str().unwrap().contains("ns2.example.com"), "{first:#}");
    assert_eq!(said.code, Some(0), "a warning: {report:#}");
    bed.servers[1].be_silent(false);
    bed.servers[0].spoil(Some(Spoilt::NoTcp));
    let (_, report) = diagnosed(&bed.resolver, NAME);
    let first = lab::names_first(&report, "DNS-04");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains("ns1.example.com") && message.contains("TCP"), "{message}");
    bed.servers[0].spoil(None);
    lab::names_none(&names_soon(&bed.resolver, ""), "three servers that are back");
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_05_a_server_cannot_stand_how_cas_ask() {
    let bed = Bed::start(&[Software::Bind, Software::Knot], "", |_, zone| vec![zone]);
    for (spoilt, word, code) in
        [(Spoilt::LowerCase, "mixed case", 10), (Spoilt::NoEdns, "with EDNS", 0)]
    {
        bed.servers[1].spoil(Some(spoilt));
        let (said, report) = diagnosed(&bed.resolver, NAME);
        let first = lab::names_first(&report, "DNS-05");
        let message = first["message"].as_str().unwrap();
        assert!(message.contains("ns2.example.com") && message.contains(word), "{message}");
        assert_eq!(said.code, Some(code), "{report:#}");
    }
}

#[test]
#[ignore = "needs name servers: run by just pebble"]
fn dns_07_a_server_denies_a_name_for_one_type() {
    let zone = Zone::new(ZONE).with("www A 127.0.0.1");
    let own = DnsServer::start(Software::Bind, &Setup::new(vec![zone]));
    let resolver = DnsServer::recursive(&[&own]);
    let name = "*.www.example.com";
    lab::names_none(&diagnosed(&resolver, name).1, "a name without CAA records");
    own.spoil(Some(Spoilt::Coded(RecordType::CAA, ResponseCode::NXDomain)));
    let (mut said, mut report) = diagnosed(&resolver, name);
    // On a busy machine an answer may be too late for one look.
    let deadline = Instant::now() + PATIENCE;
    while report["findings"] == json!([]) && Instant::now() < deadline {
        (said, report) = diagnosed(&resolver, name);
    }
    let first = lab::names_first(&report, "DNS-07");
    assert!(first["message"].as_str().unwrap().contains("CAA"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn dns_08_many_values_and_no_tcp() {
    let old = (0..100).map(|n| format!("_acme-challenge TXT \"{n:043}\"")).collect::<Vec<_>>();
    let mut lab = Lab::at(Software::Knot, &old.iter().map(String::as_str).collect::<Vec<_>>(), 2);
    let value = lab.wanted();
    lab.server.publish(ZONE, RECORD, &value);
    lab.server.spoil(Some(Spoilt::NoTcp));
    let (said, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "DNS-08");
    assert!(first["message"].as_str().unwrap().contains("too large"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
    lab.server.spoil(None);
    let (_, report) = look(&lab.terminal, &["web"]);
    // They are there still, and no harm.
    lab::names_first(&report, "HYG-01");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_15_no_dns_server_answers() {
    let mut lab = Lab::new(&[]);
    lab.wanted();
    lab.resolver.be_silent(true);
    let (_, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-15");
    let message = first["message"].as_str().unwrap();
    assert!(message.contains(&lab.resolver.address().to_string()), "{message}");
}

#[test]
#[ignore = "needs Pebble: run by just pebble"]
fn d01_17_texts_alone_cannot_be_asked_for() {
    let mut lab = Lab::new(&[]);
    let value = lab.wanted();
    lab.server.publish(ZONE, RECORD, &value);
    lab.server.spoil(Some(Spoilt::Coded(RecordType::TXT, ResponseCode::ServFail)));
    let (said, report) = look(&lab.terminal, &["web"]);
    let first = lab::names_first(&report, "D01-17");
    assert!(first["message"].as_str().unwrap().contains("SERVFAIL"), "{first:#}");
    assert_eq!(said.code, Some(10), "{report:#}");
    lab.server.spoil(None);
    lab::names_none(&look(&lab.terminal, &["web"]).1, "a server that knows TXT");
}
