//! Renewal windows of CAs (RFC 9773), and what a Certificate remembers of its own.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::common::{Other, Time};

/// Window in which a CA wants a certificate to be renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewalInfo {
    /// Start of the window.
    pub start: Timestamp,
    /// End of the window.
    pub end: Timestamp,
    /// URL of a page that explains the window; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
}

/// Memory of a Certificate about the CA's renewal information for the certificate in its Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RenewalMemory {
    /// Identifier of the certificate at the CA (§4.1).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    /// Renewal information that the CA gave last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<RenewalInfo>,
    /// Time before which the CA is not asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Number of renewals in a row that began earlier than they would have without the CA's renewal information.
    pub hastened: u32,
    /// Time at which the last of these renewals began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hastened_at: Option<Timestamp>,
}

/// `status.acme` of a Certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CertificateAcmeStatus {
    /// Renewal information of the CA.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ari: Option<AriStatus>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Renewal information of a CA for a certificate, in cert-manager's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AriStatus {
    /// Identifier of the certificate at the CA; cert-manager's definitions have no room for it before 1.22.
    #[serde(rename = "certID", skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    /// URL of a page that explains the window.
    #[serde(rename = "explanationURL", skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// Time at which the CA was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checked: Option<Time>,
    /// Reason why the CA gave no information.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// Time at which the CA is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_check: Option<Time>,
    /// Window for the renewal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_window: Option<SuggestedWindow>,
    /// Fields that this program does not know.
    #[serde(flatten)]
    pub other: Other,
}

/// Window in which a certificate is to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuggestedWindow {
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
}
