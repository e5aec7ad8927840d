//! What certificates say, as one report for people and programs; `docs/reports.md` lists its fields for those who read it.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::common::Time;

/// Parts of organizations and common names by which CAs show that nobody trusts them, and what these CAs are.
const TEST_AUTHORITIES: [(&str, &str); 5] = [
    ("(STAGING)", "Let's Encrypt staging"),
    ("Fake LE ", "Let's Encrypt staging"),
    ("kubectl-acme rehearsal ", "kubectl-acme ca"),
    ("Pebble Intermediate CA ", "Pebble"),
    ("Pebble Root CA ", "Pebble"),
];
const DAY: i64 = 24 * 60 * 60;

/// Certificates that were looked at, in the order in which they were named.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateReport {
    /// `kubectl-acme/v1alpha1`.
    pub api_version: &'static str,
    /// `CertificateReport`.
    pub kind: &'static str,
    /// The certificates.
    pub certificates: Vec<ReportedCertificate>,
}

impl CertificateReport {
    /// Makes the report of these certificates.
    pub fn new(certificates: Vec<ReportedCertificate>) -> Self {
        Self { api_version: "kubectl-acme/v1alpha1", kind: "CertificateReport", certificates }
    }
}

/// A certificate, where it was found, and how it fits what is around it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCertificate {
    /// Where it was found.
    pub source: CertificateSource,
    /// What it says.
    #[serde(flatten)]
    pub content: CertificateContent,
    /// Whether the private key beside it is its own; nothing where there is none, or none that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_matches: Option<bool>,
    /// What is wrong with the private key beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_fault: Option<String>,
    /// It and what was found with it, in the order in which they were found.
    pub chain: Vec<ChainLink>,
    /// Where the chain ends.
    pub root: ChainEnd,
    /// The Certificate it was issued for, where that is where it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ReportedResource>,
    /// The server that shows it, where that is where it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ReportedServer>,
    /// Whether its CA has revoked it, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation: Option<ReportedRevocation>,
    /// When its CA wants it to be renewed, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_window: Option<ReportedWindow>,
}

/// Whether a CA has revoked a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedRevocation {
    /// What is known.
    pub state: RevocationState,
    /// The list or OCSP responder that says so, or that was to say it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Why it was revoked, in the words of RFC 5280 §5.3.1, where that is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// By when there is another list or answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_update: Option<Time>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What is known of the revocation of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RevocationState {
    /// Its CA says so, or it does not stand in the CA's list.
    Good,
    /// It names no place that tells.
    NotOffered,
    /// Its CA has revoked it.
    Revoked,
    /// It could not be found out.
    Unknown,
}

impl ReportedRevocation {
    /// What is known, and nothing beside it.
    pub fn of(state: RevocationState) -> Self {
        let (url, at, reason, next_update, why) = (None, None, None, None, None);
        Self { state, url, at, reason, next_update, why }
    }
}

/// When a CA wants a certificate to be renewed (RFC 9773).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedWindow {
    /// Where the window is in time.
    pub state: WindowState,
    /// Its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// Its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
    /// A page that says why.
    #[serde(skip_serializing_if = "Option::is_none", rename = "explanationURL")]
    pub explanation: Option<String>,
    /// Why it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Where a window is in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WindowState {
    /// It is to come.
    Ahead,
    /// The CA offers none.
    NotOffered,
    /// It has begun.
    Open,
    /// It is over.
    Past,
    /// It could not be found out.
    Unknown,
}

impl ReportedWindow {
    /// What is known, and nothing beside it.
    pub fn of(state: WindowState) -> Self {
        Self { state, start: None, end: None, explanation: None, why: None }
    }
}

/// Where a certificate was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSource {
    /// What it is.
    pub kind: SourceKind,
    /// Namespace of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of a resource, path of a file or folder, `HOST:PORT` of a server.
    pub name: String,
}

/// What a certificate may be found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SourceKind {
    /// The Secret of a Certificate.
    Certificate,
    /// A CertificateRequest that no Certificate has made.
    CertificateRequest,
    /// A file, a folder or standard input.
    File,
    /// A Secret that is named itself.
    Secret,
    /// A TLS server.
    Server,
}

/// What one certificate says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateContent {
    /// Whom it names.
    pub names: AlternativeNamesByKind,
    /// Subject, every part of it.
    pub subject: String,
    /// Common name of the subject; may be empty.
    pub common_name: String,
    /// Subject of whoever signed it.
    pub issuer: String,
    /// What the issuer is, if it is a CA that nobody trusts on purpose.
    #[serde(skip_serializing_if = "Option::is_none", rename = "testCA")]
    pub test_authority: Option<&'static str>,
    /// Serial number in lower-case hexadecimal, leading zeroes included.
    pub serial_number: String,
    /// Start.
    pub not_before: Time,
    /// Last second.
    pub not_after: Time,
    /// Whole days that are left; below 0 once it has expired.
    pub days_left: i64,
    /// Its public key.
    pub key: CertificateKey,
    /// What it is signed with.
    pub signature_algorithm: String,
    /// Digests of the whole certificate.
    pub fingerprints: Fingerprints,
    /// Digest of its public key (SHA-256), base64: the pin of HPKP, DANE's `3 1 1` and curl.
    pub spki_sha256: String,
    /// What its key may be used for, in cert-manager's words.
    pub usages: Vec<String>,
    /// Whether it may sign certificates.
    #[serde(rename = "isCA")]
    pub is_ca: bool,
    /// Where its revocation can be asked for.
    pub ocsp_urls: Vec<String>,
    /// Where lists of what is revoked lie.
    pub crl_urls: Vec<String>,
    /// How many logs have promised to list it (RFC 6962).
    pub sct_count: usize,
    /// Parts of it that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Whom a certificate names, by kind of name, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AlternativeNamesByKind {
    /// DNS names.
    pub dns: Vec<String>,
    /// IP addresses.
    pub ips: Vec<String>,
    /// URIs.
    pub uris: Vec<String>,
    /// E-mail addresses.
    pub emails: Vec<String>,
    /// Those of other kinds, each as its kind.
    pub others: Vec<String>,
}

/// The public key of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateKey {
    /// `RSA`, `ECDSA`, `Ed25519`, or the object identifier of another one.
    pub algorithm: String,
    /// Bits, where it has a size that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u32>,
}

/// Digests of a certificate in lower-case hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fingerprints {
    /// SHA-256.
    pub sha256: String,
    /// SHA-1, which still stands in tickets and lists.
    pub sha1: String,
}

/// One certificate of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainLink {
    /// Subject.
    pub subject: String,
    /// Subject of whoever signed it.
    pub issuer: String,
    /// Last second.
    pub not_after: Time,
    /// Digest of the whole certificate (SHA-256) in lower-case hexadecimal.
    pub sha256: String,
    /// Whether it has signed itself, as roots do.
    pub self_signed: bool,
    /// Whether the next one has signed it; nothing of the last one, nor where we cannot check such a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by_next: Option<bool>,
}

/// Where a chain ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChainEnd {
    /// With a certificate that has signed itself.
    Included,
    /// Below its root, as it should for a server.
    NotIncluded,
    /// Where it begins: there is one certificate, which has signed itself.
    SelfSigned,
}

/// The Certificate that a certificate was issued for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedResource {
    /// The Secret.
    pub secret_name: String,
    /// Number of the issuance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// When it will be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// Why it has to be issued anew now, if it has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Whether it names what the Certificate asks for.
    pub names_as_asked: bool,
    /// Whether its key is of the kind and size that the Certificate asks for; nothing where no key can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_as_asked: Option<bool>,
    /// Whether it comes from the issuer that the Certificate asks for.
    pub issuer_as_asked: bool,
}

/// The server that shows a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedServer {
    /// Address and port that were asked.
    pub address: String,
    /// Name that was asked for (SNI).
    pub server_name: String,
    /// Version of TLS; nothing where the handshake did not come to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Why the handshake did not come to its end after the certificate was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_fault: Option<String>,
    /// Whose roots count.
    pub roots: RootsOrigin,
    /// Whether a client that trusts these roots takes the chain for that name.
    pub verified: bool,
    /// Why it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_fault: Option<String>,
    /// Kind of that fault, for rules; `None` if the chain is taken.
    #[serde(skip)]
    pub distrust: Option<Distrust>,
    /// Whether the certificate is for that name, whoever signed it.
    pub fits_name: bool,
}

/// Why a client does not take the chain that a server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// The certificate is over.
    Expired,
    /// Certificates between this one and a root are not shown.
    Incomplete,
    /// The client has no roots to judge by.
    NoRoots,
    /// The certificate is for another name.
    OtherName,
    /// Nobody who is trusted has signed it, or it may not be used for a server.
    Untrusted,
}

/// Whose roots count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RootsOrigin {
    /// Those of a file.
    File,
    /// Those of this machine.
    Platform,
}

/// Whole days from one moment to another, rounded down: below 0 exactly when it has passed.
pub fn days_left(not_after: Timestamp, now: Timestamp) -> i64 {
    left(not_after, now).as_secs().div_euclid(DAY)
}

/// How long it is to the end of a certificate; the last second counts.
pub fn left(not_after: Timestamp, now: Timestamp) -> SignedDuration {
    not_after.duration_since(Time::new(now).timestamp())
}

/// What a CA is that nobody trusts on purpose, by the organizations and common names of issuers.
pub fn test_authority<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'static str> {
    names.into_iter().find_map(|name| {
        let known = TEST_AUTHORITIES.iter().find(|(part, _)| name.contains(part));
        known.map(|(_, authority)| *authority)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_below_zero_once_the_last_second_is_over() {
        let now: Timestamp = "2026-11-24T12:00:00.5Z".parse().unwrap();
        for (end, days) in [
            ("2026-11-24T12:00:00Z", 0),
            ("2026-11-24T11:59:59Z", -1),
            ("2026-11-25T11:59:59Z", 0),
            ("2026-11-25T12:00:00Z", 1),
            ("2027-02-21T12:00:00Z", 89),
            ("2026-11-21T12:00:00Z", -3),
        ] {
            assert_eq!(days_left(end.parse().unwrap(), now), days, "{end}");
        }
    }

    #[test]
    fn cas_that_nobody_trusts_are_known_by_their_names() {
        for (name, authority) in [
            ("(STAGING) Riddling Rhubarb R12", Some("Let's Encrypt staging")),
            ("Fake LE Intermediate X1", Some("Let's Encrypt staging")),
            ("kubectl-acme rehearsal root, trusted by nobody", Some("kubectl-acme ca")),
            ("Pebble Intermediate CA 2f8a11", Some("Pebble")),
            ("Let's Encrypt", None),
            ("Staging Ltd", None),
        ] {
            assert_eq!(test_authority(["", name]), authority, "{name}");
        }
    }
}
