//! HTTP: facts of a CA's validation record, beyond the verdict: the address that the CA used, and whether others see the
//! answer there. The CA is asked to validate only once a self-check has seen the answer, unless the solver waits instead.

use std::net::IpAddr;

use super::http01::{fault, of_name};
use super::{problem, web};
use crate::diagnosis::case::authority::HeldCase;
use crate::diagnosis::case::name::{AddressProbe, LookUp, NameCase};
use crate::diagnosis::case::{Case, CertificateCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_probe, stored,
};
use crate::diagnosis::words::foreign::{self, Perspective};
use crate::model::cause::Symptom;
use crate::model::observation::CheckResult;
use crate::model::{Challenge, ChallengeType, Problem};

pub(super) const RULES: &[FaultRule] =
    &[answer_was_gone, authority_has_used_ipv6, authority_is_led_elsewhere];

/// Validation by HTTP-01 that has failed at the CA.
struct FailedLook<'a> {
    of: &'a CertificateCase,
    held: &'a HeldCase,
    problem: &'a Problem,
    challenge: &'a Challenge,
    name: &'a NameCase,
    /// Address that the CA has used.
    used: IpAddr,
}

fn failed_looks(case: &Case) -> impl Iterator<Item = FailedLook<'_>> {
    let open = case.certificates.iter().filter(|of| of.is_open());
    open.flat_map(move |of| {
        of.held.iter().filter_map(move |held| {
            let problem = held.problem.as_ref().filter(|_| held.status == "invalid")?;
            let challenge = of.current_challenges().find(|c| c.spec.shown_domain() == held.name)?;
            let is_meant = |name: &&NameCase| {
                name.shown() == held.name && name.kind == Some(ChallengeType::Http01)
            };
            let name = case.names.iter().find(is_meant)?;
            let used = held.records.last().and_then(|record| record.used);
            let used = used.or_else(|| foreign::address_met(problem))?;
            Some(FailedLook { of, held, problem, challenge, name, used })
        })
    })
}

/// Returns evidence of a CA's validation, request by request, and of the place from which it failed if not the CA's own.
pub(super) fn looks(held: &HeldCase) -> Vec<Evidence> {
    let at = held.validated.unwrap_or(held.at);
    let requests = held.records.iter().map(|record| {
        let asked = if record.url.is_empty() { &record.hostname } else { &record.url };
        stored(format!("the CA's validation of {asked}"), at, record.to_string())
    });
    let is_elsewhere = |problem: &&Problem| foreign::perspective(problem) == Perspective::Secondary;
    let elsewhere = held.problem.as_ref().filter(is_elsewhere).map(|_| {
        let came = "other places of the world; from its own place the CA has seen the answer";
        stored(format!("places from which the CA missed the answer of {}", held.name), at, came)
    });
    requests.chain(elsewhere).collect()
}

impl FailedLook<'_> {
    fn finding(&self, cause: CauseId, grade: Grade) -> Finding {
        let said = evidence_of_answer(
            format!("authorization of {} at the CA", self.held.name),
            self.held.at,
            self.problem.to_string(),
        );
        let mut finding = of_name(cause, grade, self.name, said)
            .shown_by(looks(self.held))
            .with("ADDRESS", self.used.to_string())
            .with("ANSWER", &self.problem.detail);
        if let Some(order) = self.of.order() {
            let name = order.name();
            finding = finding.with("ORDER", name.name).with("NAMESPACE", name.namespace);
        }
        finding
    }
}

/// HTTP-36: the server that the CA has asked is the name's only server, and a self-check had seen the answer there.
fn answer_was_gone(case: &Case, found: &mut Vec<Finding>) {
    for look in failed_looks(case) {
        let is_gone = problem::met(look.challenge, look.problem) == Some(Symptom::NotFound);
        let was_seen = look.challenge.spec.solver.wait_instead_of_self_check.is_none();
        let answers = |at: &AddressProbe| {
            at.address.ip() == look.used && matches!(at.observation.seen, CheckResult::Reply { .. })
        };
        let is_same = !look.name.looks.is_empty() && look.name.looks.iter().all(answers);
        if !(is_gone && was_seen && is_same) {
            continue;
        }
        let grade = match foreign::perspective(look.problem) {
            Perspective::Primary => Grade::Likely,
            // A server that answers by region behaves like this, too.
            Perspective::Secondary => Grade::Possible,
        };
        // One of several machines behind the address may have had the answer.
        let webs = look.name.looks.iter().filter_map(|at| at.web.as_ref());
        if let Some(turns) = webs.into_iter().find_map(web::turns) {
            let detail = format!("{} answers in turn with {turns}", look.used);
            let finding = look.finding(CauseId::Http27, grade).with("DETAIL", detail);
            found.push(finding.with("NODE-ADDRESS", look.used.to_string()));
            continue;
        }
        // A listener of this machine answers until the CA has decided: requests from elsewhere are led to another machine.
        let is_here = look.name.looks.iter().all(|at| at.is_expected && at.is_answer);
        if is_here && !case.in_cluster && look.name.webroot.is_none() {
            let used = look.used;
            let detail =
                format!("{used} gives the answer to this machine, and did not give it to the CA");
            let finding = look.finding(CauseId::Http27, grade).with("DETAIL", detail);
            found.push(finding.with("NODE-ADDRESS", used.to_string()));
            continue;
        }
        found.push(look.finding(CauseId::Http36, grade));
    }
}

/// HTTP-06, by the address that the CA has used.
fn authority_has_used_ipv6(case: &Case, found: &mut Vec<Finding>) {
    for look in failed_looks(case).filter(|look| look.used.is_ipv6()) {
        let is_well = |at: &&AddressProbe| {
            at.address.is_ipv4() && fault(at, ChallengeType::Http01, case.in_cluster).is_none()
        };
        let Some(good) = look.name.looks.iter().find(is_well) else { continue };
        let shown = evidence_of_probe(&good.observation, "nothing is wrong over IPv4");
        found.push(look.finding(CauseId::Http06, Grade::Likely).shown_by([shown]));
    }
}

/// HTTP-09, by the addresses that the CA got from DNS.
fn authority_is_led_elsewhere(case: &Case, found: &mut Vec<Finding>) {
    // On one machine no client has to be led to the inner addresses: only the CA's result at its own addresses counts.
    if !case.in_cluster {
        return;
    }
    for look in failed_looks(case).filter(|look| look.name.is_looked_for_in_dns) {
        let LookUp::Found(inner) = &look.name.addresses else { continue };
        let outer = look.held.records.iter().find(|record| record.hostname == look.name.name);
        let outer = outer.map(|record| &record.resolved[..]).unwrap_or_default();
        if outer.is_empty() || outer.iter().any(|address| inner.contains(address)) {
            continue;
        }
        let list =
            |all: &[IpAddr]| all.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(", ");
        let asked = format!("A and AAAA of {}", look.name.name);
        found.push(
            look.finding(CauseId::Http09, Grade::Likely)
                .shown_by([evidence_of_answer(asked, case.at, list(inner))])
                .with("INNER", list(inner))
                .with("OUTER", list(outer)),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::cases::ordered;
    use super::super::judge;
    use super::super::tests::{check, look as at, observation};
    use super::*;
    use crate::model::validation_record::ValidationRecord;

    const GONE: &str = "Invalid response from http://www.example.com/x: 404";

    /// A look of the CA's that has failed so at an address, beside what is seen at another one.
    fn missed(detail: &str, used: &str, seen: AddressProbe, wait: Option<&str>) -> Case {
        let mut case = ordered(|_, _, challenge| {
            challenge["status"] = json!({"state": "invalid"});
            if let Some(wait) = wait {
                challenge["spec"]["solver"]["waitInsteadOfSelfCheck"] = json!(wait);
            }
        });
        let used = used.parse().unwrap();
        let record = ValidationRecord {
            hostname: "www.example.com".into(),
            resolved: vec![used],
            used: Some(used),
            ..ValidationRecord::default()
        };
        case.certificates[0].held = vec![HeldCase {
            name: "www.example.com".into(),
            status: "invalid".into(),
            problem: Some(Problem {
                kind: "urn:ietf:params:acme:error:unauthorized".into(),
                detail: detail.into(),
                status: 403,
                ..Problem::default()
            }),
            records: vec![record],
            at: case.at,
            ..HeldCase::default()
        }];
        case.names[0].looks = vec![seen];
        case
    }

    /// A server that answers there, and does not know the token that is asked for now.
    fn server(address: &str) -> AddressProbe {
        let seen = CheckResult::Reply {
            status: 404,
            body: String::new(),
            truncated: false,
            is_declined: false,
        };
        AddressProbe { is_expected: false, observation: observation(seen), ..at(address, false) }
    }

    #[test]
    fn an_answer_that_was_seen_and_is_gone_was_taken_down() {
        let here = || server("192.0.2.1:80");
        check(&missed(GONE, "192.0.2.1", here(), None), &[CauseId::Http36]);
        // Nobody had looked, or it was another server.
        check(&missed(GONE, "192.0.2.1", here(), Some("5s")), &[CauseId::Http03]);
        check(&missed(GONE, "192.0.2.2", here(), None), &[CauseId::Http03]);
        let other = "Invalid response from http://www.example.com/x: 403";
        check(&missed(other, "192.0.2.1", here(), None), &[CauseId::Http16]);
    }

    #[test]
    fn a_ca_that_looks_at_caa_has_seen_the_answer() {
        let gone = CheckResult::Reply {
            status: 404,
            body: String::new(),
            truncated: false,
            is_declined: false,
        };
        let look = AddressProbe { observation: observation(gone), ..at("192.0.2.1:80", false) };
        let said = "While processing CAA for www.example.com: DNS problem: SERVFAIL looking up CAA for example.com";
        let found = judge(&missed(said, "192.0.2.1", look, None));
        assert!(found.iter().all(|it| it.cause != CauseId::Http03), "{found:?}");
        assert!(found.iter().any(|it| it.cause == CauseId::Caa03), "{found:?}");
    }

    #[test]
    fn the_address_that_the_ca_has_used_tells_of_ipv6() {
        let case = missed(GONE, "2001:db8::1", server("192.0.2.1:80"), None);
        assert_eq!(judge(&case)[0].cause, CauseId::Http06);
        assert_eq!(judge(&case)[0].facts["ADDRESS"], "2001:db8::1");
    }

    #[test]
    fn addresses_that_only_the_ca_is_told_are_named() {
        let mut case = missed(GONE, "192.0.2.2", server("10.0.0.1:80"), None);
        case.names[0].is_looked_for_in_dns = true;
        case.names[0].addresses = LookUp::Found(vec!["10.0.0.1".parse().unwrap()]);
        // On one machine what the CA has met is what is wrong.
        assert_eq!(judge(&case)[0].cause, CauseId::Http03);
        case.in_cluster = true;
        let found = judge(&case);
        assert_eq!(
            (found[0].cause, found[0].facts["OUTER"].as_str()),
            (CauseId::Http09, "192.0.2.2")
        );
    }

    #[test]
    fn what_other_places_miss_is_told_with_what_the_first_has_seen() {
        let detail = format!("During secondary validation: 192.0.2.1: {GONE}");
        let found = judge(&missed(&detail, "192.0.2.1", server("192.0.2.1:80"), None));
        assert_eq!(found[0].cause, CauseId::Http29);
        let shown: Vec<&str> = found[0].evidence.iter().map(|one| one.came.as_str()).collect();
        assert!(shown.iter().any(|came| came.starts_with("connected to 192.0.2.1")), "{shown:?}");
        assert!(shown.iter().any(|came| came.starts_with("other places")), "{shown:?}");
    }
}
