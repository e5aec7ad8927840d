//! `certificate approve` and `certificate deny`: decide on CertificateRequests, as `cmctl approve` and `cmctl deny` do.
//!
//! cert-manager's webhook demands the verb `approve` at the issuer (resource `signers`). This permission is checked before
//! the first write, even without a webhook: a user without the permission learns its name, and a webhook installed later
//! refuses no user who was allowed before. If one of the named requests cannot be decided, nothing is written.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::input::{lookup, target};
use crate::model::common::{condition, is_true, set_condition};
use crate::model::{CertificateRequest, Condition, ConditionStatus, IssuerRef, Key, Kind};
use crate::permissions;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::permissions::Permission;
use crate::store::local::Access;
use crate::store::resources::Resources;

/// A decision on a CertificateRequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The request may be sent to the CA.
    Approved,
    /// The request must never be sent to the CA.
    Denied,
}

impl Decision {
    /// Type of the condition that records the decision.
    fn condition(self) -> &'static str {
        match self {
            Self::Approved => "Approved",
            Self::Denied => "Denied",
        }
    }
}

/// Flags of `certificate approve` and `certificate deny`.
#[derive(Clone, Debug, clap::Args)]
pub struct DecideArgs {
    /// Names of CertificateRequests, or of the Certificates or domains that they are for
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Reason of the condition: one word without blanks
    #[arg(long, value_name = "WORD", default_value = "KubectlCertManager")]
    pub reason: String,
    /// Message of the condition: a sentence for people [default: manually approved (denied) by "kubectl-acme"]
    #[arg(long, value_name = "TEXT")]
    pub message: Option<String>,
}

/// Writes the decision on each of the requests.
///
/// # Errors
/// Fails when a name leads to no undecided request, a permission is missing, or the store cannot be written.
pub async fn decide(
    args: &DecideArgs,
    decision: Decision,
    context: &Context,
) -> Result<(), Failure> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_,:".contains(c);
    if !args.reason.starts_with(|c: char| c.is_ascii_alphabetic())
        || !args.reason.chars().all(is_word)
    {
        let what = format!("--reason {:?} is not a reason of a condition", args.reason);
        return Err(Failure::usage(what)
            .hint("use letters and digits, beginning with a letter: PolicyChecked"));
    }
    let store = context.store(Access::ReadWrite).await?;
    let requests =
        Resources::<CertificateRequest>::new(Arc::clone(&store), Kind::CertificateRequest);
    let mut open = Vec::new();
    for word in &args.names {
        let name = target::name_of(Kind::CertificateRequest, word)?;
        let named = target::key(Kind::CertificateRequest, &name, context.namespace());
        let keys = match lookup::keys(&store, &named).await? {
            keys if keys.is_empty() => return Err(lookup::not_found(&store, &named).await?),
            keys => keys,
        };
        open.push(one_open(&requests, &named, &keys).await?);
    }
    if let Some(cluster) = context.cluster() {
        check_rights(cluster, &open).await?;
    }
    let verb = if decision == Decision::Approved { "approved" } else { "denied" };
    let message = args.message.clone();
    let message = message.unwrap_or_else(|| format!("manually {verb} by \"kubectl-acme\""));
    let mut printer = context.printer(&OutputArgs::default());
    for request in open {
        let mut status = request.status.clone();
        let said = Condition {
            kind: decision.condition().to_owned(),
            status: ConditionStatus::True,
            reason: args.reason.clone(),
            message: message.clone(),
            ..Condition::default()
        };
        set_condition(&mut status.conditions, said, Timestamp::now());
        requests.replace_status(&request, &status).await?;
        let (word, name) = (decision.condition(), request.name());
        printer.text(&format!("{word} CertificateRequest '{name}'\n"))?;
    }
    Ok(())
}

/// Finds the one undecided request among those that a name leads to.
async fn one_open(
    requests: &Resources<CertificateRequest>,
    named: &Key,
    keys: &[Key],
) -> Result<CertificateRequest, Failure> {
    let (mut open, mut decided) = (Vec::new(), None);
    for key in keys {
        let Some(request) = requests.get(&key.name).await? else { continue };
        match why_decided(&request) {
            None => open.push(request),
            Some(why) => decided = Some((request, why)),
        }
    }
    match (open.pop(), decided) {
        (Some(request), _) if open.is_empty() => Ok(request),
        (Some(_), _) => Err(lookup::ambiguous(named, keys)),
        (None, Some((request, why))) => {
            let key = Key::new(Kind::CertificateRequest, request.name());
            let what = format!("CertificateRequest {} {why}", request.name());
            let hint = "a decision is final; renew or retry the Certificate to make a new request";
            Err(Failure::new(FailureKind::Unexpected, what).about(&key).hint(hint))
        }
        (None, None) => {
            let what = format!("CertificateRequest {} is gone", named.name);
            Err(Failure::new(FailureKind::Unexpected, what).about(named))
        }
    }
}

/// Reason why a request cannot be decided any more; `None` if the request is undecided.
fn why_decided(request: &CertificateRequest) -> Option<String> {
    let conditions = &request.status.conditions;
    if is_true(conditions, "Denied") {
        return Some("is already denied".to_owned());
    }
    if is_true(conditions, "Approved") {
        return Some("is already approved".to_owned());
    }
    let ready = condition(conditions, "Ready")?;
    matches!(ready.reason.as_str(), "Issued" | "Failed" | "Denied")
        .then(|| format!("has ended: {}", ready.reason))
}

/// Checks the permissions to write each status and to approve at each issuer.
async fn check_rights(
    cluster: &ClusterStore,
    requests: &[CertificateRequest],
) -> Result<(), Failure> {
    let namespaces: BTreeSet<String> =
        requests.iter().map(|request| request.metadata.namespace.clone()).collect();
    let rules = cluster.rules(&namespaces).await;
    let patch = |namespace: &String| {
        Permission::of_kind("patch", Kind::CertificateRequest, namespace).on_status()
    };
    let lacking = cluster.lacking(&namespaces.iter().map(patch).collect(), &rules).await;
    if !lacking.is_empty() {
        return Err(permissions::are_missing(&lacking));
    }
    for request in requests {
        let namespace = &request.metadata.namespace;
        let approve = |name: &str| {
            Permission::new("approve", "signers.cert-manager.io", namespace).named(name)
        };
        let [every, one] = signers(&request.spec.issuer_ref, namespace);
        let wanted = BTreeSet::from([approve(&every), approve(&one)]);
        if cluster.lacking(&wanted, &rules).await.len() == wanted.len() {
            let what = format!(
                "permissions are missing, and nothing was done: approve signers.cert-manager.io {one:?}"
            );
            let rule = "add this rule to a Role or ClusterRole: \
                        {apiGroups: [cert-manager.io], resources: [signers], verbs: [approve], resourceNames: [";
            return Err(Failure::new(FailureKind::Cluster, what).hint(format!("{rule}{one:?}]}}")));
        }
    }
    Ok(())
}

/// Resource names of the `approve` permission: for every issuer of the kind, and for this issuer.
fn signers(issuer: &IssuerRef, namespace: &str) -> [String; 2] {
    let group = if issuer.group.is_empty() { "cert-manager.io" } else { &issuer.group };
    let kind = format!("{}s.{group}", issuer.effective_kind().to_lowercase());
    let place = if issuer.is_cluster() { String::new() } else { format!("{namespace}.") };
    [format!("{kind}/*"), format!("{kind}/{place}{}", issuer.name)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rights_are_named_as_cert_manager_names_them() {
        let of = |value| signers(&serde_json::from_value(value).unwrap(), "web");
        assert_eq!(
            of(json!({"name": "le"})),
            ["issuers.cert-manager.io/*", "issuers.cert-manager.io/web.le"]
        );
        assert_eq!(
            of(json!({"name": "le", "kind": "ClusterIssuer"})),
            ["clusterissuers.cert-manager.io/*", "clusterissuers.cert-manager.io/le"]
        );
        let other =
            json!({"name": "pca", "kind": "AWSPCAIssuer", "group": "awspca.cert-manager.io"});
        assert_eq!(of(other)[1], "awspcaissuers.awspca.cert-manager.io/web.pca");
    }

    #[test]
    fn a_decision_is_taken_once_and_before_the_end() {
        let of = |conditions| {
            let request = json!({
                "metadata": {"name": "web-1", "namespace": "web"},
                "spec": {"issuerRef": {"name": "le"}, "request": ""}, "status": {"conditions": conditions},
            });
            why_decided(&serde_json::from_value(request).unwrap())
        };
        assert_eq!(of(json!([])), None);
        let waits = json!([{"type": "Ready", "status": "False", "reason": "Pending"}]);
        assert_eq!(of(waits), None);
        let approved = json!([{"type": "Approved", "status": "True", "reason": "x"}]);
        assert_eq!(of(approved).unwrap(), "is already approved");
        let denied = json!([{"type": "Denied", "status": "True", "reason": "x"}]);
        assert_eq!(of(denied).unwrap(), "is already denied");
        let failed = json!([{"type": "Ready", "status": "False", "reason": "Failed"}]);
        assert_eq!(of(failed).unwrap(), "has ended: Failed");
    }
}
