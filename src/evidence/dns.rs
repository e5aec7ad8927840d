//! A name in DNS: its zone and delegation, and the replies of each resolver and name server.
//!
//! Resolvers are asked for a challenge record only after the zone's servers have it: they would cache its absence.

use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::sleep;

use super::investigator::Investigator;
use super::patience::no_answer;
use crate::diagnosis::case::dns::{
    DnsCase, DnsVantage, UpdateServerCase, VantageReply, WildcardCase, WithoutSoa,
};
use crate::diagnosis::case::name::NameCase;
use crate::dns::lookup::server_addresses;
use crate::dns::server::Server;
use crate::dns::wildcard::UNUSED_LABEL;
use crate::dns::wire::Recursion;
use crate::dns::zone::Zones;
use crate::dns::{LookupError, RecordType};
use crate::model::ChallengeType;
use crate::model::challenge::record_name;
use crate::model::zone_look::{DnsOutcome, ZoneState};
use crate::probes::dns::zones_of;
use crate::solvers::dns01::manual::is_a_persons;

/// Largest number of a zone's servers, and of resolvers, that are asked each question.
const MAX_SERVERS: usize = 6;
const MAX_RESOLVERS: usize = 3;
/// Repeated lookups of a record that was found: how many, after which pause each, and at how many servers.
const RECORD_REPEATS: u32 = 2;
const RECORD_REPEAT_PAUSE: Duration = Duration::from_secs(1);
const MAX_REPEAT_SERVERS: usize = 2;

/// Looks up the zone of a name and the name itself; `None` for an IP address, and if flags give the addresses.
pub(super) async fn survey(by: &Investigator, name: &NameCase) -> Option<DnsCase> {
    let by_record = name.kind.is_some_and(ChallengeType::is_by_record);
    let overrides = &by.fetcher.overrides;
    let is_led = !overrides.hosts.is_empty() || !overrides.handshakes.is_empty();
    if name.name.parse::<IpAddr>().is_ok() || (is_led && !by_record) {
        return None;
    }
    let zones = zones(by, name)?;
    let (record, domain) = (record(name), format!("{}.", name.name));
    let nobody = format!("{UNUSED_LABEL}.{domain}");
    let look = async {
        let name = record.as_ref().unwrap_or(&nobody);
        let zone = by.outside(zone_look(by, &zones, name)).await.ok().and_then(Result::ok);
        // Only the records of DNS-01 need the zone.
        let unfound =
            if by_record { by.outside(zones.soa_fault(name)).await.ok().flatten() } else { None };
        let without_soa = match unfound {
            Some(why) => without_soa(by, &zones, &domain, why.to_string()).await,
            None => None,
        };
        (zone, without_soa)
    };
    let resolvers = resolvers(&zones, by);
    let questions: Vec<SurveyQuestion> = resolvers
        .iter()
        .flat_map(|at| {
            [RecordType::A, RecordType::AAAA]
                .map(|kind| SurveyQuestion::of(at, (&domain, kind), Recursion::DesiredValidated))
        })
        .collect();
    let at_resolvers = ask(by, &zones, questions);
    let ((zone, without_soa), mut replies) = tokio::join!(look, at_resolvers);
    let again = questions_to_failing(&resolvers, &domain, &replies);
    let authorities = zone.as_ref().map(authorities).unwrap_or_default();
    // The zone of a record may be another one than that of the name.
    let is_in_zone = zone.as_ref().is_some_and(|zone| is_below(&domain, &zone.name));
    let mut at_zone: Vec<(&str, RecordType)> = Vec::new();
    if is_in_zone {
        at_zone
            .extend([RecordType::A, RecordType::AAAA, RecordType::CAA].map(|k| (&domain[..], k)));
    }
    at_zone.extend(record.as_deref().map(|record| (record, RecordType::TXT)));
    let own = |at, question| SurveyQuestion::of(at, question, Recursion::Unwanted);
    let questions: Vec<SurveyQuestion> = authorities
        .iter()
        .flat_map(|at| at_zone.iter().map(move |question| own(at, *question)))
        .chain(again)
        .collect();
    let canary = authorities.first().filter(|_| is_in_zone && by_record);
    let canary = canary.map(|at| own(at, (&nobody, RecordType::TXT)));
    let covered = async {
        if !(is_in_zone && by_record) {
            return None;
        }
        let given = by.outside(zones.by_wildcard(&domain)).await.ok().flatten()?;
        Some(WildcardCase { records: given.records, is_hidden: given.is_hidden })
    };
    let (more, canary, by_wildcard) =
        tokio::join!(ask(by, &zones, questions), ask(by, &zones, canary), covered);
    replies.extend(more);
    let nobody = canary.into_iter().next();
    let (later, at_update_server) = (Vec::new(), None);
    Some(DnsCase {
        record,
        zone,
        without_soa,
        replies,
        later,
        nobody,
        at_update_server,
        by_wildcard,
    })
}

/// Asks the server of the solver's dynamic updates for the record and its zone; `None` if the server is one of the
/// zone's own, or there is none (a person makes the record). The server may be silent: nothing else may wait for it.
pub(super) async fn at_update_server(
    by: &Investigator,
    name: &NameCase,
    case: &DnsCase,
) -> Option<UpdateServerCase> {
    let challenge = name.pending.as_ref().filter(|challenge| !is_a_persons(challenge))?;
    let (zone, zones) = (case.zone.as_ref()?, zones(by, name)?);
    let rfc2136 = challenge.spec.solver.dns01.as_ref()?.rfc2136.as_ref()?;
    let found = by.outside(server_addresses(&rfc2136.nameserver, &*by.fetcher.resolver)).await;
    let address = found.ok()?.ok()?.into_iter().next()?;
    if zone.servers.iter().any(|server| server.address == Some(address)) {
        return None;
    }
    let from = DnsVantage::Authority { name: rfc2136.nameserver.clone(), address };
    let at = (from, Server::Plain(address));
    let record = challenge.spec.record_name();
    let of = |name: &str, kind| SurveyQuestion::of(&at, (name, kind), Recursion::Unwanted);
    let zone = &zone.name;
    let questions =
        [of(&record, RecordType::TXT), of(zone, RecordType::SOA), of(zone, RecordType::NS)];
    let mut replies = ask(by, &zones, questions).await.into_iter();
    let (record, soa, servers) = (replies.next()?, replies.next()?, replies.next()?);
    let soa = soa.heard.answer().and_then(|answer| answer.records.first().cloned());
    // mname, rname, serial, refresh, retry, expire, minimum (RFC 1035 §3.3.13).
    let serial = soa.and_then(|soa| soa.split_whitespace().nth(2)?.parse().ok());
    let name_servers = servers.heard.answer().map(|it| it.records.clone()).unwrap_or_default();
    Some(UpdateServerCase { address, record, serial, name_servers })
}

/// Queries the zone around a name; the servers of one zone are queried once, however many names it has.
async fn zone_look(by: &Investigator, zones: &Zones, name: &str) -> Result<ZoneState, LookupError> {
    let around = zones.zone_around(name).await?;
    let by_whom: Vec<String> = zones.resolvers().iter().map(ToString::to_string).collect();
    let question = format!("{} by {}", around.name().to_ascii_lowercase(), by_whom.join(" "));
    let look = by.zone_looks.answer(&question, zones.look_at_zone(&around)).await;
    Ok(around.as_looked_at(look))
}

/// Asks resolvers for the record once it is there; resolvers elsewhere also once a missing record is no longer fresh.
pub(super) async fn record_elsewhere(
    by: &Investigator,
    name: &NameCase,
    case: &DnsCase,
) -> Vec<VantageReply> {
    let (Some(answer), Some(record), Some(zones)) = (&name.answer, &case.record, zones(by, name))
    else {
        return Vec::new();
    };
    let is_there = answer.reason.is_none();
    let questions = resolvers(&zones, by).into_iter().filter(|(from, _)| match from {
        DnsVantage::Other(_) => is_there || !name.is_fresh(by.now),
        DnsVantage::Resolver(_) | DnsVantage::Authority { .. } => is_there,
    });
    let questions: Vec<SurveyQuestion> = questions
        .map(|at| SurveyQuestion::of(&at, (record, RecordType::TXT), Recursion::DesiredValidated))
        .collect();
    ask(by, &zones, questions).await
}

/// Asks servers that had the record for it again over the next seconds: something may delete it.
pub(super) async fn record_later(
    by: &Investigator,
    name: &NameCase,
    case: &DnsCase,
) -> Vec<VantageReply> {
    let (Some(answer), Some(record), Some(zones)) = (&name.answer, &case.record, zones(by, name))
    else {
        return Vec::new();
    };
    let has = |reply: &&VantageReply| {
        reply.heard.answer().is_some_and(|reply| reply.records.contains(&answer.expected))
    };
    let had = case.asked(record, "TXT").filter(has);
    let servers: Vec<(DnsVantage, Server)> = had
        .filter_map(|reply| match &reply.from {
            DnsVantage::Authority { address, .. } => {
                Some((reply.from.clone(), Server::Plain(*address)))
            }
            DnsVantage::Resolver(_) | DnsVantage::Other(_) => None,
        })
        .take(MAX_REPEAT_SERVERS)
        .collect();
    let mut all = Vec::new();
    for look in 1..=RECORD_REPEATS {
        if servers.is_empty() {
            break;
        }
        sleep(RECORD_REPEAT_PAUSE).await;
        let questions = servers
            .iter()
            .map(|at| SurveyQuestion::of(at, (record, RecordType::TXT), Recursion::Unwanted));
        let at = by.now.saturating_add(RECORD_REPEAT_PAUSE * look).unwrap_or(by.now);
        let replies = ask(by, &zones, questions).await;
        all.extend(replies.into_iter().map(|reply| VantageReply { at, ..reply }));
    }
    all
}

/// Addresses of a name from resolvers other than this machine's; from the zone's servers if those gave no address.
pub(super) fn addresses_elsewhere(name: &str, case: &DnsCase) -> Vec<IpAddr> {
    let domain = format!("{name}.");
    let of = |is_meant: fn(&DnsVantage) -> bool| {
        let replies = ["A", "AAAA"].into_iter().flat_map(|kind| case.asked(&domain, kind));
        let replies = replies.filter(move |reply| is_meant(&reply.from));
        let records = replies.filter_map(|reply| reply.heard.answer()).flat_map(|r| &r.records);
        let mut all: Vec<IpAddr> = records.filter_map(|text| text.parse().ok()).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    let others = of(|from| matches!(from, DnsVantage::Other(_)));
    if others.is_empty() { of(|from| matches!(from, DnsVantage::Authority { .. })) } else { others }
}

/// Resolvers for a name: its solver may configure its own.
fn zones(by: &Investigator, name: &NameCase) -> Option<Zones> {
    match &name.pending {
        Some(challenge) => zones_of(challenge, &by.zones).ok(),
        None => Some(by.zones.clone()),
    }
}

/// Absolute name of the record that proves a name; `None` if its challenge type uses no record.
fn record(name: &NameCase) -> Option<String> {
    let kind = name.kind.filter(|kind| kind.is_by_record())?;
    Some(match &name.pending {
        Some(challenge) => challenge.spec.record_name(),
        None => record_name(kind, &name.name, ""),
    })
}

/// Finds the nearest zone at or above a name whose servers the first resolver knows while withholding the SOA record.
async fn without_soa(
    by: &Investigator,
    zones: &Zones,
    domain: &str,
    why: String,
) -> Option<WithoutSoa> {
    let resolver = zones.resolvers().first()?;
    let mut rest = Some(domain);
    while let Some(name) = rest.filter(|name| name.trim_end_matches('.').contains('.')) {
        let asked = zones.hear(resolver, (name, RecordType::NS), Recursion::Desired);
        let heard = by.outside(asked).await.ok()?;
        let reply = heard.answer()?;
        if !reply.records.is_empty() && reply.aliases.is_empty() {
            return Some(WithoutSoa {
                name: name.to_owned(),
                servers: reply.records.clone(),
                why,
                resolver: resolver.to_string(),
            });
        }
        rest = name.split_once('.').map(|(_, above)| above);
    }
    None
}

/// Resolvers to ask, those of this machine first.
fn resolvers(zones: &Zones, by: &Investigator) -> Vec<(DnsVantage, Server)> {
    let own = zones.resolvers().iter().take(MAX_RESOLVERS);
    let own = own.map(|server| (DnsVantage::Resolver(server.to_string()), server.clone()));
    let others = by.others.iter().take(MAX_RESOLVERS);
    let others = others.map(|server| (DnsVantage::Other(server.to_string()), server.clone()));
    own.chain(others).collect()
}

/// Servers of a zone that answer for it.
fn authorities(zone: &ZoneState) -> Vec<(DnsVantage, Server)> {
    let speaking = zone.servers.iter().filter(|server| server.serves());
    let placed = speaking.filter_map(|server| {
        let address = server.address?;
        let from = DnsVantage::Authority { name: server.name.clone(), address };
        Some((from, Server::Plain(address)))
    });
    placed.take(MAX_SERVERS).collect()
}

/// Builds two questions for each resolver that answered SERVFAIL: one without DNSSEC validation, and one for the SOA.
fn questions_to_failing(
    resolvers: &[(DnsVantage, Server)],
    domain: &str,
    replies: &[VantageReply],
) -> Vec<SurveyQuestion> {
    let fails = |from: &DnsVantage| {
        replies.iter().any(|reply| {
            reply.from == *from && reply.heard.reply().is_some_and(|r| r.code == "SERVFAIL")
        })
    };
    let failing = resolvers.iter().filter(|(from, _)| fails(from));
    let both = failing.flat_map(|at| {
        [
            SurveyQuestion::of(at, (domain, RecordType::A), Recursion::DesiredUnvalidated),
            SurveyQuestion::of(at, (domain, RecordType::SOA), Recursion::DesiredValidated),
        ]
    });
    both.collect()
}

/// Returns whether an absolute name is the name of a zone or below it.
fn is_below(name: &str, zone: &str) -> bool {
    let (name, zone) = (name.to_ascii_lowercase(), zone.to_ascii_lowercase());
    name == zone || name.ends_with(&format!(".{zone}"))
}

/// Question to one server.
struct SurveyQuestion {
    from: DnsVantage,
    server: Server,
    name: String,
    kind: RecordType,
    recursion: Recursion,
}

impl SurveyQuestion {
    fn of(
        (from, server): &(DnsVantage, Server),
        (name, kind): (&str, RecordType),
        recursion: Recursion,
    ) -> Self {
        let (from, server, name) = (from.clone(), server.clone(), name.to_owned());
        Self { from, server, name, kind, recursion }
    }
}

/// Asks all questions concurrently, within the time left for everything outside this process.
async fn ask(
    by: &Investigator,
    zones: &Zones,
    questions: impl IntoIterator<Item = SurveyQuestion>,
) -> Vec<VantageReply> {
    let asked = questions.into_iter().map(|question| async move {
        let SurveyQuestion { from, server, name, kind, recursion } = question;
        let heard = by.outside(zones.hear(&server, (&name, kind), recursion)).await;
        let late = |_| DnsOutcome::Nothing(no_answer());
        let is_unvalidated = recursion == Recursion::DesiredUnvalidated;
        let (heard, kind) = (heard.unwrap_or_else(late), kind.to_string());
        VantageReply { name, kind, from, is_unvalidated, at: by.now, heard }
    });
    join_all(asked).await
}
