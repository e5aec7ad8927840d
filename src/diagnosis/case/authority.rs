//! Observations of a CA beyond its directory: of its server and the network path to it, of orders, authorizations and the
//! account there, and of the certificate in a Secret: which servers serve the certificate, and when the CA wants it renewed.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::observation::PlainAnswer;
use crate::model::validation_record::ValidationRecord;
use crate::model::{ObjectName, Problem};

/// The server behind the URL of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthorityCase {
    /// Time of the requests.
    pub at: Timestamp,
    /// Addresses of the directory URL's host.
    pub addresses: Vec<IpAddr>,
    /// Addresses by name servers if this machine's hosts file decides; `None` if the file does not, or DNS has none.
    pub by_name_servers: Option<Vec<IpAddr>>,
    /// Addresses of the host that are not on the internet, each with the reserved block that contains the address.
    pub reserved: Vec<(IpAddr, String)>,
    /// Connection attempts, one per address family.
    pub reaches: Vec<AddressReach>,
    /// Answer to one GET request, whatever its status and content.
    pub answer: Option<PlainAnswer>,
}

/// Result of a connection attempt to one address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressReach {
    /// The address.
    pub address: SocketAddr,
    /// Result of the attempt.
    pub outcome: ReachOutcome,
}

/// Result of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReachOutcome {
    /// Connected; the time that this took, in milliseconds.
    Connected(u64),
    /// Refused: nothing listens at the port.
    Refused,
    /// No route from this machine for the address family.
    NoRoute,
    /// No reply in time.
    Silent,
}

/// An order as the CA has it (RFC 8555 §7.1.3).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorityOrder {
    /// URL of the order.
    pub url: String,
    /// Status, as the CA spells it.
    pub status: String,
    /// End of the order's life, if the CA gives one.
    pub expires: Option<Timestamp>,
    /// Problem that made the order invalid, or with which the CA refused to show the order.
    pub problem: Option<Problem>,
    /// Time of the request.
    pub at: Timestamp,
}

/// An authorization as the CA has it (RFC 8555 §7.1.4).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldCase {
    /// Name; a wildcard with its `*.`.
    pub name: String,
    /// Status, as the CA spells it; empty if the CA refused to show the authorization.
    pub status: String,
    /// End of the authorization's life, if the CA gives one.
    pub expires: Option<Timestamp>,
    /// Challenge types that the authorization offers.
    pub offered: Vec<String>,
    /// Problem that made the authorization invalid, or with which the CA refused to show it.
    pub problem: Option<Problem>,
    /// Time of the CA's validation, if the CA gives one.
    #[serde(default)]
    pub validated: Option<Timestamp>,
    /// Requests of the CA's validation, one after another, if the CA lists them.
    #[serde(default)]
    pub records: Vec<ValidationRecord>,
    /// Time of the request.
    pub at: Timestamp,
}

/// Account at the CA that belongs to an issuer's account key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccountCase {
    /// Time of the request.
    pub at: Timestamp,
    /// Account URL in the issuer's status.
    pub recorded: String,
    /// URL of the account that has the key in the Secret, if that key is not the registered one.
    pub of_key: Option<String>,
    /// Orders of the account that have not ended and that the store does not know, if the CA lists orders.
    pub left_orders: Vec<AuthorityOrder>,
}

/// Certificate in a Secret, with what the CA, the certificate's hosts and Ingresses show of the certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoredCertificateCase {
    /// The certificate.
    pub certificate: CertificateIdentity,
    /// Common name of the issuer of the chain's last certificate; empty if the issuer has no common name.
    pub top_issuer: String,
    /// Renewal window that the CA suggests, if any (RFC 9773).
    pub renewal: Option<RenewalCase>,
    /// Certificates that the names show on port 443.
    pub served: Vec<ServedCase>,
    /// Secrets that Ingresses name for the certificate's names, and that no Certificate writes.
    pub other_secrets: Vec<IngressSecretCase>,
    /// Time at which this program had the CA revoke the certificate.
    pub revoked_at: Option<Timestamp>,
    /// Annotations of the Secret that name another issuer than the Certificate does, or that are missing; as text.
    pub other_issuer: Option<String>,
}

/// Fields that distinguish one certificate from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateIdentity {
    /// Serial number, in hexadecimal digits.
    pub serial: String,
    /// Common name of the certificate's issuer; empty if the issuer has none.
    pub issuer: String,
    /// Common name of the subject; empty if the subject has none.
    pub common_name: String,
    /// DNS names.
    pub names: Vec<String>,
    /// Start of the validity.
    pub not_before: Timestamp,
    /// Last second of the validity.
    pub not_after: Timestamp,
    /// Whether the certificate is for the private key in the Secret.
    pub has_kept_key: bool,
}

/// Renewal window that a CA suggests for a certificate (RFC 9773 §4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewalCase {
    /// URL of the request.
    pub url: String,
    /// Time of the request.
    pub at: Timestamp,
    /// Start of the window.
    pub start: Timestamp,
    /// End of the window.
    pub end: Timestamp,
    /// URL of a page that explains the window; empty if the CA gives none.
    pub explanation: String,
}

/// Certificate that a name shows in a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedCase {
    /// Name.
    pub name: String,
    /// Address that answered.
    pub address: SocketAddr,
    /// Whether the address certainly belongs to another machine than this one.
    #[serde(default)]
    pub is_elsewhere: bool,
    /// Whether port 443 of the name is known to be for the certificate; `None` if unknown.
    #[serde(default)]
    pub is_meant: Option<bool>,
    /// Time of the handshake.
    pub at: Timestamp,
    /// The certificate that was shown.
    pub certificate: CertificateIdentity,
}

/// Secret that an Ingress names for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressSecretCase {
    /// The Ingress.
    pub ingress: ObjectName,
    /// Host for which the Ingress names the Secret.
    pub host: String,
    /// Name of the Secret, in the namespace of the Ingress.
    pub secret: String,
    /// Whether the Secret exists.
    pub is_there: bool,
    /// Certificate in the Secret; `None` if the Secret holds none.
    pub certificate: Option<CertificateIdentity>,
}
