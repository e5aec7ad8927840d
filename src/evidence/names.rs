//! Names as a CA sees them: addresses, web servers, challenge records, CAA records.

use std::net::SocketAddr;

use futures_util::future::join_all;

use super::investigator::Investigator;
use super::lookup::looked_up;
use super::patience::no_answer;
use super::{dns, web};
use crate::diagnosis::case::dns::DnsCase;
use crate::diagnosis::case::name::{AddressProbe, AnswerProbe, LookUp, NameCase};
use crate::diagnosis::case::web::UNKNOWN_TOKEN;
use crate::diagnosis::words::facts;
use crate::fetch::Fetcher;
use crate::model::cause::Symptom;
use crate::model::observation::{CheckResult, Observation, Vantage};
use crate::model::zone_look::ProviderZone;
use crate::model::{Answer, Challenge, ChallengeType, Identifier, reserved};
use crate::probes::Probe as _;
use crate::probes::dns::DnsProbe;
use crate::probes::http::{self, HttpProbe};
use crate::probes::tls_alpn::TlsAlpnProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{dns01_visible, http01_visible, shown};
use crate::solvers::dns01::manual::is_a_persons;
use crate::solvers::http01::listener::Listener;

/// Largest number of addresses of one name that are probed.
const MAX_ADDRESSES: usize = 8;

/// Probes one name in every way that its challenge type needs.
pub(super) async fn probe_name(
    by: &Investigator,
    mut name: NameCase,
    listener: Option<&Listener>,
) -> NameCase {
    let Ok(identifier) = Identifier::parse(&name.shown()) else { return name };
    let is_ip = matches!(identifier, Identifier::Ip(_));
    let kind = name.kind;
    let (caa, addresses, answer, dns) = tokio::join!(
        async {
            if is_ip {
                Vec::new()
            } else {
                by.caa
                    .levels(by.fetcher.resolver.as_ref(), &name.name, (by.now, by.deadline()))
                    .await
            }
        },
        async {
            if kind.is_some_and(ChallengeType::is_by_record) {
                (LookUp::NotAsked, false, Vec::new())
            } else {
                probe_addresses(by, &name, listener).await
            }
        },
        probe_record(by, name.pending.as_ref()),
        dns::survey(by, &name),
    );
    name.webroot = web::webroot(name.pending.as_ref()).await;
    name.caa = caa;
    (name.addresses, name.is_looked_for_in_dns, name.looks) = addresses;
    if let LookUp::Found(addresses) = &name.addresses {
        let reserved =
            addresses.iter().filter_map(|at| Some((*at, reserved::block(*at)?.to_owned())));
        name.reserved = reserved.collect();
    }
    if let Some((answer, doubled)) = answer {
        name.answer = Some(answer);
        name.doubled = doubled;
    }
    if let Some(mut case) = dns {
        let (record, later, outer, provider_zones, at_update_server) = tokio::join!(
            dns::record_elsewhere(by, &name, &case),
            dns::record_later(by, &name, &case),
            probe_outer(by, &name, &case, listener),
            provider_zones(by, &name, &case),
            dns::at_update_server(by, &name, &case),
        );
        name.provider_zones = provider_zones;
        case.at_update_server = at_update_server;
        case.replies.extend(record);
        case.later = later;
        name.outer = outer;
        name.dns = Some(case);
    }
    name
}

/// Asks the provider for zones into which the missing record of a name may have been written.
async fn provider_zones(by: &Investigator, name: &NameCase, case: &DnsCase) -> Vec<ProviderZone> {
    let (Some(store), Some(challenge), Some(answer)) = (&by.store, &name.pending, &name.answer)
    else {
        return Vec::new();
    };
    let (Some(solver), Some(record)) = (&challenge.spec.solver.dns01, &case.record) else {
        return Vec::new();
    };
    if answer.reason.is_none() || is_a_persons(challenge) {
        return Vec::new();
    }
    let resolver = &by.fetcher.resolver;
    let namespace = &by.cluster_resource_namespace;
    let dns01 = by.reach.clone().providers(store, by.zones.clone(), resolver, namespace);
    let (issuer, namespace) = (&challenge.spec.issuer_ref, &challenge.metadata.namespace);
    let asked = dns01.zones_of_record(solver, issuer, namespace, record.clone());
    // If the provider cannot be asked, the status of the Challenge gives the reason.
    by.outside(asked).await.ok().and_then(Result::ok).unwrap_or_default()
}

/// Probes addresses that only resolvers elsewhere or the zone's servers return.
async fn probe_outer(
    by: &Investigator,
    name: &NameCase,
    case: &DnsCase,
    listener: Option<&Listener>,
) -> Vec<AddressProbe> {
    if !name.is_looked_for_in_dns || name.kind.is_some_and(|kind| kind != ChallengeType::Http01) {
        return Vec::new();
    }
    let known = match &name.addresses {
        LookUp::Found(known) => &known[..],
        _ => &[],
    };
    let outer = dns::addresses_elsewhere(&name.name, case);
    let outer = outer.into_iter().filter(|address| !known.contains(address)).take(2);
    let looks = outer.map(|address| probe_http(by, name, SocketAddr::new(address, 80), listener));
    join_all(looks).await
}

/// Finds the addresses of a name, whether DNS was asked for them, and probes each address.
async fn probe_addresses(
    by: &Investigator,
    name: &NameCase,
    listener: Option<&Listener>,
) -> (LookUp<Vec<std::net::IpAddr>>, bool, Vec<AddressProbe>) {
    let overridden = if name.kind == Some(ChallengeType::TlsAlpn01) {
        by.fetcher.overrides.handshake(&name.name)
    } else {
        by.fetcher.overrides.address(&name.name, 80)
    };
    let (found, is_dns) = match (overridden, name.name.parse()) {
        (Some(address), _) => (LookUp::Found(vec![address.ip()]), false),
        (None, Ok(address)) => (LookUp::Found(vec![address]), false),
        (None, Err(_)) => {
            let asked = by.outside(by.fetcher.resolver.addresses(&name.name)).await;
            (looked_up(asked), true)
        }
    };
    let LookUp::Found(addresses) = &found else { return (found, is_dns, Vec::new()) };
    let each = addresses.iter().take(MAX_ADDRESSES);
    // TLS-ALPN-01 needs no web server.
    let looks = if name.kind == Some(ChallengeType::TlsAlpn01) {
        let port = overridden.map_or(443, |at| at.port());
        let Some(challenge) = &name.pending else { return (found, is_dns, Vec::new()) };
        let looks = each.map(|address| probe_tls(by, challenge, SocketAddr::new(*address, port)));
        join_all(looks).await.into_iter().flatten().collect()
    } else {
        let port = overridden.map_or(80, |at| at.port());
        let looks =
            each.map(|address| probe_http(by, name, SocketAddr::new(*address, port), listener));
        join_all(looks).await
    };
    (found, is_dns, looks)
}

/// Makes a TLS-ALPN-01 handshake with one address; `None` if the Challenge has no answer.
async fn probe_tls(
    by: &Investigator,
    challenge: &Challenge,
    address: SocketAddr,
) -> Option<AddressProbe> {
    let answer = Answer::of(challenge).ok()?;
    let mut overrides = by.fetcher.overrides.clone();
    let host = challenge.spec.dns_name.clone();
    overrides.handshakes.insert(host, (address.ip(), Some(address.port())));
    let probe = TlsAlpnProbe { fetcher: Fetcher { overrides, ..by.fetcher.clone() } };
    let looked = by.outside(probe.probe(challenge, &answer)).await;
    let observation = match looked.ok().and_then(|looks| looks.into_iter().next()) {
        Some(observation) => Observation { at: by.now, ..observation },
        None => unanswered(by, String::new()),
    };
    let (is_answer, sighting) = match shown::judge(&answer, std::slice::from_ref(&observation)) {
        Readiness::Ready => (true, None),
        Readiness::NotYet { cause, .. } => (false, cause),
    };
    Some(AddressProbe {
        address,
        observation,
        expected: shown::digest_of(&answer),
        is_expected: true,
        is_answer,
        sighting,
        disagreement: None,
        web: None,
        arrivals: Vec::new(),
    })
}

async fn probe_http(
    by: &Investigator,
    name: &NameCase,
    address: SocketAddr,
    listener: Option<&Listener>,
) -> AddressProbe {
    let mut overrides = by.fetcher.overrides.clone();
    overrides.hosts.insert(name.name.clone(), (address.ip(), Some(address.port())));
    let fetcher = Fetcher { overrides, ..by.fetcher.clone() };
    let Some((answer, is_up)) = looked_for(name) else { return unprobed(by, address) };
    let url = http::address(&answer);
    let probe = HttpProbe { fetcher };
    let observation = match by.outside(probe.look_soon(&url)).await {
        Ok(observation) => observation,
        Err(_) => unanswered(by, url),
    };
    let arrivals = listener.map(|it| it.came_since(&answer, observation.at)).unwrap_or_default();
    let judged = http01_visible::judge(&answer, std::slice::from_ref(&observation));
    let (is_answer, sighting) = match http01_visible::with_arrivals(judged, &arrivals) {
        Readiness::Ready => (true, None),
        Readiness::NotYet { cause, .. } => {
            let noted = name.pending.as_ref().filter(|_| listener.is_none());
            (false, noted.and_then(facts::sighting_of_listener).or(cause))
        }
    };
    let disagreement = http01_visible::disagreement(&answer, &observation).map(str::to_owned);
    let web = if is_answer {
        None
    } else {
        by.outside(web::paths(&name.name, address, &observation, &answer.token))
            .await
            .ok()
            .flatten()
    };
    AddressProbe {
        address,
        observation,
        expected: answer.key_authorization,
        is_expected: is_up || listener.is_some(),
        is_answer,
        sighting,
        disagreement,
        web,
        arrivals,
    }
}

/// Returns the HTTP-01 answer to request at a name, and whether it is up: that of its Challenge, else an unknown token.
pub(super) fn looked_for(name: &NameCase) -> Option<(Answer, bool)> {
    let pending = name.pending.as_ref();
    let pending = pending.filter(|challenge| challenge.spec.kind == ChallengeType::Http01);
    if let Some(answer) = pending.and_then(|challenge| Answer::of(challenge).ok()) {
        return Some((answer, true));
    }
    let identifier = Identifier::parse(&name.name).ok()?;
    let key_authorization = format!("{UNKNOWN_TOKEN}.answer");
    Some((Answer { identifier, token: UNKNOWN_TOKEN.to_owned(), key_authorization }, false))
}

/// Result for a name from which no URL can be made.
fn unprobed(by: &Investigator, address: SocketAddr) -> AddressProbe {
    let observation = Observation {
        seen: CheckResult::NoLook { why: "the name is not valid".to_owned(), symptom: None },
        ..unanswered(by, String::new())
    };
    let (expected, is_expected, is_answer) = (String::new(), false, false);
    AddressProbe {
        address,
        observation,
        expected,
        is_expected,
        is_answer,
        sighting: None,
        disagreement: None,
        web: None,
        arrivals: Vec::new(),
    }
}

/// Observation of a probe that took too long.
fn unanswered(by: &Investigator, url: String) -> Observation {
    Observation {
        vantage: Vantage::ThisMachine,
        at: by.now,
        url,
        hops: Vec::new(),
        seen: CheckResult::Nothing { why: no_answer(), symptom: Some(Symptom::Unreachable) },
    }
}

/// Probes the record of a Challenge that is up; the second value is the doubled name, if the record was found there.
async fn probe_record(
    by: &Investigator,
    challenge: Option<&Challenge>,
) -> Option<(AnswerProbe, Option<String>)> {
    // The other challenge types are probed at each address.
    let challenge = challenge.filter(|challenge| challenge.spec.kind.is_by_record())?;
    let answer = Answer::of(challenge).ok()?;
    let probe = DnsProbe { zones: by.zones.clone() };
    let probe_name = probe.probe(challenge, &answer);
    let mut observations = by.outside(probe_name).await.unwrap_or_else(|_| {
        let seen = CheckResult::NoLook { why: no_answer(), symptom: Some(Symptom::ServersSilent) };
        vec![Observation { seen, ..unanswered(by, challenge.spec.record_name()) }]
    });
    for observation in &mut observations {
        observation.at = by.now;
    }
    let verdict = dns01_visible::judge(challenge, &answer, &observations);
    let expected = answer.key_authorization;
    let (reason, sighting) = match verdict {
        Readiness::Ready => (None, None),
        Readiness::NotYet { reason, cause } => (Some(reason), cause),
    };
    let zone = observations.iter().find_map(|probe_name| match &probe_name.seen {
        CheckResult::Records { zone, .. } if !zone.is_empty() => Some(zone.clone()),
        _ => None,
    });
    let doubled = match (&reason, zone) {
        (Some(_), Some(zone)) => find_doubled(by, challenge, &zone, &expected).await,
        _ => None,
    };
    Some((AnswerProbe { expected, observations, reason, sighting }, doubled))
}

/// Returns the name with the zone twice if the record is there: some providers append the zone to an absolute name.
async fn find_doubled(
    by: &Investigator,
    challenge: &Challenge,
    zone: &str,
    expected: &str,
) -> Option<String> {
    let record = challenge.spec.record_name();
    let doubled = format!("{}.{}", record.trim_end_matches('.'), zone.trim_end_matches('.'));
    let texts = by.outside(by.fetcher.resolver.texts(&doubled)).await;
    let is_there =
        texts.is_ok_and(|texts| texts.is_ok_and(|all| all.iter().any(|t| t == expected)));
    is_there.then_some(doubled)
}
