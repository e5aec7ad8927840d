//! ORD: Certificates, requests and orders as they stand.

use jiff::{SignedDuration, Timestamp};

use crate::diagnosis::case::{Case, CertificateCase};
use crate::diagnosis::catalogue::CauseSeverity;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, evidence_of_answer, stored};
use crate::model::common::{condition, is_true};
use crate::model::memory::{Holder, Memory};
use crate::model::{ConditionStatus, State, Time};

pub(super) const RULES: &[FaultRule] = &[
    nothing_is_due,
    pause_after_failure,
    request_waits_for_approval,
    order_is_errored,
    order_is_expired,
    order_waits_though_all_is_valid,
    order_is_being_finalized,
    secret_has_two_owners,
];

/// Maximum time of an approver for one request, which takes a second.
const APPROVAL_MAX: SignedDuration = SignedDuration::from_mins(1);
/// Maximum time of an approver while many requests wait.
const APPROVAL_MAX_IN_CROWD: SignedDuration = SignedDuration::from_mins(15);
/// Minimum number of open Certificates that are a crowd.
const MIN_CROWD: usize = 50;
/// Maximum time that a CA needs to see that all names of an order are proven.
const CA_UPDATE_MAX: SignedDuration = SignedDuration::from_secs(30);
/// Time after which a CA that has all it needs, and names no time for the next request, is late.
const CA_LATE_AFTER: SignedDuration = SignedDuration::from_mins(5);

/// Builds a finding about a Certificate.
fn about(
    of: &CertificateCase,
    cause: CauseId,
    grade: Grade,
    evidence: crate::diagnosis::finding::Evidence,
) -> Finding {
    let name = of.certificate.name();
    Finding::new(cause, grade, format!("Certificate {name}"), evidence)
        .with("NAME", &name.name)
        .with("NAMESPACE", &name.namespace)
}

fn nothing_is_due(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.due.is_none()) {
        let status = &of.certificate.status;
        if !is_true(&status.conditions, "Ready") || is_true(&status.conditions, "Issuing") {
            continue;
        }
        let Some(end) = status.not_after else { continue };
        let asked = format!("Certificate {}: status", of.certificate.name());
        let renewal = status.renewal_time.map(|at| format!(", renewed from {at}"));
        let came = format!("Ready, valid until {end}{}", renewal.unwrap_or_default());
        found.push(about(of, CauseId::Ord01, Grade::Certain, stored(asked, case.at, came)).with(
            "RENEWAL",
            status.renewal_time.map_or_else(|| end.to_string(), |at| at.to_string()),
        ));
    }
}

fn pause_after_failure(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.certificates {
        let Some(until) = of.next_try.filter(|until| *until > case.at) else { continue };
        let status = &of.certificate.status;
        let failed = status.last_failure_time.map(|at| at.to_string()).unwrap_or_default();
        let attempts = status.failed_issuance_attempts.unwrap_or(1);
        let asked = format!("Certificate {}: status", of.certificate.name());
        let came = format!("failedIssuanceAttempts: {attempts}, lastFailureTime: {failed}");
        // Orders and challenges may be gone; the condition Issuing says what failed, too.
        let told = condition(&of.certificate.status.conditions, "Issuing")
            .filter(|issuing| {
                issuing.status == ConditionStatus::False && !issuing.message.is_empty()
            })
            .map(|issuing| {
                let asked = format!("Certificate {}: condition Issuing", of.certificate.name());
                stored(asked, case.at, format!("{}: {}", issuing.reason, issuing.message))
            });
        found.push(
            about(of, CauseId::Ord02, Grade::Certain, stored(asked, case.at, came))
                .shown_by(told)
                .with("ATTEMPTS", attempts.to_string())
                .with("UNTIL", Time::new(until).to_string()),
        );
    }
}

fn request_waits_for_approval(case: &Case, found: &mut Vec<Finding>) {
    let open = || case.certificates.iter().filter(|of| of.is_open());
    // Among many requests, an approver comes to each request later.
    let patience = if open().count() < MIN_CROWD { APPROVAL_MAX } else { APPROVAL_MAX_IN_CROWD };
    for of in open() {
        let Some(request) = of.requests.last() else { continue };
        let made = request.metadata.creation_timestamp;
        let is_new = made.is_some_and(|at| case.at.duration_since(at.timestamp()) < patience);
        let conditions = &request.status.conditions;
        let denied = condition(conditions, "Denied").filter(|c| c.status == ConditionStatus::True);
        let is_open =
            of.due.is_some() && of.order().is_none() && !is_true(conditions, "Approved") && !is_new;
        let came = match denied {
            Some(denied) => format!("Denied: {}: {}", denied.reason, denied.message),
            None if is_open => "no condition Approved".to_owned(),
            None => continue,
        };
        let name = request.name();
        let asked = format!("CertificateRequest {name}: conditions");
        found.push(
            about(of, CauseId::Ord03, Grade::Certain, stored(asked, case.at, came))
                .with("REQUEST", &name.name),
        );
    }
}

fn order_is_errored(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let Some(order) = of.order() else { continue };
        if order.status.state != Some(State::Errored) {
            continue;
        }
        let name = order.name();
        let asked = format!("Order {name}: status");
        let came = format!("errored: {}", order.status.reason);
        found.push(
            about(of, CauseId::Ord04, Grade::Certain, stored(asked, case.at, came))
                .with("ORDER", &name.name)
                .with("REASON", &order.status.reason),
        );
    }
}

fn order_is_expired(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let held = of.held.iter().filter(|held| {
            let is_past = held.expires.is_some_and(|at| at <= case.at);
            held.status == "expired" || (held.status == "pending" && is_past)
        });
        for held in held {
            let until = held.expires.map(|at| Time::new(at).to_string()).unwrap_or_default();
            let came = format!("{}, until {until}", held.status);
            let shown = evidence_of_answer(
                format!("authorization of {} at the CA", held.name),
                held.at,
                came,
            );
            found.push(about(of, CauseId::Ord06, Grade::Certain, shown).with("DOMAIN", &held.name));
        }
        let Some(order) = of.order() else { continue };
        let expired = of.current_challenges().find(|c| c.status.state == Some(State::Expired));
        let asked = match (order.status.state, expired) {
            (Some(State::Expired), _) => format!("Order {}: status.state", order.name()),
            (_, Some(challenge)) => format!("Challenge {}: status.state", challenge.name()),
            _ => continue,
        };
        let shown = stored(asked, case.at, "expired");
        found.push(about(of, CauseId::Ord06, Grade::Certain, shown));
    }
}

fn order_waits_though_all_is_valid(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open() && !of.held.is_empty()) {
        let Some(order) = of.order() else { continue };
        let is_all_valid = of.held.iter().all(|held| held.status == "valid");
        let waits = matches!(order.status.state, Some(State::Pending));
        // The CA may be further than the status, and needs a moment itself.
        let is_stuck = match &of.held_order {
            Some(held) => {
                let is_done = |at: Timestamp| case.at.duration_since(at) > CA_UPDATE_MAX;
                held.status == "pending"
                    && of.held.iter().all(|it| it.validated.is_none_or(is_done))
            }
            None => of.current_challenges().all(|c| c.status.state == Some(State::Valid)),
        };
        if !(is_all_valid && waits && is_stuck) {
            continue;
        }
        let came = format!("{} authorizations valid, the order pending", of.held.len());
        let shown = evidence_of_answer(format!("Order {} at the CA", order.name()), case.at, came);
        let finding = about(of, CauseId::Ord16, Grade::Possible, shown);
        found.push(overdue(case, of, finding).with("ORDER", order.name().name));
    }
}

/// Raises a finding to an error if the CA is late: all names were proven minutes ago, and the CA has named no time.
fn overdue(case: &Case, of: &CertificateCase, finding: Finding) -> Finding {
    let proven: Option<Vec<Timestamp>> = of.held.iter().map(|held| held.validated).collect();
    let last = proven.and_then(|all| all.into_iter().max());
    let named = of.order().and_then(|order| {
        Memory::read(Holder::Order, &order.metadata.annotations).next_try.filter(|at| *at > case.at)
    });
    match last.filter(|last| named.is_none() && case.at.duration_since(*last) >= CA_LATE_AFTER) {
        Some(last) => {
            let asked = "the last authorization that became valid at the CA";
            let shown =
                evidence_of_answer(asked, case.at, format!("validated at {}", Time::new(last)));
            Finding { grade: Grade::Likely, ..finding }
                .shown_by([shown])
                .meaning(CauseSeverity::Error)
        }
        None => finding,
    }
}

/// ORD-09: the CA has all it needs, and has not made the certificate yet.
fn order_is_being_finalized(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let Some(order) = of.order() else { continue };
        let Some(state @ (State::Processing | State::Ready)) = order.status.state else { continue };
        let name = order.name();
        let asked = format!("Order {name}: status.state");
        let shown = stored(asked, case.at, state.as_str());
        let finding = about(of, CauseId::Ord09, Grade::Possible, shown);
        found.push(overdue(case, of, finding).with("ORDER", &name.name));
    }
}

fn secret_has_two_owners(case: &Case, found: &mut Vec<Finding>) {
    for of in case.certificates.iter().filter(|of| !of.rivals.is_empty()) {
        let rivals: Vec<String> = of.rivals.iter().map(ToString::to_string).collect();
        let secret = &of.certificate.spec.secret_name;
        let asked = format!("Certificate {}: spec.secretName", of.certificate.name());
        let came = format!("{secret}, as that of Certificate {}", rivals.join(", "));
        found.push(
            about(of, CauseId::Ord10, Grade::Certain, stored(asked, case.at, came))
                .with("SECRET", secret)
                .with("OTHER", rivals.join(", ")),
        );
    }
}
