//! Observations of what a person asks about: objects, names, CAs and the leader. Plain data without a verdict. The data
//! hold no private key and no credential, but the answers that prove control of a name.

pub mod authority;
pub mod chain;
pub mod control;
pub mod dns;
pub mod gateway_objects;
pub mod issuer;
pub mod name;
pub mod network_policy;
pub mod path;
pub mod path_objects;
pub mod plugin_policy;
pub mod web;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::case::authority::{AuthorityOrder, HeldCase, StoredCertificateCase};
use super::case::chain::Chain;
use super::case::control::ControlCase;
use super::case::issuer::{IssuerCase, ProviderCase};
use super::case::name::NameCase;
use super::case::path::ClusterPathCase;
use super::words::facts;
use crate::model::common::{condition, is_true};
use crate::model::{
    Certificate, CertificateRequest, Challenge, ConditionStatus, Key, ObjectName, Order, State,
    Time,
};
use crate::reconcile::schedule::Obstacle;

/// All observations of one diagnosis.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Case {
    /// Time of the diagnosis.
    pub at: Timestamp,
    /// Whether the objects are in a cluster.
    pub in_cluster: bool,
    /// Whether several objects were asked about.
    pub is_of_many: bool,
    /// Certificates with their requests, Orders and Challenges.
    pub certificates: Vec<CertificateCase>,
    /// Challenges that were asked about and that belong to no Certificate, or are to be deleted.
    pub orphans: Vec<Challenge>,
    /// Issuers that the certificates and challenges refer to.
    pub issuers: Vec<IssuerCase>,
    /// Names whose control is to be proven.
    pub names: Vec<NameCase>,
    /// Program that works on the objects.
    pub driver: DriverCase,
    /// The cluster, with the controllers and webhooks in it.
    pub control: ControlCase,
    /// Challenges among those of `certificates` that wait for their turn.
    pub queue: Vec<QueuedCase>,
    /// Challenges that the `queue` waits for, a bounded number.
    pub running: Vec<RunningCase>,
    /// Path to solvers in a cluster; `None` if it was not read.
    pub cluster_path: Option<ClusterPathCase>,
    /// Answers of the DNS providers that were asked.
    pub providers: Vec<ProviderCase>,
    /// Reason why this machine cannot listen for HTTP-01, if it has to and the port was tried.
    pub listener_fault: Option<String>,
    /// Objects and questions that could not be observed.
    pub unseen: Vec<Unobserved>,
}

/// Program that works on the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DriverCase {
    /// No program.
    Nobody,
    /// cert-manager.
    CertManager,
    /// This program, in another process.
    KubectlAcme,
    /// Unknown: not asked, or without an answer.
    #[default]
    Unknown,
}

/// Object or question that could not be observed; silence is not health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unobserved {
    /// The object, the question, or the URL.
    pub what: String,
    /// Reason.
    pub why: String,
    /// Whether a permission is missing.
    pub is_forbidden: bool,
}

/// Challenge that waits for its turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedCase {
    /// Name of the Challenge.
    pub challenge: ObjectName,
    /// Name to be proven; a wildcard with its `*.`.
    pub domain: String,
    /// Slot or lock that the Challenge waits for.
    pub waits: Obstacle,
    /// Whether the Challenge waits for another Challenge of the same order, whose turn is only first.
    pub is_of_same_order: bool,
}

/// Challenge with a slot or a name that others wait for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningCase {
    /// Name of the Challenge.
    pub challenge: ObjectName,
    /// Name to be proven; a wildcard with its `*.`.
    pub domain: String,
    /// Reason in the Challenge's status.
    pub reason: String,
    /// Time of creation.
    pub since: Option<Time>,
}

/// A Certificate with its requests, Orders and Challenges.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateCase {
    /// The Certificate.
    pub certificate: Certificate,
    /// Requests of the Certificate, oldest revision first.
    pub requests: Vec<CertificateRequest>,
    /// Orders of the requests.
    pub orders: Vec<Order>,
    /// Challenges of the Orders.
    pub challenges: Vec<Challenge>,
    /// Reason why the Certificate has to be issued now; `None` if its Secret is as asked for.
    pub due: Option<DueReason>,
    /// Time until which a new try waits after a failure.
    pub next_try: Option<Timestamp>,
    /// Other Certificates with the same Secret.
    pub rivals: Vec<ObjectName>,
    /// Authorizations of the names at the CA, if an order is open or was refused.
    pub held: Vec<HeldCase>,
    /// The newest order at the CA, if the CA was asked.
    #[serde(default)]
    pub held_order: Option<AuthorityOrder>,
    /// Certificate in the Secret, if there is one.
    #[serde(default)]
    pub kept: Option<StoredCertificateCase>,
}

/// Reason why a Certificate has to be issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueReason {
    /// cert-manager's word, such as `DoesNotExist`.
    pub reason: String,
    /// cert-manager's sentence.
    pub message: String,
}

impl DueReason {
    /// Reason and message of the Certificate's Ready condition; `None` if the condition is true.
    pub fn by_condition(certificate: &Certificate) -> Option<Self> {
        let ready = condition(&certificate.status.conditions, "Ready");
        if ready.is_some_and(|ready| ready.status == ConditionStatus::True) {
            return None;
        }
        let (reason, message) =
            ready.map(|r| (r.reason.clone(), r.message.clone())).unwrap_or_default();
        Some(Self { reason, message })
    }
}

impl CertificateCase {
    /// Builds the case of a Certificate with its requests, Orders and Challenges; everything else is unknown.
    pub fn of(chain: Chain) -> Self {
        let Chain { certificate, requests, orders, challenges, .. } = chain;
        Self {
            certificate,
            requests,
            orders,
            challenges,
            due: None,
            next_try: None,
            rivals: Vec::new(),
            held: Vec::new(),
            held_order: None,
            kept: None,
        }
    }

    /// Reports whether something is to be issued, so that obstacles matter.
    pub fn is_open(&self) -> bool {
        self.due.is_some() || is_true(&self.certificate.status.conditions, "Issuing")
    }

    /// Reports whether the Certificate asks for a name; `domain` has its `*.` if it is a wildcard.
    pub fn wants(&self, domain: &str) -> bool {
        let spec = &self.certificate.spec;
        let names = spec.dns_names.iter().chain(&spec.ip_addresses);
        spec.common_name == domain || names.into_iter().any(|name| name == domain)
    }

    /// Returns when the running issuance began: by the condition `Issuing`, else by the creation of the Certificate if
    /// nothing was issued or asked for before; `None` if neither is known.
    pub fn begun_at(&self) -> Option<Timestamp> {
        let Certificate { metadata, status, .. } = &self.certificate;
        let issuing = condition(&status.conditions, "Issuing")
            .filter(|it| it.status == ConditionStatus::True)
            .and_then(|it| it.last_transition_time);
        let is_first = status.revision.is_none() && self.requests.is_empty();
        let made = metadata.creation_timestamp.filter(|_| is_first);
        issuing.or(made).map(Time::timestamp)
    }

    /// Reports whether the CA has refused to make the order: the CA has looked for no answer, and never will.
    pub fn is_refused_unseen(&self) -> bool {
        self.order().is_some_and(|order| {
            let has_failed = order.status.state.is_some_and(State::is_failure);
            has_failed && order.status.url.is_empty() && facts::problem(order).is_some()
        })
    }

    /// Returns the Order of the newest request.
    pub fn order(&self) -> Option<&Order> {
        let uid = &self.requests.last()?.metadata.uid;
        self.orders.iter().rev().find(|order| order.metadata.is_controlled_by(uid))
    }

    /// Returns the Challenges of the newest request's Order.
    pub fn current_challenges(&self) -> impl Iterator<Item = &Challenge> {
        let order = self.order().map(|order| &order.metadata.uid);
        self.challenges.iter().filter(move |challenge| {
            order.is_some_and(|uid| challenge.metadata.is_controlled_by(uid))
        })
    }
}

impl Case {
    /// Returns the case of an issuer.
    pub fn issuer(&self, key: &Key) -> Option<&IssuerCase> {
        self.issuers.iter().find(|case| case.key == *key)
    }

    /// Reports whether a name is in open Certificates, and the CA has refused to make the order of each of them.
    pub fn is_refused_unseen(&self, name: &NameCase) -> bool {
        let shown = name.shown();
        let asks = |of: &&CertificateCase| {
            let spec = &of.certificate.spec;
            spec.dns_names.iter().chain(&spec.ip_addresses).any(|asked| *asked == shown)
        };
        let mut asking = self.certificates.iter().filter(|of| of.is_open()).filter(asks).peekable();
        asking.peek().is_some() && asking.all(CertificateCase::is_refused_unseen)
    }
}
