//! What looks, and at what.

use std::fmt;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::answer_flags::AnswerArgs;
use super::asked_once::AskedOnce;
use super::caa_lookups::CaaLookups;
use super::patience::PROBE_TIMEOUT;
use crate::acme::Clients;
use crate::context::Context;
use crate::diagnosis::case::{DriverCase, Unseen};
use crate::dns::server::Server;
use crate::dns::zone::Zones;
use crate::engine;
use crate::engine::dns01::Reach;
use crate::fetch::Fetcher;
use crate::input::applying::behind;
use crate::model::zone_look::ZoneLook;
use crate::model::{Key, ObjectName};
use crate::probes::cluster::PodProbe;
use crate::reconcile::schedule::Limits;
use crate::solvers::dns01::solver::Dns01;
use crate::store::Store;
use crate::store::cluster::ClusterStore;
use crate::store::error::StoreError;
use crate::store::mirror::Mirror;

/// How many objects are read, or CAs asked, at once.
pub(super) const AT_ONCE: usize = 16;
/// Most names of one investigation that are looked at over the network.
pub(super) const MOST_NAMES: usize = 100;

/// What somebody asks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiagnosisTarget {
    /// A Certificate and what hangs below it.
    Certificate(ObjectName),
    /// A CertificateRequest that no Certificate has made, and what hangs below it.
    Request(ObjectName),
    /// A Challenge that belongs to no Certificate any more, or that hangs though it is to go.
    Challenge(ObjectName),
    /// An issuer.
    Issuer(Key),
    /// A name, whatever objects there are.
    Domain(String),
}

/// What looks.
pub struct Investigator {
    /// Where the objects are; nothing where only names are asked about.
    pub(super) store: Option<Arc<dyn Store>>,
    /// The cluster, where that is one.
    pub(super) cluster: Option<ClusterStore>,
    pub(super) fetcher: Fetcher,
    pub(super) zones: Zones,
    /// CAA records that were asked for so far.
    pub(super) caa: CaaLookups,
    /// Zones whose servers were looked at so far, by their names and the resolvers that know them.
    pub(super) zone_looks: AskedOnce<ZoneLook>,
    /// Resolvers elsewhere to compare with.
    pub(super) others: Vec<Server>,
    pub(super) clients: Clients,
    /// What asks DNS providers, with the Secrets of the store.
    pub(super) dns01: Option<Dns01>,
    /// What the providers of solvers reach, for whoever only looks.
    pub(super) reach: Reach,
    pub(super) cluster_resource_namespace: String,
    pub(super) limits: Limits,
    pub(super) driver: DriverCase,
    /// Where this machine answers.
    pub(super) answers: AnswerArgs,
    /// What looks from inside the cluster, where somebody asked for it.
    pub(super) inside: Option<PodProbe>,
    /// The namespace of what names none.
    pub(super) namespace: String,
    pub(super) now: Timestamp,
    /// Until when whoever is outside is waited for: CAs, name servers and web servers. It begins with the first question to one of
    /// them, so that those who are silent cost their time once.
    deadline: OnceLock<Instant>,
}

impl fmt::Debug for Investigator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Investigator").finish_non_exhaustive()
    }
}

impl Investigator {
    /// What looks at objects of a store, where there is one, and at names by these means.
    pub fn new(
        store: Option<Arc<dyn Store>>,
        (fetcher, zones): (Fetcher, Zones),
        (driver, limits): (DriverCase, Limits),
        answers: AnswerArgs,
        context: &Context,
    ) -> Self {
        // Of each kind and namespace an API server is asked once.
        let store = store.map(|store| -> Arc<dyn Store> {
            if store.in_cluster() { Arc::new(Mirror::for_one_look(store)) } else { store }
        });
        let cluster = store.as_ref().and_then(|store| behind(store, context)).cloned();
        let clients = engine::clients(&fetcher.resolver);
        let cluster_resource_namespace = context.global.cluster_resource_namespace.clone();
        let reach = Reach::usual(context);
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
            zone_looks: AskedOnce::default(),
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

    /// The same, which looks from inside the cluster as well.
    #[must_use]
    pub fn looking_inside(self, inside: Option<PodProbe>) -> Self {
        Self { inside, ..self }
    }

    /// Until when whoever is outside is waited for.
    pub(super) fn deadline(&self) -> Instant {
        *self.deadline.get_or_init(|| Instant::now() + PROBE_TIMEOUT)
    }

    /// Waits for somebody outside, for what is left of the time that all of them have together.
    pub(super) async fn outside<T>(&self, asked: impl Future<Output = T>) -> Result<T, Elapsed> {
        timeout_at(self.deadline(), asked).await
    }

    /// The same, which compares what it sees with what these resolvers say.
    #[must_use]
    pub fn comparing_with(self, others: Vec<Server>) -> Self {
        Self { others, ..self }
    }
}

/// What could not be read of the store.
pub(super) fn unseen(what: String, error: &StoreError) -> Unseen {
    Unseen { what, why: error.to_string(), is_forbidden: error.lacks_permission() }
}
