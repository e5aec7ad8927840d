//! What was observed of a CA beyond its directory, of the way to it, and of the certificate that is there: where it is served, and
//! what the CA says of its renewal.

use std::net::{IpAddr, SocketAddr};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::plain_answer::PlainAnswer;
use crate::model::{ObjectName, Problem};

/// The server behind the URL of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AuthorityCase {
    /// When it was asked.
    pub at: Timestamp,
    /// Addresses of its host.
    pub addresses: Vec<IpAddr>,
    /// Addresses that name servers give, where this machine's hosts file decides; `None` if it does not, or they give none.
    pub by_name_servers: Option<Vec<IpAddr>>,
    /// Addresses of the host that are not on the internet, each with the block that has the address.
    pub reserved: Vec<(IpAddr, String)>,
    /// One connection by each family.
    pub reaches: Vec<AddressReach>,
    /// What came for one GET, whatever it is.
    pub answer: Option<PlainAnswer>,
}

/// What came of a connection to an address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AddressReach {
    /// The address.
    pub address: SocketAddr,
    /// What came of it.
    pub outcome: ReachOutcome,
}

/// What comes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReachOutcome {
    /// It was made, in so many milliseconds.
    Connected(u64),
    /// Nobody listens there.
    Refused,
    /// This machine has no way to that family.
    NoRoute,
    /// Nothing came back in time.
    Silent,
}

/// What the CA holds of an order (RFC 8555 §7.1.3).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldOrder {
    /// Its URL.
    pub url: String,
    /// Status in the CA's word.
    pub status: String,
    /// Until when.
    pub expires: Option<Timestamp>,
    /// Why it is invalid, or why the CA refused to tell.
    pub problem: Option<Problem>,
    /// When it was asked.
    pub at: Timestamp,
}

/// The account of an issuer, as far as its key tells.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AccountCase {
    /// When it was asked.
    pub at: Timestamp,
    /// URL in the issuer's status.
    pub recorded: String,
    /// The account that has the key in the Secret, where that is not the key that was registered.
    pub of_key: Option<String>,
    /// Orders of the account that have not ended, and of which the store knows nothing, where the CA lists them.
    pub left_orders: Vec<HeldOrder>,
}

/// The certificate in a Secret, and what of it shows elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct KeptCase {
    /// The certificate.
    pub certificate: SeenCertificate,
    /// Common name of whoever has signed the last certificate of the chain; empty where it has none.
    pub top_issuer: String,
    /// What the CA says of its renewal, where it says something (RFC 9773).
    pub renewal: Option<RenewalCase>,
    /// What its names show on port 443.
    pub served: Vec<ServedCase>,
    /// Secrets that Ingresses name for its names, and that no Certificate writes.
    pub other_secrets: Vec<IngressSecretCase>,
    /// When this program had its CA revoke it.
    pub revoked_at: Option<Timestamp>,
    /// The annotations of the Secret that name another issuer than its Certificate asks for, or lack.
    pub other_issuer: Option<String>,
}

/// A certificate, as far as it is told from others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SeenCertificate {
    /// Serial number, in hexadecimal digits.
    pub serial: String,
    /// Common name of whoever has signed it; empty where it has none.
    pub issuer: String,
    /// Its own common name; empty where it has none.
    pub common_name: String,
    /// DNS names.
    pub names: Vec<String>,
    /// Start.
    pub not_before: Timestamp,
    /// Last second.
    pub not_after: Timestamp,
    /// Whether it is the key of the Secret that it is for.
    pub has_kept_key: bool,
}

/// When a CA wants a certificate to be renewed (RFC 9773 §4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenewalCase {
    /// URL that was asked.
    pub url: String,
    /// When.
    pub at: Timestamp,
    /// Start of the window.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// A page that says why; empty where there is none.
    pub explanation: String,
}

/// What a name shows in a handshake of TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServedCase {
    /// Name.
    pub name: String,
    /// Address that answered.
    pub address: SocketAddr,
    /// Whether that is surely another machine than this one.
    #[serde(default)]
    pub is_elsewhere: bool,
    /// Whether port 443 of the name is known to be for the certificate; `None` if nothing tells.
    #[serde(default)]
    pub is_meant: Option<bool>,
    /// When.
    pub at: Timestamp,
    /// The certificate.
    pub certificate: SeenCertificate,
}

/// The Secret that an Ingress names for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IngressSecretCase {
    /// The Ingress.
    pub ingress: ObjectName,
    /// Host for which it names the Secret.
    pub host: String,
    /// Name of the Secret, in the namespace of the Ingress.
    pub secret: String,
    /// Whether there is such a Secret.
    pub is_there: bool,
    /// The certificate in it; `None` if it holds none.
    pub certificate: Option<SeenCertificate>,
}
