//! Lists objects of a cluster of kinds other than this program's own, within the probe timeout.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use super::patience::PROBE_TIMEOUT;
use crate::store::Manager;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::raw_objects::Resource;
use crate::store::error::StoreError;

/// Annotation in which kubectl repeats each applied object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Builds a resource of a cluster from the names in its definition.
pub(super) const fn resource(
    api_version: &'static str,
    kind: &'static str,
    plural: &'static str,
) -> Resource {
    Resource { api_version, kind, plural }
}

/// Reason why objects could not be listed.
pub(super) enum ListError {
    /// The cluster does not define the kind.
    Undefined,
    /// The API server refused, or did not answer.
    Failed { why: String, is_forbidden: bool },
}

/// Lists the objects of a kind that match two selectors in a namespace, or in all namespaces if `namespace` is empty.
pub(super) async fn list<T: DeserializeOwned>(
    cluster: &ClusterStore,
    resource: Resource,
    namespace: &str,
    labels: &str,
    fields: &str,
) -> Result<Vec<T>, ListError> {
    let all = cluster.foreign(resource, namespace, Manager::Person);
    match timeout(PROBE_TIMEOUT, all.fitting(labels, fields)).await {
        Ok(Ok(found)) => Ok(found.into_iter().filter_map(typed).collect()),
        Ok(Err(StoreError::Cluster(fault))) if fault.is_undefined() => Err(ListError::Undefined),
        Ok(Err(error)) => Err(ListError::Failed {
            why: error.to_string(),
            is_forbidden: error.lacks_permission(),
        }),
        Err(_) => Err(ListError::Failed { why: late(), is_forbidden: false }),
    }
}

/// Parses an object, without managed fields and kubectl's annotation; `None` if its shape does not fit.
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
