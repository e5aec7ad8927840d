//! D01 and HYG-01: values at the name of a record, and why our value is not among them.

use std::collections::BTreeSet;

use super::dns01::{about, by_record, values_of_the_other};
use super::zone::{bare, by_authorities};
use crate::diagnosis::case::Case;
use crate::diagnosis::case::dns::VantageReply;
use crate::diagnosis::case::name::{AnswerProbe, NameCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
    evidence_of_probe,
};
use crate::model::ChallengeType;
use crate::model::observation::{CheckResult, NameServer, NameServerAnswer};
use crate::model::zone_look::{DnsOutcome, ProviderZone};

pub(super) const RULES: &[FaultRule] = &[
    wildcard_alias_leads_elsewhere,
    wildcard_text_hides_ours,
    one_value_of_two_is_kept,
    challenge_is_a_zone_of_its_own,
    provider_has_several_zones,
    answer_is_too_large,
    old_values_are_left,
    record_hides_the_host,
];

/// Number of letters of a SHA-256 digest in base64url.
const DIGEST_LETTERS: usize = 43;
/// Minimum number of other values that mean more than another order under way.
const MIN_LEFT_VALUES: usize = 2;

/// Returns all texts that were seen at the record.
pub(super) fn texts(answer: &AnswerProbe) -> BTreeSet<&str> {
    let servers = answer.observations.iter().flat_map(|look| match &look.seen {
        CheckResult::Records { servers, .. } => &servers[..],
        _ => &[],
    });
    let texts = servers.filter_map(|server: &NameServer| match &server.said {
        NameServerAnswer::Texts(texts) => Some(texts),
        _ => None,
    });
    texts.flatten().map(String::as_str).collect()
}

fn wildcard_alias_leads_elsewhere(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case).filter(|(_, answer)| answer.reason.is_some()) {
        let Some(dns) = &name.dns else { continue };
        let (Some(record), Some(nobody)) = (&dns.record, &dns.nobody) else { continue };
        let Some(target) = nobody.heard.reply().and_then(|reply| reply.aliases.first()) else {
            continue;
        };
        let is_same = |reply: &&VantageReply| {
            reply.heard.reply().is_some_and(|reply| reply.aliases.first() == Some(target))
        };
        let Some(own) = by_authorities(dns, record, "TXT").find(is_same) else { continue };
        // The question was for texts; the first part of the answer is the alias.
        let alias = |reply| Evidence {
            came: format!("a CNAME of {target}"),
            ..evidence_of_dns_reply(reply)
        };
        found.push(
            about(CauseId::D0108, Grade::Certain, name, alias(own))
                .shown_by([alias(nobody)])
                .with("RECORD", record.trim_end_matches('.'))
                .with("TARGET", target.trim_end_matches('.'))
                .with("ANSWER", answer.reason.as_deref().unwrap_or_default()),
        );
    }
}

fn wildcard_text_hides_ours(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case).filter(|(_, answer)| answer.reason.is_some()) {
        let Some(dns) = &name.dns else { continue };
        let (Some(record), Some(nobody)) = (&dns.record, &dns.nobody) else { continue };
        let Some(wild) = nobody.heard.answer().filter(|answer| !answer.records.is_empty()) else {
            continue;
        };
        let there = texts(answer);
        if there.is_empty() || !there.iter().all(|text| wild.records.iter().any(|w| w == text)) {
            continue;
        }
        let Some(own) = by_authorities(dns, record, "TXT").next() else { continue };
        let grade = if name.is_fresh(case.at) { Grade::Possible } else { Grade::Certain };
        let record = record.trim_end_matches('.');
        let of = |cause| {
            about(cause, grade, name, evidence_of_dns_reply(own))
                .shown_by([evidence_of_dns_reply(nobody)])
                .with("RECORD", record)
                .with("VALUE", &answer.expected)
        };
        found.push(of(CauseId::D0118));
        // Our own value is nowhere then.
        found.push(of(CauseId::D0101));
    }
}

/// D01-13: a name and its wildcard are proven at one record, by two values.
fn one_value_of_two_is_kept(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case).filter(|(_, answer)| answer.reason.is_some()) {
        let there = texts(answer);
        let is_lost = !there.contains(answer.expected.as_str());
        let other = values_of_the_other(case, name).find(|value| there.contains(value));
        let is_wanted = name.kind == Some(ChallengeType::Dns01) && is_lost;
        let Some(other) = other.filter(|_| is_wanted) else { continue };
        let Some(look) = answer.observations.first() else { continue };
        let grade = if name.is_fresh(case.at) { Grade::Possible } else { Grade::Likely };
        let came = format!("{other:?}, which is the value of the other challenge");
        let shown = evidence_of_probe(look, came);
        found.push(about(CauseId::D0113, grade, name, shown).with("VALUE", &answer.expected));
    }
}

/// D01-07: a record that is written into the zone above a delegation is never seen.
fn challenge_is_a_zone_of_its_own(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case).filter(|(_, answer)| answer.reason.is_some()) {
        let Some(dns) = &name.dns else { continue };
        let (Some(record), Some(zone)) = (&dns.record, &dns.zone) else { continue };
        let is_own = zone.name.eq_ignore_ascii_case(record);
        if !is_own || texts(answer).contains(answer.expected.as_str()) {
            continue;
        }
        let at_parent = zone.at_parent.clone().unwrap_or_default();
        let servers = at_parent.iter().map(|server| bare(server)).collect::<Vec<_>>().join(", ");
        let parent = zone.parent.as_deref().map_or("the zone above", bare);
        let asked = format!("NS of {} at the servers of {parent}", bare(record));
        let own = answer.observations.first().zip(answer.reason.as_ref());
        found.push(
            about(
                CauseId::D0107,
                Grade::Likely,
                name,
                evidence_of_answer(asked, case.at, &servers),
            )
            .shown_by(own.map(|(look, reason)| evidence_of_probe(look, reason)))
            .with("RECORD", bare(record))
            .with("PARENT", parent)
            .with("SERVERS", servers),
        );
    }
}

/// D01-06: the record was written into a zone that the delegation does not lead to.
fn provider_has_several_zones(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case).filter(|(_, answer)| answer.reason.is_some()) {
        let zones = &name.provider_zones;
        if zones.len() < 2 || texts(answer).contains(answer.expected.as_str()) {
            continue;
        }
        let at_parent = name.dns.as_ref().and_then(|dns| dns.zone.as_ref()?.at_parent.as_ref());
        let is_delegated = |zone: &ProviderZone| {
            !zone.is_private && at_parent.is_some_and(|servers| *servers == zone.name_servers)
        };
        // If the zone that is written is the delegated zone, the other zones do not matter.
        let Some(written) = zones.iter().find(|zone| zone.is_written && !is_delegated(zone)) else {
            continue;
        };
        let is_known = zones.iter().any(is_delegated);
        let grade = if is_known || written.is_private { Grade::Certain } else { Grade::Likely };
        let words = |zone: &ProviderZone| match (&zone.name_servers[..], zone.is_private) {
            (_, true) => format!("{}, which is private", zone.id),
            ([], false) => zone.id.clone(),
            (servers, false) => {
                let servers: Vec<&str> = servers.iter().map(|server| bare(server)).collect();
                format!("{} at {}", zone.id, servers.join(", "))
            }
        };
        let shown = bare(&written.name);
        let asked = format!("zones {shown} at the provider");
        let listed = zones.iter().map(words).collect::<Vec<_>>().join("; ");
        let delegation = at_parent.map(|servers| {
            let servers: Vec<&str> = servers.iter().map(|server| bare(server)).collect();
            evidence_of_answer(
                format!("NS of {shown} at the servers above"),
                case.at,
                servers.join(", "),
            )
        });
        found.push(
            about(CauseId::D0106, grade, name, evidence_of_answer(asked, case.at, &listed))
                .shown_by(delegation)
                .with("ZONE", shown)
                .with("WRITTEN", words(written))
                .with("COUNT", zones.len().to_string()),
        );
    }
}

fn answer_is_too_large(case: &Case, found: &mut Vec<Finding>) {
    for (name, _) in by_record(case).filter(|(_, answer)| answer.reason.is_some()) {
        let Some(dns) = &name.dns else { continue };
        let Some(record) = &dns.record else { continue };
        for reply in by_authorities(dns, record, "TXT") {
            let DnsOutcome::TooLarge(why) = &reply.heard else { continue };
            found.push(
                about(CauseId::Dns08, Grade::Certain, name, evidence_of_dns_reply(reply))
                    .with("RECORD", record.trim_end_matches('.'))
                    .with("SERVER", reply.from.server())
                    .with("ANSWER", why),
            );
        }
    }
}

fn old_values_are_left(case: &Case, found: &mut Vec<Finding>) {
    let is_digest = |text: &str| {
        text.len() == DIGEST_LETTERS
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
    };
    let own: BTreeSet<&str> = by_record(case).map(|(_, answer)| answer.expected.as_str()).collect();
    for (name, answer) in by_record(case) {
        let left: Vec<&str> = texts(answer)
            .into_iter()
            .filter(|text| is_digest(text) && !own.contains(text))
            .collect();
        let Some(look) = answer.observations.first().filter(|_| left.len() >= MIN_LEFT_VALUES)
        else {
            continue;
        };
        let shown = evidence_of_probe(look, left.join(", "));
        let record = name.dns.as_ref().and_then(|dns| dns.record.clone()).unwrap_or_default();
        found.push(
            about(CauseId::Hyg01, Grade::Likely, name, shown)
                .with("COUNT", left.len().to_string())
                .with("RECORD", record.trim_end_matches('.')),
        );
    }
}

/// D01-21: a record below a name that only a wildcard answers for makes the name exist, without any records.
fn record_hides_the_host(case: &Case, found: &mut Vec<Finding>) {
    let by_record = |name: &&NameCase| name.kind.is_some_and(ChallengeType::is_by_record);
    for name in case.names.iter().filter(by_record) {
        let Some(dns) = &name.dns else { continue };
        let (Some(record), Some(given)) = (&dns.record, &dns.by_wildcard) else { continue };
        // An empty name matters only with a record of ours below it.
        let is_there = name.answer.as_ref().is_some_and(|answer| !texts(answer).is_empty());
        if given.is_hidden && !is_there {
            continue;
        }
        let asked = format!("A and AAAA of {}, and of a made-up name beside it", name.name);
        let records = given.records.join(", ");
        let came = if given.is_hidden { format!("nothing, and {records}") } else { records };
        let grade = if given.is_hidden { Grade::Certain } else { Grade::Likely };
        found.push(
            about(CauseId::D0121, grade, name, evidence_of_answer(asked, case.at, came))
                .with("HOST", &name.name)
                .with("RECORD", bare(record)),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{by, check, name};
    use super::super::zone::tests::{authority, reply, zone};
    use super::*;
    use crate::diagnosis::case::dns::{DnsCase, WildcardCase};
    use crate::model::observation::{Observation, Vantage};
    use crate::model::zone_look::ZoneState;

    const RECORD: &str = "_acme-challenge.www.example.com.";
    const NOBODY: &str = "kubectl-acme-nobody.www.example.com.";

    fn answer(expected: &str, texts: &[&str]) -> AnswerProbe {
        let said = match texts {
            [] => NameServerAnswer::NoName,
            texts => NameServerAnswer::Texts(texts.iter().map(|text| (*text).to_owned()).collect()),
        };
        let (name, zone) = (RECORD.to_owned(), "example.com.".to_owned());
        let address = "192.0.2.1:53".parse().ok();
        let server = NameServer { name: "ns1.example.com.".into(), address, said, ttl: None };
        AnswerProbe {
            expected: expected.to_owned(),
            observations: vec![Observation {
                vantage: Vantage::ThisMachine,
                at: "2026-11-24T22:00:00Z".parse().unwrap(),
                url: "dns:_acme-challenge.www.example.com?type=TXT".into(),
                hops: Vec::new(),
                seen: CheckResult::Records { name, zone, servers: vec![server] },
            }],
            reason: (!texts.contains(&expected)).then(|| "not yet".to_owned()),
            sighting: None,
        }
    }

    /// Builds a case with a server's replies for the record and for a name that does not exist.
    fn with_record(texts: &[&str], own: VantageReply, nobody: Option<VantageReply>) -> Case {
        by(ChallengeType::Dns01, |name| {
            name.answer = Some(answer("value", texts));
            let (record, replies) = (Some(RECORD.to_owned()), vec![own]);
            name.dns = Some(DnsCase { record, replies, nobody, ..DnsCase::default() });
        })
    }

    fn given(name: &str, texts: &[&str]) -> VantageReply {
        reply(authority(1), name, "TXT", texts)
    }

    fn alias(name: &str, target: &str) -> VantageReply {
        let mut reply = given(name, &[]);
        if let DnsOutcome::Reply(reply) = &mut reply.heard {
            reply.aliases = vec![target.to_owned()];
        }
        reply
    }

    #[test]
    fn a_wildcard_is_known_by_a_name_that_nobody_has_made() {
        let spf = &["v=spf1 -all"];
        let wild = || Some(given(NOBODY, spf));
        check(&with_record(spf, given(RECORD, spf), wild()), &[CauseId::D0101, CauseId::D0118]);
        check(&with_record(spf, given(RECORD, spf), None), &[CauseId::D0111]);
        check(&with_record(&["value"], given(RECORD, &["value"]), wild()), &[]);
        let led =
            |target: &str| with_record(&[], alias(RECORD, "a.test."), Some(alias(NOBODY, target)));
        check(&led("a.test."), &[CauseId::D0108]);
        check(&led("b.test."), &[CauseId::D0101]);
    }

    #[test]
    fn one_value_where_two_are_needed_is_told() {
        let both = |texts: &[&str]| {
            let mut case = with_record(texts, given(RECORD, texts), None);
            let mut other = name("*.www.example.com", Some(ChallengeType::Dns01));
            other.answer = Some(answer("other", texts));
            case.names.push(other);
            case
        };
        check(&both(&["other"]), &[CauseId::D0113]);
        check(&both(&["other", "value"]), &[]);
    }

    #[test]
    fn zones_of_one_name_at_the_provider_are_compared_with_the_delegation() {
        let listed = |id: &str, is_private: bool, servers: &[&str], is_written: bool| {
            let (id, name) = (id.to_owned(), "example.com.".to_owned());
            let zone = ProviderZone { id, name, is_private, name_servers: Vec::new(), is_written };
            zone.with_servers(servers.iter().copied())
        };
        let of = |zones: Vec<ProviderZone>| {
            let mut case = with_record(&[], given(RECORD, &[]), None);
            let name = &mut case.names[0];
            name.provider_zones = zones;
            name.dns = name.dns.take().map(|dns| DnsCase { zone: Some(zone()), ..dns });
            case
        };
        let own = ["NS2.example.com", "ns1.example.com."];
        let old = ["ns-1.old.example", "ns-2.old.example"];
        let public = |is_written| listed("Z1", false, &own, is_written);
        check(&of(vec![public(false), listed("Z2", false, &old, true)]), &[CauseId::D0106]);
        check(&of(vec![public(false), listed("Z3", true, &[], true)]), &[CauseId::D0106]);
        check(&of(vec![public(true), listed("Z3", true, &[], false)]), &[CauseId::D0101]);
        check(&of(vec![listed("Z2", false, &old, true)]), &[CauseId::D0101]);
    }

    #[test]
    fn a_record_that_is_a_zone_of_its_own_is_told() {
        let of = |apex: &str, texts: &[&str]| {
            let mut case = with_record(texts, given(RECORD, texts), None);
            let own = zone();
            let at_parent = own.at_parent.clone();
            let zone = Some(ZoneState { name: apex.into(), by_resolvers: None, at_parent, ..own });
            let name = &mut case.names[0];
            name.dns = name.dns.take().map(|dns| DnsCase { zone, ..dns });
            case
        };
        check(&of(RECORD, &[]), &[CauseId::D0107]);
        check(&of("example.com.", &[]), &[CauseId::D0101]);
        check(&of(RECORD, &["value"]), &[]);
    }

    #[test]
    fn a_host_that_only_a_wildcard_answers_for_is_told_before_its_record_hides_it() {
        let of = |texts: &[&str], is_hidden: bool| {
            let mut case = with_record(texts, given(RECORD, texts), None);
            let name = &mut case.names[0];
            let by_wildcard = Some(WildcardCase { records: vec!["192.0.2.1".into()], is_hidden });
            name.dns = name.dns.take().map(|dns| DnsCase { by_wildcard, ..dns });
            case
        };
        check(&of(&["value"], true), &[CauseId::D0121]);
        check(&of(&["value"], false), &[CauseId::D0121]);
        check(&of(&[], true), &[CauseId::D0101]);
        let before = of(&[], false);
        check(&before, &[CauseId::D0101, CauseId::D0121]);
        assert_eq!(super::super::judge(&before)[1].facts["HOST"], "www.example.com");
    }

    #[test]
    fn an_answer_that_is_too_large_is_told() {
        let said = |heard| with_record(&[], VantageReply { heard, ..given(RECORD, &[]) }, None);
        check(
            &said(DnsOutcome::TooLarge("is too large".into())),
            &[CauseId::Dns08, CauseId::D0101],
        );
        check(&said(given(RECORD, &[]).heard), &[CauseId::D0101]);
    }

    #[test]
    fn a_server_that_serves_the_zone_and_not_the_record_is_told_apart() {
        let of = |is_served: bool| {
            let mut case = with_record(&[], given(RECORD, &[]), None);
            let name = &mut case.names[0];
            if let Some(look) = &mut name.answer
                && let CheckResult::Records { servers, .. } = &mut look.observations[0].seen
            {
                servers[0].said = NameServerAnswer::Code("SERVFAIL".into());
            }
            let zone = is_served.then(zone);
            name.dns = name.dns.take().map(|dns| DnsCase { zone, ..dns });
            case
        };
        check(&of(true), &[CauseId::D0117]);
        check(&of(false), &[CauseId::Dns03]);
    }

    #[test]
    fn values_that_no_order_needs_are_told_where_there_are_several() {
        let old = ["a", "b"].map(|letter| letter.repeat(DIGEST_LETTERS));
        let both = ["value", &old[0], &old[1]];
        check(&with_record(&both, given(RECORD, &both), None), &[CauseId::Hyg01]);
        check(&with_record(&both[..2], given(RECORD, &both[..2]), None), &[]);
    }
}
