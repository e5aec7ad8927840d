//! Removes what a rehearsal left that was killed: no owner takes its objects along.

use jiff::Timestamp;
use serde_json::Value;

use super::objects::{self, INGRESSES, PODS, ROUTES, SERVICES};
use super::{TRIES, ingress, names};
use crate::store::cluster::raw_objects::{Foreign, Resource};
use crate::store::cluster::{ClusterFault, ClusterStore, temporary};
use crate::store::error::StoreError;
use crate::store::manager::Manager;

/// Removes leftovers in one namespace, or in all (an empty one): only what we made, and only what has outstayed its time
/// at `now` of the cluster's clock. Returns what was removed, such as `Pod web/cm-acme-http-solver-x2x4z`.
///
/// Kinds that are not there, or that we may not list, are left alone.
///
/// # Errors
/// Fails when the server does not answer, or does not let us remove what we found.
pub async fn sweep(
    cluster: &ClusterStore,
    namespace: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let broom = Broom { cluster, now };
    let (ingresses, routes, services, pods) = tokio::try_join!(
        broom.find(INGRESSES, namespace),
        broom.find(ROUTES, namespace),
        broom.find(SERVICES, namespace),
        broom.find(PODS, namespace),
    )?;
    let mut removed = Vec::new();
    broom.remove(INGRESSES, ingresses, &mut removed).await?;
    broom.remove(ROUTES, routes, &mut removed).await?;
    let mut unused = Vec::new();
    for service in services {
        if broom.restore(&service, &mut removed).await? {
            unused.push(service);
        }
    }
    broom.remove(SERVICES, unused, &mut removed).await?;
    broom.remove(PODS, pods, &mut removed).await?;
    Ok(removed)
}

struct Broom<'a> {
    cluster: &'a ClusterStore,
    now: Timestamp,
}

impl Broom<'_> {
    async fn find(&self, resource: Resource, namespace: &str) -> Result<Vec<Value>, StoreError> {
        let all = self.objects(resource, namespace);
        match temporary::outstayed(&all, names::REHEARSAL, self.now).await {
            Err(StoreError::Cluster(fault)) if is_out_of_reach(&fault) => Ok(Vec::new()),
            found => found,
        }
    }

    async fn remove(
        &self,
        resource: Resource,
        leftovers: Vec<Value>,
        removed: &mut Vec<String>,
    ) -> Result<(), StoreError> {
        for object in leftovers {
            let namespace = namespace(&object);
            self.objects(resource, namespace).delete(&object).await?;
            removed.push(format!("{} {namespace}/{}", resource.kind, objects::name(&object)));
        }
        Ok(())
    }

    /// Takes the path to a Service of ours out of an Ingress that is not ours; returns whether none is left.
    async fn restore(
        &self,
        service: &Value,
        removed: &mut Vec<String>,
    ) -> Result<bool, StoreError> {
        let Some(name) = service["metadata"]["annotations"][names::EDITS].as_str() else {
            return Ok(true);
        };
        let namespace = namespace(service);
        let ingresses = self.objects(INGRESSES, namespace);
        for _ in 0..TRIES {
            let Some(mut found) = ingresses.get(name).await? else { return Ok(true) };
            if !ingress::remove_paths_to(&mut found, objects::name(service)) {
                return Ok(true);
            }
            if ingresses.replace(&found).await? {
                removed.push(format!("a path of Ingress {namespace}/{name}"));
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn objects(&self, resource: Resource, namespace: &str) -> Foreign {
        self.cluster.foreign(resource, namespace, Manager::Person)
    }
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// What we may not see we have not made; and there may be no Gateway API.
fn is_out_of_reach(fault: &ClusterFault) -> bool {
    matches!(fault, ClusterFault::Forbidden { .. } | ClusterFault::Undefined { .. })
}
