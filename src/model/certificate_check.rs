//! Report on the certificates that have to be replaced now, and why, for people and programs; `docs/reports.md` lists
//! the report's fields.

use serde::Serialize;

use super::certificate_report::{CertificateSource, ReportedRevocation, ReportedWindow};
use super::common::Time;

/// Report on checked certificates.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateCheck {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `CertificateCheck`.
    pub kind: &'static str,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Checked certificates, the most urgent first.
    pub certificates: Vec<CheckedCertificate>,
}

impl CertificateCheck {
    /// Builds the report of the given certificates.
    pub fn new(exit_code: u8, certificates: Vec<CheckedCertificate>) -> Self {
        let (api_version, kind) = ("kubectl-acme/v1alpha1", "CertificateCheck");
        Self { api_version, kind, exit_code, certificates }
    }
}

/// A certificate, and what has to be done about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedCertificate {
    /// Place where the certificate was found.
    pub source: CertificateSource,
    /// Whether the certificate has to be replaced.
    pub verdict: CheckVerdict,
    /// Reasons to replace the certificate, the most urgent first.
    pub reasons: Vec<ReplacementReason>,
    /// Facts that could not be found out.
    pub unknown: Vec<UnknownPart>,
    /// Names in the certificate.
    pub names: Vec<String>,
    /// Serial number in lower-case hexadecimal; `None` if there is no certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// Subject of the certificate's signer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Last second of validity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// Whether the CA has revoked the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation: Option<ReportedRevocation>,
    /// Window in which the CA wants the certificate to be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_window: Option<ReportedWindow>,
    /// Outcome of the replacement, if a replacement was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal: Option<CheckedRenewal>,
}

/// Verdict whether a certificate has to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckVerdict {
    /// The certificate has to be replaced.
    Replace,
    /// No reason for a replacement is known, and something could not be found out.
    Unknown,
    /// No reason for a replacement is known.
    Keep,
}

/// One reason to replace a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementReason {
    /// Kind of reason.
    pub reason: ReplacementCause,
    /// Time until or since which the reason holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Details of the finding.
    pub detail: String,
}

/// Reasons why a certificate has to be replaced; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ReplacementCause {
    /// The CA has revoked the certificate.
    Revoked,
    /// The certificate has expired.
    Expired,
    /// There is no certificate, or none that can be used.
    Missing,
    /// The serial number stands in a list that the user gave.
    Listed,
    /// A certificate above has expired, or will expire before the certificate itself.
    ChainEnds,
    /// The server does not show the certificates between its own and a root.
    ChainIncomplete,
    /// Clients do not trust the chain that the server shows.
    NotTrusted,
    /// The certificate is for other names than requested.
    NamesDiffer,
    /// The key is another than requested.
    KeyDiffers,
    /// The certificate is from another issuer than requested.
    IssuerDiffers,
    /// The certificate differs from the request in another way.
    SpecDiffers,
    /// The CA wants the certificate to be renewed now.
    RenewalWindow,
    /// The key is too weak.
    WeakKey,
    /// The certificate, or one above it, is signed in a way that is too weak.
    WeakSignature,
    /// The certificate is due for renewal.
    RenewalDue,
    /// CAA records keep the CA from issuing the certificate again.
    CaaForbids,
}

impl ReplacementCause {
    /// Returns the cause's name for people and programs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Revoked => "Revoked",
            Self::Expired => "Expired",
            Self::Missing => "Missing",
            Self::Listed => "Listed",
            Self::ChainEnds => "ChainEnds",
            Self::ChainIncomplete => "ChainIncomplete",
            Self::NotTrusted => "NotTrusted",
            Self::NamesDiffer => "NamesDiffer",
            Self::KeyDiffers => "KeyDiffers",
            Self::IssuerDiffers => "IssuerDiffers",
            Self::SpecDiffers => "SpecDiffers",
            Self::RenewalWindow => "RenewalWindow",
            Self::WeakKey => "WeakKey",
            Self::WeakSignature => "WeakSignature",
            Self::RenewalDue => "RenewalDue",
            Self::CaaForbids => "CaaForbids",
        }
    }
}

/// Fact about a certificate that could not be found out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnknownPart {
    /// Kind of fact.
    pub part: CheckedPart,
    /// Reason why the fact is unknown.
    pub why: String,
}

/// Kinds of facts that a check finds out about a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckedPart {
    /// The CAA records of the certificate's names.
    Caa,
    /// The content of the certificate.
    Certificate,
    /// The window in which the CA wants the certificate to be renewed.
    RenewalWindow,
    /// Whether the certificate was revoked.
    Revocation,
    /// Whether clients trust the certificate.
    Trust,
}

impl CheckedPart {
    /// Returns the name of the kind of fact.
    pub fn words(self) -> &'static str {
        match self {
            Self::Caa => "CAA",
            Self::Certificate => "certificate",
            Self::RenewalWindow => "renewal window",
            Self::Revocation => "revocation",
            Self::Trust => "trust",
        }
    }
}

/// Outcome of replacing a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedRenewal {
    /// Whether there is a new certificate.
    pub outcome: CheckedRenewalOutcome,
    /// Reason why no replacement was tried, or why there is no new certificate as far as known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Outcomes of a replacement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckedRenewalOutcome {
    /// A replacement was tried, and there is no new certificate.
    Failed,
    /// No replacement was tried.
    HeldBack,
    /// There is a new certificate.
    Replaced,
}
