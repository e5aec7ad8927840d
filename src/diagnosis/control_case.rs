//! What was observed of the cluster itself: who works on the objects, and what may keep them from it. No key, no credential and no
//! value of a variable of the environment is in it, but for the names that are exempt from a proxy.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{Key, ObjectName};

/// The cluster, as far as it may be looked at; empty on one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlCase {
    /// Deployments of cert-manager's controller.
    pub controllers: Vec<ControllerCase>,
    /// Leases by which one of several controllers works.
    pub leases: Vec<LeaseCase>,
    /// Leases that somebody held and has not renewed in time.
    pub lapsed: Vec<LapsedLeaseCase>,
    /// cert-manager's own admission webhooks as the API server knows them, and those of others that are asked about an issuance.
    pub admission: Vec<AdmissionCase>,
    /// Webhooks that issuers name for DNS-01.
    pub dns_webhooks: Vec<DnsWebhookCase>,
    /// Kinds of cert-manager that the API server does not serve; then no object was looked at.
    pub undefined: Vec<UndefinedCase>,
    /// Releases that labels of the definitions name, by the name of the definition.
    pub definitions: BTreeMap<String, String>,
    /// Fields that a manifest had, and that the stored object has not.
    pub dropped: Vec<DroppedCase>,
    /// Namespaces that are being deleted, and what the API server says they wait for.
    pub ending: BTreeMap<String, String>,
    /// Secrets of keys that the next certificates are to have.
    pub next_keys: Vec<NextKeyCase>,
    /// Secrets of certificates that are marked as not to be changed.
    pub immutable: Vec<ImmutableSecretCase>,
    /// Counts of quotas that are used up.
    pub quotas: Vec<QuotaCase>,
    /// Who else has written the Secrets of certificates that are not as asked for.
    pub secrets: Vec<IssuedSecretCase>,
    /// What the controller's account may not do, as the API server reviews it.
    pub lacking: Vec<LackingCase>,
    /// Warnings of others about the objects that are looked at.
    pub warnings: Vec<WarningCase>,
}

/// A Deployment of cert-manager's controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerCase {
    /// Which.
    pub name: ObjectName,
    /// Release, by the tag of its image, else by its label; empty where neither tells.
    pub release: String,
    /// Its flags by their names without dashes; `true` where one has no value.
    pub flags: BTreeMap<String, String>,
    /// Its service account.
    pub account: String,
    /// Names of the variables that send its requests through a proxy.
    pub proxies: Vec<String>,
    /// Names that are exempt from that (`NO_PROXY`).
    pub exempt: Vec<String>,
    /// How many Pods there have to be.
    pub wanted: u64,
    /// How many are ready.
    pub ready: u64,
    /// What its Pods say that are not well: phase, reason of a waiting container, restarts.
    pub ailing: Vec<String>,
}

/// A Lease of cert-manager's name that somebody holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseCase {
    /// Its namespace.
    pub namespace: String,
    /// Who holds it, as it calls itself.
    pub holder: String,
    /// Whether that is this program.
    pub is_ours: bool,
}

/// A Lease of cert-manager's name that has run out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LapsedLeaseCase {
    /// Its namespace.
    pub namespace: String,
    /// Who held it, as it called itself.
    pub holder: String,
    /// When it was renewed last.
    pub renewed: Timestamp,
}

/// Name of cert-manager's own admission webhook.
pub const OWN_WEBHOOK: &str = "webhook.cert-manager.io";

/// A webhook that the API server asks before it takes objects of an issuance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionCase {
    /// Kind and name of the configuration.
    pub configuration: String,
    /// Name of the webhook in it.
    pub webhook: String,
    /// Service that is called; nothing where it is a URL.
    pub service: Option<ObjectName>,
    /// Whether the configuration has a bundle of CAs.
    pub has_bundle: bool,
    /// Whether what the webhook cannot judge is refused.
    pub fails_closed: bool,
    /// How many endpoints of the Service are ready; nothing where they were not read.
    pub endpoints: Option<usize>,
    /// Plurals of the objects of an issuance that the webhook is asked about; none for cert-manager's own, which is asked about all of its
    /// kinds.
    pub asked_about: Vec<String>,
    /// Namespaces in which a Certificate has to be issued, and in which the webhook is asked.
    pub guarded: Vec<String>,
}

impl AdmissionCase {
    /// Tells whether the webhook is cert-manager's own.
    pub fn is_own(&self) -> bool {
        self.webhook == OWN_WEBHOOK
    }
}

/// A webhook for DNS-01 that an issuer names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsWebhookCase {
    /// The issuer.
    pub issuer: Key,
    /// Its `groupName`.
    pub group: String,
    /// Its `solverName`.
    pub solver: String,
    /// What the API server knows of that group.
    pub api: WebhookApi,
    /// Names that the group serves; nothing where it was not told.
    pub served: Option<Vec<String>>,
    /// Account of the controller that has to call it, where that is known.
    pub caller: Option<String>,
    /// Whether that account may; nothing where the API server was not asked, or did not tell.
    pub may_call: Option<bool>,
    /// Account of the webhook's own Pods, where that is known.
    pub account: Option<ObjectName>,
    /// Secrets that the solver's configuration names and that the webhook's account may not read.
    pub closed_secrets: Vec<ObjectName>,
}

/// What the API server knows of the group of a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WebhookApi {
    /// Nobody could look.
    Unknown,
    /// There is no APIService for it.
    Absent,
    /// It is available.
    Available,
    /// It is not available.
    Unavailable {
        /// The API server's word for it.
        reason: String,
        /// Its sentence.
        message: String,
        /// Service that is called.
        service: ObjectName,
    },
}

/// A kind of cert-manager that the API server does not serve in the version that is read here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndefinedCase {
    /// Its plural.
    pub plural: String,
    /// Its group and version.
    pub api_version: String,
    /// Versions of the group that are served.
    pub served: Vec<String>,
}

/// Fields that a manifest had, as its last application is noted, and that the stored object has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DroppedCase {
    /// The object.
    pub object: Key,
    /// Paths of the fields.
    pub fields: Vec<String>,
    /// Whether the definition was read, and lacks them.
    pub is_undefined: bool,
}

/// The Secret with the key that the next certificate is to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextKeyCase {
    /// The Certificate.
    pub certificate: ObjectName,
    /// Name of the Secret.
    pub secret: String,
    /// What is wrong with it; nothing where its key can be read.
    pub fault: Option<String>,
}

/// The Secret of a certificate that nobody may change: Kubernetes' field `immutable` is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImmutableSecretCase {
    /// The Certificate.
    pub certificate: ObjectName,
    /// Name of the Secret.
    pub secret: String,
}

/// The Secret of a certificate, and who has written its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuedSecretCase {
    /// The Certificate.
    pub certificate: ObjectName,
    /// Name of the Secret.
    pub secret: String,
    /// Field managers of its data that are not cert-manager's, with the time of the last write.
    pub writers: Vec<(String, Option<Timestamp>)>,
    /// Labels and annotations of tools that manage objects.
    pub marks: Vec<String>,
}

/// A right that the controller's account has not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LackingCase {
    /// The account, as RBAC names it.
    pub account: String,
    /// Verb of a Role.
    pub verb: String,
    /// Plural and group.
    pub resource: String,
    /// Where.
    pub namespace: String,
}

/// A count of a ResourceQuota that is used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaCase {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// What is counted, in the quota's word.
    pub resource: String,
    /// How many there are.
    pub used: u64,
    /// How many there may be.
    pub hard: u64,
}

/// An Event of the type `Warning`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningCase {
    /// Kind and name of the object.
    pub about: String,
    /// Namespace and name of the object.
    pub name: ObjectName,
    /// The word for it.
    pub reason: String,
    /// The sentence, cut where nobody reads on.
    pub message: String,
    /// When it was told last.
    pub at: Option<Timestamp>,
    /// How often.
    #[serde(default)]
    pub count: u64,
    /// The program that told it, as it calls itself; empty if it does not.
    #[serde(default)]
    pub by: String,
}

impl ControllerCase {
    /// A flag of the controller; nothing where it is not given.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.get(name).map(String::as_str)
    }

    /// Whether its flags are all there is to know: a file of configuration may say otherwise.
    pub fn is_told_by_flags(&self) -> bool {
        !self.flags.contains_key("config")
    }

    /// Namespace of the Lease that it takes.
    pub fn lease_namespace(&self) -> &str {
        self.flag("leader-election-namespace").unwrap_or("kube-system")
    }
}
