//! Outside parts that the controllers touch, and the rules by which they work.

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

/// Everything outside that the controllers touch, except the store: their only source of time, answers and keys.
#[derive(Debug)]
pub struct World {
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Clients of CAs, whose answers are dated by `clock`.
    pub clients: Clients,
    /// Maker of private keys.
    pub keys: Arc<dyn KeyMaker>,
    /// Solver of HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// Solver of DNS-01 and of the other challenge types by record.
    pub dns01: Arc<dyn Solver>,
    /// Solver of TLS-ALPN-01.
    pub tls_alpn01: Arc<dyn Solver>,
    /// Self-check of HTTP-01.
    pub http01_probe: Arc<dyn Probe>,
    /// Self-check of records.
    pub dns01_probe: Arc<dyn Probe>,
    /// Self-check of TLS-ALPN-01, by handshakes.
    pub tls_alpn01_probe: Arc<dyn Probe>,
}

/// Default namespace of the Secrets that ClusterIssuers refer to.
pub(crate) const CLUSTER_RESOURCE_NAMESPACE: &str = "cert-manager";
/// Default of the longest pause between two self-checks.
const CHECK_PERIOD: SignedDuration = SignedDuration::from_secs(10);

/// Memory of a process about its CAs: if a Lease is lost and won again, the new controllers go on with this memory.
#[derive(Clone, Debug)]
pub struct ProcessMemory {
    /// Answers to newOrder that are not in the store yet.
    pub unwritten: Arc<ByObject<Outcome>>,
    /// Budget of newOrder requests, and the orders already requested.
    pub budget: Arc<OrderBudget>,
    /// Requests that a CA has refused until a given time.
    pub refused: Arc<RefusedRequests>,
}

impl ProcessMemory {
    /// Builds the memory of a process with the given allowance of orders.
    pub fn new(allowance: Allowance) -> Self {
        let budget = OrderBudget::new(allowance);
        Self { unwritten: Arc::default(), budget, refused: Arc::default() }
    }
}

/// Rules by which the controllers work.
#[derive(Debug)]
pub struct Rules {
    /// Objects that the controllers work on.
    pub selection: Selection,
    /// Challenge types that the schema of the store can express.
    pub types: Types,
    /// Memory left by earlier controllers of this process.
    pub memory: ProcessMemory,
    /// Approver of CertificateRequests.
    pub approval: Approval,
    /// Options that hold for every Certificate.
    pub options: Options,
    /// Kinds whose annotations ask for Certificates, and defaults for those; no kinds if no Certificates are made.
    pub asking: (Vec<Kind>, Defaults),
    /// Algorithm of new account keys.
    pub account_keys: KeyAlgorithm,
    /// Namespace of the Secrets of ClusterIssuers.
    pub cluster_resource_namespace: String,
    /// Scheduler limits.
    pub limits: Limits,
    /// Request rates for CAs whose own rates are not known.
    pub rates: Option<&'static RequestRates>,
    /// Longest pause between self-checks.
    pub check_period: SignedDuration,
}

impl Rules {
    /// Rules of a command without flags: works on every object, and requests one order for each Certificate.
    pub fn without_flags(in_cluster: bool) -> Self {
        Self {
            selection: Selection::all(),
            // A cluster's schema knows cert-manager's challenge types only.
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

/// Algorithm of new account keys; in a cluster the only one that cert-manager can use.
pub fn account_keys(in_cluster: bool) -> KeyAlgorithm {
    if in_cluster { KeyAlgorithm::Rsa(2048) } else { KeyAlgorithm::Ecdsa(256) }
}
