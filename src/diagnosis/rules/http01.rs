//! HTTP: addresses, web servers and answers of HTTP-01, as a CA would see them.

use url::Url;

use super::http_answer::{ACME_TLS, body_fault, lacks, saw, stateless, surplus};
use super::{by_status, symptom};
use crate::diagnosis::case::name::{AddressProbe, NameCase};
use crate::diagnosis::case::web::{WebProbe, WebReply};
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, evidence_of_probe, stored};
use crate::diagnosis::words::{facts, http, refusal};
use crate::model::cause::{Cause, Symptom};
use crate::model::observation::{CheckResult, Observation};
use crate::model::{Challenge, ChallengeType, State};

pub(super) const RULES: &[FaultRule] = &[
    port_is_not_to_be_had,
    addresses_fail,
    addresses_differ,
    answer_is_not_seen,
    self_check_sees_it_otherwise,
    self_check_does_not_get_there,
];

/// Returns the names that a CA validates at an address.
pub(super) fn by_address(case: &Case) -> impl Iterator<Item = &NameCase> {
    // Before a solver fits, the type is not known, except for a name that the user asks about alone.
    case.names.iter().filter(|name| match name.kind {
        Some(kind) => !kind.is_by_record() && !case.is_refused_unseen(name),
        None => name.is_bare(),
    })
}

pub(super) fn of_name(
    cause: CauseId,
    grade: Grade,
    name: &NameCase,
    evidence: Evidence,
) -> Finding {
    Finding::new(cause, grade, name.shown(), evidence).with("DOMAIN", &name.name)
}

/// Returns the cause that a probe of an address shows; `None` if the answer is right.
pub(super) fn fault(
    look: &AddressProbe,
    kind: ChallengeType,
    in_cluster: bool,
) -> Option<(CauseId, Grade)> {
    if look.is_answer {
        return None;
    }
    if let CheckResult::Reply { status: 400.., body, .. } = &look.observation.seen
        && http::is_of_tls_port(body)
    {
        return Some((CauseId::Http20, Grade::Certain));
    }
    if let CheckResult::Reply { status, body, .. } = &look.observation.seen {
        if *status == 400 && http::wants_client_certificate(body) {
            return Some((CauseId::Http16, Grade::Certain));
        }
        if *status == 503 && http::lacks_healthy_server(body) {
            return Some((CauseId::Http25, Grade::Likely));
        }
    }
    if let CheckResult::Handshake { protocol, .. } = &look.observation.seen {
        let is_other = protocol.as_bytes() != ACME_TLS.as_bytes();
        return Some((if is_other { CauseId::Tls01 } else { CauseId::Tls02 }, Grade::Certain));
    }
    let sighting = look.sighting.map(|sighting| sighting.symptom);
    if !look.is_expected {
        // A server's answer to an unknown token proves little.
        // Behind a redirect, another port has failed.
        let led = sighting.filter(|it| matches!(it, Symptom::TlsPortSilent | Symptom::NoTls));
        let symptom = led.or_else(|| fault_of(&look.observation))?;
        let (cause, grade) = symptom::cause_of(symptom, kind, in_cluster);
        let is_said = !matches!(
            look.observation.seen,
            CheckResult::Nothing { .. } | CheckResult::Redirect { .. }
        );
        return Some((cause, if is_said { Grade::Possible } else { grade }));
    }
    if let CheckResult::Reply { status, body, .. } = &look.observation.seen
        && *status != 200
        && body.trim_end() == look.expected
    {
        // Only the status is wrong.
        return Some((CauseId::Http32, Grade::Certain));
    }
    if sighting != Some(Symptom::RedirectedAway)
        && let CheckResult::Reply { status: 200, body, .. } = &look.observation.seen
    {
        return Some(body_fault(look, body));
    }
    let symptom = sighting.or_else(|| fault_of(&look.observation))?;
    if symptom == Symptom::RedirectedAway && in_cluster && is_led_to_https(&look.observation) {
        return Some((CauseId::Http14, Grade::Likely));
    }
    // The server also hangs up on a header of the PROXY protocol: no server is there that needs such a header.
    let is_hung_up = |web: &WebProbe| {
        let all = [&web.challenge, &web.beside, &web.root];
        web.proxied == Some(WebReply::Ended) && all.iter().all(|it| **it == WebReply::Ended)
    };
    if symptom == Symptom::HungUp && look.web.as_ref().is_some_and(is_hung_up) {
        return Some((CauseId::Http05, Grade::Likely));
    }
    Some(symptom::cause_of(symptom, kind, in_cluster))
}

/// Reports whether a probe was led from a host to the same host by HTTPS, where another part of the same server answers.
fn is_led_to_https(look: &Observation) -> bool {
    let host = |url: &str| Url::parse(url).ok()?.host_str().map(str::to_owned);
    let (Some(first), Some(last)) = (look.hops.first(), look.hops.last()) else { return false };
    last.url.starts_with("https:") && host(&first.url) == host(&last.url)
}

/// Returns the fault of a server as such, whatever answer was expected.
fn fault_of(observation: &Observation) -> Option<Symptom> {
    match &observation.seen {
        CheckResult::Nothing { symptom, .. } => *symptom,
        CheckResult::Redirect { .. } => Some(Symptom::RedirectNotFollowed),
        CheckResult::Reply { status: 401 | 403, .. } => Some(Symptom::Forbidden),
        CheckResult::Reply { status: 400, .. } => Some(Symptom::BadRequest),
        CheckResult::Reply { status: 402 | 405..=499, .. } => Some(Symptom::RequestRefused),
        CheckResult::Reply { status: 500.., .. } => Some(Symptom::ServerError),
        CheckResult::Reply { .. }
        | CheckResult::NoLook { .. }
        | CheckResult::Handshake { .. }
        | CheckResult::Records { .. } => None,
    }
}

/// Finds every address that fails, with IPv6 apart: a CA tries IPv6 first.
fn addresses_fail(case: &Case, found: &mut Vec<Finding>) {
    for name in by_address(case).filter(|name| !has_answered_ca(case, name)) {
        let kind = name.kind.unwrap_or(ChallengeType::Http01);
        let of = |look: &AddressProbe| fault(look, kind, case.in_cluster);
        let good_v4 = name.looks.iter().any(|l| l.address.is_ipv4() && of(l).is_none());
        let has_v4 = name.looks.iter().any(|look| look.address.is_ipv4());
        let v4_connects = name.looks.iter().any(|look| {
            look.address.is_ipv4() && !matches!(look.observation.seen, CheckResult::Nothing { .. })
        });
        for look in &name.looks {
            let Some((cause, grade)) = of(look) else { continue };
            let came = surplus(look)
                .or_else(|| stateless(look))
                .unwrap_or_else(|| lacks(name, &look.observation, Some(&look.expected)));
            let shown = evidence_of_probe(&look.observation, &came);
            let (cause, grade, on_path) = by_status::judged(case, name, look, (cause, grade));
            let is_ipv6 = look.address.is_ipv6();
            let symptom = match &look.observation.seen {
                CheckResult::Nothing { symptom, .. } => {
                    Some(symptom.unwrap_or(Symptom::Unreachable))
                }
                _ => None,
            };
            // This machine may have no IPv6.
            let is_doubtful = is_ipv6 && symptom == Some(Symptom::Unreachable);
            // Let's Encrypt tries IPv4 after a failed connection, once; others need not.
            let is_passed_over = is_ipv6
                && v4_connects
                && matches!(symptom, Some(Symptom::Unreachable | Symptom::ConnectionRefused));
            let is_proof = look.is_expected && !is_doubtful && !is_passed_over;
            let (cause, grade) = match (is_passed_over, is_ipv6 && good_v4) {
                (true, _) => (CauseId::Http06, Grade::Possible),
                (false, true) => (CauseId::Http06, Grade::Certain),
                (false, false) if is_doubtful && !has_v4 => (cause, Grade::Possible),
                (false, false) => (cause, grade),
            };
            let arrivals = look.arrivals.iter();
            let arrivals =
                arrivals.map(|came| stored("request to the listener", came.at, came.to_string()));
            found.push(
                of_name(cause, grade, name, shown)
                    .shown_by(on_path)
                    .shown_by(arrivals)
                    .failing(is_proof)
                    .with("ADDRESS", look.address.ip().to_string())
                    .with("PORT", look.address.port().to_string())
                    .with("ANSWER", came),
            );
        }
    }
}

/// HTTP-34: nothing on this machine can answer. A failure at the CA counts more: some server has answered the CA.
fn port_is_not_to_be_had(case: &Case, found: &mut Vec<Finding>) {
    let Some(why) = &case.listener_fault else { return };
    let is_answered_here = |name: &&NameCase| {
        (name.kind == Some(ChallengeType::Http01) || name.is_bare())
            && name.webroot.is_none()
            && !case.certificates.iter().any(|of| has_failed_at_ca(of, name))
    };
    for name in by_address(case).filter(is_answered_here) {
        let shown = stored("listening for HTTP-01 on this machine", case.at, why);
        found.push(of_name(CauseId::Http34, Grade::Likely, name, shown).with("ANSWER", why));
    }
}

/// Reports whether the CA has validated a name and refused the name.
pub(super) fn has_failed_at_ca(of: &CertificateCase, name: &NameCase) -> bool {
    let is_refused = |challenge: &Challenge| {
        challenge.spec.shown_domain() == name.shown()
            && (challenge.status.state == Some(State::Invalid)
                || matches!(facts::cause(challenge), Some(Cause::Refused(_))))
    };
    let mut held = of.held.iter();
    held.any(|held| held.name == name.shown() && held.status == "invalid")
        || of.challenges.iter().any(is_refused)
}

/// Reports whether a CA has refused a name for its CAA records, which the CA checks once it has seen the answer.
fn has_answered_ca(case: &Case, name: &NameCase) -> bool {
    let mut held = case.certificates.iter().flat_map(|of| &of.held);
    held.any(|held| {
        let problem = held.problem.as_ref().filter(|_| held.name == name.shown());
        held.status == "invalid" && problem.is_some_and(refusal::is_about_caa)
    })
}

fn addresses_differ(case: &Case, found: &mut Vec<Finding>) {
    for name in by_address(case) {
        let looks: Vec<&AddressProbe> = name.looks.iter().collect();
        let (good, bad): (Vec<&AddressProbe>, Vec<_>) =
            looks.iter().partition(|look| look.is_answer);
        let (Some(good), Some(bad)) = (good.first(), bad.first()) else { continue };
        // IPv6 has a cause of its own.
        if bad.address.is_ipv6() && good.address.is_ipv4() {
            continue;
        }
        let shown = evidence_of_probe(&bad.observation, saw(&bad.observation));
        let other = evidence_of_probe(&good.observation, "the answer");
        found.push(
            of_name(CauseId::Http07, Grade::Certain, name, shown)
                .shown_by([other])
                .with("ADDRESS", bad.address.ip().to_string()),
        );
    }
}

/// Finds answers of Challenges that were probed, and that a CA would not take.
fn answer_is_not_seen(case: &Case, found: &mut Vec<Finding>) {
    // If there are addresses, each was probed for the answer.
    for name in by_address(case).filter(|name| name.looks.is_empty()) {
        let (Some(answer), Some(kind)) = (&name.answer, name.kind) else { continue };
        let (Some(reason), Some(look)) = (&answer.reason, answer.observations.first()) else {
            continue;
        };
        let symptom = answer.sighting.map(|sighting| sighting.symptom);
        let (cause, grade) = match (symptom.or_else(|| fault_of(look)), &look.seen) {
            (Some(symptom), _) => symptom::cause_of(symptom, kind, case.in_cluster),
            (None, CheckResult::Handshake { protocol, .. }) if protocol != ACME_TLS => {
                (CauseId::Tls01, Grade::Certain)
            }
            (None, CheckResult::Handshake { .. }) => (CauseId::Tls02, Grade::Certain),
            (None, _) => continue,
        };
        let hop = look.hops.last().and_then(|hop| hop.address);
        let shown = evidence_of_probe(look, reason);
        let came = lacks(name, look, None);
        found.push(
            of_name(cause, grade, name, shown)
                .with("ADDRESS", hop.map(|a| a.ip().to_string()).unwrap_or_default())
                .with("PORT", hop.map_or(80, |a| a.port()).to_string())
                .with("ANSWER", came)
                .failing(!matches!(look.seen, CheckResult::NoLook { .. })),
        );
    }
}

/// HTTP-23: an answer that a CA takes, and that keeps cert-manager's self-check waiting.
fn self_check_sees_it_otherwise(case: &Case, found: &mut Vec<Finding>) {
    if case.driver != DriverCase::CertManager {
        return;
    }
    for name in by_address(case) {
        let good = name.looks.iter().filter(|look| look.is_answer);
        for (look, difference) in good.filter_map(|look| Some((look, look.disagreement.as_ref()?)))
        {
            let shown = evidence_of_probe(&look.observation, difference);
            found.push(
                of_name(CauseId::Http23, Grade::Likely, name, shown).with("ANSWER", difference),
            );
        }
    }
}

/// HTTP-08, HTTP-30: the self-check does not reach the server whose answer is right as seen from here.
fn self_check_does_not_get_there(case: &Case, found: &mut Vec<Finding>) {
    // The reason is current only if a controller repeats the self-check.
    if !matches!(case.driver, DriverCase::CertManager | DriverCase::KubectlAcme) {
        return;
    }
    for name in by_address(case) {
        let Some(challenge) = &name.pending else { continue };
        let is_right = name.looks.iter().all(|look| look.is_expected && look.is_answer);
        let (Some(look), true) = (name.looks.first(), is_right) else { continue };
        let cause = match facts::sighting(challenge).map(|sighting| sighting.symptom) {
            // The rule for vantages, which knows cert-manager's proxies, reports on cert-manager.
            Some(Symptom::Unreachable | Symptom::ConnectionRefused | Symptom::NoReply)
                if case.driver == DriverCase::KubectlAcme =>
            {
                CauseId::Http08
            }
            Some(Symptom::HungUp) => CauseId::Http30,
            _ => continue,
        };
        let reason = &challenge.status.reason;
        let asked = format!("Challenge {}: status.reason", challenge.name());
        found.push(
            of_name(cause, Grade::Likely, name, stored(asked, case.at, reason))
                .shown_by([evidence_of_probe(&look.observation, "the answer")])
                .with("ADDRESS", look.address.ip().to_string())
                .with("NAMESPACE", &challenge.metadata.namespace)
                .with("DETAIL", reason)
                .with("ANSWER", reason),
        );
    }
}
