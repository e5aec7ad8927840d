//! What was observed of whatever a person asks about: objects, names, CAs and who drives. Nothing of it is judged yet, all of it
//! is plain data. No private key and no credential is in it; what proves control of a name is.

use std::net::{IpAddr, SocketAddr};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::model::cause::Sighting;
use crate::model::common::is_true;
use crate::model::names::shown_domain;
use crate::model::observation::Observation;
use crate::model::{
    Certificate, CertificateRequest, Challenge, ChallengeType, Issuer, Key, ObjectName, Order,
    Problem,
};
use crate::reconcile::schedule::Waits;

/// How long a record may be on its way from a provider to its name servers.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_mins(1);

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
    /// Issuers that those refer to.
    pub issuers: Vec<IssuerCase>,
    /// Names that are to be proven.
    pub names: Vec<NameCase>,
    /// Who works on the objects.
    pub driver: DriverCase,
    /// Challenges among those asked for that wait for their turn.
    pub queue: Vec<QueuedCase>,
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
}

/// Why a Certificate has to be issued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueReason {
    /// cert-manager's word, such as `DoesNotExist`.
    pub reason: String,
    /// Its sentence.
    pub message: String,
}

/// What the CA holds of one authorization (RFC 8555 §7.1.4).
#[derive(Clone, Debug, Serialize, Deserialize)]
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

/// A name that is to be proven, looked at as a CA would.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NameCase {
    /// Name without `*.`, or an IP address.
    pub name: String,
    /// Whether a wildcard is asked for.
    pub wildcard: bool,
    /// The issuer that is to prove it, where there is one.
    pub issuer: Option<Key>,
    /// How it is to be proven, where a solver fits or somebody said so.
    pub kind: Option<ChallengeType>,
    /// Why no solver fits, one line for each, where none does.
    pub unfit: Vec<String>,
    /// Its Challenge, while the answer is up and has to be seen.
    pub pending: Option<Challenge>,
    /// Whether DNS was asked for its addresses, and no flag says where it is.
    pub is_looked_for_in_dns: bool,
    /// The addresses that were found.
    pub addresses: LookUp<Vec<IpAddr>>,
    /// Those among them that no CA can reach, each with the block that it is in.
    pub reserved: Vec<(IpAddr, String)>,
    /// One look for each address.
    pub looks: Vec<AddressLook>,
    /// What was seen of the answer, and what a CA would make of it.
    pub answer: Option<AnswerLook>,
    /// CAA records, from the name upwards, up to the first that has any.
    pub caa: Vec<CaaLevel>,
    /// Whether the records of DNS-01 were found under a doubled name, `_acme-challenge.NAME.NAME`.
    pub doubled: Option<String>,
}

/// What came of a question to name servers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LookUp<T> {
    /// Nobody has asked.
    NotAsked,
    /// This.
    Found(T),
    /// There is no such name.
    NoName(String),
    /// The name is there, without such a record.
    NoRecord(String),
    /// The name is an alias of one that is not there.
    Dangling {
        /// Where the alias leads.
        target: String,
    },
    /// Aliases lead in a circle.
    Circle(String),
    /// A server answered with an error, such as `SERVFAIL`, and the purpose where it says one (RFC 8914).
    Code(String),
    /// Nobody answered.
    Silence(String),
    /// Something else.
    Other(String),
}

/// One look at an address of a name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressLook {
    /// The address, with the port that was connected to.
    pub address: SocketAddr,
    /// What was seen.
    pub observation: Observation,
    /// What was looked for.
    pub expected: String,
    /// Whether it had to be there: it is up, or was put up to see.
    pub is_expected: bool,
    /// Whether it was.
    pub is_answer: bool,
    /// What was wrong with what was seen in its place, where that is of a known sort.
    pub sighting: Option<Sighting>,
    /// Where cert-manager's self-check and the CA would see it differently.
    pub disagreement: Option<String>,
}

/// A look at the answer of a Challenge.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerLook {
    /// What has to be seen.
    pub expected: String,
    /// What was seen.
    pub observations: Vec<Observation>,
    /// Why a CA would not take it; nothing where it would.
    pub reason: Option<String>,
    /// The same as data, where it is of a known sort.
    pub sighting: Option<Sighting>,
}

/// CAA records at one name (RFC 8659).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaaLevel {
    /// Name.
    pub name: String,
    /// Records there; none is an answer, too.
    pub records: LookUp<Vec<CaaProperty>>,
    /// When it was asked.
    pub at: Timestamp,
}

/// One property of a CAA record set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaaProperty {
    /// Whether a CA that does not know the tag must not issue.
    pub is_critical: bool,
    /// What it is about, in lower case.
    pub tag: String,
    /// What it says, as it stands there.
    pub value: String,
}

impl CertificateCase {
    /// Tells whether something is to be issued, so that what stands in the way matters.
    pub fn is_open(&self) -> bool {
        self.due.is_some() || is_true(&self.certificate.status.conditions, "Issuing")
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

impl Case {
    /// The case of an issuer.
    pub fn issuer(&self, key: &Key) -> Option<&IssuerCase> {
        self.issuers.iter().find(|case| case.key == *key)
    }
}

impl NameCase {
    /// Tells whether somebody asks about the name alone, with no object behind it.
    pub fn is_bare(&self) -> bool {
        self.issuer.is_none()
    }

    /// Tells whether its answer was put up so lately that it may be on its way.
    pub fn is_fresh(&self, now: Timestamp) -> bool {
        let since = self.pending.as_ref().and_then(|challenge| challenge.status.presented_at);
        since.is_some_and(|at| now.duration_since(at.timestamp()) < ON_ITS_WAY)
    }

    /// The name as it is ordered, a wildcard as such.
    pub fn shown(&self) -> String {
        shown_domain(&self.name, self.wildcard)
    }
}
