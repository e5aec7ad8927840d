//! Construction of the DNS-01 solver, and the means its providers may use.

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

/// Means that DNS providers may use besides DNS itself: a cluster, webhooks, credentials, programs, a person.
#[derive(Clone, Debug, Default)]
pub struct ProviderMeans {
    /// The cluster, if there is one.
    cluster: Option<ClusterStore>,
    /// URLs of webhooks by API group.
    webhooks: BTreeMap<String, String>,
    /// Providers that may use credentials from the environment of the process.
    ambience: Ambience,
    /// Whether hook programs may be run.
    hooks: Hooks,
    /// Whether a person publishes the records in place of every provider.
    by_hand: bool,
}

impl ProviderMeans {
    /// Sets the values of flags: URLs of webhooks by API group, which providers may use credentials from the
    /// environment of the process, and whether hook programs may be run.
    #[must_use]
    pub fn with(
        self,
        webhooks: BTreeMap<String, String>,
        ambience: Ambience,
        hooks: Hooks,
    ) -> Self {
        Self { webhooks, ambience, hooks, ..self }
    }

    /// Builds the means of a read-only command without flags: no program is run, but one that never could is reported.
    pub fn usual(context: &Context) -> Self {
        let cluster = context.cluster().cloned();
        let hooks = if cluster.is_some() { Hooks::Never } else { Hooks::Allowed };
        Self { cluster, hooks, ..Self::default() }
    }

    /// Returns whether the resources (in a rehearsal: those it rehearses for) are in a cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// Puts a person in place of every provider if `by_hand` is set (`--dns01-manual`).
    #[must_use]
    pub fn by_hand(self, by_hand: bool) -> Self {
        Self { by_hand, ..self }
    }

    /// Builds the DNS-01 solver, which reads credentials from the Secrets of a store.
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

    /// Builds the solver by providers alone, never by a person, with credentials from the Secrets of a store.
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
