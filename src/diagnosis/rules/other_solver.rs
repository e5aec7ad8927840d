//! CFG-06: a name goes to another solver than was meant, among several that fit.

use jiff::SignedDuration;

use super::record::texts;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::case::{Case, CertificateCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, stored};
use crate::model::issuer::asked_type;
use crate::model::observation::CheckResult;
use crate::model::solver::{ChallengeSolver, Selector};
use crate::model::{Challenge, ChallengeType, Identifier, Key};
use crate::reconcile::solver_choice::{Asking, Match, fitting};

/// Maximum time that servers take to copy a zone, if nothing else shows that a record will never come.
const ZONE_COPY_MAX: SignedDuration = SignedDuration::from_mins(5);

pub(super) const RULES: &[FaultRule] = &[another_solver_takes_it, zone_has_a_star];

/// Name whose record was published but is not seen, with the solvers of its issuer.
struct LostName<'a> {
    of: &'a CertificateCase,
    name: &'a NameCase,
    challenge: &'a Challenge,
    issuer: Key,
    solvers: &'a [ChallengeSolver],
    /// Zone of the record, without the last dot.
    zone: &'a str,
    /// Solvers that fit, the chosen solver first.
    fit: Vec<(usize, Match)>,
}

fn lost_names(case: &Case) -> Vec<LostName<'_>> {
    case.names.iter().filter_map(|name| of_name(case, name)).collect()
}

fn of_name<'a>(case: &'a Case, name: &'a NameCase) -> Option<LostName<'a>> {
    let NameCase { pending, answer, kind, .. } = name;
    let challenge = pending.as_ref().filter(|_| kind.is_some_and(ChallengeType::is_by_record))?;
    let answer = answer.as_ref()?;
    let CheckResult::Records { zone, .. } = &answer.observations.first()?.seen else { return None };
    // The servers answer, and none has the record: if one had the record, the others would only be late.
    let is_absent = answer.reason.is_some()
        && answer.sighting.is_none()
        && !texts(answer).contains(answer.expected.as_str());
    let is_of = |of: &&CertificateCase| {
        of.current_challenges().any(|own| own.metadata.uid == challenge.metadata.uid)
    };
    let of = case.certificates.iter().find(is_of)?;
    if !is_absent || name.is_fresh(case.at) {
        return None;
    }
    let key = issuer_key(&of.certificate)?;
    let issuer = case.issuer(&key)?.issuer.as_ref()?;
    let metadata = &of.certificate.metadata;
    let asking = Asking {
        namespace: &metadata.namespace,
        labels: &metadata.labels,
        annotations: &metadata.annotations,
        kind: asked_type(issuer).ok()?,
    };
    let solvers = &issuer.spec.acme.as_ref()?.solvers;
    let fit = fitting(solvers, &Identifier::parse(&name.shown()).ok()?, asking);
    let zone = zone.trim_end_matches('.');
    Some(LostName { of, name, challenge, issuer: key, solvers, zone, fit })
}

fn another_solver_takes_it(case: &Case, found: &mut Vec<Finding>) {
    for lost in lost_names(case) {
        let [(winner, why), (next, next_why), ..] = lost.fit[..] else { continue };
        let is_same = lost.solvers[winner].dns01 == lost.solvers[next].dns01;
        // A solver without a selector is for every name that no other solver takes.
        let is_meant = lost.solvers[next].selector.is_some();
        if is_same || !is_meant || lost.challenge.spec.solver.dns01 != lost.solvers[winner].dns01 {
            continue;
        }
        let rule = rule(why, next_why);
        // A hidden primary may have the record: the finding is likely only if the other solver alone is for the zone.
        let presented = lost.challenge.status.presented_at;
        let is_late =
            presented.is_some_and(|at| case.at.duration_since(at.timestamp()) > ZONE_COPY_MAX);
        let is_for_zone = |at: usize| is_for(&lost.solvers[at], lost.zone);
        let is_likely = is_late && is_for_zone(next) && !is_for_zone(winner);
        let grade = if is_likely { Grade::Likely } else { Grade::Possible };
        let place = |at: usize| format!("solvers[{at}] ({})", describe_selector(&lost.solvers[at]));
        let asked = format!("{}: spec.acme.solvers for {}", lost.issuer, lost.name.shown());
        let came = format!("{} comes first, since {rule}; then {}", place(winner), place(next));
        let shown = stored(asked, case.at, came);
        let taken = stored(
            format!("Challenge {}: spec.solver", lost.challenge.name()),
            case.at,
            format!(
                "that of solvers[{winner}]; the record is published, but the zone does not have it"
            ),
        );
        let name = lost.of.certificate.name();
        found.push(
            Finding::new(CauseId::Cfg06, grade, lost.name.shown(), shown)
                .shown_by([taken])
                .with("DOMAIN", lost.name.shown())
                .with("ISSUER", lost.issuer.to_string())
                .with("INDEX", winner.to_string())
                .with("NEXT", next.to_string())
                .with("RULE", rule)
                .with("CHALLENGE", lost.challenge.name().name)
                .with("NAMESPACE", name.namespace),
        );
    }
}

/// CFG-06: a selector's zone with a star fits no name, so that another solver takes the name.
fn zone_has_a_star(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        let Some(key) = &name.issuer else { continue };
        let acme = case.issuer(key).and_then(|of| of.issuer.as_ref()?.spec.acme.as_ref());
        let solvers = acme.map(|acme| &acme.solvers[..]).unwrap_or_default();
        let is_in = |zone: &str| name.name == zone || name.name.ends_with(&format!(".{zone}"));
        let starred = solvers.iter().enumerate().find_map(|(at, solver)| {
            let zones = &solver.selector.as_ref()?.dns_zones;
            let zone = zones.iter().find(|zone| zone.strip_prefix("*.").is_some_and(is_in))?;
            Some((at, zone))
        });
        let Some((next, zone)) = starred else { continue };
        // The Challenge has the chosen solver; before there is a Challenge, the type shows which solver is chosen.
        let pending = name.pending.as_ref().map(|challenge| &challenge.spec.solver);
        let is_taken = |solver: &ChallengeSolver| match pending {
            Some(taken) => solver.http01 == taken.http01 && solver.dns01 == taken.dns01,
            None => solver.dns01.is_some() == name.kind.is_some_and(ChallengeType::is_by_record),
        };
        let taken = solvers.iter().enumerate().find(|(at, solver)| *at != next && is_taken(solver));
        let Some((winner, _)) = taken.filter(|_| !is_taken(&solvers[next])) else { continue };
        let rule = format!(
            "dnsZones of solvers[{next}] has \"{zone}\", which fits no name, since a zone is written without a star"
        );
        let asked = format!("{key}: spec.acme.solvers[{next}].selector.dnsZones");
        // The other solver may work as well.
        let is_failing = name.looks.iter().any(|look| !look.is_answer)
            || name.answer.as_ref().is_some_and(|answer| answer.reason.is_some());
        let mut finding = Finding::new(
            CauseId::Cfg06,
            if is_failing { Grade::Certain } else { Grade::Possible },
            name.shown(),
            stored(asked, case.at, zone),
        )
        .with("DOMAIN", name.shown())
        .with("ISSUER", key.to_string())
        .with("INDEX", winner.to_string())
        .with("NEXT", next.to_string())
        .with("RULE", rule);
        if let Some(challenge) = &name.pending {
            let of = challenge.name();
            finding = finding.with("CHALLENGE", of.name).with("NAMESPACE", of.namespace);
        }
        found.push(finding);
    }
}

/// Reports whether a solver names exactly this zone.
fn is_for(solver: &ChallengeSolver, zone: &str) -> bool {
    let zones = solver.selector.iter().flat_map(|selector| &selector.dns_zones);
    zones.into_iter().any(|named| named.trim_end_matches('.').eq_ignore_ascii_case(zone))
}

/// Returns why one solver comes before another.
fn rule(winner: Match, next: Match) -> &'static str {
    if winner.dns_name && !next.dns_name {
        "its dnsNames have the name"
    } else if winner.zone_labels > next.zone_labels {
        "its zone is longer"
    } else if winner.labels > next.labels {
        "it asks for more labels"
    } else {
        "it stands before the other in the list"
    }
}

/// Returns the selector of a solver as text, by its fields.
fn describe_selector(solver: &ChallengeSolver) -> String {
    let Some(Selector { match_labels, dns_names, dns_zones }) = &solver.selector else {
        return "without selector".to_owned();
    };
    let labels: Vec<String> =
        match_labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let parts = [("dnsNames", dns_names), ("dnsZones", dns_zones), ("matchLabels", &labels)];
    let parts = parts.into_iter().filter(|(_, all)| !all.is_empty());
    let parts: Vec<String> =
        parts.map(|(what, all)| format!("{what} {}", all.join(", "))).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::ordered;
    use super::super::tests::{check, said};
    use super::*;
    use crate::model::observation::NameServerAnswer;

    /// A record of `www.example.com` that two solvers might publish in the zone `example.com`, by these selectors, the first being
    /// taken, so many minutes ago.
    fn published(
        selectors: &[serde_json::Value; 2],
        minutes: i64,
        servers: &[NameServerAnswer],
    ) -> Case {
        let solver = |number: usize| {
            let at = format!("192.0.2.{number}");
            json!({"selector": selectors[number], "dns01": {"rfc2136": {"nameserver": at}}})
        };
        let mut case = ordered(|_, _, challenge| {
            challenge["spec"]["type"] = "DNS-01".into();
            challenge["spec"]["solver"] = solver(0);
        });
        let presented = case.at - SignedDuration::from_mins(minutes);
        let challenge = &mut case.certificates[0].challenges[0];
        challenge.status.presented = true;
        challenge.status.presented_at = serde_json::from_value(json!(presented)).unwrap();
        let mut name = said(servers).names.remove(0);
        name.pending = Some(challenge.clone());
        case.names = vec![name];
        let acme = case.issuers[0].issuer.as_mut().unwrap().spec.acme.as_mut().unwrap();
        acme.solvers = serde_json::from_value(json!([solver(0), solver(1)])).unwrap();
        case
    }

    #[test]
    fn a_record_that_nobody_has_went_to_the_solver_of_another_zone() {
        let zones = |zone: &str| json!({"dnsZones": [zone]});
        let (own, longer) = (zones("example.com"), zones("www.example.com"));
        let case = published(
            &[longer.clone(), own.clone()],
            10,
            &[NameServerAnswer::NoName, NameServerAnswer::NoName],
        );
        check(&case, &[CauseId::Cfg06]);
        assert_eq!(super::super::judge(&case)[0].grade, Grade::Likely);
        // A copy may be on its way, and a primary that nobody asks may have it.
        for (selectors, minutes) in [
            ([longer.clone(), own.clone()], 3),
            ([json!({"dnsNames": ["www.example.com"]}), longer.clone()], 60),
            (
                [
                    json!({"dnsNames": ["www.example.com"], "dnsZones": ["example.com"]}),
                    own.clone(),
                ],
                60,
            ),
        ] {
            let case = published(&selectors, minutes, &[NameServerAnswer::NoName]);
            let found = super::super::judge(&case);
            let grade = |id| found.iter().find(|finding| finding.cause == id).map(|f| f.grade);
            assert_ne!(grade(CauseId::Cfg06), Some(Grade::Likely), "{found:#?}");
            assert_eq!(found[0].cause, CauseId::D0101, "{found:#?}");
        }
        let texts = NameServerAnswer::Texts(vec!["digest".into()]);
        check(
            &published(&[longer, own], 10, &[texts, NameServerAnswer::NoName]),
            &[CauseId::D0102],
        );
    }

    #[test]
    fn a_zone_with_a_star_fits_no_name() {
        let with = |zone: &str, kind: ChallengeType| {
            let mut case = published(&[json!({}), json!({})], 0, &[NameServerAnswer::NoName]);
            let acme = case.issuers[0].issuer.as_mut().unwrap().spec.acme.as_mut().unwrap();
            acme.solvers = serde_json::from_value(json!([
                {"http01": {"ingress": {}}},
                {"selector": {"dnsZones": [zone]}, "dns01": {"rfc2136": {"nameserver": "192.0.2.1"}}},
            ]))
            .unwrap();
            let name = super::super::tests::name("www.example.com", Some(kind));
            case.certificates[0].challenges.clear();
            case.names = vec![name];
            let mut found = Vec::new();
            zone_has_a_star(&case, &mut found);
            found.iter().map(|finding| finding.cause).collect::<Vec<_>>()
        };
        assert_eq!(with("*.example.com", ChallengeType::Http01), [CauseId::Cfg06]);
        assert_eq!(with("*.www.example.com", ChallengeType::Http01), [CauseId::Cfg06]);
        // Another zone, or a name that is proven by DNS all the same.
        assert_eq!(with("*.example.net", ChallengeType::Http01), []);
        assert_eq!(with("example.com", ChallengeType::Http01), []);
        assert_eq!(with("*.example.com", ChallengeType::Dns01), []);
    }

    #[test]
    fn the_rule_by_which_one_comes_before_another_is_told() {
        let of = |dns_name, zone_labels, labels| Match { dns_name, zone_labels, labels };
        for (winner, next, expected) in [
            (of(true, 0, 0), of(false, 3, 1), "its dnsNames have the name"),
            (of(false, 3, 0), of(false, 2, 1), "its zone is longer"),
            (of(false, 2, 2), of(false, 2, 1), "it asks for more labels"),
            (of(false, 2, 1), of(false, 2, 1), "it stands before the other in the list"),
        ] {
            assert_eq!(rule(winner, next), expected);
        }
    }
}
