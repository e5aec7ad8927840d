//! Views of a name that differ from the CA's view: resolvers with outdated answers, inner copies of a zone, zones that are
//! inside only, clusters that do not reach themselves.

use jiff::SignedDuration;

use super::dns01::by_record;
use super::http01::has_failed_at_ca;
use super::open_path::named;
use super::sights::{came, probed_address};
use super::zone::in_dns;
use crate::diagnosis::case::dns::{DnsCase, DnsVantage, VantageReply};
use crate::diagnosis::case::name::{AddressProbe, LookUp, NameCase};
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
    evidence_of_probe, stored,
};
use crate::diagnosis::words::foreign;
use crate::model::ChallengeType;
use crate::model::cause::Symptom;
use crate::model::observation::{CheckResult, Observation};

pub(super) const RULES: &[FaultRule] = &[
    record_is_seen_from_one_side,
    record_is_seen_from_here_alone,
    inner_addresses_lead_elsewhere,
    cluster_looks_elsewhere,
];

/// Age of a Challenge from which the message of a self-check is more than a matter of time: cert-manager checks a
/// record again after a minute, and its caches expire within a few minutes.
const STALE_AFTER: SignedDuration = SignedDuration::from_mins(5);
/// Counterpart of `STALE_AFTER` for a Challenge by a record, which may have waited for its turn before it was put up.
const RECORD_STALE_AFTER: SignedDuration = SignedDuration::from_mins(15);

/// Returns the replies of resolvers about the record: this machine's resolvers, or those elsewhere.
fn of_record(dns: &DnsCase, is_elsewhere: bool) -> impl Iterator<Item = &VantageReply> {
    let record = dns.record.as_deref().unwrap_or_default();
    dns.asked(record, "TXT").filter(move |reply| match reply.from {
        DnsVantage::Resolver(_) => !is_elsewhere,
        DnsVantage::Other(_) => is_elsewhere,
        DnsVantage::Authority { .. } => false,
    })
}

fn lacks(reply: &VantageReply) -> bool {
    reply.heard.answer().is_some_and(|answer| answer.records.is_empty())
}

fn record_is_seen_from_one_side(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        let Some(dns) = &name.dns else { continue };
        let record = dns.record.as_deref().unwrap_or_default().trim_end_matches('.');
        let has = |reply: &&VantageReply| {
            reply.heard.answer().is_some_and(|reply| reply.records.contains(&answer.expected))
        };
        let of = |cause, grade, reply: &VantageReply| {
            Finding::new(cause, grade, name.shown(), evidence_of_dns_reply(reply))
                .with("DOMAIN", &name.name)
                .with("RECORD", record)
                .with("RESOLVER", reply.from.server())
        };
        let look = answer.observations.first();
        let inner = || of_record(dns, false);
        let outer = || of_record(dns, true);
        if let Some(reason) = &answer.reason {
            // A resolver elsewhere has the record that this side lacks.
            let Some(reply) = outer().find(has) else { continue };
            let own = look.map(|look| evidence_of_probe(look, reason));
            found.push(of(CauseId::D0116, Grade::Certain, reply).shown_by(own));
            continue;
        }
        let own = || look.map(|look| evidence_of_probe(look, "every name server has it"));
        let absent = |reply: &VantageReply| match reply.heard.answer().and_then(|a| a.absent_for) {
            Some(seconds) => format!("{seconds} s more"),
            None => "as long as its zone says".to_owned(),
        };
        if let Some(reply) = inner().find(|reply| lacks(reply)) {
            let finding = of(CauseId::D0103, Grade::Certain, reply).shown_by(own());
            found.push(finding.with("SECONDS", absent(reply)));
        } else if let Some(reply) = outer().find(|reply| lacks(reply)) {
            // If all resolvers elsewhere lack the record, the reason is not an outdated answer of one resolver.
            let grade = if outer().all(lacks) { Grade::Likely } else { Grade::Possible };
            found.push(of(CauseId::D0119, grade, reply).shown_by(own()));
        }
    }
}

fn inner_addresses_lead_elsewhere(case: &Case, found: &mut Vec<Finding>) {
    for (name, dns) in in_dns(case) {
        if name.kind.is_some_and(|kind| kind != ChallengeType::Http01) {
            continue;
        }
        // If these resolvers fail, a CA's resolvers fail, too (DNS-01).
        if matches!(name.addresses, LookUp::Code(_)) && !name.is_withheld() {
            continue;
        }
        // The CA has asked the outer addresses, and has not seen the answer there either.
        if case.certificates.iter().any(|of| has_failed_at_ca(of, name)) {
            continue;
        }
        let Some((grade, outer)) = outer_is_better(name) else { continue };
        let domain = format!("{}.", name.name);
        let of = |is_inner: bool| {
            let replies = ["A", "AAAA"].into_iter().flat_map(|kind| dns.asked(&domain, kind));
            replies.filter(move |reply| {
                let has = reply.heard.answer().is_some_and(|answer| !answer.records.is_empty());
                matches!(reply.from, DnsVantage::Resolver(_)) == is_inner && (has || is_inner)
            })
        };
        let inner = match &name.addresses {
            LookUp::Found(all) => {
                all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
            }
            _ => "no address".to_owned(),
        };
        let first = evidence_of_answer(format!("A and AAAA of {}", name.name), case.at, &inner);
        found.push(
            Finding::new(CauseId::Http09, grade, name.shown(), first)
                .shown_by(of(true).take(2).chain(of(false).take(2)).map(evidence_of_dns_reply))
                .with("DOMAIN", &name.name)
                .with("WHERE", "from here")
                .with("INNER", inner)
                .with("OUTER", outer),
        );
    }
}

/// HTTP-08, HTTP-09: the answer is right from here; inside the cluster no server answers, or another server does.
fn cluster_looks_elsewhere(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        if name.kind.is_some_and(|kind| kind != ChallengeType::Http01) {
            continue;
        }
        let is_up = |look: &AddressProbe| {
            let has_replied = matches!(look.observation.seen, CheckResult::Reply { .. });
            look.is_answer || (!look.is_expected && has_replied)
        };
        if name.looks.is_empty() || !name.looks.iter().all(is_up) {
            continue;
        }
        let Some((cause, grade, first)) = inside_fault(case, name) else { continue };
        let outside = name.looks.iter();
        let outside =
            outside.map(|l| evidence_of_probe(&l.observation, came(&l.observation, l.is_answer)));
        // Without a Pod's probe, the self-check is the first evidence already.
        let said = name.inside.as_ref().and_then(|_| self_check(case, name));
        let said = said.map(|(evidence, _)| evidence);
        let outer: Vec<String> = name.looks.iter().map(|l| l.address.ip().to_string()).collect();
        let inner = name.inside.as_ref().map(|look| probed_address(&look.observation));
        let inner = inner.filter(|address| !address.is_empty());
        let is_by_words = cause == CauseId::Http09 && name.inside.is_none();
        let detail = match own_address(case, &outer) {
            _ if is_by_words => format!("cert-manager says: {}", first.came),
            Some(of) => format!("{} is the address of {of}", outer.join(", ")),
            None => format!("{} answers requests from outside", outer.join(", ")),
        };
        let finding = Finding::new(cause, grade, name.shown(), first)
            .shown_by(outside)
            .shown_by(said)
            .with("DOMAIN", &name.name)
            .with("DETAIL", detail);
        // No Pod has asked for the addresses that the message is about.
        found.push(if is_by_words {
            finding
        } else {
            finding
                .with("WHERE", "from inside the cluster")
                .with("INNER", inner.unwrap_or_else(|| "no address".to_owned()))
                .with("OUTER", outer.join(", "))
        });
    }
}

/// Returns the fault as seen from inside: by a Pod's probe, else by the message of cert-manager's self-check.
fn inside_fault(case: &Case, name: &NameCase) -> Option<(CauseId, Grade, Evidence)> {
    let Some(inside) = &name.inside else {
        let (said, symptom) = self_check(case, name)?;
        let is_unreached =
            matches!(symptom, Symptom::ConnectionRefused | Symptom::NoReply | Symptom::Unreachable);
        let of_http = ["HTTP_PROXY", "http_proxy"];
        let mut proxies = case.control.controllers.iter().flat_map(|of| &of.proxies);
        let through_proxy = proxies.any(|name| of_http.contains(&name.as_str()));
        // A message from before the answer was there is outdated.
        let is_known = is_unreached && !through_proxy && !name.is_fresh(case.at);
        // The self-check has met another server for long, or finds no address.
        let look = name.looks.first().map(|look| &look.observation);
        let is_elsewhere =
            !is_unreached && !through_proxy && is_of_long(case, name, look, STALE_AFTER);
        let cause = match (is_known, is_elsewhere) {
            (true, _) => CauseId::Http08,
            (false, true) if tells_of_another_place(symptom) => CauseId::Http09,
            _ => return None,
        };
        return Some((cause, Grade::Likely, said));
    };
    let shown = evidence_of_probe(&inside.observation, came(&inside.observation, inside.is_answer));
    let cause = match &inside.observation.seen {
        CheckResult::Nothing { symptom: Some(Symptom::NoAddress), .. } => CauseId::Http09,
        CheckResult::Nothing { .. } => CauseId::Http08,
        CheckResult::Reply { .. } | CheckResult::Redirect { .. } if !inside.is_answer => {
            let is_elsewhere =
                |address: &str| name.looks.iter().all(|look| look.address.to_string() != address);
            let is_up = name.looks.iter().any(|look| look.is_answer);
            let address = probed_address(&inside.observation);
            (is_up && !address.is_empty() && is_elsewhere(&address)).then_some(CauseId::Http09)?
        }
        _ => return None,
    };
    Some((cause, Grade::Certain, shown))
}

/// Reports whether an answer has been up for so long that cert-manager has checked it many times: since the creation
/// of its Service, else of the Challenge.
fn is_of_long(
    case: &Case,
    name: &NameCase,
    look: Option<&Observation>,
    long: SignedDuration,
) -> bool {
    let Some(pending) = &name.pending else { return false };
    let services = case.cluster_path.iter().flat_map(|path| &path.services);
    let mut own = services.filter(|it| it.metadata.is_controlled_by(&pending.metadata.uid));
    let metadata = own.next().map_or(&pending.metadata, |service| &service.metadata);
    let since = metadata.creation_timestamp;
    // The time of the probe from here is the best known time until which the answer has been up.
    let until = look.map_or(case.at, |look| look.at);
    since.is_some_and(|since| until.duration_since(since.timestamp()) > long)
}

/// Reports whether a self-check was led to another place than the server that has the answer as seen from here.
fn tells_of_another_place(symptom: Symptom) -> bool {
    matches!(
        symptom,
        Symptom::NoAddress
            | Symptom::DanglingAlias
            | Symptom::NotFound
            | Symptom::WrongAnswer
            | Symptom::Forbidden
            | Symptom::ServerError
            | Symptom::NameServersFail
            | Symptom::ResolverSilent
            | Symptom::NotHttp
    )
}

/// D01-15, D01-16: every name server has the record as seen from here, and cert-manager's self-check has said for long that
/// the record is missing, or that it cannot ask.
fn record_is_seen_from_here_alone(case: &Case, found: &mut Vec<Finding>) {
    if case.driver != DriverCase::CertManager {
        return;
    }
    for (name, answer) in by_record(case) {
        let Some(pending) = name.pending.as_ref().filter(|_| answer.reason.is_none()) else {
            continue;
        };
        let reason = &pending.status.reason;
        let symptom = foreign::sighting(pending, reason).map(|sighting| sighting.symptom);
        let cause = match symptom {
            Some(Symptom::ResolverSilent) => CauseId::D0115,
            _ if foreign::says_record_is_missing(reason) => CauseId::D0116,
            Some(Symptom::NotDelegated | Symptom::NameServersFail | Symptom::LameServer) => {
                CauseId::D0116
            }
            _ => continue,
        };
        let own = answer.observations.first();
        if !pending.status.presented || !is_of_long(case, name, own, RECORD_STALE_AFTER) {
            continue;
        }
        let probed_address = format!("Challenge {}: status.reason", pending.name());
        let flags = ["dns01-recursive-nameservers", "dns01-recursive-nameservers-only"];
        let set = case.control.controllers.iter().flat_map(|of| {
            flags.into_iter().filter_map(move |flag| Some((of, flag, of.flags.get(flag)?)))
        });
        let set = set.map(|(of, flag, value)| {
            stored(format!("Deployment {}: --{flag}", of.name), case.at, value)
        });
        let own = own.map(|look| evidence_of_probe(look, "every name server has it"));
        found.push(
            Finding::new(
                cause,
                Grade::Likely,
                name.shown(),
                stored(probed_address, case.at, reason),
            )
            .shown_by(own)
            .shown_by(set)
            .meaning(CauseSeverity::Error)
            .with("DOMAIN", &name.name)
            .with("NAMESPACE", &pending.metadata.namespace)
            .with("DETAIL", format!("cert-manager says: {reason}")),
        );
    }
}

/// Returns the message of cert-manager's self-check, with its symptom.
fn self_check(case: &Case, name: &NameCase) -> Option<(Evidence, Symptom)> {
    let pending = name.pending.as_ref().filter(|_| case.driver == DriverCase::CertManager)?;
    let reason = &pending.status.reason;
    let symptom = foreign::sighting(pending, reason)?.symptom;
    let probed_address = format!("Challenge {}: status.reason", pending.name());
    Some((stored(probed_address, case.at, reason), symptom))
}

/// Returns the object of the cluster that has one of the addresses.
fn own_address(case: &Case, addresses: &[String]) -> Option<String> {
    let path = case.cluster_path.as_ref()?;
    let is_it = |all: &[&str]| all.iter().any(|one| addresses.iter().any(|known| known == one));
    let mut services = path.balancers.iter();
    let service = services.find(|one| is_it(&one.status.addresses()));
    let mut ingresses = path.ingresses.iter();
    let mut ingress = || ingresses.find(|one| is_it(&one.addresses()));
    service
        .map(|one| named("Service", &one.metadata))
        .or_else(|| ingress().map(|one| named("Ingress", &one.metadata)))
}

/// Returns the addresses that others get, if the answer is right there, or may be, and is not right here.
fn outer_is_better(name: &NameCase) -> Option<(Grade, String)> {
    let outer: Vec<String> = name.outer.iter().map(|look| look.address.ip().to_string()).collect();
    let shown = outer.join(", ");
    if outer.is_empty() || name.looks.iter().any(|look| look.is_answer) {
        return None;
    }
    if name.outer.iter().any(|look| look.is_expected && look.is_answer) {
        return Some((Grade::Certain, shown));
    }
    // An answer that had to be at the outer addresses, and is not, clears the inner addresses.
    if name.outer.iter().any(|look| look.is_expected) {
        return None;
    }
    let is_absent =
        matches!(name.addresses, LookUp::NoName(_) | LookUp::NoRecord(_) | LookUp::Dangling { .. })
            || name.is_withheld();
    let is_inner =
        matches!(&name.addresses, LookUp::Found(all) if all.len() == name.reserved.len());
    (is_absent || is_inner).then_some((Grade::Likely, shown))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{by, check};
    use super::super::zone::tests::{authority, reply};
    use super::*;
    use crate::diagnosis::case::name::{AnswerProbe, InsideProbe};
    use crate::model::observation::{Hop, Vantage};

    const RECORD: &str = "_acme-challenge.www.example.com.";

    fn observation() -> Observation {
        Observation {
            vantage: Vantage::ThisMachine,
            at: "2026-11-24T22:00:00Z".parse().unwrap(),
            url: "dns:_acme-challenge.www.example.com?type=TXT".into(),
            hops: Vec::new(),
            seen: CheckResult::NoLook { why: "nobody looked".into(), symptom: None },
        }
    }

    /// The record as seen from here, by the resolver here and by one elsewhere.
    fn record(is_there: bool, inner: &[&str], outer: &[&str]) -> Case {
        by(ChallengeType::Dns01, |name| {
            name.answer = Some(AnswerProbe {
                expected: "value".into(),
                observations: vec![observation()],
                reason: (!is_there).then(|| "not yet".to_owned()),
                sighting: None,
            });
            let inner = reply(DnsVantage::Resolver("10.0.0.53:53".into()), RECORD, "TXT", inner);
            let outer = reply(DnsVantage::Other("192.0.2.53:53".into()), RECORD, "TXT", outer);
            let replies = vec![inner, outer];
            let record = Some(RECORD.to_owned());
            name.dns = Some(DnsCase { record, replies, ..DnsCase::default() });
        })
    }

    #[test]
    fn who_does_not_see_the_record_is_told() {
        check(&record(true, &["value"], &["value"]), &[]);
        check(&record(true, &[], &["value"]), &[CauseId::D0103]);
        check(&record(true, &["value"], &[]), &[CauseId::D0119]);
        check(&record(false, &[], &["value"]), &[CauseId::D0116]);
        check(&record(false, &[], &[]), &[]);
    }

    /// A name that has no address here, and elsewhere one where the answer is, is not, or was not to be.
    fn address(is_expected: bool, is_answer: bool) -> Case {
        by(ChallengeType::Http01, |name| {
            name.is_looked_for_in_dns = true;
            name.addresses = LookUp::NoName("no such host www.example.com".into());
            let outer = AddressProbe {
                address: "192.0.2.80:80".parse().unwrap(),
                observation: observation(),
                expected: "value".into(),
                is_expected,
                is_answer,
                sighting: None,
                disagreement: None,
                web: None,
                arrivals: Vec::new(),
            };
            let known = reply(authority(1), "www.example.com.", "A", &["192.0.2.80"]);
            name.outer = vec![outer];
            name.dns = Some(DnsCase { replies: vec![known], ..DnsCase::default() });
        })
    }

    #[test]
    fn an_inner_address_is_told_where_the_outer_one_may_be_well() {
        check(&address(true, true), &[CauseId::Http09]);
        check(&address(false, false), &[CauseId::Http09]);
        check(&address(true, false), &[CauseId::Http01]);
    }

    /// A name whose answer is seen from here, and what is seen inside the cluster.
    fn inside(seen: Option<CheckResult>, is_answer: bool) -> Case {
        by(ChallengeType::Http01, |name| {
            let mut look = crate::diagnosis::rules::tests::look("192.0.2.80:80", true);
            look.observation.seen = CheckResult::Reply {
                status: 200,
                body: "t.k".into(),
                truncated: false,
                is_declined: false,
            };
            look.is_answer = true;
            name.looks = vec![look];
            name.inside = seen.map(|seen| {
                let hop = Hop {
                    url: "http://x/".into(),
                    address: "10.0.0.1:80".parse().ok(),
                    status: None,
                };
                let observation = Observation { seen, hops: vec![hop], ..observation() };
                InsideProbe { observation, is_answer, sighting: None }
            });
        })
    }

    #[test]
    fn a_cluster_that_does_not_reach_the_name_is_told_from_one_that_is_led_elsewhere() {
        let nothing =
            |symptom| Some(CheckResult::Nothing { why: "nothing".into(), symptom: Some(symptom) });
        let reply = |status| {
            Some(CheckResult::Reply {
                status,
                body: String::new(),
                truncated: false,
                is_declined: false,
            })
        };
        check(&inside(None, false), &[]);
        check(&inside(reply(200), true), &[]);
        check(&inside(nothing(Symptom::Unreachable), false), &[CauseId::Http08]);
        check(&inside(nothing(Symptom::NoAddress), false), &[CauseId::Http09]);
        check(&inside(reply(404), false), &[CauseId::Http09]);
    }

    #[test]
    fn what_the_self_check_says_counts_where_it_is_right_from_here() {
        let of = |reason: &str, change: fn(&mut Case)| {
            let mut case = inside(None, false);
            case.driver = DriverCase::CertManager;
            super::super::control_plane::tests::says(&mut case, reason);
            case.names[0].pending = case.certificates[0].challenges.first().cloned();
            change(&mut case);
            case
        };
        let refused = "failed to perform self check GET request 'http://x/': Get \"http://x/\": dial tcp 192.0.2.80:80: connect: connection refused";
        check(&of(refused, |_| ()), &[CauseId::Http08]);
        check(&of(refused, |case| case.driver = DriverCase::Nobody), &[]);
        check(&of("wrong status code '404', expected '200'", |_| ()), &[]);
    }
}
