//! PER: the record of dns-persist-01, part by part.

use super::dns01::{about, by_record, line};
use crate::diagnosis::case::Case;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, stored};
use crate::model::ChallengeType;
use crate::model::observation::{CheckResult, NameServer, NameServerAnswer};
use crate::model::persist::PersistPart;
use crate::reconcile::dns01_visible;

pub(super) const RULES: &[FaultRule] = &[type_is_not_offered, record_is_not_taken];

fn type_is_not_offered(case: &Case, found: &mut Vec<Finding>) {
    let persist = ChallengeType::DnsPersist01;
    for name in case.names.iter().filter(|name| name.kind == Some(persist)) {
        let shown = name.shown();
        let held = case.certificates.iter().flat_map(|of| &of.held).find(|held| held.name == shown);
        let Some(held) = held.filter(|held| !held.offered.is_empty()) else { continue };
        if held.offered.iter().any(|kind| kind == persist.acme_name()) {
            continue;
        }
        let offered = held.offered.join(", ");
        let seen = stored(format!("types of the authorization of {shown}"), held.at, &offered);
        found.push(about(CauseId::Per01, Grade::Certain, name, seen).with("TYPES", offered));
    }
}

fn record_is_not_taken(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        let Some(demand) =
            name.pending.as_ref().and_then(|challenge| dns01_visible::demand(challenge, case.at))
        else {
            continue;
        };
        for look in &answer.observations {
            let CheckResult::Records { name: record, servers, .. } = &look.seen else { continue };
            let texts = |server: &NameServer| match &server.said {
                NameServerAnswer::Texts(texts) => texts.clone(),
                _ => Vec::new(),
            };
            // The worst server's best record counts: the CA may ask any of the servers.
            let judged = servers.iter().filter_map(|server| {
                let faults = |text: String| (demand.faults_by_part(&text), text);
                let best = texts(server).into_iter().map(faults).min_by_key(|(all, _)| all.len());
                best.map(|(faults, text)| (server, faults, text))
            });
            let Some((server, faults, text)) = judged.max_by_key(|(_, faults, _)| faults.len())
            else {
                continue;
            };
            let seen = line(look, record, server);
            let Some((part, fault)) = faults.into_iter().next() else {
                if let Some(until) = demand.ends_soon(&text) {
                    let fault = format!("is good until {until:.0} only (persistUntil)");
                    let soon = about(CauseId::Per06, Grade::Possible, name, seen);
                    found.push(
                        soon.with("RECORD", record.trim_end_matches('.')).with("FAULT", fault),
                    );
                }
                continue;
            };
            let cause = match part {
                PersistPart::Form => CauseId::Per07,
                PersistPart::Issuer => CauseId::Per03,
                PersistPart::Account => CauseId::Per04,
                PersistPart::Policy => CauseId::Per05,
                PersistPart::End => CauseId::Per06,
            };
            found.push(
                about(cause, Grade::Certain, name, seen)
                    .with("RECORD", record.trim_end_matches('.'))
                    .with("FAULT", fault),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::{by, check, held};
    use super::*;
    use crate::diagnosis::case::name::AnswerProbe;
    use crate::model::Challenge;
    use crate::model::observation::{Observation, Vantage};

    const GOOD: &str = "ca.example; accounturi=https://ca.example/acct/1";

    fn with_record(text: &str, wildcard: bool) -> Case {
        let challenge = json!({
            "metadata": {"namespace": "web", "name": "www"},
            "spec": {
                "type": "DNS-PERSIST-01", "dnsName": "www.example.com", "wildcard": wildcard,
                "issuerRef": {"name": "acme"}, "key": "k", "token": "t", "url": "u",
                "authorizationURL": "a", "solver": {},
            },
            "status": {"presented": true, "processing": true},
        });
        let mut challenge: Challenge = serde_json::from_value(challenge).unwrap();
        challenge.spec.kind = ChallengeType::DnsPersist01;
        challenge.spec.persist = Some(crate::model::persist::Persist {
            issuer_domain_names: vec!["ca.example".into()],
            account_uris: vec!["https://ca.example/acct/1".into()],
        });
        by(ChallengeType::DnsPersist01, |name| {
            let server = NameServer {
                name: "ns.example.com.".into(),
                address: "192.0.2.1:53".parse().ok(),
                said: NameServerAnswer::Texts(vec![text.to_owned()]),
                ttl: Some(60),
            };
            let seen = CheckResult::Records {
                name: "_validation-persist.www.example.com.".into(),
                zone: "example.com.".into(),
                servers: vec![server],
            };
            name.pending = Some(challenge);
            name.answer = Some(AnswerProbe {
                expected: "k".into(),
                observations: vec![Observation {
                    vantage: Vantage::ThisMachine,
                    at: "2026-11-24T22:00:00Z".parse().unwrap(),
                    url: "dns:_validation-persist.www.example.com?type=TXT".into(),
                    hops: Vec::new(),
                    seen,
                }],
                reason: (text != GOOD).then(|| "it is not taken".to_owned()),
                sighting: None,
            });
        })
    }

    #[test]
    fn every_part_of_a_record_has_a_cause_of_its_own() {
        check(&with_record(GOOD, false), &[]);
        check(&with_record(GOOD, true), &[CauseId::Per05]);
        check(
            &with_record("other.example; accounturi=https://ca.example/acct/1", false),
            &[CauseId::Per03],
        );
        check(
            &with_record("ca.example; accounturi=https://ca.example/acct/2", false),
            &[CauseId::Per04],
        );
        check(&with_record(&format!("{GOOD};"), false), &[CauseId::Per07]);
        check(&with_record(&format!("{GOOD}; persistUntil=1700000000"), false), &[CauseId::Per06]);
    }

    #[test]
    fn a_type_that_the_ca_does_not_offer_is_told() {
        let offers = |kinds: &[&str]| {
            let mut case = by(ChallengeType::DnsPersist01, |_| ());
            let offered = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            case.certificates[0].held = vec![held("www.example.com", offered)];
            case
        };
        check(&offers(&["http-01", "dns-01"]), &[CauseId::Per01]);
        check(&offers(&["dns-persist-01"]), &[]);
        check(&offers(&[]), &[]);
    }
}
