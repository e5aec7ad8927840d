//! When a CA wants a certificate to be renewed (RFC 9773), and what is remembered of that.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::common::{Other, Time};

/// When a CA wants a certificate to be renewed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewalInfo {
    /// Start of the window.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// A page that says why; empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub explanation: String,
}

/// What a Certificate remembers of what its CA said of the certificate in its Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RenewalMemory {
    /// What the certificate is called there (§4.1).
    #[serde(skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    /// What the CA said last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub info: Option<RenewalInfo>,
    /// Not before this moment is it asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    /// Renewals in a row that began earlier than without its word.
    pub hastened: u32,
    /// When the last of these began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hastened_at: Option<Timestamp>,
}

/// `status.acme` of a Certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CertificateAcmeStatus {
    /// What the CA said of renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ari: Option<AriStatus>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// What a CA said of the renewal of a certificate, in cert-manager's words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AriStatus {
    /// What the certificate is called there; cert-manager's definitions have no room for it before 1.22.
    #[serde(rename = "certID", skip_serializing_if = "String::is_empty")]
    pub certificate: String,
    /// A page that says why.
    #[serde(rename = "explanationURL", skip_serializing_if = "String::is_empty")]
    pub explanation: String,
    /// When the CA was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_checked: Option<Time>,
    /// Why it did not say anything.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_error: String,
    /// When it is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_check: Option<Time>,
    /// The window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggested_window: Option<SuggestedWindow>,
    /// Fields we do not know.
    #[serde(flatten)]
    pub other: Other,
}

/// The window in which a certificate is to be renewed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SuggestedWindow {
    /// Start.
    pub start: Time,
    /// End.
    pub end: Time,
}
