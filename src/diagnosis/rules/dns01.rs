//! D01 and DNS: zones, name servers and the records of DNS-01.

use super::rule::FaultRule;
use super::symptom;
use crate::diagnosis::case::{AnswerLook, Case, NameCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, Finding, Grade, seen, told};
use crate::model::ChallengeType;
use crate::model::observation::{NameServer, Observation, Said, Seen};
use crate::reconcile::published;

pub(super) const RULES: &[FaultRule] = &[record_is_not_seen, record_is_doubled];

/// The names that a CA looks for by a record.
fn by_record(case: &Case) -> impl Iterator<Item = (&NameCase, &AnswerLook)> {
    let by_record = |name: &&NameCase| name.kind.is_some_and(ChallengeType::is_by_record);
    case.names.iter().filter(by_record).filter_map(|name| Some((name, name.answer.as_ref()?)))
}

fn record_is_not_seen(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        let (Some(reason), Some(kind)) = (&answer.reason, name.kind) else { continue };
        let Some(look) = answer.observations.first() else { continue };
        let Seen::Records { name: record, servers, .. } = &look.seen else {
            let symptom = answer.sighting.map(|sighting| sighting.symptom);
            if let Some(symptom) = symptom {
                let (cause, grade) = symptom::cause_of(symptom, kind, case.in_cluster);
                found.push(about(cause, grade, name, seen(look, reason)).with("ANSWER", reason));
            }
            continue;
        };
        let (cause, grade) = by_servers(&answer.expected, servers);
        let (cause, grade) = match answer.sighting.map(|sighting| sighting.symptom) {
            Some(s) if cause == CauseId::D0101 => symptom::cause_of(s, kind, case.in_cluster),
            _ => (cause, grade),
        };
        let have = servers.iter().filter(|server| has(server, &answer.expected)).count();
        let evidence = servers.iter().take(6).map(|server| line(look, record, server));
        let mut finding = about(cause, grade, name, seen(look, reason)).shown_by(evidence);
        finding = finding
            .with("RECORD", record.trim_end_matches('.'))
            .with("VALUE", &answer.expected)
            .with("COUNT", format!("{have} of {}", servers.len()))
            .with("ANSWER", reason);
        found.push(finding);
    }
}

fn about(cause: CauseId, grade: Grade, name: &NameCase, evidence: Evidence) -> Finding {
    Finding::new(cause, grade, name.shown(), evidence).with("DOMAIN", &name.name)
}

fn line(look: &Observation, record: &str, server: &NameServer) -> Evidence {
    let address = server.address.map(|address| format!(" ({address})")).unwrap_or_default();
    Evidence {
        asked: format!("TXT of {record} at {}{address}", server.name),
        vantage: Some(look.vantage.clone()),
        at: look.at,
        came: match &server.said {
            Said::Texts(texts) => {
                texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(" ")
            }
            Said::NoName => "NXDOMAIN".to_owned(),
            Said::Code(code) => code.clone(),
            said => published::words(said),
        },
    }
}

fn has(server: &NameServer, expected: &str) -> bool {
    matches!(&server.said, Said::Texts(texts) if texts.iter().any(|text| text == expected))
}

/// What the servers of the zone show together.
fn by_servers(expected: &str, servers: &[NameServer]) -> (CauseId, Grade) {
    let texts = || {
        servers.iter().filter_map(|server| match &server.said {
            Said::Texts(texts) => Some(texts),
            _ => None,
        })
    };
    let have = servers.iter().filter(|server| has(server, expected)).count();
    let codes = servers.iter().any(|server| matches!(server.said, Said::Code(_)));
    let silent =
        servers.iter().any(|server| matches!(server.said, Said::Nothing(_) | Said::NoRoute));
    let mangled = |text: &String| text.trim_matches(['"', ' ', '=']).eq_ignore_ascii_case(expected);
    match (have, codes, silent) {
        (1.., true, _) => (CauseId::Dns03, Grade::Certain),
        (1.., false, true) => (CauseId::Dns04, Grade::Certain),
        (1.., false, false) => (CauseId::D0102, Grade::Certain),
        (0, _, _) if texts().flatten().any(mangled) => (CauseId::D0112, Grade::Certain),
        (0, _, _) if texts().any(|texts| !texts.is_empty()) => (CauseId::D0111, Grade::Certain),
        (0, true, _) => (CauseId::Dns03, Grade::Likely),
        (0, false, true) => (CauseId::Dns04, Grade::Likely),
        (0, false, false) => (CauseId::D0101, Grade::Certain),
    }
}

/// The panel of a provider that adds the zone to a name that has it already.
fn record_is_doubled(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        let Some(doubled) = &name.doubled else { continue };
        let shown = told(format!("TXT of {doubled}"), case.at, &answer.expected);
        found.push(
            about(CauseId::D0110, Grade::Certain, name, shown)
                .with("RECORD", doubled)
                .with("VALUE", &answer.expected),
        );
    }
}
