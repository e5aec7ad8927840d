//! What publishes the records of DNS-01: flags, and the solver made of them.

pub(super) mod provider_check;
pub(super) mod provider_secrets;

use std::collections::BTreeMap;
use std::sync::Arc;

use url::Url;

use crate::controllers::dns01::{ClusterWebhooks, StoreCredentials};
use crate::dns::Resolve;
use crate::dns::zone::Zones;
use crate::solvers::Solver;
use crate::solvers::dns01::manual::Manual;
use crate::solvers::dns01::own::Hooks;
use crate::solvers::dns01::solver::{Ambience, Dns01};
use crate::solvers::dns01::webhook::{DirectWebhooks, Webhooks};
use crate::store::Store;
use crate::store::cluster::ClusterStore;

/// How records of DNS-01 are published.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Challenges")]
pub struct Dns01Args {
    /// Whether ClusterIssuers may use credentials from around this process: environment, files, metadata services
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = true,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub cluster_issuer_ambient_credentials: bool,
    /// Whether Issuers may use them, too
    #[arg(
        long,
        value_name = "BOOL",
        default_value_t = false,
        default_missing_value = "true",
        num_args = 0..=1,
        require_equals = true,
        action = clap::ArgAction::Set
    )]
    pub issuer_ambient_credentials: bool,
    /// Where the webhook solvers of a group listen, repeatable: they are called there, not through an API server
    #[arg(long, value_name = "GROUP=URL", value_delimiter = ',', value_parser = webhook)]
    pub dns01_webhook: Vec<(String, String)>,
    /// Run the programs that `exec` solvers name, with the rights of this process. With --local only
    #[arg(long)]
    pub dns01_allow_exec: bool,
}

impl Dns01Args {
    /// What providers reach: these webhooks, and those that the cluster knows.
    pub fn reach(&self, cluster: Option<&ClusterStore>) -> Reach {
        Reach {
            cluster: cluster.cloned(),
            webhooks: self.dns01_webhook.iter().cloned().collect(),
            ambience: Ambience {
                cluster_issuers: self.cluster_issuer_ambient_credentials,
                issuers: self.issuer_ambient_credentials,
            },
            hooks: self.hooks(cluster.is_some()),
            by_hand: false,
        }
    }

    /// Whether programs may be run: never in a cluster, where others write Issuers.
    pub fn hooks(&self, is_cluster: bool) -> Hooks {
        match (is_cluster, self.dns01_allow_exec) {
            (true, _) => Hooks::Never,
            (false, true) => Hooks::Allowed,
            (false, false) => Hooks::NotAllowed,
        }
    }
}

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
    /// What they reach without flags, for those who only look: nothing is run then, but what could never be run is told.
    pub fn usual(cluster: Option<&ClusterStore>) -> Self {
        let hooks = if cluster.is_some() { Hooks::Never } else { Hooks::Allowed };
        Self { cluster: cluster.cloned(), hooks, ..Self::default() }
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
        }
    }
}

/// Reads a group and a URL.
fn webhook(text: &str) -> Result<(String, String), String> {
    let (group, url) = text.split_once('=').ok_or("it is not GROUP=URL")?;
    let read = Url::parse(url).map_err(|error| format!("\"{url}\" is not a URL: {error}"))?;
    if !["http", "https"].contains(&read.scheme()) {
        return Err(format!("\"{url}\" is neither an http nor an https URL"));
    }
    Ok((group.to_owned(), url.to_owned()))
}
