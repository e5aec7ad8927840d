//! What publishes the records of DNS-01: what providers reach, and the solver made of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::Context;
use crate::controllers::dns01::{ClusterWebhooks, StoreCredentials};
use crate::dns::Resolve;
use crate::dns::zone::Zones;
use crate::solvers::Solver;
use crate::solvers::dns01::manual::Manual;
use crate::solvers::dns01::site::{Hooks, Webhooks};
use crate::solvers::dns01::solver::{Ambience, Dns01};
use crate::solvers::dns01::webhook::DirectWebhooks;
use crate::store::Store;
use crate::store::cluster::ClusterStore;

/// What providers reach beyond names.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// The cluster, if there is one.
    cluster: Option<ClusterStore>,
    /// URL of the webhooks of a group.
    webhooks: BTreeMap<String, String>,
    /// Who may use credentials from around the process.
    ambience: Ambience,
    /// Whether programs may be run.
    hooks: Hooks,
    /// Whether a person stands in for all of them.
    by_hand: bool,
}

impl Reach {
    /// Adds what flags say: addresses of webhooks by group, who may use credentials from around the process, and whether
    /// programs may be run.
    #[must_use]
    pub fn with(
        self,
        webhooks: BTreeMap<String, String>,
        ambience: Ambience,
        hooks: Hooks,
    ) -> Self {
        Self { webhooks, ambience, hooks, ..self }
    }

    /// What they reach without flags, for those who only look: nothing is run then, but what could never be run is told.
    pub fn usual(context: &Context) -> Self {
        let cluster = context.cluster().cloned();
        let hooks = if cluster.is_some() { Hooks::Never } else { Hooks::Allowed };
        Self { cluster, hooks, ..Self::default() }
    }

    /// Tells whether the resources, or those that a rehearsal stands for, are in a cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// The same, with a person in place of every provider where that is asked for (`--dns01-manual`).
    #[must_use]
    pub fn by_hand(self, by_hand: bool) -> Self {
        Self { by_hand, ..self }
    }

    /// The solver, with the Secrets of a store.
    pub fn solver(
        self,
        store: &Arc<dyn Store>,
        zones: Zones,
        resolver: &Arc<dyn Resolve>,
        cluster_namespace: &str,
    ) -> Arc<dyn Solver> {
        let by_hand = self.by_hand;
        let provider: Arc<dyn Solver> =
            Arc::new(self.providers(store, zones, resolver, cluster_namespace));
        if by_hand { Arc::new(Manual { provider }) } else { provider }
    }

    /// The solver by providers alone, with the Secrets of a store.
    pub fn providers(
        self,
        store: &Arc<dyn Store>,
        zones: Zones,
        resolver: &Arc<dyn Resolve>,
        cluster_namespace: &str,
    ) -> Dns01 {
        let others = self.cluster.clone().map(|cluster| {
            let others: Arc<dyn Webhooks> = Arc::new(ClusterWebhooks(cluster));
            others
        });
        let resolver = Arc::clone(resolver);
        let webhooks =
            DirectWebhooks { urls: self.webhooks, resolver: Arc::clone(&resolver), others };
        Dns01 {
            credentials: Arc::new(StoreCredentials::new(store, self.cluster)),
            webhooks: Arc::new(webhooks),
            zones,
            resolver,
            cluster_namespace: cluster_namespace.to_owned(),
            ambience: self.ambience,
            hooks: self.hooks,
            impatient: false,
        }
    }
}
