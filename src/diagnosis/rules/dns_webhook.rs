//! PRV-04 and PRV-08 to PRV-11: credentials of the machine, and webhooks for DNS-01.

use super::control_plane::messages_of_others;
use crate::diagnosis::case::Case;
use crate::diagnosis::case::control::{DnsWebhookCase, WebhookApi};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, FaultRule, Finding, Grade, stored};
use crate::diagnosis::words::controller::{self, ControllerLack, GroupFault};
use crate::model::{Key, Kind};

pub(super) const RULES: &[FaultRule] =
    &[ambient_credentials_are_refused, webhook_is_away, webhook_is_closed, webhook_is_refused];

/// Groups that are cert-manager's own: a webhook may not use these groups.
const OWN_GROUPS: [&str; 2] = ["cert-manager.io", "acme.cert-manager.io"];

fn about(cause: CauseId, grade: Grade, issuer: &Key, shown: Evidence) -> Finding {
    let subject = issuer.to_string();
    Finding::new(cause, grade, subject.clone(), shown).with("ISSUER", subject)
}

fn of_webhook(cause: CauseId, grade: Grade, of: &DnsWebhookCase, shown: Evidence) -> Finding {
    about(cause, grade, &of.issuer, shown).with("GROUP", &of.group).with("SOLVER", &of.solver)
}

/// PRV-04, by the controller's message; the controller would not complain if a flag allowed the credentials.
fn ambient_credentials_are_refused(case: &Case, found: &mut Vec<Finding>) {
    for (issuer, shown) in messages_of_others(case) {
        if controller::controller_lack(&shown.came) != Some(ControllerLack::AmbientCredentials) {
            continue;
        }
        let Some(issuer) = issuer else { continue };
        let flag = match issuer.kind {
            Kind::ClusterIssuer => "cluster-issuer-ambient-credentials",
            _ => "issuer-ambient-credentials",
        };
        let flags = case.control.controllers.iter().map(|of| {
            let came = format!("{flag} is {}", of.flag(flag).unwrap_or("not set"));
            stored(format!("Deployment {}: args", of.name), case.at, came)
        });
        found.push(
            about(CauseId::Prv04, Grade::Certain, &issuer, shown)
                .shown_by(flags.collect::<Vec<_>>()),
        );
    }
}

/// PRV-08 and PRV-10, by the state of the group at the API server.
fn webhook_is_away(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.control.dns_webhooks {
        let group = format!("APIService v1alpha1.{}", of.group);
        if OWN_GROUPS.contains(&of.group.as_str()) {
            let asked = format!("{}: dns01.webhook.groupName", of.issuer);
            let came = format!("{}, which is cert-manager's own", of.group);
            let shown = stored(asked, case.at, came);
            found.push(of_webhook(CauseId::Prv10, Grade::Certain, of, shown));
            continue;
        }
        match (&of.api, &of.served) {
            (WebhookApi::Unavailable { reason, message, service }, _) => {
                let shown = stored(
                    format!("{group}: condition Available"),
                    case.at,
                    format!("False: {reason}: {message} (Service {service})"),
                );
                let detail = format!("{}: {reason}", of.group);
                let finding = of_webhook(CauseId::Prv08, Grade::Certain, of, shown);
                found.push(finding.with("DETAIL", detail).with("PLACE", &service.namespace));
            }
            (WebhookApi::Absent, _) => {
                let shown = stored(group, case.at, "not found");
                let finding = of_webhook(CauseId::Prv10, Grade::Certain, of, shown);
                found.push(finding.with("DETAIL", format!("no APIService serves {}", of.group)));
            }
            (WebhookApi::Available, Some(served)) if !served.contains(&of.solver) => {
                let served = match &served[..] {
                    [] => "nothing".to_owned(),
                    names => names.join(", "),
                };
                let shown = stored(format!("resources of {}/v1alpha1", of.group), case.at, &served);
                let detail = format!("{} serves {served}, and no {}", of.group, of.solver);
                let finding = of_webhook(CauseId::Prv10, Grade::Certain, of, shown);
                found.push(finding.with("DETAIL", detail));
            }
            _ => {}
        }
    }
}

/// PRV-09 and PRV-11, by the API server's review of the accounts.
fn webhook_is_closed(case: &Case, found: &mut Vec<Finding>) {
    for of in &case.control.dns_webhooks {
        // No account has a permission for a group that is not served.
        let is_served = of.api == WebhookApi::Available;
        if let (Some(caller), Some(false), true) = (&of.caller, of.may_call, is_served) {
            let asked = format!("SubjectAccessReview of {caller}");
            let came = format!("create {}.{}: not allowed", of.solver, of.group);
            let shown = stored(asked, case.at, came);
            found.push(of_webhook(CauseId::Prv09, Grade::Certain, of, shown));
        }
        for secret in &of.closed_secrets {
            let Some(account) = &of.account else { continue };
            let asked = format!("SubjectAccessReview of {account}");
            let shown = stored(asked, case.at, format!("get secret {secret}: not allowed"));
            found.push(
                of_webhook(CauseId::Prv11, Grade::Certain, of, shown)
                    .with("SECRET", &secret.name)
                    .with("NAMESPACE", &secret.namespace)
                    .with("PLACE", &account.namespace)
                    .with("WEBHOOK", &account.name)
                    .with("DETAIL", format!("{account} may not get {secret}")),
            );
        }
    }
}

/// PRV-08 to PRV-11, by the answers to the controller, for when the API server's side may not be read.
fn webhook_is_refused(case: &Case, found: &mut Vec<Finding>) {
    for (issuer, shown) in messages_of_others(case) {
        let Some(issuer) = issuer else { continue };
        let Some(of) = case.control.dns_webhooks.iter().find(|of| of.issuer == issuer) else {
            continue;
        };
        let cause =
            match (controller::missing_right(&shown.came), controller::group_fault(&shown.came)) {
                (Some(right), _) if right.group == of.group => CauseId::Prv09,
                (Some(right), _) if right.resource == "secrets" => CauseId::Prv11,
                (None, Some(GroupFault::Unavailable)) => CauseId::Prv08,
                (None, Some(GroupFault::Unknown)) => CauseId::Prv10,
                _ => continue,
            };
        // A review and the current state take precedence over an earlier answer.
        let grade = if of.api == WebhookApi::Unknown { Grade::Certain } else { Grade::Likely };
        found.push(of_webhook(cause, grade, of, shown));
    }
}

#[cfg(test)]
mod tests {
    use super::super::control_plane::tests::{cluster, says};
    use super::super::tests::{check, issuer_key};
    use super::*;
    use crate::model::ObjectName;

    fn of(change: impl FnOnce(&mut DnsWebhookCase)) -> Case {
        cluster(|case| {
            let mut webhook = DnsWebhookCase {
                issuer: issuer_key(),
                group: "acme.example.com".into(),
                solver: "hook".into(),
                api: WebhookApi::Available,
                served: Some(vec!["hook".into()]),
                caller: Some("system:serviceaccount:cert-manager:cert-manager".into()),
                may_call: Some(true),
                account: Some(ObjectName::new("dns", "hook")),
                closed_secrets: Vec::new(),
            };
            change(&mut webhook);
            case.control.dns_webhooks = vec![webhook];
        })
    }

    #[test]
    fn a_webhook_that_answers_has_no_fault() {
        check(&of(|_| ()), &[]);
        check(&of(|of| of.api = WebhookApi::Unknown), &[]);
    }

    #[test]
    fn each_fault_of_a_webhook_is_told_apart() {
        let unavailable = WebhookApi::Unavailable {
            reason: "MissingEndpoints".into(),
            message: "no endpoints".into(),
            service: ObjectName::new("dns", "hook"),
        };
        let api = unavailable.clone();
        check(&of(|of| of.api = api), &[CauseId::Prv08]);
        check(&of(|of| of.may_call = Some(false)), &[CauseId::Prv09]);
        for (api, expected) in [(WebhookApi::Absent, CauseId::Prv10), (unavailable, CauseId::Prv08)]
        {
            let closed = |of: &mut DnsWebhookCase| (of.api, of.may_call) = (api, Some(false));
            check(&of(closed), &[expected]);
        }
        check(&of(|of| of.may_call = None), &[]);
        check(&of(|of| of.served = Some(vec!["other".into()])), &[CauseId::Prv10]);
        check(&of(|of| of.api = WebhookApi::Absent), &[CauseId::Prv10]);
        check(&of(|of| of.group = "cert-manager.io".into()), &[CauseId::Prv10]);
        let secret = ObjectName::new("web", "token");
        check(&of(|of| of.closed_secrets = vec![secret]), &[CauseId::Prv11]);
    }

    #[test]
    fn what_the_controller_was_answered_tells_the_same() {
        let refused = |user: &str, verb: &str, resource: &str, group: &str| {
            format!(
                "{resource} is forbidden: User \"system:serviceaccount:{user}\" cannot {verb} resource \"{resource}\" in API group \
                 \"{group}\" at the cluster scope"
            )
        };
        for (said, expected) in [
            (
                refused("cert-manager:cert-manager", "create", "hook", "acme.example.com"),
                CauseId::Prv09,
            ),
            (refused("dns:hook", "get", "secrets", ""), CauseId::Prv11),
            ("the server is currently unable to handle the request".to_owned(), CauseId::Prv08),
            ("the server could not find the requested resource".to_owned(), CauseId::Prv10),
        ] {
            let mut case = of(|of| of.api = WebhookApi::Unknown);
            says(&mut case, &said);
            check(&case, &[expected]);
        }
    }

    #[test]
    fn credentials_of_the_machine_are_not_for_issuers() {
        let said = "unable to construct route53 provider: empty credentials; perhaps you meant to enable ambient credentials?";
        check(&cluster(|case| says(case, said)), &[CauseId::Prv04]);
        check(&cluster(|case| says(case, "else")), &[]);
    }
}
