//! DNS, D01-04, D01-05 and CFG-11: a zone, its delegation and its copies.

use std::collections::BTreeSet;

use super::dns01::about;
use crate::diagnosis::case::dns::{self, DnsCase, DnsVantage, VantageReply};
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
};
use crate::model::ChallengeType;
use crate::model::zone_look::{DnsReply, ZoneServer, ZoneState};

pub(super) const RULES: &[FaultRule] = &[
    domain_is_not_registered,
    soa_is_withheld,
    resolver_knows_another_zone,
    signatures_do_not_hold,
    copies_differ,
    absence_is_said_of_a_name_that_is_there,
    parent_names_other_servers,
];

/// Returns the names with their observations in DNS.
pub(super) fn in_dns(case: &Case) -> impl Iterator<Item = (&NameCase, &DnsCase)> {
    case.names.iter().filter_map(|name| Some((name, name.dns.as_ref()?)))
}

/// Returns the names with their zones.
pub(super) fn zones(case: &Case) -> impl Iterator<Item = (&NameCase, &DnsCase, &ZoneState)> {
    in_dns(case).filter_map(|(name, dns)| Some((name, dns, dns.zone.as_ref()?)))
}

/// Returns an absolute name without the last dot.
pub(super) fn bare(name: &str) -> &str {
    name.trim_end_matches('.')
}

/// Returns the replies of the zone's own servers to a question.
pub(super) fn by_authorities<'a>(
    dns: &'a DnsCase,
    name: &str,
    kind: &str,
) -> impl Iterator<Item = &'a VantageReply> {
    dns.asked(name, kind).filter(|reply| matches!(reply.from, DnsVantage::Authority { .. }))
}

fn domain_is_not_registered(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns, zone) in zones(case) {
        // A domain that does not exist is looked up in the zone of the top-level domain.
        if bare(&zone.name).is_empty() || bare(&zone.name).contains('.') {
            continue;
        }
        let domain = format!("{}.", name.name);
        let mut replies = by_authorities(dns, &domain, "A").peekable();
        let Some(first) = replies.peek().copied() else { continue };
        if !replies.all(|reply| reply.heard.reply().is_some_and(DnsReply::is_no_name)) {
            continue;
        }
        let labels: Vec<&str> = name.name.rsplit('.').take(2).collect();
        let registered = labels.into_iter().rev().collect::<Vec<_>>().join(".");
        found.push(
            about(CauseId::Cfg11, Grade::Certain, name, evidence_of_dns_reply(first))
                .with("REGISTERED", registered)
                .with("ZONE", bare(&zone.name)),
        );
    }
}

fn soa_is_withheld(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns) in in_dns(case) {
        // Only the records of DNS-01 need the zone.
        let by_record = name.kind.is_some_and(ChallengeType::is_by_record);
        let Some(without) = dns.without_soa.as_ref().filter(|_| by_record) else { continue };
        let asked = |kind| format!("{kind} of {} at {}", bare(&without.name), without.resolver);
        let servers = without.servers.join(", ");
        let evidence = [
            evidence_of_answer(asked("NS"), case.at, servers),
            evidence_of_answer(asked("SOA"), case.at, &without.why),
        ];
        let [first, second] = evidence;
        // This program finds the zone by the NS records.
        let is_in_the_way = dns.zone.is_none() || case.driver == DriverCase::CertManager;
        let grade = if is_in_the_way { Grade::Certain } else { Grade::Possible };
        found.push(
            about(CauseId::D0104, grade, name, first)
                .shown_by([second])
                .with("ANSWER", &without.why)
                .with("RESOLVER", &without.resolver),
        );
    }
}

/// D01-05: cert-manager asks resolvers alone for the zone, and writes into the zone that they name.
fn resolver_knows_another_zone(case: &Case, found: &mut Vec<Finding>) {
    for (name, _, zone) in zones(case) {
        let by_record = name.kind.is_some_and(ChallengeType::is_by_record);
        let domain = format!("{}.", name.name);
        let is_in = domain == zone.name || domain.ends_with(&format!(".{}", zone.name));
        let Some(other) = &zone.by_resolvers else { continue };
        if !by_record || !is_in || zone.name.eq_ignore_ascii_case(other) {
            continue;
        }
        let Some(server) = zone.servers.iter().find(|server| server.soa.answer().is_some()) else {
            continue;
        };
        // This program asks the zone's own servers, which know better.
        let is_misled = case.in_cluster || case.driver == DriverCase::CertManager;
        let grade = if is_misled { Grade::Likely } else { Grade::Possible };
        let walk = evidence_of_answer(
            format!("SOA records from {} upwards, by resolvers", name.name),
            case.at,
            format!("the zone {}", bare(other)),
        );
        found.push(
            about(CauseId::D0105, grade, name, walk)
                .shown_by([soa(zone, server, case)])
                .with("ZONE", bare(&zone.name))
                .with("OTHER", bare(other)),
        );
    }
}

/// Builds evidence from a server's reply about the zone's SOA record.
pub(super) fn soa(zone: &ZoneState, server: &ZoneServer, case: &Case) -> Evidence {
    evidence_of_answer(
        format!("SOA of {} at {}", bare(&zone.name), place(server)),
        case.at,
        dns::words(&server.soa),
    )
}

/// Returns a server as people name it.
pub(super) fn place(server: &ZoneServer) -> String {
    let address = server.address.map(|address| format!(" ({address})")).unwrap_or_default();
    format!("{}{address}", bare(&server.name))
}

fn signatures_do_not_hold(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns) in in_dns(case) {
        if let Some((grade, evidence, why)) =
            validation_failure(dns).or_else(|| dnssec_fault(case, dns))
        {
            let mut evidence = evidence.into_iter();
            let Some(first) = evidence.next() else { continue };
            let zone = dns.zone.as_ref().map_or(name.name.as_str(), |zone| bare(&zone.name));
            found.push(
                about(CauseId::Dns02, grade, name, first)
                    .shown_by(evidence)
                    .with("ZONE", zone)
                    .with("WHY", why),
            );
        }
    }
}

/// Returns the fault that a validating resolver shows.
fn validation_failure(dns: &DnsCase) -> Option<(Grade, Vec<Evidence>, String)> {
    let fails = |reply: &&VantageReply| {
        !reply.is_unvalidated && reply.heard.reply().is_some_and(|reply| reply.code == "SERVFAIL")
    };
    dns.replies.iter().filter(fails).find_map(|reply| {
        let why = reply.heard.reply().and_then(|reply| reply.why);
        let why = why.filter(|why| why.is_of_dnssec());
        let other = dns.replies.iter().find(|other| {
            other.is_unvalidated && other.from == reply.from && other.heard.answer().is_some()
        });
        if why.is_none() && other.is_none() {
            return None;
        }
        let evidence = std::iter::once(evidence_of_dns_reply(reply))
            .chain(other.map(evidence_of_dns_reply))
            .collect();
        let words = why.map_or_else(
            || "it is answered without validation only".to_owned(),
            |why| why.to_string(),
        );
        Some((Grade::Certain, evidence, words))
    })
}

/// Returns the fault that shows without a validating resolver: keys that the parent does not know, expired signatures.
fn dnssec_fault(case: &Case, dns: &DnsCase) -> Option<(Grade, Vec<Evidence>, String)> {
    let zone = dns.zone.as_ref().filter(|zone| !zone.ds_tags.is_empty())?;
    let tags = |tags: &[u16]| tags.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
    let parent = zone.parent.as_deref().map_or("the parent", bare);
    let ds = || {
        let asked = format!("DS of {} at the servers of {parent}", bare(&zone.name));
        evidence_of_answer(asked, case.at, format!("keys {}", tags(&zone.ds_tags)))
    };
    let speaking = || zone.servers.iter().filter(|server| server.soa.answer().is_some());
    let is_strange = |server: &&ZoneServer| {
        !server.key_tags.is_empty() && !server.key_tags.iter().any(|k| zone.ds_tags.contains(k))
    };
    if let Some(server) = speaking().find(is_strange) {
        let asked = format!("DNSKEY of {} at {}", bare(&zone.name), place(server));
        let keys = evidence_of_answer(asked, case.at, format!("keys {}", tags(&server.key_tags)));
        let why = format!("{parent} has a DS record of keys that the zone does not have");
        return Some((Grade::Certain, vec![ds(), keys], why));
    }
    let is_over = |server: &&ZoneServer| server.signed_until.is_some_and(|until| until < case.at);
    if let Some(server) = speaking().find(is_over) {
        let until = server.signed_until?;
        let asked = format!("signature of the SOA of {} at {}", bare(&zone.name), place(server));
        let why = format!("its signatures expired at {until:.0}");
        return Some((Grade::Certain, vec![evidence_of_answer(asked, case.at, &why), ds()], why));
    }
    let is_unsigned =
        |server: &&ZoneServer| server.key_tags.is_empty() && server.signed_until.is_none();
    let server = speaking().find(is_unsigned).filter(|_| speaking().all(|s| is_unsigned(&s)))?;
    let asked = format!("DNSKEY of {} at {}", bare(&zone.name), place(server));
    let why = format!("{parent} has a DS record, and the zone is not signed");
    Some((Grade::Likely, vec![ds(), evidence_of_answer(asked, case.at, "no keys")], why))
}

/// DNS-06: serial numbers may differ for moments; the records have to differ, too.
fn copies_differ(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns, zone) in zones(case) {
        let copies: Vec<(&ZoneServer, u32)> =
            zone.servers.iter().filter_map(|server| Some((server, server.serial?))).collect();
        let serials: BTreeSet<u32> = copies.iter().map(|(_, serial)| *serial).collect();
        if serials.len() < 2 {
            continue;
        }
        let is_fresh = name.is_fresh(case.at);
        // A record that was just made is still on its way to copies that are well (D01-02).
        let is_on_its_way =
            |reply: &VantageReply| is_fresh && dns.record.as_ref() == Some(&reply.name);
        let mut replies = dns.replies.iter().filter(|reply| !is_on_its_way(reply));
        let Some(differing) = replies.find_map(|reply| differing_replies(dns, reply)) else {
            continue;
        };
        let grade = if is_fresh { Grade::Possible } else { Grade::Certain };
        let serial = |(server, serial): &(&ZoneServer, u32)| {
            let asked = format!("SOA of {} at {}", bare(&zone.name), place(server));
            evidence_of_answer(asked, case.at, format!("serial {serial}"))
        };
        let mut evidence = copies.iter().take(6).map(serial);
        let Some(first) = evidence.next() else { continue };
        let serials = serials.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let finding = about(CauseId::Dns06, grade, name, first)
            .shown_by(evidence.chain(differing))
            .with("ZONE", bare(&zone.name))
            .with("SERIALS", serials);
        let is_in_the_way = name.pending.is_some() && !name.is_answer_seen();
        found.push(if is_in_the_way { finding.meaning(CauseSeverity::Error) } else { finding });
    }
}

/// Returns the replies of two of the zone's servers to one question, if the replies differ.
fn differing_replies(dns: &DnsCase, reply: &VantageReply) -> Option<[Evidence; 2]> {
    let own = reply.heard.answer()?;
    by_authorities(dns, &reply.name, &reply.kind).find_map(|other| {
        let is_authority = matches!(reply.from, DnsVantage::Authority { .. });
        let said = other.heard.answer().filter(|said| is_authority && said.records != own.records);
        said.map(|_| [evidence_of_dns_reply(reply), evidence_of_dns_reply(other)])
    })
}

fn absence_is_said_of_a_name_that_is_there(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns) in in_dns(case) {
        let domain = format!("{}.", name.name);
        let of = |kind| by_authorities(dns, &domain, kind);
        let there = ["A", "AAAA"].into_iter().flat_map(of).find(|reply| {
            reply.heard.answer().is_some_and(|answer| {
                !answer.is_no_name() && !answer.records.is_empty() && answer.aliases.is_empty()
            })
        });
        let Some(there) = there else { continue };
        let absent = ["A", "AAAA", "CAA"].into_iter().flat_map(of).find(|reply| {
            reply.from == there.from && reply.heard.answer().is_some_and(DnsReply::is_no_name)
        });
        let Some(absent) = absent else { continue };
        found.push(
            about(CauseId::Dns07, Grade::Certain, name, evidence_of_dns_reply(absent))
                .shown_by([evidence_of_dns_reply(there)])
                .with("TYPE", &absent.kind)
                .with("SERVER", there.from.server()),
        );
    }
}

fn parent_names_other_servers(case: &Case, found: &mut Vec<Finding>) {
    for (name, _, zone) in zones(case) {
        let Some(at_parent) = &zone.at_parent else { continue };
        let parent = zone.parent.as_deref().map_or("the parent", bare);
        let differs = |server: &&ZoneServer| {
            !server.name_servers.is_empty() && server.name_servers != *at_parent
        };
        let Some(server) = zone.servers.iter().find(differs) else { continue };
        let all =
            |names: &[String]| names.iter().map(|name| bare(name)).collect::<Vec<_>>().join(", ");
        let ns = format!("NS of {} at", bare(&zone.name));
        let above =
            evidence_of_answer(format!("{ns} the servers of {parent}"), case.at, all(at_parent));
        let own = evidence_of_answer(
            format!("{ns} {}", place(server)),
            case.at,
            all(&server.name_servers),
        );
        found.push(
            about(CauseId::Dns09, Grade::Certain, name, above)
                .shown_by([own])
                .with("ZONE", bare(&zone.name))
                .with("PARENT", parent)
                .with("ABOVE", all(at_parent))
                .with("OWN", all(&server.name_servers)),
        );
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::net::SocketAddr;

    use super::super::tests::{by, check};
    use super::*;
    use crate::diagnosis::case::dns::WithoutSoa;
    use crate::model::zone_look::DnsOutcome;

    const DOMAIN: &str = "www.example.com.";

    /// A server of the zone.
    pub(in super::super) fn authority(last: u8) -> DnsVantage {
        let address = SocketAddr::from(([192, 0, 2, last], 53));
        DnsVantage::Authority { name: format!("ns{last}.example.com."), address }
    }

    /// Builds a reply of a server: these records, or that there are none.
    pub(in super::super) fn reply(
        from: DnsVantage,
        name: &str,
        kind: &str,
        records: &[&str],
    ) -> VantageReply {
        let records = records.iter().map(|record| (*record).to_owned()).collect();
        let code = "NOERROR".to_owned();
        VantageReply {
            name: name.to_owned(),
            kind: kind.to_owned(),
            from,
            is_unvalidated: false,
            at: "2026-11-24T22:00:00Z".parse().unwrap(),
            heard: DnsOutcome::Reply(DnsReply { code, records, ..DnsReply::default() }),
        }
    }

    fn coded(from: DnsVantage, kind: &str, code: &str) -> VantageReply {
        let heard = DnsOutcome::Reply(DnsReply { code: code.to_owned(), ..DnsReply::default() });
        VantageReply { heard, ..reply(from, DOMAIN, kind, &[]) }
    }

    fn server(last: u8, serial: u32) -> ZoneServer {
        let DnsVantage::Authority { name, address } = authority(last) else { unreachable!() };
        ZoneServer {
            name,
            address: Some(address),
            soa: reply(authority(last), "example.com.", "SOA", &["soa"]).heard,
            serial: Some(serial),
            signed_until: None,
            name_servers: vec!["ns1.example.com.".into(), "ns2.example.com.".into()],
            key_tags: Vec::new(),
            tcp_fault: None,
            asking_fault: None,
        }
    }

    /// A zone that is well.
    pub(in super::super) fn zone() -> ZoneState {
        ZoneState {
            name: "example.com.".into(),
            by_resolvers: Some("example.com.".into()),
            unfound: None,
            parent: Some("com.".into()),
            at_parent: Some(vec!["ns1.example.com.".into(), "ns2.example.com.".into()]),
            ds_tags: Vec::new(),
            servers: vec![server(1, 7), server(2, 7)],
        }
    }

    /// The zone, changed, and what is said of names in it.
    pub(in super::super) fn with_zone(
        change: impl FnOnce(&mut ZoneState, &mut Vec<VantageReply>),
    ) -> Case {
        by(ChallengeType::Dns01, |name| {
            let (mut zone, mut replies) = (zone(), Vec::new());
            change(&mut zone, &mut replies);
            name.dns = Some(DnsCase { zone: Some(zone), replies, ..DnsCase::default() });
        })
    }

    #[test]
    fn a_zone_that_is_well_has_no_fault() {
        check(&with_zone(|_, _| ()), &[]);
    }

    #[test]
    fn a_domain_that_the_top_level_domain_does_not_know_is_told() {
        let of = |zone_name: &str, code: &str| {
            with_zone(|zone, replies| {
                zone.name = zone_name.to_owned();
                zone.by_resolvers = Some(zone_name.to_owned());
                replies.push(coded(authority(1), "A", code));
            })
        };
        check(&of("com.", "NXDOMAIN"), &[CauseId::Cfg11]);
        check(&of("com.", "NOERROR"), &[]);
        check(&of("example.com.", "NXDOMAIN"), &[]);
    }

    #[test]
    fn a_zone_of_which_resolvers_give_servers_and_no_soa_is_told() {
        let of = |kind| {
            by(kind, |name| {
                let without_soa = Some(WithoutSoa {
                    name: "example.com.".into(),
                    servers: vec!["ns1.example.com.".into()],
                    why: "no SOA".into(),
                    resolver: "10.0.0.53:53".into(),
                });
                name.dns = Some(DnsCase { without_soa, ..DnsCase::default() });
            })
        };
        check(&of(ChallengeType::Dns01), &[CauseId::D0104]);
        check(&of(ChallengeType::Http01), &[]);
    }

    #[test]
    fn a_resolver_that_hides_a_zone_misleads_whoever_asks_it_alone() {
        let mut case = with_zone(|zone, _| zone.by_resolvers = Some("com.".into()));
        check(&case, &[CauseId::D0105]);
        assert!(!super::super::judge(&case)[0].is_error());
        case.driver = DriverCase::CertManager;
        assert!(super::super::judge(&case)[0].is_error());
    }

    #[test]
    fn what_is_answered_without_validation_only_is_a_matter_of_dnssec() {
        let resolver = || DnsVantage::Resolver("10.0.0.53:53".into());
        let of = |code: &str| {
            with_zone(|_, replies| {
                replies.push(coded(resolver(), "A", "SERVFAIL"));
                let other = coded(resolver(), "A", code);
                replies.push(VantageReply { is_unvalidated: true, ..other });
            })
        };
        check(&of("NOERROR"), &[CauseId::Dns02]);
        check(&of("SERVFAIL"), &[]);
    }

    #[test]
    fn keys_and_signatures_have_to_hold() {
        let of = |ds: &[u16], keys: &[u16], until: &str| {
            with_zone(|zone, _| {
                zone.ds_tags = ds.to_vec();
                for server in &mut zone.servers {
                    server.key_tags = keys.to_vec();
                    server.signed_until = until.parse().ok();
                }
            })
        };
        check(&of(&[1], &[1, 2], "2026-12-24T22:00:00Z"), &[]);
        check(&of(&[1], &[2], "2026-12-24T22:00:00Z"), &[CauseId::Dns02]);
        check(&of(&[1], &[1], "2026-11-23T22:00:00Z"), &[CauseId::Dns02]);
        check(&of(&[1], &[], ""), &[CauseId::Dns02]);
        check(&of(&[], &[2], "2026-11-23T22:00:00Z"), &[]);
    }

    #[test]
    fn copies_differ_where_serials_and_contents_do() {
        let of = |serial: u32, records: &[&str]| {
            with_zone(|zone, replies| {
                zone.servers[1].serial = Some(serial);
                replies.push(reply(authority(1), DOMAIN, "A", &["192.0.2.80"]));
                replies.push(reply(authority(2), DOMAIN, "A", records));
            })
        };
        check(&of(8, &["192.0.2.81"]), &[CauseId::Dns06]);
        check(&of(8, &["192.0.2.80"]), &[]);
        check(&of(7, &["192.0.2.81"]), &[]);
    }

    #[test]
    fn a_server_that_denies_a_name_for_one_type_is_told() {
        let of = |code: &str| {
            with_zone(|_, replies| {
                replies.push(reply(authority(1), DOMAIN, "A", &["192.0.2.80"]));
                replies.push(coded(authority(1), "CAA", code));
            })
        };
        check(&of("NXDOMAIN"), &[CauseId::Dns07]);
        check(&of("NOERROR"), &[]);
    }

    #[test]
    fn servers_by_the_parent_and_by_the_zone_are_compared() {
        let other = |zone: &mut ZoneState| zone.at_parent = Some(vec!["ns1.example.com.".into()]);
        check(&with_zone(|zone, _| other(zone)), &[CauseId::Dns09]);
        check(&with_zone(|zone, _| zone.at_parent = None), &[]);
    }
}
