//! One look by the flags of a verb: with what it is looked, at which targets, and what was seen.

use std::sync::Arc;

use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::answer_flags::AnswerArgs;
use super::control::{CONTROLLER, DEPLOYMENTS, Look};
use super::investigator::{DiagnosisTarget, Investigator};
use super::listed::list;
use super::verdict::{SeenCase, driver};
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

/// With what it is looked, as flags say.
#[derive(Clone, Copy, Debug)]
pub struct LookMeans<'a> {
    /// Where answers are given.
    pub answers: &'a AnswerArgs,
    /// How names are looked at.
    pub look: &'a LookArgs,
    /// Whom to ask about DNS-01.
    pub nameservers: &'a NameserverArgs,
    /// Resolvers elsewhere to compare with.
    pub resolvers: &'a [Server],
    /// How many challenges run at once.
    pub slots: &'a SlotArgs,
    /// How to look from inside the cluster; `None` if nobody may.
    pub probe: Option<&'a ProbePodArgs>,
}

impl LookMeans<'_> {
    /// Looks once at targets, and keeps what was seen.
    ///
    /// # Errors
    /// Fails when a flag cannot be used, an object is not there, or the store cannot be read.
    pub async fn look(
        self,
        store: Option<Arc<dyn Store>>,
        targets: &[DiagnosisTarget],
        seen: &mut SeenCase,
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

/// Looks for the Secrets of ClusterIssuers where cert-manager's own controller does, unless a flag says where they are.
async fn follow_controller(store: Option<&Arc<dyn Store>>, context: &mut Context) {
    if context.global.cluster_resource_namespace != CLUSTER_RESOURCE_NAMESPACE {
        return;
    }
    let Some(cluster) = store.and_then(|store| behind(store, context)) else { return };
    let found = list::<Value>(cluster, DEPLOYMENTS, "", CONTROLLER, "").await.unwrap_or_default();
    // Where there are several, nobody knows which one is meant.
    if let [controller] = &Look::controllers(&found, &[])[..]
        && let Some(namespace) = controller.flags.get("cluster-resource-namespace")
    {
        // The chart has Kubernetes fill it in.
        let is_own = namespace.starts_with("$(");
        let namespace = if is_own { &controller.name.namespace } else { namespace };
        let namespace = namespace.clone();
        context.global.cluster_resource_namespace = namespace;
    }
}
