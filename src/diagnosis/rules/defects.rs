//! CTL-08: defects of cert-manager's releases that later releases mend. A defect counts only if its sign is seen.

use crate::diagnosis::case::control::ControllerCase;
use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, stored};
use crate::diagnosis::words::foreign;
use crate::model::State;
use crate::model::release::Release;

pub(super) const RULES: &[FaultRule] = &[release_has_a_defect];

/// Defect that a later release mends.
struct KnownDefect {
    /// First release with the defect.
    since: Release,
    /// First release without the defect.
    until: Release,
    /// Fault, as the predicate of a sentence about the release.
    what: &'static str,
    /// Function that finds the defect's sign.
    sign: Sign,
}

/// Function that returns the evidence of a defect at a Certificate.
type Sign = fn(&Case, &ControllerCase, &CertificateCase) -> Option<Evidence>;

/// Defects that can be seen from here, by the release notes.
const DEFECTS: [KnownDefect; 3] = [
    KnownDefect {
        since: Release::new(1, 17, 0),
        until: Release::new(1, 18, 1),
        what: "waits too short a time for an authorization",
        sign: wait_has_ended,
    },
    KnownDefect {
        since: Release::new(1, 0, 0),
        until: Release::new(1, 21, 0),
        what: "fails an order at a temporary network error",
        sign: network_has_ended_it,
    },
    KnownDefect {
        since: Release::new(1, 21, 0),
        until: Release::new(1, 22, 0),
        what: "issues again at each stale answer of the CA if its gate ACMEUseARI is on",
        sign: issued_again_and_again,
    },
];

/// Minimum number of days between two planned renewals.
const MIN_RENEWAL_DAYS: i64 = 1;

fn release_has_a_defect(case: &Case, found: &mut Vec<Finding>) {
    let ([controller], DriverCase::CertManager) = (&case.control.controllers[..], &case.driver)
    else {
        return;
    };
    let Some(release) = Release::parse(&controller.release) else { return };
    let is_of = |defect: &&KnownDefect| defect.since <= release && release < defect.until;
    for defect in DEFECTS.iter().filter(is_of) {
        for of in &case.certificates {
            let Some(shown) = (defect.sign)(case, controller, of) else { continue };
            let name = of.certificate.name();
            let asked = format!("Deployment {}: image", controller.name);
            let tag = stored(asked, case.at, &controller.release);
            let detail = format!("{release} {}; {} no longer does", defect.what, defect.until);
            found.push(
                Finding::new(CauseId::Ctl08, Grade::Likely, format!("Certificate {name}"), shown)
                    .shown_by([tag])
                    .with("DETAIL", detail),
            );
        }
    }
}

fn errored_challenge(
    case: &Case,
    of: &CertificateCase,
    says: fn(&str) -> bool,
) -> Option<Evidence> {
    let challenge = of.current_challenges().find(|challenge| {
        challenge.status.state == Some(State::Errored) && says(&challenge.status.reason)
    })?;
    let asked = format!("Challenge {}: status", challenge.name());
    Some(stored(asked, case.at, format!("errored: {}", challenge.status.reason)))
}

fn wait_has_ended(case: &Case, _: &ControllerCase, of: &CertificateCase) -> Option<Evidence> {
    errored_challenge(case, of, foreign::has_run_out_of_time)
}

fn network_has_ended_it(case: &Case, _: &ControllerCase, of: &CertificateCase) -> Option<Evidence> {
    let order = of.order().filter(|order| {
        order.status.state == Some(State::Errored)
            && foreign::is_passing_fault_made_final(&order.status.reason)
    });
    let shown = order.map(|order| {
        let asked = format!("Order {}: status", order.name());
        stored(asked, case.at, format!("errored: {}", order.status.reason))
    });
    shown.or_else(|| errored_challenge(case, of, foreign::is_passing_fault_made_final))
}

fn issued_again_and_again(
    case: &Case,
    controller: &ControllerCase,
    of: &CertificateCase,
) -> Option<Evidence> {
    let mut gates = controller.flag("feature-gates")?.split(',');
    if !gates.any(|gate| gate.trim() == "ACMEUseARI=true") {
        return None;
    }
    let revision = of.certificate.status.revision.filter(|revision| *revision > 2)?;
    let since = of.certificate.metadata.creation_timestamp?.timestamp();
    let days = case.at.duration_since(since).as_hours() / 24;
    let asked = format!("Certificate {}: status.revision", of.certificate.name());
    let came = format!("{revision}, {days} days after the Certificate was made");
    (days / revision < MIN_RENEWAL_DAYS).then(|| stored(asked, case.at, came))
}

#[cfg(test)]
mod tests {
    use super::super::control_plane::tests::{cluster, says};
    use super::super::tests::check;
    use super::*;

    /// A Challenge that has errored so under a release.
    fn errored(release: &str, reason: &str) -> Case {
        cluster(|case| {
            case.control.controllers[0].release = release.into();
            says(case, reason);
            case.certificates[0].challenges[0].status.state = Some(State::Errored);
        })
    }

    #[test]
    fn a_defect_is_told_of_the_releases_that_have_it_and_where_it_shows() {
        let said = "unexpected non-ACME API error: EOF";
        check(&errored("v1.20.3", said), &[CauseId::Ctl08]);
        check(&errored("v1.21.0", said), &[]);
        check(&errored("latest", said), &[]);
        check(&errored("v1.20.3", "else"), &[]);
    }

    #[test]
    fn a_gate_that_issues_again_is_told_by_the_count() {
        let of = |gates: &str, revision: i64| {
            cluster(|case| {
                let flags = &mut case.control.controllers[0].flags;
                flags.insert("feature-gates".into(), gates.into());
                case.certificates[0].due.as_mut().unwrap().reason = "Renewing".into();
                let certificate = &mut case.certificates[0].certificate;
                certificate.status.revision = Some(revision);
                let made = "2026-11-24T10:00:00Z".parse::<jiff::Timestamp>().unwrap();
                certificate.metadata.creation_timestamp = Some(made.into());
            })
        };
        check(&of("ACMEUseARI=true", 9), &[CauseId::Ctl08]);
        check(&of("ACMEUseARI=true", 1), &[]);
        check(&of("ACMEUseARI=false", 9), &[]);
    }
}
