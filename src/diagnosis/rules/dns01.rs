//! D01 and DNS: zones, name servers and the records of DNS-01.

use super::symptom;
use crate::diagnosis::case::name::{AnswerProbe, LookUp, NameCase};
use crate::diagnosis::case::{Case, CertificateCase};
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
    evidence_of_probe, stored,
};
use crate::diagnosis::words::facts;
use crate::model::ChallengeType;
use crate::model::cause::{Cause, Symptom};
use crate::model::memory::{Holder, Memory};
use crate::model::observation::{CheckResult, NameServer, NameServerAnswer, Observation};
use crate::reconcile::dns01_visible;

/// Minimum number of letters by which a cut text is recognized.
const MIN_CUT_LETTERS: usize = 6;

pub(super) const RULES: &[FaultRule] =
    &[record_is_not_seen, record_is_not_written, record_is_doubled];

/// Returns the names that a CA validates by a record, with the probe of each answer.
pub(super) fn by_record(case: &Case) -> impl Iterator<Item = (&NameCase, &AnswerProbe)> {
    let by_record = |name: &&NameCase| name.kind.is_some_and(ChallengeType::is_by_record);
    case.names.iter().filter(by_record).filter_map(|name| Some((name, name.answer.as_ref()?)))
}

/// Returns the values that belong to the same record for a name's wildcard, or for the name of a wildcard. The values may
/// be asked for before their Challenges have their turn.
pub(super) fn values_of_the_other<'a>(
    case: &'a Case,
    name: &'a NameCase,
) -> impl Iterator<Item = &'a str> {
    let is_other = |domain: &str, wildcard| domain == name.name && wildcard != name.wildcard;
    let looked = by_record(case).filter(move |(one, _)| is_other(&one.name, one.wildcard));
    let looked = looked.map(|(_, answer)| answer.expected.as_str());
    let challenges = case.certificates.iter().flat_map(CertificateCase::current_challenges);
    let asked = challenges.map(|challenge| &challenge.spec).filter(move |spec| {
        spec.kind == ChallengeType::Dns01 && is_other(&spec.dns_name, spec.wildcard)
    });
    looked.chain(asked.map(|spec| spec.key.as_str()))
}

fn record_is_not_seen(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        let (Some(reason), Some(kind)) = (&answer.reason, name.kind) else { continue };
        let Some(look) = answer.observations.first() else { continue };
        let CheckResult::Records { name: record, servers, .. } = &look.seen else {
            let domain = format!("{}.", name.name);
            // Silent resolvers are a cause of their own (D01-15), and no fault of the zone.
            if name.dns.as_ref().is_some_and(|dns| dns.is_of_silent_resolvers(&domain)) {
                continue;
            }
            let symptom = answer.sighting.map(|sighting| sighting.symptom);
            if let Some(symptom) = symptom {
                let (cause, grade) = symptom::cause_of(symptom, kind, case.in_cluster);
                // No observation confirms the symptom.
                let is_blind = matches!(look.seen, CheckResult::NoLook { .. });
                let grade = if is_blind { Grade::Possible } else { grade };
                found.push(
                    about(cause, grade, name, evidence_of_probe(look, reason))
                        .with("ANSWER", reason),
                );
            }
            continue;
        };
        // A record of dns-persist-01 that is there is judged field by field.
        let has_text = |server: &NameServer| matches!(&server.said, NameServerAnswer::Texts(texts) if !texts.is_empty());
        if kind == ChallengeType::DnsPersist01 && servers.iter().any(has_text) {
            continue;
        }
        let others: Vec<&str> = values_of_the_other(case, name).collect();
        // acme-dns writes at its own names alone: without an alias its record is never looked up.
        let is_without_alias = is_of_acme_dns(name)
            && name.pending.as_ref().is_some_and(|it| it.spec.record_name() == *record)
            && servers.iter().all(|server| {
                matches!(&server.said, NameServerAnswer::NoName | NameServerAnswer::Texts(_))
            });
        let (cause, grade) = match answer.sighting.map(|sighting| sighting.symptom) {
            _ if is_without_alias => (CauseId::Prv13, Grade::Likely),
            None if kind == ChallengeType::DnsPersist01 => (CauseId::Per02, Grade::Likely),
            // An acme-dns record is always where the alias leads, whatever the registration.
            Some(Symptom::AliasNotFollowed) if is_of_acme_dns(name) => {
                (CauseId::Prv13, Grade::Likely)
            }
            Some(Symptom::AliasNotFollowed) => (CauseId::D0109, Grade::Certain),
            _ => match by_servers(&answer.expected, servers, &others) {
                (CauseId::Dns03 | CauseId::Dns04, grade) if is_of_texts_alone(name, servers) => {
                    (CauseId::D0117, grade.max(Grade::Likely))
                }
                found => found,
            },
        };
        // A record that was just made may still be on its way.
        // A person may follow the alias, and write the record there a moment later.
        let by_solver = name.pending.as_ref().filter(|challenge| {
            let annotations = &challenge.metadata.annotations;
            cause == CauseId::D0109 && !Memory::read(Holder::Challenge, annotations).by_hand
        });
        // Time mends neither our value in another form nor a value of another registration.
        let held_back =
            replication_fault(case, name, &answer.expected).filter(|_| cause == CauseId::D0101);
        let is_never_copied =
            held_back.as_ref().is_some_and(|(_, is_never_copied)| *is_never_copied);
        let is_on_its_way = name.is_fresh(case.at)
            && by_solver.is_none()
            && !matches!(cause, CauseId::D0112 | CauseId::Prv13)
            && !is_never_copied;
        let grade = if is_on_its_way { Grade::Possible } else { grade };
        let have = servers.iter().filter(|server| has(server, &answer.expected)).count();
        let evidence = servers.iter().take(6).map(|server| line(look, record, server));
        let (behind, _) = held_back.unwrap_or_default();
        let grade = if behind.is_empty() || is_on_its_way { grade } else { Grade::Certain };
        let mut finding = about(cause, grade, name, evidence_of_probe(look, reason))
            .shown_by(behind)
            .shown_by(evidence);
        let at = record.trim_end_matches('.');
        let alias = by_solver.map(|challenge| {
            let alias = challenge.spec.record_name();
            let alias = alias.trim_end_matches('.');
            format!("{alias} is a CNAME of {at}, and the record is written at {alias}, since the solver's cnameStrategy is not Follow")
        });
        let elsewhere = (cause == CauseId::Prv13).then(|| {
            if is_without_alias {
                return format!("{at} is not a CNAME: the record at the acme-dns server is never looked up");
            }
            format!("the CNAME leads to {at}, which has another value: that name belongs to another registration than the one in the Secret")
        });
        let alias = alias.or(elsewhere);
        // One silent server keeps the answer from being seen for as long as the server is silent.
        if cause == CauseId::Dns04 && name.pending.is_some() && !is_on_its_way {
            finding = finding.meaning(CauseSeverity::Error);
        }
        finding = finding
            .with("RECORD", at)
            .with("VALUE", &answer.expected)
            .with("COUNT", format!("{have} of {}", servers.len()))
            .with("ANSWER", alias.as_ref().unwrap_or(reason));
        found.push(finding);
    }
}

/// Returns evidence that the server of the updates has the record and the public servers never got it, and whether their
/// copies never will: they count as newer (RFC 1982), or are of another zone. `None` if the server lacks the record.
fn replication_fault(
    case: &Case,
    name: &NameCase,
    expected: &str,
) -> Option<(Vec<Evidence>, bool)> {
    let dns = name.dns.as_ref()?;
    let primary = dns.at_update_server.as_ref()?;
    let has = primary.record.heard.answer()?.records.iter().any(|record| record == expected);
    let zone = dns.zone.as_ref().filter(|_| has)?;
    let serial =
        |of: Option<u32>| of.map_or_else(|| "no such zone".to_owned(), |n| format!("serial {n}"));
    let asked = |at: &str| format!("SOA of {} at {at}", zone.name.trim_end_matches('.'));
    let updates = format!("{} (the server of the updates)", primary.address);
    let own = evidence_of_answer(asked(&updates), case.at, serial(primary.serial));
    let public = zone.servers.iter().take(4);
    let public = public.map(|it| {
        evidence_of_answer(asked(it.name.trim_end_matches('.')), case.at, serial(it.serial))
    });
    let is_newer =
        |theirs: u32| primary.serial.is_some_and(|own| theirs.wrapping_sub(own) < 1 << 31);
    let mut serials = zone.servers.iter().filter_map(|it| it.serial).peekable();
    let is_older = serials.peek().is_some() && serials.all(is_newer);
    // A zone of that name with other servers is another zone.
    let known = &primary.name_servers;
    let is_server = |name: &String| {
        let mut servers = zone.servers.iter();
        servers.any(|it| it.name.eq_ignore_ascii_case(name) || it.name_servers.contains(name))
    };
    let is_another = !known.is_empty() && !known.iter().any(is_server);
    let is_never_copied = is_older || is_another;
    Some((
        [evidence_of_dns_reply(&primary.record), own].into_iter().chain(public).collect(),
        is_never_copied,
    ))
}

fn is_of_acme_dns(name: &NameCase) -> bool {
    let solver = name.pending.as_ref().and_then(|it| it.spec.solver.dns01.as_ref());
    solver.is_some_and(|dns01| dns01.acme_dns.is_some())
}

/// Finds records that could not be written, by the reason of that time; the current state may differ.
fn record_is_not_written(case: &Case, found: &mut Vec<Finding>) {
    let open = case.certificates.iter().filter(|of| of.is_open());
    for challenge in open.flat_map(|of| &of.challenges) {
        let spec = &challenge.spec;
        if !spec.kind.is_by_record() || challenge.has_ended() || challenge.status.presented {
            continue;
        }
        let Some(Cause::Seen(sighting)) = facts::cause(challenge) else { continue };
        // Resolvers that fail for the name itself fail for every question about the name.
        let is_failing = |name: &NameCase| {
            name.name == spec.dns_name
                && name.caa.first().is_some_and(|it| matches!(it.records, LookUp::Code(_)))
        };
        if sighting.symptom == Symptom::NotDelegated && case.names.iter().any(is_failing) {
            continue;
        }
        let (cause, grade) = symptom::cause_of(sighting.symptom, spec.kind, case.in_cluster);
        let reason = &challenge.status.reason;
        let asked = format!("Challenge {}: status.reason", challenge.name());
        let shown = stored(asked, case.at, reason);
        found.push(
            Finding::new(cause, grade.max(Grade::Likely), spec.shown_domain(), shown)
                .with("DOMAIN", &spec.dns_name)
                .with("ANSWER", reason)
                .failing(challenge.status.processing),
        );
    }
}

pub(super) fn about(cause: CauseId, grade: Grade, name: &NameCase, evidence: Evidence) -> Finding {
    Finding::new(cause, grade, name.shown(), evidence).with("DOMAIN", &name.name)
}

pub(super) fn line(look: &Observation, record: &str, server: &NameServer) -> Evidence {
    let address = server.address.map(|address| format!(" ({address})")).unwrap_or_default();
    Evidence {
        asked: format!("TXT of {record} at {}{address}", server.name),
        vantage: Some(look.vantage.clone()),
        at: look.at,
        came: match &server.said {
            NameServerAnswer::Texts(texts) => {
                texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ")
            }
            NameServerAnswer::NoName => "NXDOMAIN".to_owned(),
            NameServerAnswer::Code(code) => code.clone(),
            said => dns01_visible::words(said),
        },
    }
}

fn has(server: &NameServer, expected: &str) -> bool {
    matches!(&server.said, NameServerAnswer::Texts(texts) if texts.iter().any(|text| text == expected))
}

/// Reports whether every server that fails has given the zone's SOA record.
fn is_of_texts_alone(name: &NameCase, servers: &[NameServer]) -> bool {
    let zone = name.dns.as_ref().and_then(|dns| dns.zone.as_ref());
    let serves = |server: &NameServer| {
        zone.is_some_and(|zone| {
            zone.servers.iter().any(|s| s.address == server.address && s.soa.answer().is_some())
        })
    };
    let fails = |server: &&NameServer| {
        matches!(
            server.said,
            NameServerAnswer::Code(_)
                | NameServerAnswer::Nothing(_)
                | NameServerAnswer::Unreadable(_)
        )
    };
    servers.iter().filter(fails).all(serves)
}

/// Returns the cause that the zone's servers show together. A server's silent addresses count only if all of its addresses
/// are silent; `others` are values that belong to the record for other names.
fn by_servers(expected: &str, servers: &[NameServer], others: &[&str]) -> (CauseId, Grade) {
    let asked = dns01_visible::counted_replies(servers);
    let is_silent = |said: &NameServerAnswer| {
        matches!(
            said,
            NameServerAnswer::Nothing(_)
                | NameServerAnswer::Unreadable(_)
                | NameServerAnswer::NoRoute
        )
    };
    let have = asked.iter().filter(|all| all.iter().all(|server| has(server, expected))).count();
    let all = || asked.iter().flatten();
    let codes = all().any(|server| matches!(server.said, NameServerAnswer::Code(_)));
    let silent = asked.iter().any(|all| all.iter().all(|server| is_silent(&server.said)));
    let all_silent = all().all(|server| is_silent(&server.said));
    let referred = all().any(|server| matches!(server.said, NameServerAnswer::Referral(_)));
    let texts = || {
        all().filter_map(|server| match &server.said {
            NameServerAnswer::Texts(texts) => Some(texts),
            _ => None,
        })
    };
    let is_foreign = |text: &String| text != expected && !others.contains(&text.as_str());
    let mangled = |text: &String| is_foreign(text) && is_mangled(text, expected);
    match (have, codes, silent) {
        (0, _, _) if all_silent => (CauseId::Dns04, Grade::Likely),
        (0, _, _) if texts().flatten().any(mangled) => (CauseId::D0112, Grade::Certain),
        (0, _, _) if texts().flatten().any(is_foreign) => (CauseId::D0111, Grade::Certain),
        (0, true, _) => (CauseId::Dns03, Grade::Likely),
        (0, false, _) if referred => (CauseId::D0107, Grade::Likely),
        (0, false, _) => (CauseId::D0101, Grade::Certain),
        (1.., true, _) => (CauseId::Dns03, Grade::Certain),
        (1.., false, true) => (CauseId::Dns04, Grade::Likely),
        (1.., false, false) => (CauseId::D0102, Grade::Certain),
    }
}

/// Reports whether a text is the expected one after a change: in quotes, with blanks or `=`, in other case, or cut.
fn is_mangled(text: &str, expected: &str) -> bool {
    let bare: String =
        text.chars().filter(|c| !c.is_whitespace() && !r#""'\="#.contains(*c)).collect();
    let begins = expected.get(..bare.len());
    bare.len() >= MIN_CUT_LETTERS && begins.is_some_and(|begins| begins.eq_ignore_ascii_case(&bare))
}

/// D01-10: the panel of a provider adds the zone to a name that already has the zone.
fn record_is_doubled(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        let Some(doubled) = &name.doubled else { continue };
        let shown = evidence_of_answer(format!("TXT of {doubled}"), case.at, &answer.expected);
        found.push(
            about(CauseId::D0110, Grade::Certain, name, shown)
                .with("RECORD", doubled)
                .with("VALUE", &answer.expected),
        );
    }
}
