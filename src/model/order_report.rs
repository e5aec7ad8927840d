//! What came of commands that issue, as one report for programs; `docs/reports.md` lists its fields for those who read it.

use jiff::SignedDuration;
use serde::Serialize;

use super::common::Time;
use super::key::Key;
use super::problem::Problem;

/// The version of every report.
pub(super) const VERSION: &str = "kubectl-acme/v1alpha1";

/// What came of Certificates, and of Issuers where nothing else was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderReport {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `OrderReport`.
    pub kind: &'static str,
    /// With what the command ends.
    pub exit_code: u8,
    /// Whether it was a rehearsal.
    pub rehearsal: bool,
    /// The Certificates, in the order in which they were given.
    pub certificates: Vec<CertificateResult>,
    /// The Issuers, where nothing else was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issuers: Vec<IssuerResult>,
    /// DNS records that a person has to make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordToMake>,
    /// What stopped the command as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

impl OrderReport {
    /// A report of nothing yet.
    pub fn new(exit_code: u8, rehearsal: bool) -> Self {
        let (certificates, issuers, records) = (Vec::new(), Vec::new(), Vec::new());
        let (api_version, kind, error) = (VERSION, "OrderReport", None);
        Self { api_version, kind, exit_code, rehearsal, certificates, issuers, records, error }
    }
}

/// What came of a Certificate or an Issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultOutcome {
    /// Issued by this run.
    Issued,
    /// It would have been, by a rehearsal.
    Rehearsed,
    /// Nothing was due.
    UpToDate,
    /// The Issuer has its account.
    Ready,
    /// Only a change helps.
    Failed,
    /// Time is up, or the CA names a moment after it.
    Waiting,
    /// A person has to make records first.
    WaitsForPerson,
    /// A signal came.
    Interrupted,
}

/// What came of a Certificate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateResult {
    /// `Certificate`, or `CertificateRequest` for one that no Certificate has made.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Its Secret; none of a CertificateRequest.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secret_name: String,
    /// Its issuer.
    pub issuer: NamedIssuer,
    /// Where its manifest begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<InputPlace>,
    /// Whether this run has issued it.
    pub changed: bool,
    /// What came of it.
    pub outcome: ResultOutcome,
    /// What the command would end with, were it the only one.
    pub exit_code: u8,
    /// Every name it is for.
    pub names: Vec<NameResult>,
    /// Names that were asked for and left out, because they failed and others did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Until when the certificate in the Secret is valid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// When it will be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// Number of the issuance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// How long this run took for it, where there was something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<f64>,
    /// Where it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<WrittenFiles>,
    /// Its last order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<LastOrder>,
    /// Why it was not issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// An issuer, as a Certificate names it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedIssuer {
    /// `Issuer` or `ClusterIssuer`.
    pub kind: String,
    /// Name.
    pub name: String,
}

/// What came of an Issuer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerResult {
    /// `Issuer` or `ClusterIssuer`.
    pub kind: &'static str,
    /// Namespace, of an Issuer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Where its manifest begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<InputPlace>,
    /// What came of it.
    pub outcome: ResultOutcome,
    /// What the command would end with, were it the only one.
    pub exit_code: u8,
    /// Why it is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// How far a name is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameResult {
    /// The name, a wildcard as such.
    pub name: String,
    /// Type of its challenge, `http-01`, while that is there.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// State of its challenge; `valid` once the certificate is there.
    pub state: &'static str,
    /// What its challenge waits for, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the CA said to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ReportedProblem>,
}

/// Files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrittenFiles {
    /// The chain, leaf first.
    pub certificate: String,
    /// The private key, where we have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The Secret as a manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastOrder {
    /// Name of the resource.
    pub name: String,
    /// URL at the CA.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A DNS record that a person has to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RecordToMake {
    /// Absolute name, with the final dot.
    pub name: String,
    /// `TXT`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Seconds for which others may remember it.
    pub ttl: u32,
    /// The text, without quotes.
    pub value: String,
    /// For which Certificate.
    pub certificate: NamedObject,
    /// For which Challenge.
    pub challenge: NamedObject,
    /// What the name servers say instead.
    pub reason: String,
}

/// An object by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedObject {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// Why something failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// The sort, in one word that stays.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its exit code.
    pub exit_code: u8,
    /// What failed for which object, and why.
    pub message: String,
    /// What helps, one line each.
    pub hints: Vec<String>,
    /// The CA's own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ReportedProblem>,
    /// Before when the CA wants no other try.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Time>,
}

/// A CA's problem document, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReportedProblem {
    /// Error type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Sentence for people.
    pub detail: String,
    /// HTTP status; 0 where the document names none.
    pub status: u16,
}

impl From<&Problem> for ReportedProblem {
    fn from(problem: &Problem) -> Self {
        let Problem { kind, detail, status, .. } = problem;
        Self { kind: kind.clone(), detail: detail.clone(), status: *status }
    }
}

/// How a command failed that has nothing else to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDocument {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `Error`.
    #[serde(rename = "kind")]
    pub document_kind: &'static str,
    /// What failed, and what helps.
    #[serde(flatten)]
    pub error: ErrorReport,
    /// The object that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ErrorObject>,
    /// Every fault of what was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<InputFault>,
}

impl ErrorDocument {
    /// Makes a document of an error, the object that it is about, and the faults it tells of.
    pub fn new(error: ErrorReport, object: Option<&Key>, errors: Vec<InputFault>) -> Self {
        let object = object.map(|key| ErrorObject {
            kind: key.kind.as_str(),
            namespace: key.name.namespace.clone(),
            name: key.name.name.clone(),
        });
        Self { api_version: VERSION, document_kind: "Error", error, object, errors }
    }
}

/// The object that an error is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ErrorObject {
    /// Kind.
    pub kind: &'static str,
    /// Namespace; empty for what has none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A fault of a manifest, or a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputFault {
    /// What is wrong with what.
    pub message: String,
    /// What to write instead, one line each.
    pub hints: Vec<String>,
    /// Kind and name of the object, where they are known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Where.
    #[serde(flatten)]
    pub place: Option<InputPlace>,
}

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputPlace {
    /// File.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
}

/// A length in seconds, to the millisecond.
pub fn seconds(length: SignedDuration) -> f64 {
    (length.as_secs_f64() * 1000.0).round() / 1000.0
}
