//! Cases of looks from here: what servers of the web and of DNS say beside an answer.

use super::judge;
use super::tests::{by, check, look, said};
use super::zone::tests::{authority, reply, zone};
use crate::diagnosis::case::dns::{DnsCase, DnsVantage, UpdateServerCase, VantageReply};
use crate::diagnosis::case::name::{AddressProbe, LookUp};
use crate::diagnosis::case::web::{WebProbe, WebReply};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::model::ChallengeType;
use crate::model::observation::{CheckResult, NameServerAnswer};
use crate::model::zone_look::{DnsOutcome, DnsReply};

#[test]
fn a_server_of_updates_that_nobody_copies_is_told_with_the_serial_numbers() {
    let of = |own: u32, public: u32, has: bool| {
        let mut case = said(&[NameServerAnswer::NoName, NameServerAnswer::NoName]);
        let from = authority(9);
        let DnsVantage::Authority { address, .. } = from else { unreachable!() };
        let texts: &[&str] = if has { &["digest"] } else { &[] };
        let record = reply(from, "_acme-challenge.www.example.com.", "TXT", texts);
        let mut zone = zone();
        zone.servers.iter_mut().for_each(|server| server.serial = Some(public));
        let at_update_server = Some(UpdateServerCase {
            address,
            record,
            serial: Some(own),
            name_servers: vec!["ns1.example.com.".into()],
        });
        case.names[0].dns =
            Some(DnsCase { zone: Some(zone), at_update_server, ..DnsCase::default() });
        let found = judge(&case);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0].cause, CauseId::D0101);
        (found[0].grade, found[0].evidence.iter().any(|it| it.came == format!("serial {own}")))
    };
    // RFC 1982: 1 comes after 4294967295.
    for (own, public) in [(8, 7), (7, 8), (1, u32::MAX)] {
        assert_eq!(of(own, public, true), (Grade::Certain, true));
    }
    assert!(!of(8, 7, false).1);
}

#[test]
fn addresses_that_a_resolver_withholds_are_an_inner_matter() {
    let of = |other: &str| {
        by(ChallengeType::Http01, |name| {
            name.is_looked_for_in_dns = true;
            name.addresses = LookUp::Code("SERVFAIL".into());
            let resolver = || DnsVantage::Resolver("10.0.0.53:53".into());
            let coded = |kind: &str, code: &str| {
                let heard =
                    DnsOutcome::Reply(DnsReply { code: code.to_owned(), ..DnsReply::default() });
                VantageReply { heard, ..reply(resolver(), "www.example.com.", kind, &[]) }
            };
            let known = reply(authority(1), "www.example.com.", "A", &["192.0.2.80"]);
            let replies = vec![known, coded("A", "SERVFAIL"), coded("SOA", other)];
            name.outer = vec![AddressProbe { is_expected: false, ..look("192.0.2.80:80", false) }];
            name.dns = Some(DnsCase { replies, ..DnsCase::default() });
        })
    };
    check(&of("NOERROR"), &[CauseId::Http09]);
    check(&of("SERVFAIL"), &[CauseId::Dns01]);
}

#[test]
fn what_a_server_says_beside_the_body_is_told_apart() {
    let of = |status: u16, body: &str, to_any: &str| {
        by(ChallengeType::Http01, |name| {
            let mut seen = look("192.0.2.1:80", false);
            seen.expected = "token.own".into();
            seen.observation.seen = CheckResult::Reply {
                status,
                body: body.into(),
                truncated: false,
                is_declined: false,
            };
            let page = WebReply::read(format!("HTTP/1.1 200 OK\r\n\r\n{to_any}").as_bytes());
            seen.web = Some(WebProbe {
                challenge: page.clone(),
                beside: page.clone(),
                root: page,
                proxied: None,
                again: Vec::new(),
            });
            name.looks = vec![seen];
        })
    };
    check(&of(404, "token.own", "page"), &[CauseId::Http32]);
    check(&of(429, "slow down", "page"), &[CauseId::Http32]);
    check(&of(200, "token.other", "page"), &[CauseId::Acc05]);
    // A server that makes the answers itself, for an account that is fixed in its configuration.
    let stateless = of(200, "token.other", "kubectl-acme-diagnose.other");
    check(&stateless, &[CauseId::Http22]);
    assert!(judge(&stateless)[0].facts["ANSWER"].contains("thumbprint other"));
}

#[test]
fn machines_that_take_turns_behind_one_address_are_told() {
    let of = |again: &[&str], is_expected: bool| {
        by(ChallengeType::Http01, |name| {
            let mut seen = look("192.0.2.1:80", false);
            seen.expected = "token.own".into();
            seen.is_expected = is_expected;
            seen.observation.seen = CheckResult::Reply {
                status: 404,
                body: String::new(),
                truncated: false,
                is_declined: false,
            };
            let read = |text: &str| WebReply::read(format!("HTTP/1.1 {text}").as_bytes());
            let page = read("404 Not Found\r\n\r\n");
            seen.web = Some(WebProbe {
                challenge: page.clone(),
                beside: page.clone(),
                root: page,
                proxied: None,
                again: again.iter().map(|text| read(text)).collect(),
            });
            name.looks = vec![seen];
        })
    };
    let (none, own) = ("404 Not Found\r\n\r\n", "200 OK\r\n\r\ntoken.own");
    let found = judge(&of(&[none, own, none], true));
    assert_eq!(found[0].cause, CauseId::Http27, "{found:#?}");
    assert_eq!(found.iter().filter(|it| it.is_error()).count(), 1, "{found:#?}");
    let alike = judge(&of(&[none, none, none], true));
    assert!(alike.iter().all(|it| it.cause != CauseId::Http27), "{alike:#?}");
}
