//! CTL-17: a quota of the namespace leaves no room for the object that an issuance has to make next. The API server refuses
//! the object, and no Event says so.

use crate::diagnosis::case::{Case, CertificateCase, DriverCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{FaultRule, Finding, Grade, stored};
use crate::model::State;
use crate::model::common::is_true;

pub(super) const RULES: &[FaultRule] = &[quota_is_used_up];

/// Names of Secrets in a quota.
const SECRETS: &[&str] = &["secrets", "count/secrets"];
/// Names of CertificateRequests in a quota.
const REQUESTS: &[&str] = &["count/certificaterequests.cert-manager.io"];
/// Names of Orders in a quota.
const ORDERS: &[&str] = &["count/orders.acme.cert-manager.io"];
/// Names of Challenges in a quota.
const CHALLENGES: &[&str] = &["count/challenges.acme.cert-manager.io"];

fn quota_is_used_up(case: &Case, found: &mut Vec<Finding>) {
    if case.driver == DriverCase::Nobody {
        return;
    }
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let name = of.certificate.name();
        let Some(needed) = next_object(of) else { continue };
        let is_of_it = |resource: &str| needed.contains(&resource);
        let mut quotas = case.control.quotas.iter();
        let full = quotas.find(|it| it.namespace == name.namespace && is_of_it(&it.resource));
        let Some(quota) = full else { continue };
        let asked = format!("ResourceQuota {}/{}: status", quota.namespace, quota.name);
        let came = format!("{}: {} used of {}", quota.resource, quota.used, quota.hard);
        found.push(
            Finding::new(
                CauseId::Ctl17,
                Grade::Likely,
                format!("Certificate {name}"),
                stored(asked, case.at, came),
            )
            .with("NAME", &name.name)
            .with("NAMESPACE", &name.namespace)
            .with("QUOTA", &quota.name)
            .with(
                "DETAIL",
                format!("{} of {} {} are used", quota.used, quota.hard, quota.resource),
            ),
        );
    }
}

/// Returns the names, in a quota, of the object that a running issuance has to make next; `None` if all objects exist.
fn next_object(of: &CertificateCase) -> Option<&'static [&'static str]> {
    let status = &of.certificate.status;
    if !is_true(&status.conditions, "Issuing") {
        return None;
    }
    if status.next_private_key_secret_name.is_empty() {
        return Some(SECRETS);
    }
    if of.requests.is_empty() {
        return Some(REQUESTS);
    }
    let Some(order) = of.order() else { return Some(ORDERS) };
    let is_pending = order.status.state == Some(State::Pending);
    (is_pending && of.current_challenges().next().is_none()).then_some(CHALLENGES)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::control_plane::tests::cluster;
    use super::super::tests::check;
    use super::*;
    use crate::diagnosis::case::control::QuotaCase;

    /// An issuance that has no key yet, or has one, in a namespace with a full quota of that resource.
    fn full(resource: &str, next_key: &str) -> Case {
        cluster(|case| {
            let of = &mut case.certificates[0];
            let issuing = json!({"type": "Issuing", "status": "True", "lastTransitionTime": "2026-11-24T21:59:30Z"});
            of.certificate.status.conditions = vec![serde_json::from_value(issuing).unwrap()];
            of.certificate.status.next_private_key_secret_name = next_key.into();
            (of.requests, of.orders, of.challenges) = (Vec::new(), Vec::new(), Vec::new());
            case.names.clear();
            case.control.quotas = vec![QuotaCase {
                namespace: "web".into(),
                name: "tenant".into(),
                resource: resource.into(),
                used: 1,
                hard: 1,
            }];
        })
    }

    #[test]
    fn a_quota_of_what_comes_next_is_named() {
        for (resource, next_key) in [
            ("secrets", ""),
            ("count/secrets", ""),
            ("count/certificaterequests.cert-manager.io", "web-1"),
        ] {
            check(&full(resource, next_key), &[CauseId::Ctl17]);
        }
        // Another object comes next.
        for (resource, next_key) in
            [("secrets", "web-1"), ("count/orders.acme.cert-manager.io", "")]
        {
            check(&full(resource, next_key), &[]);
        }
    }
}
