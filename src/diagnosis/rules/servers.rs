//! DNS-01, DNS-03, DNS-04, DNS-05 and D01-15: the servers of a zone, each by itself.

use super::dns01::about;
use super::zone::{bare, in_dns, place, soa, zones};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::dns::{self, DnsVantage};
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
};
use crate::model::ChallengeType;
use crate::model::zone_look::{DnsOutcome, QuestionFault, ZoneServer, ZoneState};

pub(super) const RULES: &[FaultRule] = &[
    no_server_has_the_zone,
    resolvers_fail,
    resolvers_are_silent,
    some_servers_fail,
    tcp_is_silent,
    ways_of_asking_are_not_borne,
];

/// Maximum number of servers that are shown.
const MAX_SHOWN_SERVERS: usize = 6;

/// Returns the servers that can be reached from here.
fn reachable(zone: &ZoneState) -> impl Iterator<Item = &ZoneServer> {
    zone.servers.iter().filter(|server| server.soa != DnsOutcome::NoRoute)
}

/// Describes the reply of a server that does not have the zone.
fn words(server: &ZoneServer) -> String {
    match server.soa.answer() {
        Some(_) => "an answer without the zone's SOA record".to_owned(),
        None => dns::words(&server.soa),
    }
}

/// Describes the replies of servers in short, each with its server.
fn all_words(servers: &[&ZoneServer]) -> String {
    let words =
        servers.iter().take(MAX_SHOWN_SERVERS).map(|s| format!("{}: {}", bare(&s.name), words(s)));
    words.collect::<Vec<_>>().join("; ")
}

fn no_server_has_the_zone(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns, zone) in zones(case) {
        let servers: Vec<&ZoneServer> = reachable(zone).collect();
        if servers.is_empty() || servers.iter().any(|server| server.serves()) {
            continue;
        }
        let is_silent = servers.iter().all(|server| server.soa.reply().is_none());
        let others_reach_it = dns.replies.iter().find(|reply| {
            !matches!(reply.from, DnsVantage::Authority { .. }) && reply.heard.answer().is_some()
        });
        // An answer that resolvers get, and this machine does not, is blocked on the path of this machine.
        let (cause, grade) = match (is_silent, others_reach_it) {
            (true, Some(_)) => (CauseId::D0115, Grade::Likely),
            (true, None) => (CauseId::Dns01, Grade::Likely),
            (false, _) => (CauseId::Dns01, Grade::Certain),
        };
        let mut evidence =
            servers.iter().take(MAX_SHOWN_SERVERS).map(|server| soa(zone, server, case));
        let Some(first) = evidence.next() else { continue };
        let more = others_reach_it.filter(|_| is_silent).map(evidence_of_dns_reply);
        found.push(
            about(cause, grade, name, first)
                .shown_by(evidence.chain(more))
                .with("ANSWER", all_words(&servers)),
        );
    }
}

/// DNS-01: resolvers fail for a name, and not because of signatures.
fn resolvers_fail(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns) in in_dns(case) {
        let knows_servers = dns.zone.as_ref().is_some_and(|zone| !zone.servers.is_empty());
        if knows_servers || dns.without_soa.is_some() {
            continue;
        }
        let domain = format!("{}.", name.name);
        let fails = |reply: &&dns::VantageReply| {
            reply.heard.reply().is_some_and(|reply| reply.code == "SERVFAIL")
        };
        let asked: Vec<_> = dns.asked(&domain, "A").collect();
        let Some(first) = asked.first().filter(|_| asked.iter().all(fails)) else { continue };
        let answer = dns::words(&first.heard);
        found.push(
            about(CauseId::Dns01, Grade::Possible, name, evidence_of_dns_reply(first))
                .with("ANSWER", answer),
        );
    }
}

/// D01-15: the resolvers that have to find the zone do not answer.
fn resolvers_are_silent(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns) in in_dns(case) {
        let by_record = name.kind.is_some_and(ChallengeType::is_by_record);
        let domain = format!("{}.", name.name);
        if !by_record || !dns.is_of_silent_resolvers(&domain) {
            continue;
        }
        let mut evidence = dns.asked(&domain, "A").take(MAX_SHOWN_SERVERS);
        let Some(first) = evidence.next() else { continue };
        let answer = format!("{}: {}", first.from.server(), dns::words(&first.heard));
        found.push(
            about(CauseId::D0115, Grade::Likely, name, evidence_of_dns_reply(first))
                .shown_by(evidence.map(evidence_of_dns_reply))
                .with("ANSWER", answer),
        );
    }
}

fn some_servers_fail(case: &Case, found: &mut Vec<Finding>) {
    for (name, _, zone) in zones(case) {
        if !zone.servers.iter().any(ZoneServer::serves) {
            continue;
        }
        for server in reachable(zone).filter(|server| !server.serves()) {
            // One of a server's several addresses may be silent.
            let is_heard_elsewhere =
                zone.servers.iter().any(|other| other.name == server.name && other.serves());
            let by_record = name.kind.is_some_and(ChallengeType::is_by_record);
            let (cause, grade) = match server.soa.reply() {
                Some(_) if by_record => (CauseId::Dns03, Grade::Certain),
                // Resolvers of a CA ask another server.
                Some(_) => (CauseId::Dns03, Grade::Possible),
                None if is_heard_elsewhere => (CauseId::Dns04, Grade::Possible),
                None => (CauseId::Dns04, Grade::Likely),
            };
            let answer = format!("{}: {}", place(server), words(server));
            let finding = about(cause, grade, name, soa(zone, server, case)).with("ANSWER", answer);
            // cert-manager's self-check of a record ends at the first server that fails; ours waits for each server.
            let is_in_the_way = by_record && name.pending.is_some() && !name.is_answer_seen();
            let is_alone = is_in_the_way && !is_heard_elsewhere;
            found.push(if is_alone { finding.meaning(CauseSeverity::Error) } else { finding });
        }
    }
}

fn tcp_is_silent(case: &Case, found: &mut Vec<Finding>) {
    for (name, _, zone) in zones(case) {
        for server in &zone.servers {
            let Some(why) = &server.tcp_fault else { continue };
            let asked = format!("SOA of {} at {} by TCP", bare(&zone.name), place(server));
            let shown = evidence_of_answer(asked, case.at, why);
            found.push(
                about(CauseId::Dns04, Grade::Likely, name, shown)
                    .shown_by([soa(zone, server, case)])
                    .with("ANSWER", format!("{} {why} by TCP", place(server))),
            );
        }
    }
}

fn ways_of_asking_are_not_borne(case: &Case, found: &mut Vec<Finding>) {
    for (name, _, zone) in zones(case) {
        for server in &zone.servers {
            let Some(fault) = &server.asking_fault else { continue };
            found.push(asking_fault(case, (name, zone), server, fault));
        }
    }
}

fn asking_fault(
    case: &Case,
    (name, zone): (&NameCase, &ZoneState),
    server: &ZoneServer,
    fault: &QuestionFault,
) -> Finding {
    let place = place(server);
    // Many resolvers repeat a question without EDNS; none repeats it in other letters.
    let (grade, asked, came, way) = match fault {
        QuestionFault::Edns(came) => {
            let asked = format!("SOA of {} at {place} with EDNS", bare(&zone.name));
            (Grade::Possible, asked, came, "with EDNS")
        }
        QuestionFault::Letters { name, came } => {
            let asked = format!("SOA of {} at {place}", bare(name));
            (Grade::Likely, asked, came, "in mixed case")
        }
    };
    about(CauseId::Dns05, grade, name, evidence_of_answer(asked, case.at, came))
        .shown_by([soa(zone, server, case)])
        .with("SERVER", place)
        .with("WAY", way)
        .with("ANSWER", came)
}

#[cfg(test)]
mod tests {
    use super::super::judge;
    use super::super::tests::{by, check};
    use super::super::zone::tests::{reply, with_zone};
    use super::*;
    use crate::diagnosis::case::dns::{DnsCase, VantageReply};
    use crate::model::zone_look::DnsReply;

    const DOMAIN: &str = "www.example.com.";

    fn coded(code: &str) -> DnsOutcome {
        DnsOutcome::Reply(DnsReply { code: code.to_owned(), ..DnsReply::default() })
    }

    fn silent() -> DnsOutcome {
        DnsOutcome::Nothing("does not answer".into())
    }

    /// Servers of the zone that say this of it, as many as there are outcomes; the others have it.
    fn saying(outcomes: &[DnsOutcome]) -> impl FnOnce(&mut ZoneState) {
        move |zone| {
            for (server, soa) in zone.servers.iter_mut().zip(outcomes) {
                server.soa = soa.clone();
                server.serial = None;
            }
        }
    }

    fn of(outcomes: &[DnsOutcome]) -> Case {
        with_zone(|zone, _| saying(outcomes)(zone))
    }

    #[test]
    fn servers_that_do_not_have_the_zone_are_told() {
        check(&of(&[coded("REFUSED"), coded("REFUSED")]), &[CauseId::Dns01]);
        check(&of(&[coded("SERVFAIL"), silent()]), &[CauseId::Dns01]);
        check(&of(&[coded("NOERROR"), coded("NOERROR")]), &[CauseId::Dns01]);
        check(&of(&[coded("REFUSED")]), &[CauseId::Dns03]);
        check(&of(&[silent()]), &[CauseId::Dns04]);
        check(&of(&[DnsOutcome::NoRoute]), &[]);
        check(&of(&[]), &[]);
    }

    #[test]
    fn servers_that_resolvers_reach_and_this_machine_does_not_are_kept_from_it() {
        let resolver = || DnsVantage::Resolver("10.0.0.53:53".into());
        let reached = with_zone(|zone, replies| {
            saying(&[silent(), silent()])(zone);
            replies.push(reply(resolver(), DOMAIN, "A", &["192.0.2.80"]));
        });
        check(&reached, &[CauseId::D0115]);
        check(&of(&[silent(), silent()]), &[CauseId::Dns01]);
    }

    #[test]
    fn resolvers_that_are_silent_are_told_where_records_are_needed() {
        let of = |kind| {
            by(kind, |name| {
                let resolver = DnsVantage::Resolver("10.0.0.53:53".into());
                let silence = VantageReply { heard: silent(), ..reply(resolver, DOMAIN, "A", &[]) };
                name.dns = Some(DnsCase { replies: vec![silence], ..DnsCase::default() });
            })
        };
        check(&of(ChallengeType::Dns01), &[CauseId::D0115]);
        check(&of(ChallengeType::Http01), &[]);
    }

    #[test]
    fn tcp_that_is_silent_is_told() {
        let of = |fault: Option<&str>| {
            with_zone(|zone, _| zone.servers[1].tcp_fault = fault.map(str::to_owned))
        };
        check(&of(Some("does not answer")), &[CauseId::Dns04]);
        check(&of(None), &[]);
    }

    #[test]
    fn a_server_that_cannot_stand_how_cas_ask_is_told() {
        let of = |fault| with_zone(|zone, _| zone.servers[0].asking_fault = Some(fault));
        let edns = of(QuestionFault::Edns("FORMERR".into()));
        check(&edns, &[CauseId::Dns05]);
        assert!(!judge(&edns)[0].is_error(), "resolvers ask again");
        let name = "eXaMpLe.CoM.".to_owned();
        let letters = of(QuestionFault::Letters { name, came: "FORMERR".into() });
        check(&letters, &[CauseId::Dns05]);
        assert!(judge(&letters)[0].is_error());
    }
}
