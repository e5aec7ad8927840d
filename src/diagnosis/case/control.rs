//! Observations of the cluster itself: the controllers that work on the objects, and obstacles to the controllers' work.
//! Without keys, credentials and values of environment variables, except the names that are exempt from a proxy.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::{Key, ObjectName};

/// The cluster, as far as it may be read; empty on one machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlCase {
    /// Deployments of cert-manager's controller.
    pub controllers: Vec<ControllerCase>,
    /// Leases by which one of several controllers leads.
    pub leases: Vec<LeaseCase>,
    /// Leases that their holder has not renewed in time.
    pub lapsed: Vec<LapsedLeaseCase>,
    /// cert-manager's admission webhooks as the API server knows them, and others that review objects of an issuance.
    pub admission: Vec<AdmissionCase>,
    /// Webhooks that issuers name for DNS-01.
    pub dns_webhooks: Vec<DnsWebhookCase>,
    /// Kinds of cert-manager that the API server does not serve; if any, no object was read.
    pub undefined: Vec<UndefinedCase>,
    /// Releases in the labels of the resource definitions, by the name of the definition.
    pub definitions: BTreeMap<String, String>,
    /// Fields that a manifest had, and that the stored object lacks.
    pub dropped: Vec<DroppedCase>,
    /// Reasons why namespaces that are being deleted remain, as the API server gives them, by namespace.
    pub ending: BTreeMap<String, String>,
    /// Secrets with the private keys of the next certificates.
    pub next_keys: Vec<NextKeyCase>,
    /// Secrets of certificates that are marked as immutable.
    pub immutable: Vec<ImmutableSecretCase>,
    /// Counts of ResourceQuotas that are used up.
    pub quotas: Vec<QuotaCase>,
    /// Secrets of certificates that are not as asked for, with the other programs that have written these Secrets.
    pub secrets: Vec<IssuedSecretCase>,
    /// Permissions that the controller's account lacks, as the API server reviews them.
    pub lacking: Vec<LackingCase>,
    /// Warning Events of others about the observed objects.
    pub warnings: Vec<WarningCase>,
}

/// A Deployment of cert-manager's controller.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ControllerCase {
    /// Namespace and name.
    pub name: ObjectName,
    /// Release, by the tag of the image, else by the label; empty if neither has one.
    pub release: String,
    /// Flags by their names without dashes; `true` for a flag without a value.
    pub flags: BTreeMap<String, String>,
    /// Service account.
    pub account: String,
    /// Names of the variables that send the controller's requests through a proxy.
    pub proxies: Vec<String>,
    /// Names that are exempt from the proxy (`NO_PROXY`).
    pub exempt: Vec<String>,
    /// Number of Pods that there have to be.
    pub wanted: u64,
    /// Number of ready Pods.
    pub ready: u64,
    /// Descriptions of the Pods that are not well: phase, reason of a waiting container, restarts.
    pub ailing: Vec<String>,
}

/// Lease of cert-manager's name that has a holder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaseCase {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Identity of the holder.
    pub holder: String,
    /// Whether the holder is this program.
    pub is_ours: bool,
}

/// Lease of cert-manager's name that has run out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LapsedLeaseCase {
    /// Namespace of the Lease.
    pub namespace: String,
    /// Identity of the last holder.
    pub holder: String,
    /// Time of the last renewal.
    pub renewed: Timestamp,
}

/// Name of cert-manager's own admission webhook.
pub const OWN_WEBHOOK: &str = "webhook.cert-manager.io";

/// Webhook that the API server calls before it takes objects of an issuance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AdmissionCase {
    /// Kind and name of the configuration.
    pub configuration: String,
    /// Name of the webhook in the configuration.
    pub webhook: String,
    /// Service that is called; `None` if the configuration gives a URL.
    pub service: Option<ObjectName>,
    /// Whether the configuration has a bundle of CAs.
    pub has_bundle: bool,
    /// Whether an object that the webhook cannot judge is refused.
    pub fails_closed: bool,
    /// Number of ready endpoints of the Service; `None` if they were not read.
    pub endpoints: Option<usize>,
    /// Plurals of an issuance's objects for which the webhook is called; none for cert-manager's own webhook, which is
    /// called for all of cert-manager's kinds.
    pub asked_about: Vec<String>,
    /// Namespaces in which a Certificate has to be issued, and in which the webhook is called.
    pub guarded: Vec<String>,
}

impl AdmissionCase {
    /// Reports whether the webhook is cert-manager's own.
    pub fn is_own(&self) -> bool {
        self.webhook == OWN_WEBHOOK
    }
}

/// Webhook for DNS-01 that an issuer names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsWebhookCase {
    /// The issuer.
    pub issuer: Key,
    /// `groupName` of the webhook.
    pub group: String,
    /// `solverName` of the webhook.
    pub solver: String,
    /// State of the group at the API server.
    pub api: WebhookApi,
    /// Names that the group serves; `None` if unknown.
    pub served: Option<Vec<String>>,
    /// Account of the controller that has to call the webhook, if known.
    pub caller: Option<String>,
    /// Whether the controller's account may call the webhook; `None` if the API server was not asked, or did not answer.
    pub may_call: Option<bool>,
    /// Account of the webhook's own Pods, if known.
    pub account: Option<ObjectName>,
    /// Secrets that the solver's configuration names and that the webhook's account may not read.
    pub closed_secrets: Vec<ObjectName>,
}

/// State of a webhook's API group at the API server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WebhookApi {
    /// Unknown: the APIService could not be read.
    Unknown,
    /// There is no APIService for the group.
    Absent,
    /// The APIService is available.
    Available,
    /// The APIService is not available.
    Unavailable {
        /// Reason, as the API server gives it.
        reason: String,
        /// Message of the API server.
        message: String,
        /// Service that is called.
        service: ObjectName,
    },
}

/// Kind of cert-manager that the API server does not serve in the version that this program reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UndefinedCase {
    /// Plural of the kind.
    pub plural: String,
    /// Group and version of the kind.
    pub api_version: String,
    /// Versions of the group that are served.
    pub served: Vec<String>,
}

/// Fields that a manifest had, by the record of its last application, and that the stored object lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DroppedCase {
    /// The object.
    pub object: Key,
    /// Paths of the fields.
    pub fields: Vec<String>,
    /// Whether the resource definition was read, and lacks the fields.
    pub is_undefined: bool,
}

/// Secret with the private key of the next certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NextKeyCase {
    /// The Certificate.
    pub certificate: ObjectName,
    /// Name of the Secret.
    pub secret: String,
    /// Fault of the Secret; `None` if its key can be read.
    pub fault: Option<String>,
}

/// Secret of a certificate that cannot be changed: Kubernetes' field `immutable` is true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImmutableSecretCase {
    /// The Certificate.
    pub certificate: ObjectName,
    /// Name of the Secret.
    pub secret: String,
}

/// Secret of a certificate, and the writers of its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuedSecretCase {
    /// The Certificate.
    pub certificate: ObjectName,
    /// Name of the Secret.
    pub secret: String,
    /// Field managers of the data other than cert-manager, each with the time of the last write.
    pub writers: Vec<(String, Option<Timestamp>)>,
    /// Labels and annotations of tools that manage objects.
    pub marks: Vec<String>,
}

/// Permission that the controller's account lacks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LackingCase {
    /// The account, as RBAC names it.
    pub account: String,
    /// Verb of a Role.
    pub verb: String,
    /// Plural and group.
    pub resource: String,
    /// Namespace.
    pub namespace: String,
}

/// Count of a ResourceQuota that is used up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuotaCase {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Counted resource, as the quota names it.
    pub resource: String,
    /// Number of objects that there are.
    pub used: u64,
    /// Number of objects that there may be.
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
    /// Reason, one word.
    pub reason: String,
    /// Message, cut to a readable length.
    pub message: String,
    /// Time of the last occurrence.
    pub at: Option<Timestamp>,
    /// Number of occurrences.
    #[serde(default)]
    pub count: u64,
    /// Program that reported the Event, as it calls itself; empty if the Event does not say.
    #[serde(default)]
    pub by: String,
}

impl ControllerCase {
    /// Returns the value of a flag of the controller; `None` if the flag is not given.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.get(name).map(String::as_str)
    }

    /// Reports whether the flags are the whole configuration; with `--config` a file may say otherwise.
    pub fn is_told_by_flags(&self) -> bool {
        !self.flags.contains_key("config")
    }

    /// Returns the namespace of the controller's Lease.
    pub fn lease_namespace(&self) -> &str {
        self.flag("leader-election-namespace").unwrap_or("kube-system")
    }
}
