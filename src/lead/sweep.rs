//! Sweep: the next command that works in a cluster removes what a killed rehearsal or probe left there.

use std::collections::BTreeSet;

use jiff::Timestamp;

use crate::context::Context;
use crate::context::flags::output::OutputArgs;
use crate::probes;
use crate::solvers::http01;
use crate::store::cluster::ClusterStore;
use crate::store::error::StoreError;

/// Removes leftovers in these namespaces, an empty name meaning all, and prints which. Leftovers that cannot be removed now
/// are left to the next command: they do no harm.
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
                "removed leftovers of a command that was killed: {}",
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

/// Removes leftovers in these namespaces of the cluster, if there is a cluster, for a command that drives.
pub async fn sweep_before_work(namespaces: BTreeSet<&str>, context: &Context) {
    let Some(cluster) = context.cluster() else { return };
    match cluster.clock().await {
        Ok(now) => sweep_namespaces(cluster, namespaces, now, context).await,
        Err(error) => tracing::info!(%error, "cannot sweep"),
    }
}
