//! Which certificates have to be replaced now, and why, as one report for people and programs; `docs/reports.md` lists its fields
//! for those who read it.

use serde::Serialize;

use super::certificate_report::{CertificateSource, ReportedRevocation, ReportedWindow};
use super::common::Time;

/// Certificates that were looked at.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateCheck {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `CertificateCheck`.
    pub kind: &'static str,
    /// With what the command ends.
    pub exit_code: u8,
    /// Each certificate, those first for which most has to be done.
    pub certificates: Vec<CheckedCertificate>,
}

impl CertificateCheck {
    /// Makes the report of these certificates.
    pub fn new(exit_code: u8, certificates: Vec<CheckedCertificate>) -> Self {
        let (api_version, kind) = ("kubectl-acme/v1alpha1", "CertificateCheck");
        Self { api_version, kind, exit_code, certificates }
    }
}

/// A certificate, and what has to be done about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedCertificate {
    /// Where it was found.
    pub source: CertificateSource,
    /// Whether it has to be replaced.
    pub verdict: CheckVerdict,
    /// Why, the most urgent first.
    pub reasons: Vec<ReplacementReason>,
    /// What could not be found out.
    pub unknown: Vec<UnknownPart>,
    /// Whom it names.
    pub names: Vec<String>,
    /// Serial number in lower-case hexadecimal; nothing where there is no certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    /// Subject of whoever signed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer: Option<String>,
    /// Last second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// Whether its CA has revoked it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation: Option<ReportedRevocation>,
    /// When its CA wants it to be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_window: Option<ReportedWindow>,
    /// What came of replacing it, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal: Option<CheckedRenewal>,
}

/// Whether a certificate has to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckVerdict {
    /// It has to be.
    Replace,
    /// Nothing says so, and something could not be found out.
    Unknown,
    /// Nothing says so.
    Keep,
}

/// One reason to replace a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplacementReason {
    /// Which one.
    pub reason: ReplacementCause,
    /// Until when, or since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// What was found.
    pub detail: String,
}

/// Why a certificate has to be replaced; the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ReplacementCause {
    /// Its CA has revoked it.
    Revoked,
    /// It is over.
    Expired,
    /// There is none, or none that can be used.
    Missing,
    /// Its number stands in a list that somebody gave.
    Listed,
    /// A certificate above it is over, or will be before it.
    ChainEnds,
    /// Its server does not show the certificates between it and a root.
    ChainIncomplete,
    /// Clients do not trust what its server shows.
    NotTrusted,
    /// It is for other names than asked for.
    NamesDiffer,
    /// Its key is another than asked for.
    KeyDiffers,
    /// It is from another issuer than asked for.
    IssuerDiffers,
    /// It is not as asked for in another way.
    SpecDiffers,
    /// Its CA wants it to be renewed now.
    RenewalWindow,
    /// Its key is too weak.
    WeakKey,
    /// It, or what is above it, is signed in a way that is too weak.
    WeakSignature,
    /// It is time to renew it.
    RenewalDue,
    /// CAA records keep its CA from issuing it again.
    CaaForbids,
}

impl ReplacementCause {
    /// The word by which people and programs know it.
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

/// Something that could not be found out of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UnknownPart {
    /// What.
    pub part: CheckedPart,
    /// Why.
    pub why: String,
}

/// What is found out of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckedPart {
    /// The CAA records of its names.
    Caa,
    /// What it says.
    Certificate,
    /// When its CA wants it to be renewed.
    RenewalWindow,
    /// Whether it was revoked.
    Revocation,
    /// Whether clients trust it.
    Trust,
}

impl CheckedPart {
    /// What it is called.
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

/// What came of replacing a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedRenewal {
    /// Whether there is a new one.
    pub outcome: CheckedRenewalOutcome,
    /// Why it was not tried, or what is known of why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Whether a certificate was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CheckedRenewalOutcome {
    /// It was tried, and there is none.
    Failed,
    /// It was not tried.
    HeldBack,
    /// There is a new one.
    Replaced,
}
