//! What the controllers touch of the world, and by which rules they work there.

use std::sync::Arc;

use jiff::SignedDuration;

use crate::acme::{Clients, KeyMaker, RefusedRequests};
use crate::controllers::by_object::ByObject;
use crate::controllers::clock::Clock;
use crate::controllers::order_budget::OrderBudget;
use crate::controllers::selection::Selection;
use crate::model::order_budget::Allowance;
use crate::model::request_rates::RequestRates;
use crate::model::{KeyAlgorithm, Kind};
use crate::probes::Probe;
use crate::reconcile::certificate::options::Options;
use crate::reconcile::ingress_shim::Defaults;
use crate::reconcile::order::Outcome;
use crate::reconcile::order::required::Types;
use crate::reconcile::request::Approval;
use crate::reconcile::schedule::Limits;
use crate::solvers::Solver;

/// Everything outside that the controllers touch beside the store. Nothing else tells them the time, answers for them or makes keys.
#[derive(Debug)]
pub struct World {
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The CAs, whose answers come by that clock.
    pub clients: Clients,
    /// What makes keys.
    pub keys: Arc<dyn KeyMaker>,
    /// What answers HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// What answers DNS-01, and the other types by record.
    pub dns01: Arc<dyn Solver>,
    /// What answers TLS-ALPN-01.
    pub tls_alpn01: Arc<dyn Solver>,
    /// Looks at answers of HTTP-01.
    pub http01_probe: Arc<dyn Probe>,
    /// Looks at records.
    pub dns01_probe: Arc<dyn Probe>,
    /// Makes handshakes of TLS-ALPN-01.
    pub tls_alpn01_probe: Arc<dyn Probe>,
}

/// The namespace of Secrets that ClusterIssuers refer to, where no flag names another.
pub(crate) const CLUSTER_RESOURCE_NAMESPACE: &str = "cert-manager";
/// Longest pause between two self-checks, where no flag says otherwise.
const CHECK_PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// What a process remembers of its CAs while it lives: a Lease that is lost and had again makes new controllers, which go on with it.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    /// Answers to newOrder that are not in the store yet.
    pub unwritten: Arc<ByObject<Outcome>>,
    /// How many orders may be asked for, and which were.
    pub budget: Arc<OrderBudget>,
    /// What may not be asked before a moment.
    pub refused: Arc<RefusedRequests>,
}

impl ProcessMemory {
    /// That of a process which may ask for so many orders.
    pub fn new(allowance: Allowance) -> Self {
        let budget = OrderBudget::new(allowance);
        Self { unwritten: Arc::default(), budget, refused: Arc::default() }
    }
}

/// By which rules the controllers work.
#[derive(Debug)]
pub struct Rules {
    /// Which objects are worked on.
    pub selection: Selection,
    /// Which types of challenges the store has words for.
    pub types: Types,
    /// What those who worked before in this process have left.
    pub memory: ProcessMemory,
    /// Who approves CertificateRequests.
    pub approval: Approval,
    /// What holds for every Certificate.
    pub options: Options,
    /// The kinds whose annotations ask for Certificates that are kept, and what holds for them; none where nobody keeps any.
    pub asking: (Vec<Kind>, Defaults),
    /// What account keys are made.
    pub account_keys: KeyAlgorithm,
    /// Namespace of the Secrets of ClusterIssuers.
    pub cluster_resource_namespace: String,
    /// Scheduler limits.
    pub limits: Limits,
    /// Request rates of CAs whose own are not known.
    pub rates: Option<&'static RequestRates>,
    /// Longest pause between self-checks.
    pub check_period: SignedDuration,
}

impl Rules {
    /// Those of a command without flags: it works on everything, and asks for one order for each Certificate.
    pub fn without_flags(in_cluster: bool) -> Self {
        Self {
            selection: Selection::all(),
            // A cluster's schema has words for cert-manager's alone.
            types: if in_cluster { Types::OfCluster } else { Types::All },
            memory: ProcessMemory::new(Allowance::OneShot),
            approval: Approval::Ours,
            options: Options::default(),
            asking: Default::default(),
            account_keys: account_keys(in_cluster),
            cluster_resource_namespace: CLUSTER_RESOURCE_NAMESPACE.to_owned(),
            limits: Limits::default(),
            rates: None,
            check_period: CHECK_PERIOD,
        }
    }
}

/// What account keys are made: in a cluster the only ones that cert-manager can use.
pub fn account_keys(in_cluster: bool) -> KeyAlgorithm {
    if in_cluster { KeyAlgorithm::Rsa(2048) } else { KeyAlgorithm::Ecdsa(256) }
}
