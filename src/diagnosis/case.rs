//! What was observed of whatever a person asks about: objects, names, CAs and who drives. Nothing of it is judged yet, all of it
//! is plain data. No private key and no credential is in it; what proves control of a name is.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::authority_case::{AccountCase, AuthorityCase, HeldOrder, KeptCase};
use super::chain::Chain;
use super::control_case::ControlCase;
use super::facts;
use super::name_case::NameCase;
use super::path_case::ClusterPathCase;
use super::provider_case::ProviderCase;
use crate::model::common::{condition, is_true};
use crate::model::validation_record::ValidationRecord;
use crate::model::{
    Certificate, CertificateRequest, Challenge, ConditionStatus, Issuer, Key, ObjectName, Order,
    Problem, State, Time,
};
use crate::reconcile::schedule::Waits;

/// All that was observed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Case {
    /// When.
    pub at: Timestamp,
    /// Whether the objects are in a cluster.
    pub in_cluster: bool,
    /// Whether several objects were asked about.
    pub is_of_many: bool,
    /// Certificates with all that hangs below them.
    pub certificates: Vec<CertificateCase>,
    /// Challenges that were asked about and that belong to no Certificate, or are to go.
    pub orphans: Vec<Challenge>,
    /// Issuers that those refer to.
    pub issuers: Vec<IssuerCase>,
    /// Names that are to be proven.
    pub names: Vec<NameCase>,
    /// Who works on the objects.
    pub driver: DriverCase,
    /// The cluster, and what works in it.
    pub control: ControlCase,
    /// Challenges among those asked for that wait for their turn.
    pub queue: Vec<QueuedCase>,
    /// Challenges that those wait for, a bounded number.
    pub running: Vec<RunningCase>,
    /// The path to solvers in a cluster; nothing where nobody has looked.
    pub cluster_path: Option<ClusterPathCase>,
    /// What DNS providers said when they were asked.
    pub providers: Vec<ProviderCase>,
    /// Why this machine cannot listen for HTTP-01, where it has to and was tried.
    pub listener_fault: Option<String>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

/// Who works on the objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DriverCase {
    /// Nobody.
    Nobody,
    /// cert-manager.
    CertManager,
    /// This program, in another process.
    KubectlAcme,
    /// Nobody has looked, or nobody could.
    #[default]
    Unknown,
}

/// Something that could not be looked at: silence is not health.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// What: an object, a question, a URL.
    pub what: String,
    /// Why.
    pub why: String,
    /// Whether somebody may not look at it.
    pub is_forbidden: bool,
}

/// A Challenge that waits for its turn.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedCase {
    /// Which.
    pub challenge: ObjectName,
    /// Name that it is about, a wildcard as such.
    pub domain: String,
    /// What it waits for.
    pub waits: Waits,
    /// Whether that is a Challenge of the same order, whose turn is only first.
    pub is_of_same_order: bool,
}

/// A Challenge that has a slot, or a name, that others wait for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunningCase {
    /// Which.
    pub challenge: ObjectName,
    /// Name that it is about, a wildcard as such.
    pub domain: String,
    /// What it says itself.
    pub reason: String,
    /// When it was made.
    pub since: Option<Time>,
}

/// A Certificate and what hangs below it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateCase {
    /// The Certificate.
    pub certificate: Certificate,
    /// Its requests, oldest revision first.
    pub requests: Vec<CertificateRequest>,
    /// Their Orders.
    pub orders: Vec<Order>,
    /// Their Challenges.
    pub challenges: Vec<Challenge>,
    /// Why it has to be issued now, in cert-manager's word and sentence; nothing where its Secret is as asked for.
    pub due: Option<DueReason>,
    /// Until when a new try waits after a failure.
    pub next_try: Option<Timestamp>,
    /// Other Certificates with the same Secret.
    pub rivals: Vec<ObjectName>,
    /// What the CA holds of the names, where an order is open or was refused.
    pub held: Vec<HeldCase>,
    /// What the CA holds of the newest order, where it was asked.
    #[serde(default)]
    pub held_order: Option<HeldOrder>,
    /// The certificate that is there, where there is one.
    #[serde(default)]
    pub kept: Option<KeptCase>,
}

/// Why a Certificate has to be issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueReason {
    /// cert-manager's word, such as `DoesNotExist`.
    pub reason: String,
    /// Its sentence.
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

/// What the CA holds of one authorization (RFC 8555 §7.1.4).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldCase {
    /// Name, a wildcard as such.
    pub name: String,
    /// Status in the CA's word; empty where it refused to tell.
    pub status: String,
    /// Until when.
    pub expires: Option<Timestamp>,
    /// Types that it offers.
    pub offered: Vec<String>,
    /// Why it is invalid, or why the CA refused to tell.
    pub problem: Option<Problem>,
    /// When the CA has looked at the name, where it tells.
    #[serde(default)]
    pub validated: Option<Timestamp>,
    /// Where that look led it, request by request, where it tells.
    #[serde(default)]
    pub records: Vec<ValidationRecord>,
    /// When it was asked.
    pub at: Timestamp,
}

/// An issuer as a Certificate names it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerCase {
    /// Which.
    pub key: Key,
    /// The issuer; nothing where there is none of that name, or it may not be read.
    pub issuer: Option<Issuer>,
    /// Whether the store has told.
    pub is_known: bool,
    /// Issuers that may have been meant: of the other kind, of other namespaces, or of a similar name.
    pub near: Vec<Key>,
    /// Secrets that it names, and what is in them.
    pub secrets: Vec<SecretCase>,
    /// What its CA answers.
    pub directory: Option<DirectoryCase>,
    /// What is known of the server of the CA beyond that.
    #[serde(default)]
    pub authority: Option<AuthorityCase>,
    /// What the CA says of the account whose key is in the Secret.
    #[serde(default)]
    pub account: Option<AccountCase>,
}

/// What a Secret is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretUse {
    /// Key of the ACME account.
    AccountKey,
    /// HMAC key of an external account binding.
    Binding,
    /// Credentials of a DNS provider.
    Provider,
}

/// A Secret that an issuer names. What is in it stays there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretCase {
    /// What for.
    pub purpose: SecretUse,
    /// Which.
    pub name: ObjectName,
    /// Entry in it.
    pub entry: String,
    /// What is there.
    pub state: SecretState,
    /// Namespaces that have a Secret of that name.
    pub elsewhere: Vec<String>,
}

/// What is in a Secret, as far as that may be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretState {
    /// There is no such Secret.
    Missing,
    /// There is one, without that entry; it has these.
    NoEntry(Vec<String>),
    /// The entry is empty.
    Empty,
    /// The entry is not what it has to be, and why.
    Unusable(String),
    /// The entry is an account key of this algorithm and JWK thumbprint (RFC 7638).
    AccountKey {
        /// Such as `RSA`.
        algorithm: String,
        /// Thumbprint, which every key authorization ends with.
        thumbprint: String,
        /// Whether another key stands beside it that is to take its place.
        #[serde(default)]
        is_being_changed: bool,
    },
    /// The entry is there.
    Present,
}

/// What a CA's directory answered (RFC 8555 §7.1.1).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryCase {
    /// URL that was asked.
    pub url: String,
    /// When.
    pub at: Timestamp,
    /// What came.
    pub answer: DirectoryAnswer,
}

/// What came of asking for a directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DirectoryAnswer {
    /// The directory.
    Directory {
        /// Profiles that the CA offers.
        profiles: Vec<String>,
        /// Names by which CAA records have to call the CA.
        caa_identities: Vec<String>,
        /// Whether an account has to be bound to another one.
        external_account_required: bool,
        /// URL where accounts are made.
        new_account: String,
    },
    /// The CA's certificate is not trusted.
    Untrusted(String),
    /// The host does not exist.
    NoSuchHost(String),
    /// The host cannot be looked up now.
    Lookup(String),
    /// No connection, or no answer in time.
    Unreachable(String),
    /// An answer that is no directory.
    NotAcme(String),
    /// An answer with an HTTP status that says no.
    Refused(Problem),
}

impl CertificateCase {
    /// A Certificate with what hangs below it, of which nothing else is known.
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

    /// Tells whether something is to be issued, so that what stands in the way matters.
    pub fn is_open(&self) -> bool {
        self.due.is_some() || is_true(&self.certificate.status.conditions, "Issuing")
    }

    /// Tells whether a name, a wildcard as such, is one that the Certificate asks for.
    pub fn wants(&self, domain: &str) -> bool {
        let spec = &self.certificate.spec;
        let names = spec.dns_names.iter().chain(&spec.ip_addresses);
        spec.common_name == domain || names.into_iter().any(|name| name == domain)
    }

    /// When the running issuance began, by its condition, or by the Certificate itself where nothing was issued or asked for before;
    /// `None` if neither says so.
    pub fn begun_at(&self) -> Option<Timestamp> {
        let Certificate { metadata, status, .. } = &self.certificate;
        let issuing = condition(&status.conditions, "Issuing")
            .filter(|it| it.status == ConditionStatus::True)
            .and_then(|it| it.last_transition_time);
        let is_first = status.revision.is_none() && self.requests.is_empty();
        let made = metadata.creation_timestamp.filter(|_| is_first);
        issuing.or(made).map(Time::timestamp)
    }

    /// Tells whether the CA has refused to make the order: nobody has looked for an answer, and nobody will.
    pub fn is_refused_unseen(&self) -> bool {
        self.order().is_some_and(|order| {
            let has_failed = order.status.state.is_some_and(State::is_failure);
            has_failed && order.status.url.is_empty() && facts::problem(order).is_some()
        })
    }

    /// The Order of the newest request.
    pub fn order(&self) -> Option<&Order> {
        let uid = &self.requests.last()?.metadata.uid;
        self.orders.iter().rev().find(|order| order.metadata.is_controlled_by(uid))
    }

    /// The Challenges of that Order.
    pub fn current_challenges(&self) -> impl Iterator<Item = &Challenge> {
        let order = self.order().map(|order| &order.metadata.uid);
        self.challenges.iter().filter(move |challenge| {
            order.is_some_and(|uid| challenge.metadata.is_controlled_by(uid))
        })
    }
}

impl IssuerCase {
    /// An issuer, or that there is none of that name; what it names and what its CA answers was not looked at.
    pub fn of(key: Key, issuer: Option<Issuer>) -> Self {
        let (near, secrets) = (Vec::new(), Vec::new());
        Self {
            key,
            issuer,
            is_known: true,
            near,
            secrets,
            directory: None,
            authority: None,
            account: None,
        }
    }
}

impl Case {
    /// The case of an issuer.
    pub fn issuer(&self, key: &Key) -> Option<&IssuerCase> {
        self.issuers.iter().find(|case| case.key == *key)
    }

    /// Tells whether a name stands in Certificates whose orders the CA has refused to make, and in no other that is to be issued.
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
