//! CTL-03 and CTL-18: webhooks that the API server has to call, and cannot.

use super::control_plane::messages_of_others;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::control::{AdmissionCase, OWN_WEBHOOK};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, stored};
use crate::diagnosis::words::controller::unreached_webhook;

pub(super) const RULES: &[FaultRule] = &[admission_is_not_reached, objects_are_not_judged];

/// Returns evidence of the faults of a webhook that the API server has to call.
fn defects(case: &Case, of: &AdmissionCase) -> Vec<Evidence> {
    let service = of.service.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut shown = Vec::new();
    // A webhook of others may have a certificate that the API server trusts anyway.
    if !of.has_bundle && of.is_own() {
        let asked = format!("{}: clientConfig.caBundle", of.configuration);
        shown.push(stored(asked, case.at, "empty: no certificate of the webhook is trusted"));
    }
    if of.endpoints == Some(0) {
        let asked = format!("EndpointSlices of Service {service}");
        shown.push(stored(asked, case.at, "no endpoint is ready"));
    }
    shown
}

/// Finds webhooks by the fault in their configuration, before an object is refused.
fn admission_is_not_reached(case: &Case, found: &mut Vec<Finding>) {
    for of in case.control.admission.iter().filter(|of| of.fails_closed) {
        let mut shown = defects(case, of).into_iter();
        let Some(first) = shown.next() else { continue };
        let why = format!("{}: {}", of.webhook, first.came);
        let about = |cause, subject: String| {
            let finding = Finding::new(cause, Grade::Certain, subject, first.clone());
            finding.shown_by(shown.clone()).with("DETAIL", &why)
        };
        if of.is_own() {
            found.push(about(CauseId::Ctl03, of.configuration.clone()));
            continue;
        }
        let (kind, configuration) = of.configuration.split_once(' ').unwrap_or_default();
        let asked = format!("{}: webhook {}", of.configuration, of.webhook);
        let rules = format!("is called for new {}", of.asked_about.join(", "));
        let rules = stored(asked, case.at, rules);
        for certificate in case.certificates.iter().filter(|it| it.is_open()) {
            let name = certificate.certificate.name();
            if of.guarded.contains(&name.namespace) {
                let finding = about(CauseId::Ctl18, format!("Certificate {name}"));
                let finding = finding.shown_by([rules.clone()]).with("NAMESPACE", &name.namespace);
                found.push(finding.with("WEBHOOK-KIND", kind).with("WEBHOOK-NAME", configuration));
            }
        }
    }
}

/// Finds webhooks by the API server's message about an object that was refused.
fn objects_are_not_judged(case: &Case, found: &mut Vec<Finding>) {
    let is_known = |cause| found.iter().any(|finding: &Finding| finding.cause == cause);
    let known = is_known(CauseId::Ctl03) || is_known(CauseId::Ctl18);
    for (_, shown) in messages_of_others(case).into_iter().filter(|_| !known) {
        let Some(webhook) = unreached_webhook(&shown.came) else { continue };
        let cause = if webhook == OWN_WEBHOOK { CauseId::Ctl03 } else { CauseId::Ctl18 };
        let why = shown.came.clone();
        let finding = Finding::new(cause, Grade::Certain, webhook, shown.clone());
        found.push(finding.with("DETAIL", why));
    }
}

#[cfg(test)]
mod tests {
    use super::super::control_plane::tests::{admission, cluster, says};
    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_webhook_that_cannot_be_reached_is_told_unless_it_may_fail() {
        let of = |change: fn(&mut AdmissionCase)| {
            cluster(|case| {
                let mut admission = admission();
                change(&mut admission);
                case.control.admission = vec![admission];
            })
        };
        check(&of(|of| of.has_bundle = false), &[CauseId::Ctl03]);
        check(&of(|of| of.endpoints = Some(0)), &[CauseId::Ctl03]);
        check(&of(|of| of.endpoints = None), &[]);
        check(
            &of(|of| {
                of.has_bundle = false;
                of.fails_closed = false;
            }),
            &[],
        );
    }

    #[test]
    fn the_webhook_of_another_that_is_gone_keeps_out_the_objects_that_it_is_asked_about() {
        let of = |change: fn(&mut AdmissionCase)| {
            cluster(|case| {
                let mut admission = AdmissionCase {
                    webhook: "policy.example.com".into(),
                    has_bundle: false,
                    endpoints: Some(0),
                    asked_about: vec!["secrets".into()],
                    guarded: vec!["web".into()],
                    ..admission()
                };
                change(&mut admission);
                case.control.admission = vec![admission];
            })
        };
        check(&of(|_| ()), &[CauseId::Ctl18]);
        check(&of(|of| of.endpoints = Some(1)), &[]);
        check(&of(|of| of.endpoints = None), &[]);
        check(&of(|of| of.fails_closed = false), &[]);
        check(&of(|of| of.guarded = vec!["other".into()]), &[]);
    }

    #[test]
    fn an_object_that_nobody_could_judge_names_the_webhook() {
        let said = "Internal error occurred: failed calling webhook \"guard.example.com\": failed to call webhook: Post \
                    \"https://guard.web.svc:443/?timeout=10s\": dial tcp 10.0.0.9:443: connect: connection refused";
        let case = cluster(|case| says(case, said));
        let found = super::super::judge(&case);
        assert_eq!(found[0].cause, CauseId::Ctl18, "{found:#?}");
        assert_eq!(found.iter().filter(|it| it.is_error()).count(), 1, "{found:#?}");
        assert_eq!(found[0].subject, "guard.example.com");
    }
}
