//! Lists of objects of a cluster that are not this program's own kinds, within the time of a probe.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::patience::PROBE_TIMEOUT;
use crate::store::Manager;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::raw_objects::Resource;
use crate::store::error::StoreError;

/// What kubectl writes down of each object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A kind of a cluster, by the names that its definition has.
pub(super) const fn resource(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { api_version, kind, plural }
}

/// Why a list could not be had.
pub(super) enum Unlisted {
    /// The cluster has no such kind.
    Undefined,
    /// The server refused, or did not answer.
    Failed { why: String, is_forbidden: bool },
}

/// The objects of a kind in a namespace, or in all (an empty one), that fit two selectors.
pub(super) async fn list<T: DeserializeOwned>(
    cluster: &ClusterStore,
    resource: Resource,
    namespace: &str,
    labels: &str,
    fields: &str,
) -> Result<Vec<T>, Unlisted> {
    let all = cluster.foreign(resource, namespace, Manager::Person);
    match timeout(PROBE_TIMEOUT, all.fitting(labels, fields)).await {
        Ok(Ok(found)) => Ok(found.into_iter().filter_map(typed).collect()),
        Ok(Err(StoreError::Cluster(fault))) if fault.is_undefined() => Err(Unlisted::Undefined),
        Ok(Err(error)) => {
            Err(Unlisted::Failed { why: error.to_string(), is_forbidden: error.lacks_permission() })
        }
        Err(_) => Err(Unlisted::Failed { why: late(), is_forbidden: false }),
    }
}

/// An object with the fields that are read; what is of another shape is left out.
pub(super) fn typed<T: DeserializeOwned>(mut object: Value) -> Option<T> {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(LAST_APPLIED);
        }
    }
    serde_json::from_value(object).ok()
}

pub(super) fn late() -> String {
    format!("no answer within {} s", PROBE_TIMEOUT.as_secs())
}
