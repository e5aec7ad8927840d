//! Event (core/v1), and every reason an event may carry.

use serde::{Deserialize, Serialize};

use super::common::{Other, Time};
use super::metadata::Metadata;

/// Severity of an event.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Severity {
    /// The event is expected.
    #[default]
    Normal,
    /// A person should look into the event.
    Warning,
}

/// Object that an event is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ObjectReference {
    /// `apiVersion` of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object, empty for cluster-scoped ones.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Revision of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// UID of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
}

/// Writer of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventSource {
    /// Component, such as `cert-manager-challenges`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub component: String,
}

/// `v1` Event in the form cert-manager writes: `count`, `firstTimestamp`, `lastTimestamp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Event {
    /// `v1`.
    pub api_version: String,
    /// `Event`.
    pub kind: String,
    /// Name and namespace; events of cluster-scoped objects are in `default`.
    pub metadata: Metadata,
    /// Object that the event is about.
    pub involved_object: ObjectReference,
    /// Reason in one word, one of [`reason`].
    pub reason: String,
    /// Message in one sentence.
    pub message: String,
    /// Writer of the event.
    pub source: EventSource,
    /// Time at which the event happened first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_timestamp: Option<Time>,
    /// Time at which the event happened last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_timestamp: Option<Time>,
    /// Number of times that the event happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// `Normal` or `Warning`.
    #[serde(rename = "type")]
    pub severity: Severity,
    /// Component of the writer, as in `source`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reporting_component: String,
    /// Instance that wrote the event.
    pub reporting_instance: String,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Components under whose names events and fields are written: cert-manager's own, so that either
/// controller can finish what the other began.
pub mod source {
    /// Certificates: when to issue.
    pub const TRIGGER: &str = "cert-manager-certificates-trigger";
    /// Certificates: whether the Secret is good. Writes fields and no events.
    pub const READINESS: &str = "cert-manager-certificates-readiness";
    /// Certificates: private keys.
    pub const KEY_MANAGER: &str = "cert-manager-certificates-key-manager";
    /// Certificates: CertificateRequests.
    pub const REQUEST_MANAGER: &str = "cert-manager-certificates-request-manager";
    /// Certificates: the Secret.
    pub const ISSUING: &str = "cert-manager-certificates-issuing";
    /// CertificateRequests: approval.
    pub const APPROVER: &str = "cert-manager-certificaterequests-approver";
    /// CertificateRequests: ACME.
    pub const REQUESTS_ACME: &str = "cert-manager-certificaterequests-issuer-acme";
    /// Orders.
    pub const ORDERS: &str = "cert-manager-orders";
    /// Challenges and their scheduler.
    pub const CHALLENGES: &str = "cert-manager-challenges";
    /// Issuers.
    pub const ISSUERS: &str = "cert-manager-issuers";
    /// ClusterIssuers.
    pub const CLUSTER_ISSUERS: &str = "cert-manager-clusterissuers";
    /// Ingresses.
    pub const INGRESSES: &str = "cert-manager-ingress-shim";
    /// Gateways.
    pub const GATEWAYS: &str = "cert-manager-gateway-shim";
    /// ListenerSets.
    pub const LISTENER_SETS: &str = "cert-manager-listenerset";
}

/// Every reason an event may carry: cert-manager's words; this program's own are in the past tense.
pub mod reason {
    /// Challenge: taken up by the scheduler.
    pub const STARTED: &str = "Started";
    /// Challenge: the answer is presented.
    pub const PRESENTED: &str = "Presented";
    /// Challenge: the answer could not be presented.
    pub const PRESENT_ERROR: &str = "PresentError";
    /// Challenge: the answer could not be removed.
    pub const CLEAN_UP_ERROR: &str = "CleanUpError";
    /// Challenge: the CA has validated the answer.
    pub const DOMAIN_VERIFIED: &str = "DomainVerified";
    /// Challenge: the CA refused. Certificate: the request failed.
    pub const FAILED: &str = "Failed";
    /// Order: a Challenge was made.
    pub const CREATED: &str = "Created";
    /// Order: the certificate is there.
    pub const COMPLETE: &str = "Complete";
    /// Order: no solver fits.
    pub const SOLVER: &str = "Solver";
    /// CertificateRequest: approved.
    pub const APPROVED: &str = "cert-manager.io";
    /// CertificateRequest: not approved yet.
    pub const WAITING_FOR_APPROVAL: &str = "WaitingForApproval";
    /// CertificateRequest: there is no such issuer.
    pub const ISSUER_NOT_FOUND: &str = "IssuerNotFound";
    /// CertificateRequest: the issuer has no type.
    pub const ISSUER_TYPE_MISSING: &str = "IssuerTypeMissing";
    /// CertificateRequest: the issuer has no account yet.
    pub const ISSUER_NOT_READY: &str = "IssuerNotReady";
    /// Order: things that the CA has added to the certificate, or left out of its chain, without having been asked.
    pub const NOT_AS_ORDERED: &str = "NotAsOrdered";
    /// Order: the reason why another order is placed at the CA after an earlier one.
    pub const ORDERED_AGAIN: &str = "OrderedAgain";
    /// CertificateRequest: an Order was made.
    pub const ORDER_CREATED: &str = "OrderCreated";
    /// CertificateRequest: the Order is under way.
    pub const ORDER_PENDING: &str = "OrderPending";
    /// CertificateRequest: the certificate is there.
    pub const CERTIFICATE_ISSUED: &str = "CertificateIssued";
    /// CertificateRequest: no signing request.
    pub const REQUEST_PARSING_ERROR: &str = "RequestParsingError";
    /// CertificateRequest: the common name is none of the names.
    pub const INVALID_ORDER: &str = "InvalidOrder";
    /// CertificateRequest: the Order failed.
    pub const ORDER_FAILED: &str = "OrderFailed";
    /// Certificate: issuance began, or ended well.
    pub const ISSUING: &str = "Issuing";
    /// Certificate: a key was made.
    pub const GENERATED: &str = "Generated";
    /// Certificate: the key in the Secret is used again.
    pub const REUSED: &str = "Reused";
    /// Certificate: a key was deleted.
    pub const DELETED: &str = "Deleted";
    /// Certificate: a CertificateRequest was made.
    pub const REQUESTED: &str = "Requested";
    /// Certificate: no CertificateRequest could be made.
    pub const REQUEST_FAILED: &str = "RequestFailed";
    /// Certificate: the key in the Secret cannot be read.
    pub const DECODE_FAILED: &str = "DecodeFailed";
    /// Certificate: the policy forbids a new key.
    pub const CANNOT_REGENERATE_KEY: &str = "CannotRegenerateKey";
    /// Certificate: its CA does not say when to renew it.
    pub const ARI_ERROR: &str = "ARIError";
    /// Certificate: its CA wants it renewed again, right after it was.
    pub const RENEWAL_WANTED_AGAIN: &str = "RenewalWantedAgain";
    /// Certificate: renewed outside its windows.
    pub const WINDOW_ERROR: &str = "WindowError";
    /// The Secret with the password of a keystore is not there.
    pub const KEYSTORE_PASSWORD_SECRET_NOT_FOUND: &str = "KeystorePasswordSecretNotFound";
    /// Issuer: the account could not be set up.
    pub const ERR_INIT_ISSUER: &str = "ErrInitIssuer";
    /// Issuer: newAccount was refused.
    pub const ERR_REGISTER_ACME_ACCOUNT: &str = "ErrRegisterACMEAccount";
    /// Issuer: the account could not be updated.
    pub const ERR_UPDATE_ACME_ACCOUNT: &str = "ErrUpdateACMEAccount";
    /// Issuer: the account key cannot be used.
    pub const ERR_VERIFY_ACME_ACCOUNT: &str = "ErrVerifyACMEAccount";
    /// Issuer: the server URL is no URL.
    pub const INVALID_URL: &str = "InvalidURL";
    /// Issuer: the server URL is a v1 endpoint.
    pub const INVALID_CONFIG: &str = "InvalidConfig";
    /// Issuer: a solver's Secret is missing.
    pub const INVALID_SOLVER: &str = "InvalidSolver";
    /// Ingress, Gateway or ListenerSet: its annotations or TLS entries cannot be used.
    pub const BAD_CONFIG: &str = "BadConfig";
    /// Ingress, Gateway or ListenerSet: a Certificate was made.
    pub const CREATE_CERTIFICATE: &str = "CreateCertificate";
    /// Ingress, Gateway or ListenerSet: a Certificate was brought up to date.
    pub const UPDATE_CERTIFICATE: &str = "UpdateCertificate";
    /// Ingress, Gateway or ListenerSet: a Certificate that is not asked for any more was deleted.
    pub const DELETE_CERTIFICATE: &str = "DeleteCertificate";
    /// Ingress, Gateway or ListenerSet: annotations of cert-manager before 0.11 are read.
    pub const OLD_ANNOTATIONS: &str = "OldAnnotations";
    /// Issuer: the account is there (a condition's reason).
    pub const ACME_ACCOUNT_REGISTERED: &str = "ACMEAccountRegistered";
}
