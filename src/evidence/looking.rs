//! One diagnosis by the flags of a verb: its means, its targets, and the evidence.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answer_flags::AnswerArgs;
use super::control::{CONTROLLER_LABELS, ClusterReader, DEPLOYMENTS};
use super::investigator::{DiagnosisTarget, Investigator};
use super::listed::list;
use super::verdict::{ObservedCase, driver};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::slots::SlotArgs;
use crate::diagnosis::case::DriverCase;
use crate::dns::server::Server;
use crate::engine::world::CLUSTER_RESOURCE_NAMESPACE;
use crate::input::applying::behind;
use crate::issue::flags::probe_pod::ProbePodArgs;
use crate::store::Store;

/// Means of a diagnosis, as flags say.
#[derive(Clone, Copy, Debug)]
pub struct DiagnosisMeans<'a> {
    /// Places where answers are given.
    pub answers: &'a AnswerArgs,
    /// Flags for lookups and requests.
    pub look: &'a LookArgs,
    /// Name servers for DNS-01.
    pub nameservers: &'a NameserverArgs,
    /// Resolvers elsewhere, to compare with.
    pub resolvers: &'a [Server],
    /// Limit of challenges that run at the same time.
    pub slots: &'a SlotArgs,
    /// Flags of the probe from inside the cluster; `None` if the verb never probes from there.
    pub probe: Option<&'a ProbePodArgs>,
}

impl DiagnosisMeans<'_> {
    /// Reads the evidence on the targets once, and stores it in `seen`.
    ///
    /// # Errors
    /// Fails when a flag cannot be used, an object does not exist, or the store cannot be read.
    pub async fn look(
        self,
        store: Option<Arc<dyn Store>>,
        targets: &[DiagnosisTarget],
        seen: &mut ObservedCase,
        context: &mut Context,
    ) -> Result<(), Failure> {
        follow_controller(store.as_ref(), context).await;
        let fetcher = self.look.fetcher().await?;
        let zones = self.nameservers.zones(self.look, &fetcher).await?;
        seen.means.hosts = self.look.server().await?.and_then(|all| all.first().copied());
        seen.means.zones = zones.resolvers().to_vec();
        let driver = match (&store, &seen.absent) {
            (Some(_), None) => driver(context).await,
            _ => DriverCase::Unknown,
        };
        let (limits, answers) = (self.slots.limits(), self.answers.clone());
        let stop = CancellationToken::new();
        let inside = match self.probe {
            Some(probe) => probe.inside(true, &stop, context)?,
            None => None,
        };
        let investigator =
            Investigator::new(store, (fetcher, zones), (driver, limits), answers, context)
                .looking_inside(inside)
                .comparing_with(self.resolvers.to_vec());
        seen.keep(Box::pin(investigator.look_all(targets, &stop, context.interrupted())).await?);
        Ok(())
    }
}

/// Sets the namespace for the Secrets of ClusterIssuers to that of cert-manager's controller, unless a flag names one.
async fn follow_controller(store: Option<&Arc<dyn Store>>, context: &mut Context) {
    if context.global.cluster_resource_namespace != CLUSTER_RESOURCE_NAMESPACE {
        return;
    }
    let Some(cluster) = store.and_then(|store| behind(store, context)) else { return };
    let found =
        list::<Value>(cluster, DEPLOYMENTS, "", CONTROLLER_LABELS, "").await.unwrap_or_default();
    // If there are several controllers, the right one is unknown.
    if let [controller] = &ClusterReader::controllers(&found, &[])[..]
        && let Some(namespace) = controller.flags.get("cluster-resource-namespace")
    {
        // The Helm chart uses a variable that Kubernetes fills in.
        let is_own = namespace.starts_with("$(");
        let namespace = if is_own { &controller.name.namespace } else { namespace };
        let namespace = namespace.clone();
        context.global.cluster_resource_namespace = namespace;
    }
}
