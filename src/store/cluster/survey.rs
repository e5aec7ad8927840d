//! Leadership in this cluster, as far as we may read: every Lease of cert-manager's name, in any namespace that a chart
//! has chosen, and controllers that run without a Lease.

use std::collections::BTreeSet;

use http::Method;
use jiff::Timestamp;
use serde_json::Value;

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::lease::{LEASE_NAME, LEASE_NAMESPACE};
use super::lease_object::{HolderKind, LapsedLease, LeaseHolder, LeaseObject};
use super::wire::{ApiAnswer, Call, Wire};
use crate::store::cluster_fault::{ClusterFault, within};
use crate::store::error::StoreError;

/// Namespace of cert-manager's Helm chart.
const HELM: &str = "cert-manager";
/// Labels of cert-manager's controller, in its charts and its plain manifests.
const CONTROLLER: &str =
    "app.kubernetes.io/name=cert-manager,app.kubernetes.io/component=controller";

/// Controller that drives the resources of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Driver {
    /// No controller: the Lease is free for us.
    Nobody,
    /// The holder of the Lease.
    Holder(LeaseHolder),
    /// A controller of cert-manager runs, and holds no Lease that we can see.
    WithoutLease {
        /// Pod of the controller, with namespace.
        pod: String,
    },
    /// Unknown, as a permission to read is missing; counts as cert-manager.
    Unknown {
        /// Permission that is missing.
        why: String,
    },
}

impl Driver {
    /// Finds the driver: in our Lease's namespace, in cert-manager's usual ones, and, if permitted, in all namespaces.
    ///
    /// # Errors
    /// Fails if the server does not answer; a missing permission is an answer.
    pub async fn of(store: &ClusterStore, namespace: &str) -> Result<Self, StoreError> {
        let wire = store.wire();
        let (holders, _, hidden) = holders(wire, namespace).await?;
        // A holder of cert-manager's counts before ours, which may be one that is just being taken over.
        let strange = holders.iter().find(|holder| holder.who == HolderKind::CertManager);
        if let Some(holder) = strange.or_else(|| holders.first()) {
            return Ok(Self::Holder(holder.clone()));
        }
        if let Some(why) = hidden {
            return Ok(Self::Unknown { why });
        }
        Ok(match running(wire).await? {
            Some(pod) => Self::WithoutLease { pod },
            None => Self::Nobody,
        })
    }
}

/// Returns the holders of every Lease of that name that we may see, and the Leases that have run out.
///
/// # Errors
/// Fails if the server does not answer; a missing permission is an answer.
pub async fn leases(
    store: &ClusterStore,
) -> Result<(Vec<LeaseHolder>, Vec<LapsedLease>), StoreError> {
    let (holders, lapsed, _) = holders(store.wire(), LEASE_NAMESPACE).await?;
    Ok((holders, lapsed))
}

/// Holders of Leases, Leases that have run out, and why a Lease may have been missed.
type SeenLeases = (Vec<LeaseHolder>, Vec<LapsedLease>, Option<String>);

/// Reads every Lease that we may see: holders, Leases that have run out, and why a Lease may have been missed.
async fn holders(wire: &Wire, namespace: &str) -> Result<SeenLeases, StoreError> {
    let path = "/apis/coordination.k8s.io/v1/leases".to_owned();
    let everywhere =
        Call::new(Method::GET, path).with("fieldSelector", format!("metadata.name={LEASE_NAME}"));
    let deed = AccessRequest::other("list", "leases.coordination.k8s.io", "");
    if let Ok(answer) = or_missing_permission(wire.call(&deed, everywhere).await)? {
        let now = answer.date.unwrap_or_else(Timestamp::now);
        let leases: Vec<LeaseObject> = items(answer).map(LeaseObject).collect();
        let holders = leases.iter().filter_map(|lease| lease.holder(now)).collect();
        let lapsed = leases.iter().filter_map(|lease| lease.lapsed(now)).collect();
        return Ok((holders, lapsed, None));
    }
    let (mut holders, mut lapsed, mut hidden) = (Vec::new(), Vec::new(), None);
    for namespace in BTreeSet::from([namespace, LEASE_NAMESPACE, HELM]) {
        let deed = AccessRequest::other("get", "leases.coordination.k8s.io", namespace);
        let path =
            format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{LEASE_NAME}");
        let answer = match wire.answer(&deed, &Call::new(Method::GET, path)).await? {
            Ok(answer) => answer,
            Err(status) if status.code == 404 => continue,
            Err(status) => {
                let refused = super::refusal::refused(&wire.server, &deed, &status);
                hidden = or_missing_permission::<()>(Err(refused))?.err();
                continue;
            }
        };
        let now = answer.date.unwrap_or_else(Timestamp::now);
        let lease = LeaseObject(answer.body);
        holders.extend(lease.holder(now));
        lapsed.extend(lease.lapsed(now));
    }
    Ok((holders, lapsed, hidden))
}

/// Finds a running controller of cert-manager; `None` if there is none, or if we may not list Pods, as most users.
async fn running(wire: &Wire) -> Result<Option<String>, StoreError> {
    for path in ["/api/v1/pods".to_owned(), format!("/api/v1/namespaces/{HELM}/pods")] {
        let call = Call::new(Method::GET, path)
            .with("labelSelector", CONTROLLER)
            .with("fieldSelector", "status.phase=Running");
        let deed = AccessRequest::other("list", "pods", "");
        if let Ok(answer) = or_missing_permission(wire.call(&deed, call).await)? {
            let name = |pod: &Value| {
                let text =
                    |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
                format!("{}/{}", text("namespace"), text("name"))
            };
            return Ok(items(answer).next().as_ref().map(name));
        }
    }
    Ok(None)
}

/// Returns the answer, or a text about the missing permission.
fn or_missing_permission<T>(
    answer: Result<T, StoreError>,
) -> Result<Result<T, String>, StoreError> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(StoreError::Cluster(fault)) => match *fault {
            ClusterFault::Forbidden { verb, resource, namespace, .. } => Ok(Err(format!(
                "no permission to {verb} {resource}{}",
                within(namespace.as_deref())
            ))),
            fault => Err(fault.into()),
        },
        Err(error) => Err(error),
    }
}

fn items(mut answer: ApiAnswer) -> impl Iterator<Item = Value> {
    let items = answer.body.get_mut("items").map(Value::take);
    let items = items.and_then(|items| match items {
        Value::Array(items) => Some(items),
        _ => None,
    });
    items.unwrap_or_default().into_iter()
}
