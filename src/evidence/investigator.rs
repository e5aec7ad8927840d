//! Investigator, which reads evidence, and the targets of a diagnosis.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::answer_flags::AnswerArgs;
use super::asked_once::AnswerCache;
use super::caa_lookups::CaaLookups;
use super::patience::PROBE_TIMEOUT;
use crate::acme::Clients;
use crate::context::Context;
use crate::diagnosis::case::{DriverCase, Unobserved};
use crate::dns::server::Server;
use crate::dns::zone::Zones;
use crate::engine;
use crate::engine::dns01::ProviderMeans;
use crate::fetch::Fetcher;
use crate::input::applying::behind;
use crate::model::zone_look::ZoneState;
use crate::model::{Key, ObjectName};
use crate::probes::cluster::PodProbe;
use crate::reconcile::schedule::Limits;
use crate::solvers::dns01::solver::Dns01;
use crate::store::Store;
use crate::store::cluster::ClusterStore;
use crate::store::error::StoreError;
use crate::store::mirror::Mirror;

/// Largest number of objects that are read, or CAs that are asked, at the same time.
pub(super) const MAX_CONCURRENT: usize = 16;
/// Largest number of names of one investigation that are probed over the network.
pub(super) const MAX_NAMES: usize = 100;

/// Object or name to diagnose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiagnosisTarget {
    /// Certificate, with the objects below it.
    Certificate(ObjectName),
    /// CertificateRequest that no Certificate has made, with the objects below it.
    Request(ObjectName),
    /// Challenge that belongs to no Certificate any more, or whose deletion hangs.
    Challenge(ObjectName),
    /// Issuer or ClusterIssuer.
    Issuer(Key),
    /// Domain name or IP address, whatever objects exist.
    Domain(String),
}

/// Reader of evidence: the sources it reads, and the limits of a read.
pub struct Investigator {
    /// Store with the objects; `None` if only names are diagnosed.
    pub(super) store: Option<Arc<dyn Store>>,
    /// Cluster, if the store is one.
    pub(super) cluster: Option<ClusterStore>,
    pub(super) fetcher: Fetcher,
    pub(super) zones: Zones,
    /// CAA records looked up so far.
    pub(super) caa: CaaLookups,
    /// Zones whose servers were queried so far, by the names of the zones and the resolvers that know them.
    pub(super) zone_looks: AnswerCache<ZoneState>,
    /// Resolvers elsewhere, to compare with.
    pub(super) others: Vec<Server>,
    pub(super) clients: Clients,
    /// Client of DNS providers, with the Secrets of the store.
    pub(super) dns01: Option<Dns01>,
    /// Means of DNS providers for read-only commands.
    pub(super) reach: ProviderMeans,
    pub(super) cluster_resource_namespace: String,
    pub(super) limits: Limits,
    pub(super) driver: DriverCase,
    /// Places where this machine answers.
    pub(super) answers: AnswerArgs,
    /// Probe from inside the cluster, if the user asked for it.
    pub(super) inside: Option<PodProbe>,
    /// Namespace of objects that name none.
    pub(super) namespace: String,
    pub(super) now: Timestamp,
    /// End of the wait for everything outside: CAs, name servers and web servers. The wait begins with the first request
    /// to any of these, so that silent servers cost the wait only once.
    deadline: OnceLock<Instant>,
}

impl fmt::Debug for Investigator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Investigator").finish_non_exhaustive()
    }
}

impl Investigator {
    /// Builds an investigator of the objects of a store, if there is one, and of names.
    pub fn new(
        store: Option<Arc<dyn Store>>,
        (fetcher, zones): (Fetcher, Zones),
        (driver, limits): (DriverCase, Limits),
        answers: AnswerArgs,
        context: &Context,
    ) -> Self {
        // Each kind and namespace is listed once at an API server.
        let store = store.map(|store| -> Arc<dyn Store> {
            if store.in_cluster() { Arc::new(Mirror::for_one_look(store)) } else { store }
        });
        let cluster = store.as_ref().and_then(|store| behind(store, context)).cloned();
        let clients = engine::clients(&fetcher.resolver);
        let cluster_resource_namespace = context.global.cluster_resource_namespace.clone();
        let reach = ProviderMeans::usual(context);
        let dns01 = store.as_ref().map(|store| {
            let (zones, namespace) = (zones.clone(), &cluster_resource_namespace);
            let dns01 = reach.clone().providers(store, zones, &fetcher.resolver, namespace);
            Dns01 { impatient: true, ..dns01 }
        });
        let now = context.now();
        Self {
            store,
            cluster,
            fetcher,
            zones,
            caa: CaaLookups::default(),
            zone_looks: AnswerCache::default(),
            others: Vec::new(),
            clients,
            dns01,
            reach,
            cluster_resource_namespace,
            limits,
            driver,
            answers,
            inside: None,
            namespace: context.namespace().to_owned(),
            now,
            deadline: OnceLock::new(),
        }
    }

    /// Adds a probe from inside the cluster.
    #[must_use]
    pub fn looking_inside(self, inside: Option<PodProbe>) -> Self {
        Self { inside, ..self }
    }

    /// End of the wait for everything outside; the first call starts the wait.
    pub(super) fn deadline(&self) -> Instant {
        *self.deadline.get_or_init(|| Instant::now() + PROBE_TIMEOUT)
    }

    /// Waits for something outside, at most until the common deadline.
    pub(super) async fn outside<T>(&self, asked: impl Future<Output = T>) -> Result<T, Elapsed> {
        timeout_at(self.deadline(), asked).await
    }

    /// Adds resolvers whose replies are compared with those of this machine's resolvers.
    #[must_use]
    pub fn comparing_with(self, others: Vec<Server>) -> Self {
        Self { others, ..self }
    }
}

/// Builds the entry for something that could not be read from the store.
pub(super) fn unseen(what: String, error: &StoreError) -> Unobserved {
    Unobserved { what, why: error.to_string(), is_forbidden: error.lacks_permission() }
}
