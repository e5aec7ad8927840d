//! Report on commands that issue, for programs; `docs/reports.md` lists the report's fields.

use jiff::SignedDuration;
use serde::Serialize;

use super::common::Time;
use super::key::Key;
use super::problem::Problem;

/// The version of every report.
pub(super) const VERSION: &str = "kubectl-acme/v1alpha1";

/// Results of Certificates, and of Issuers if nothing else was given.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderReport {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `OrderReport`.
    pub kind: &'static str,
    /// Exit code of the command.
    pub exit_code: u8,
    /// Whether the run was a rehearsal.
    pub rehearsal: bool,
    /// The Certificates, in the order in which they were given.
    pub certificates: Vec<CertificateResult>,
    /// The Issuers, if nothing else was given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub issuers: Vec<IssuerResult>,
    /// DNS records that a person has to make.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<RecordToMake>,
    /// Error that stopped the command as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

impl OrderReport {
    /// Builds a report without results.
    pub fn new(exit_code: u8, rehearsal: bool) -> Self {
        let (certificates, issuers, records) = (Vec::new(), Vec::new(), Vec::new());
        let (api_version, kind, error) = (VERSION, "OrderReport", None);
        Self { api_version, kind, exit_code, rehearsal, certificates, issuers, records, error }
    }
}

/// Outcome for a Certificate or an Issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ResultOutcome {
    /// Issued by this run.
    Issued,
    /// The certificate would have been issued: a rehearsal succeeded.
    Rehearsed,
    /// Nothing was due.
    UpToDate,
    /// The Issuer has its account.
    Ready,
    /// The issuance failed, and only a change helps.
    Failed,
    /// Time is up, or the CA names a moment after the end of that time.
    Waiting,
    /// A person has to make records first.
    WaitsForPerson,
    /// A signal came.
    Interrupted,
}

/// Result of a Certificate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateResult {
    /// `Certificate`, or `CertificateRequest` for one that no Certificate has made.
    pub kind: &'static str,
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Name of the Secret; empty for a CertificateRequest.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub secret_name: String,
    /// Issuer of the certificate.
    pub issuer: NamedIssuer,
    /// Start of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<InputPlace>,
    /// Whether this run has issued the certificate.
    pub changed: bool,
    /// Outcome for the Certificate.
    pub outcome: ResultOutcome,
    /// Exit code that the command would have if this Certificate were the only one.
    pub exit_code: u8,
    /// Every name of the certificate.
    pub names: Vec<NameResult>,
    /// Names that were asked for and left out, because they failed and others did not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// End of validity of the certificate in the Secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<Time>,
    /// Time at which the certificate will be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// Number of the issuance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Seconds that this run took for the Certificate, if there was something to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<f64>,
    /// Files to which the certificate was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<WrittenFiles>,
    /// Last order of the Certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<LastOrder>,
    /// Reason why the certificate was not issued.
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

/// Result of an Issuer.
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
    /// Start of the manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<InputPlace>,
    /// Outcome for the Issuer.
    pub outcome: ResultOutcome,
    /// Exit code that the command would have if this Issuer were the only one.
    pub exit_code: u8,
    /// Reason why the Issuer is not ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorReport>,
}

/// Progress of a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NameResult {
    /// The name, a wildcard with `*.`.
    pub name: String,
    /// Type of the name's challenge, such as `http-01`, while the challenge exists.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// State of the name's challenge; `valid` once the certificate is there.
    pub state: &'static str,
    /// Reason why the challenge waits, or why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Problem that the CA returned for the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ReportedProblem>,
}

/// Files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WrittenFiles {
    /// The chain, leaf first.
    pub certificate: String,
    /// The private key, if this program has the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The Secret as a manifest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

/// Last order of a Certificate.
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
    /// Seconds for which resolvers may cache the record.
    pub ttl: u32,
    /// The text, without quotes.
    pub value: String,
    /// Certificate that needs the record.
    pub certificate: NamedObject,
    /// Challenge that needs the record.
    pub challenge: NamedObject,
    /// Answer of the name servers in place of the record.
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

/// Description of a failure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// Sort of failure, in one stable word.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Exit code of the failure.
    pub exit_code: u8,
    /// Message: which object failed in which way, and why.
    pub message: String,
    /// Hints on how to mend the failure, one line each.
    pub hints: Vec<String>,
    /// Problem document of the CA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<ReportedProblem>,
    /// Time before which the CA wants no other try.
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
    /// HTTP status; 0 if the document names none.
    pub status: u16,
}

impl From<&Problem> for ReportedProblem {
    fn from(problem: &Problem) -> Self {
        let Problem { kind, detail, status, .. } = problem;
        Self { kind: kind.clone(), detail: detail.clone(), status: *status }
    }
}

/// Failure of a command that has nothing else to print.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorDocument {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `Error`.
    #[serde(rename = "kind")]
    pub document_kind: &'static str,
    /// Description of the failure, with hints.
    #[serde(flatten)]
    pub error: ErrorReport,
    /// Object that the failure is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ErrorObject>,
    /// Every fault of the input.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<InputFault>,
}

impl ErrorDocument {
    /// Builds a document of an error, the object that the error is about, and the faults of the input.
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
    /// Namespace; empty for an object without one.
    pub namespace: String,
    /// Name.
    pub name: String,
}

/// A fault of a manifest, or a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputFault {
    /// Message that names the faulty part and the fault.
    pub message: String,
    /// Texts to write instead, one line each.
    pub hints: Vec<String>,
    /// Kind and name of the object, if known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub object: String,
    /// Place of the fault.
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

/// Converts a length of time to seconds, to the millisecond.
pub fn seconds(length: SignedDuration) -> f64 {
    (length.as_secs_f64() * 1000.0).round() / 1000.0
}
