//! Failed outcome of the wait for an object, and the failure of a Certificate whose request was denied.

use jiff::Timestamp;

use super::caa_refusal::CaaRefusal;
use super::failure_kind::FailureKind;
use super::next_step::NextStep;
use crate::diagnosis::case::chain::Chain;
use crate::model::common::condition;
use crate::model::{ConditionStatus, Key, Kind, Problem};

/// Failure that only a change can end.
#[derive(Debug)]
pub struct Failed {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Message that names the object, the fault and the reason.
    pub message: String,
    /// Steps that help, if any is known.
    pub next_steps: Vec<NextStep>,
    /// Problem that the CA sent, if the CA has refused something.
    pub problem: Option<Box<Problem>>,
    /// Order that failed, if any.
    pub order: Option<FailedOrder>,
    /// Refusal because of CAA records, if that is the cause: the CA can be asked for more.
    pub excluded: Option<Box<CaaRefusal>>,
}

impl Failed {
    /// Builds a failure without a step that helps.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let (message, next_steps) = (message.into(), Vec::new());
        Self { kind, message, next_steps, problem: None, order: None, excluded: None }
    }

    /// Adds the CA's problem to the failure, if there is a problem.
    #[must_use]
    pub fn told_by(mut self, problem: Option<Problem>) -> Self {
        self.problem = problem.map(Box::new);
        self
    }

    /// Adds a step that helps to the failure, if there is a step.
    #[must_use]
    pub fn helped_by(mut self, step: impl Into<Option<NextStep>>) -> Self {
        self.next_steps.extend(step.into());
        self
    }
}

/// Order that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedOrder {
    /// UID.
    pub uid: String,
    /// Name, in the namespace of the order's Certificate.
    pub name: String,
    /// Time when the CA was last sent an answer or a signing request of the order, if known.
    pub last_deed: Option<Timestamp>,
}

/// Returns the failure if the last request of a Certificate is denied. As with an admission webhook, a policy of the
/// cluster stands in the way: the exit code is 8, too, for 13 would promise that something still waits.
pub(super) fn denial(chain: &Chain) -> Option<Failed> {
    let request = chain.request()?;
    let denied = condition(&request.status.conditions, "Denied")
        .filter(|denied| denied.status == ConditionStatus::True)?;
    let (root, key) = (chain.key(), Key::new(Kind::CertificateRequest, request.name()));
    let why = format!("is denied: {} ({})", denied.message, denied.reason);
    let is_alone = root == key;
    let what = if is_alone {
        format!("{key} {why}")
    } else {
        format!("{root} was not issued: {key} {why}")
    };
    let failed = Failed::new(FailureKind::Cluster, what).helped_by(NextStep::AskApprover);
    Some(if is_alone { failed } else { failed.helped_by(NextStep::RenewOncePassed(root.name)) })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controllers::obstacles::Obstacles;
    use crate::diagnosis::verdict::{Verdict, verdict};

    #[test]
    fn a_denied_request_is_named_with_who_denied_it_and_why() {
        let metadata = |name: &str| json!({"namespace": "shop", "name": name});
        let issuing =
            json!({"type": "Issuing", "status": "False", "reason": "Failed", "message": "…"});
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": metadata("web"),
            "spec": {"secretName": "tls", "issuerRef": {"name": "ca"}},
            "status": {"conditions": [issuing], "lastFailureTime": "2026-11-22T10:00:00Z"},
        });
        let denied = json!({
            "type": "Denied", "status": "True", "reason": "policy.cert-manager.io",
            "message": "No policy approved this request",
        });
        let request = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest", "metadata": metadata("web-1"),
            "spec": {"request": "eA==", "issuerRef": {"name": "ca"}}, "status": {"conditions": [denied]},
        });
        let chain = Chain {
            certificate: serde_json::from_value(certificate).unwrap(),
            requests: vec![serde_json::from_value(request).unwrap()],
            orders: Vec::new(),
            challenges: Vec::new(),
            issuer: None,
            in_cluster: true,
        };
        let Verdict::Failed(failed) = verdict(&chain, &Obstacles::new(), Some(0)) else {
            panic!("it goes on");
        };
        assert_eq!(
            failed.message,
            "Certificate shop/web was not issued: CertificateRequest shop/web-1 is denied: No policy approved this \
             request (policy.cert-manager.io)"
        );
        assert_eq!(failed.kind, FailureKind::Cluster);
        let renew = &failed.next_steps[1];
        assert!(
            matches!(renew, NextStep::RenewOncePassed(name) if name.name == "web"),
            "{failed:?}"
        );
    }
}
