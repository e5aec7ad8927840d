//! D01-14 and D01-20: time at which the record of a challenge was there, compared with the time at which it had to be.

use super::dns01::{about, by_record};
use super::limit;
use super::record::texts;
use crate::diagnosis::case::dns::{DnsCase, VantageReply};
use crate::diagnosis::case::name::{AnswerProbe, NameCase};
use crate::diagnosis::case::{Case, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    FaultRule, Finding, Grade, evidence_of_dns_reply, evidence_of_probe, stored,
};
use crate::diagnosis::words::facts;
use crate::diagnosis::words::foreign::{self, RecordFault};
use crate::model::memory::{Holder, Memory};
use crate::model::observation::{CheckResult, NameServerAnswer};
use crate::model::{Challenge, ChallengeType};

pub(super) const RULES: &[FaultRule] =
    &[record_is_gone_again, authority_was_told_too_early, nobody_waited_long_enough];

fn memory(challenge: &Challenge) -> Memory {
    Memory::read(Holder::Challenge, &challenge.metadata.annotations)
}

fn record_is_gone_again(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case) {
        // A lasting record is judged by its content.
        if name.kind == Some(ChallengeType::DnsPersist01) {
            continue;
        }
        let finding = gone_since_it_was_seen(name, answer)
            .or_else(|| gone_between_two_looks(name, answer, name.dns.as_ref()?));
        let Some(finding) = finding else { continue };
        let record = name.dns.as_ref().and_then(|dns| dns.record.as_deref()).unwrap_or_default();
        found.push(finding.with("RECORD", record.trim_end_matches('.')));
    }
}

/// Finds a record that every server had when the CA was asked to validate, and that no server has now.
fn gone_since_it_was_seen(name: &NameCase, answer: &AnswerProbe) -> Option<Finding> {
    let challenge = name.pending.as_ref()?;
    let at = facts::seen_everywhere_at(challenge)?;
    let look = answer.observations.first()?;
    let CheckResult::Records { servers, .. } = &look.seen else { return None };
    let is_answered = servers.iter().any(|server| {
        matches!(
            server.said,
            NameServerAnswer::Texts(_) | NameServerAnswer::NoText | NameServerAnswer::NoName
        )
    });
    if !is_answered || texts(answer).contains(answer.expected.as_str()) {
        return None;
    }
    let before = stored(
        format!("Challenge {}: validation requested", challenge.name()),
        at,
        "every name server had the record",
    );
    let now = answer.reason.as_ref().map(|reason| evidence_of_probe(look, reason));
    Some(about(CauseId::D0114, Grade::Certain, name, before).shown_by(now))
}

/// Finds a record that a server of the zone had, and had no longer a moment later.
fn gone_between_two_looks(name: &NameCase, answer: &AnswerProbe, dns: &DnsCase) -> Option<Finding> {
    let record = dns.record.as_deref()?;
    let has = |reply: &VantageReply| Some(reply.heard.answer()?.records.contains(&answer.expected));
    dns.asked(record, "TXT").filter(|first| has(first) == Some(true)).find_map(|first| {
        let later = dns.later.iter().filter(|later| later.from == first.from);
        let gone = later.into_iter().find(|later| has(later) == Some(false))?;
        Some(
            about(CauseId::D0114, Grade::Certain, name, evidence_of_dns_reply(first))
                .shown_by([evidence_of_dns_reply(gone)]),
        )
    })
}

/// D01-20: a fixed time had passed, and the CA found no record.
fn authority_was_told_too_early(case: &Case, found: &mut Vec<Finding>) {
    for told in limit::problems(case) {
        let Some(challenge) = told.challenge.filter(|c| c.spec.kind == ChallengeType::Dns01) else {
            continue;
        };
        let Some(wait) = challenge.spec.solver.wait_instead_of_self_check else { continue };
        let fault = foreign::record_fault(&told.problem);
        let is_early = matches!(fault, Some(RecordFault::None | RecordFault::Others));
        if !is_early || memory(&challenge).by_hand {
            continue;
        }
        let domain = challenge.spec.shown_domain();
        let allowed = stored(
            format!("Challenge {}: waitInsteadOfSelfCheck", challenge.name()),
            case.at,
            format!("{:#}", wait.0),
        );
        let answer = format!(
            "the CA was asked to validate {:#} after the record was made, without a self-check, and found none",
            wait.0
        );
        found.push(
            Finding::new(CauseId::D0120, Grade::Likely, &domain, told.evidence)
                .shown_by([allowed])
                .with("DOMAIN", &challenge.spec.dns_name)
                .with("ANSWER", answer),
        );
    }
}

/// D01-20: the record is there, and the process that waited for the record has ended.
fn nobody_waited_long_enough(case: &Case, found: &mut Vec<Finding>) {
    for (name, answer) in by_record(case).filter(|(_, answer)| answer.reason.is_none()) {
        let Some(challenge) = &name.pending else { continue };
        let memory = memory(challenge);
        let is_left = case.driver == DriverCase::Nobody
            && memory.accepted_at.is_none()
            && !memory.by_hand
            && challenge.spec.solver.wait_instead_of_self_check.is_none();
        let Some(made) = challenge.status.presented_at.filter(|_| is_left) else { continue };
        let Some(look) = answer.observations.first() else { continue };
        let took = case.at.duration_since(made.timestamp()).as_secs();
        let made = stored(
            format!("Challenge {}: status.presentedAt", challenge.name()),
            case.at,
            made.timestamp().to_string(),
        );
        let answer = format!(
            "it is there {took} s after it was made, but no process waits for it any longer"
        );
        found.push(
            about(CauseId::D0120, Grade::Likely, name, made)
                .shown_by([evidence_of_probe(look, "every name server has it")])
                .with("ANSWER", answer),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{by, check, held, with};
    use super::super::zone::tests::{authority, reply};
    use super::*;
    use crate::model::observation::{NameServer, Observation, Vantage};
    use crate::model::{Problem, State};

    const RECORD: &str = "_acme-challenge.www.example.com.";

    /// A Challenge of that solver, with more annotations.
    fn challenge(solver: &Value, annotations: &Value) -> Challenge {
        serde_json::from_value(json!({
            "metadata": {"namespace": "web", "name": "www", "annotations": annotations},
            "spec": {
                "type": "DNS-01", "dnsName": "www.example.com", "wildcard": false,
                "issuerRef": {"name": "acme"}, "key": "value", "token": "t", "url": "u",
                "authorizationURL": "a", "solver": solver,
            },
            "status": {
                "presented": true, "processing": true, "presentedAt": "2026-11-24T21:50:00Z",
            },
        }))
        .unwrap()
    }

    fn accepted() -> Value {
        json!({"kubectl-acme/challenge-accepted-at": "2026-11-24T21:55:00.000000Z"})
    }

    /// The Challenge, and the record as it is now and a moment later.
    fn case(challenge: Challenge, now: &[&str], later: &[&str]) -> Case {
        by(ChallengeType::Dns01, |name| {
            let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
            let said = if now.is_empty() {
                NameServerAnswer::NoName
            } else {
                NameServerAnswer::Texts(texts(now))
            };
            let address = "192.0.2.1:53".parse().ok();
            let server = NameServer { name: "ns1.example.com.".into(), address, said, ttl: None };
            let zone = "example.com.".to_owned();
            let seen = CheckResult::Records { name: RECORD.into(), zone, servers: vec![server] };
            let look = Observation {
                vantage: Vantage::ThisMachine,
                at: "2026-11-24T22:00:00Z".parse().unwrap(),
                url: "dns:_acme-challenge.www.example.com?type=TXT".into(),
                hops: Vec::new(),
                seen,
            };
            name.pending = Some(challenge);
            name.answer = Some(AnswerProbe {
                expected: "value".into(),
                observations: vec![look],
                reason: (!now.contains(&"value")).then(|| "not yet".to_owned()),
                sighting: None,
            });
            name.dns = Some(DnsCase {
                record: Some(RECORD.into()),
                replies: vec![reply(authority(1), RECORD, "TXT", now)],
                later: vec![reply(authority(1), RECORD, "TXT", later)],
                ..DnsCase::default()
            });
        })
    }

    #[test]
    fn a_record_that_was_there_and_is_gone_was_taken_away() {
        let (plain, none, there) = (&json!({"dns01": {}}), &json!({}), &["value"]);
        check(&case(challenge(plain, &accepted()), &[], &[]), &[CauseId::D0114]);
        check(&case(challenge(plain, &accepted()), there, there), &[]);
        check(&case(challenge(plain, none), &[], &[]), &[CauseId::D0101]);
        check(&case(challenge(plain, none), there, &[]), &[CauseId::D0114]);
        check(&case(challenge(plain, none), &["other", "value"], there), &[]);
        // Nobody has looked before the CA was told.
        let unseen = &json!({"dns01": {}, "waitInsteadOfSelfCheck": "1s"});
        check(&case(challenge(unseen, &accepted()), &[], &[]), &[CauseId::D0101]);
    }

    #[test]
    fn a_record_that_nobody_waits_for_any_longer_is_told() {
        let of = |annotations: &Value, driver| {
            let solver = &json!({"dns01": {}});
            let mut case = case(challenge(solver, annotations), &["value"], &["value"]);
            case.driver = driver;
            case
        };
        let has_waited_too_short = |case: &Case| {
            let mut found = Vec::new();
            nobody_waited_long_enough(case, &mut found);
            found.iter().any(|finding| finding.cause == CauseId::D0120)
        };
        assert!(has_waited_too_short(&of(&json!({}), DriverCase::Nobody)));
        assert!(!has_waited_too_short(&of(&json!({}), DriverCase::KubectlAcme)));
        assert!(!has_waited_too_short(&of(&accepted(), DriverCase::Nobody)));
        let by_hand = &json!({"kubectl-acme/challenge-by-hand": "true"});
        assert!(!has_waited_too_short(&of(by_hand, DriverCase::Nobody)));
    }

    #[test]
    fn a_ca_that_was_told_after_a_fixed_time_and_found_nothing_was_told_too_early() {
        let of = |solver: &Value| {
            with(|case| {
                let mut challenge = challenge(solver, &json!({}));
                challenge.status.state = Some(State::Invalid);
                let mut held = held("www.example.com", Vec::new());
                held.status = "invalid".into();
                let detail = "No TXT record found at _acme-challenge.www.example.com".to_owned();
                let kind = "urn:ietf:params:acme:error:unauthorized".to_owned();
                held.problem = Some(Problem { kind, detail, status: 403, ..Problem::default() });
                case.certificates[0].held = vec![held];
                case.certificates[0].challenges = vec![challenge];
                case.names.clear();
            })
        };
        check(&of(&json!({"dns01": {}, "waitInsteadOfSelfCheck": "1s"})), &[CauseId::D0120]);
        check(&of(&json!({"dns01": {}})), &[CauseId::D0101]);
    }

    #[test]
    fn what_the_ca_saw_although_every_server_had_the_value_is_kept_by_its_resolver() {
        let of = |detail: &str, annotations: &Value| {
            with(|case| {
                let mut challenge = challenge(&json!({"dns01": {}}), annotations);
                challenge.status.state = Some(State::Invalid);
                let mut other = challenge.clone();
                other.spec.wildcard = true;
                "the-value-of-the-wildcard".clone_into(&mut other.spec.key);
                let mut held = held("www.example.com", Vec::new());
                held.status = "invalid".into();
                let kind = "urn:ietf:params:acme:error:unauthorized".to_owned();
                let detail = detail.to_owned();
                held.problem = Some(Problem { kind, detail, status: 403, ..Problem::default() });
                case.certificates[0].held = vec![held];
                case.certificates[0].challenges = vec![challenge, other];
                case.names.clear();
            })
        };
        let none = "DNS problem: NXDOMAIN looking up TXT for _acme-challenge.www.example.com";
        let absent = of(none, &accepted());
        check(&absent, &[CauseId::D0103]);
        let finding = &super::super::judge(&absent)[0];
        assert!(finding.is_error() && finding.facts["SECONDS"].contains("NSEC"), "{finding:#?}");
        check(&of(none, &json!({})), &[CauseId::D0101]);
        let at = "found at _acme-challenge.www.example.com";
        for (detail, grade) in [
            (format!("Incorrect TXT record \"the-value-of-the-wildcard\" {at}"), Grade::Certain),
            (format!("Incorrect TXT record \"of somebody\" {at}"), Grade::Likely),
            ("Correct value not found for DNS challenge".to_owned(), Grade::Likely),
        ] {
            let case = of(&detail, &accepted());
            check(&case, &[CauseId::D0122]);
            assert_eq!(super::super::judge(&case)[0].grade, grade, "{detail}");
            check(&of(&detail, &json!({})), &[CauseId::D0111]);
        }
        // Elsewhere in the world it may not have been there yet.
        let secondary = format!("During secondary validation: {none}");
        check(&of(&secondary, &accepted()), &[CauseId::D0102]);
    }

    #[test]
    fn the_reason_why_a_record_was_not_written_is_told_whatever_a_look_shows() {
        let of = |reason: &str, presented: bool| {
            with(|case| {
                let mut challenge = challenge(&json!({"dns01": {}}), &json!({}));
                challenge.status.presented = presented;
                reason.clone_into(&mut challenge.status.reason);
                case.certificates[0].challenges = vec![challenge];
                case.names.clear();
            })
        };
        let reason = "Could not determine the zone for \"_acme-challenge.www.example.com.\": Could not find the SOA \
                      record in the DNS tree for the domain '_acme-challenge.www.example.com.' using nameservers [10.0.0.1:53]";
        check(&of(reason, false), &[CauseId::D0104]);
        check(&of(reason, true), &[]);
        check(&of("", false), &[]);
    }
}
