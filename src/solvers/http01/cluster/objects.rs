//! Exactly one object of a kind for each Challenge, made, found again and removed.
//!
//! Of several Pods, Services, Ingresses or HTTPRoutes of one Challenge the oldest stays and the
//! others are deleted at once; cert-manager deletes all of them and fails once, or keeps all. An
//! Ingress that leads to another Service is made anew, and a Pod that has ended is replaced.

use serde_json::Value;

use super::names;
use super::options::Options;
use crate::model::Challenge;
use crate::store::cluster::raw_objects::{RawObjects, Resource};
use crate::store::error::StoreError;

/// Resources of all solver objects.
pub const SOLVER_RESOURCES: [Resource; 4] = [SERVICES, PODS, INGRESSES, ROUTES];
/// Label of all solver objects, with its value: cert-manager's own.
pub const SOLVER_LABEL: [&str; 2] = ["acme.cert-manager.io/http01-solver", "true"];

/// Solver Pods.
pub(super) const PODS: Resource = Resource { api_version: "v1", kind: "Pod", plural: "pods" };
/// Services before solver Pods.
pub(super) const SERVICES: Resource =
    Resource { api_version: "v1", kind: "Service", plural: "services" };
/// Ingresses.
pub(super) const INGRESSES: Resource = Resource {
    api_version: "networking.k8s.io/v1",
    kind: "Ingress",
    plural: "ingresses.networking.k8s.io",
};
/// Routes of the Gateway API.
pub(super) const ROUTES: Resource = Resource {
    api_version: "gateway.networking.k8s.io/v1",
    kind: "HTTPRoute",
    plural: "httproutes.gateway.networking.k8s.io",
};

/// Challenge, with the options, whose objects are meant.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    pub(super) challenge: &'a Challenge,
    pub(super) options: &'a Options,
}

/// Returns the oldest object of the Challenge that serves, or makes one. All other objects of the Challenge are deleted.
pub(super) async fn exactly_one(
    all: &RawObjects,
    own: Own<'_>,
    wanted: &Value,
    serves: impl Fn(&Value) -> bool,
) -> Result<Value, StoreError> {
    let mut kept = None;
    for object in list_own(all, own).await? {
        if is_going(&object) {
            continue;
        }
        if kept.is_none() && serves(&object) {
            kept = Some(object);
        } else {
            all.delete(&object).await?;
        }
    }
    match kept {
        Some(object) => Ok(object),
        None => all.create(wanted).await,
    }
}

/// Removes every object of the Challenge, and nothing else.
pub(super) async fn remove(all: &RawObjects, own: Own<'_>) -> Result<(), StoreError> {
    for object in list_own(all, own).await? {
        if !is_going(&object) {
            all.delete(&object).await?;
        }
    }
    Ok(())
}

/// Returns the objects of the Challenge, oldest first.
async fn list_own(all: &RawObjects, own: Own<'_>) -> Result<Vec<Value>, StoreError> {
    let mut objects = all.list(&names::selector(own.challenge, own.options)).await?;
    objects.retain(|object| names::is_for(object, own.challenge));
    let text = |object: &Value, field: &str| {
        object["metadata"][field].as_str().unwrap_or_default().to_owned()
    };
    objects.sort_by_key(|object| (text(object, "creationTimestamp"), text(object, "name")));
    Ok(objects)
}

fn is_going(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// Returns the name that the server gave.
pub(super) fn name(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}
