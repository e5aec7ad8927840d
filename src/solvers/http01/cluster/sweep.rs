//! Removes the objects of a rehearsal that was killed: no owner takes the objects along.

use jiff::Timestamp;
use serde_json::Value;

use super::objects::{self, INGRESSES, PODS, ROUTES, SERVICES};
use super::{MAX_TRIES, ingress, names};
use crate::store::Manager;
use crate::store::cluster::raw_objects::{RawObjects, Resource};
use crate::store::cluster::{ClusterStore, temporary};
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Removes leftovers in one namespace, or in all if the namespace is empty: only objects of this program whose time is
/// over at `now` of the cluster's clock. Returns the removed objects, such as `Pod web/cm-acme-http-solver-x2x4z`.
///
/// Kinds that are not there, or that may not be listed, are left alone.
///
/// # Errors
/// Fails if the server does not answer, or forbids the removal of an object that was found.
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

    /// Removes the path to a solver Service from a foreign Ingress; returns whether no path is left.
    async fn restore(
        &self,
        service: &Value,
        removed: &mut Vec<String>,
    ) -> Result<bool, StoreError> {
        let Some(name) =
            service["metadata"]["annotations"][names::EDITS_INGRESS_ANNOTATION].as_str()
        else {
            return Ok(true);
        };
        let namespace = namespace(service);
        let ingresses = self.objects(INGRESSES, namespace);
        for _ in 0..MAX_TRIES {
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

    fn objects(&self, resource: Resource, namespace: &str) -> RawObjects {
        self.cluster.foreign(resource, namespace, Manager::Person)
    }
}

fn namespace(object: &Value) -> &str {
    object["metadata"]["namespace"].as_str().unwrap_or_default()
}

/// Returns whether a kind is out of reach: not to be listed, so without objects of this program; or missing (Gateway API).
fn is_out_of_reach(fault: &ClusterFault) -> bool {
    matches!(fault, ClusterFault::Forbidden { .. } | ClusterFault::Undefined { .. })
}
