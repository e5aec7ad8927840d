//! Sweeping: what a killed rehearsal or probe left in a cluster goes with the next command that works there.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::context::Context;
use crate::context::flags::output::OutputArgs;
use crate::probes;
use crate::solvers::http01;
use crate::store::cluster::ClusterStore;
use crate::store::error::StoreError;

/// Removes leftovers in these namespaces, an empty one meaning all, and says which. What cannot be removed now is left to
/// the next command: it is in nobody's way.
pub async fn sweep_namespaces(
    cluster: &ClusterStore,
    namespaces: BTreeSet<&str>,
    now: Timestamp,
    context: &Context,
) {
    for namespace in namespaces {
        match sweep(cluster, namespace, now).await {
            Ok(removed) if removed.is_empty() => {}
            Ok(removed) => context.printer(&OutputArgs::default()).note(&format!(
                "removed what a command left that was killed: {}",
                removed.join(", ")
            )),
            Err(error) => tracing::info!(%error, namespace, "cannot sweep"),
        }
    }
}

async fn sweep(
    cluster: &ClusterStore,
    namespace: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let mut removed = http01::cluster::sweep::sweep(cluster, namespace, now).await?;
    removed.extend(probes::cluster::sweep(cluster, namespace, now).await?);
    Ok(removed)
}

/// Removes leftovers in these namespaces of the cluster, where there is one, for a command that drives.
pub async fn sweep_before_work(namespaces: BTreeSet<&str>, context: &Context) {
    let Some(cluster) = context.cluster() else { return };
    match cluster.clock().await {
        Ok(now) => sweep_namespaces(cluster, namespaces, now, context).await,
        Err(error) => tracing::info!(%error, "cannot sweep"),
    }
}
