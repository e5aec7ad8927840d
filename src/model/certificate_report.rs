//! Report on the content of certificates, for people and programs; `docs/reports.md` lists the report's fields.

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::common::Time;

/// Parts of organizations and common names by which CAs show that nobody trusts them, and the names of these CAs.
const TEST_AUTHORITIES: [(&str, &str); 5] = [
    ("(STAGING)", "Let's Encrypt staging"),
    ("Fake LE ", "Let's Encrypt staging"),
    ("kubectl-acme rehearsal ", "kubectl-acme ca"),
    ("Pebble Intermediate CA ", "Pebble"),
    ("Pebble Root CA ", "Pebble"),
];
const DAY: i64 = 24 * 60 * 60;

/// Report on certificates, in the order in which they were named.
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
    /// Builds the report of the given certificates.
    pub fn new(certificates: Vec<ReportedCertificate>) -> Self {
        Self { api_version: "kubectl-acme/v1alpha1", kind: "CertificateReport", certificates }
    }
}

/// Certificate, the place where it was found, and how it fits the objects around it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedCertificate {
    /// Place where the certificate was found.
    pub source: CertificateSource,
    /// Content of the certificate.
    #[serde(flatten)]
    pub content: CertificateContent,
    /// Whether the private key beside the certificate is its own; `None` if there is no key, or none that can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_matches: Option<bool>,
    /// Fault of the private key beside the certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_fault: Option<String>,
    /// The certificate and those found with it, in the order in which they were found.
    pub chain: Vec<ChainLink>,
    /// End of the chain.
    pub root: ChainEnd,
    /// Certificate resource that the certificate was issued for, if the certificate was found there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resource: Option<ReportedResource>,
    /// Server that shows the certificate, if the certificate was found there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ReportedServer>,
    /// Whether the CA has revoked the certificate, if revocation was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revocation: Option<ReportedRevocation>,
    /// Window in which the CA wants the certificate to be renewed, if the window was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_window: Option<ReportedWindow>,
}

/// Revocation of a certificate by its CA.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedRevocation {
    /// Known state.
    pub state: RevocationState,
    /// URL of the list or OCSP responder that shows the state, or that was to show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Time of the revocation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// Reason for the revocation in the words of RFC 5280 §5.3.1, if the CA gives one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Time by which there is another list or answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_update: Option<Time>,
    /// Reason why the state is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Known state of the revocation of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RevocationState {
    /// The CA says that the certificate is good, or the CA's list does not have the certificate.
    Good,
    /// The certificate names no list and no responder.
    NotOffered,
    /// The CA has revoked the certificate.
    Revoked,
    /// The state could not be found out.
    Unknown,
}

impl ReportedRevocation {
    /// Returns a state with no further facts.
    pub fn of(state: RevocationState) -> Self {
        let (url, at, reason, next_update, why) = (None, None, None, None, None);
        Self { state, url, at, reason, next_update, why }
    }
}

/// Window in which a CA wants a certificate to be renewed (RFC 9773).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedWindow {
    /// Position of the window in time.
    pub state: WindowState,
    /// Start of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Time>,
    /// End of the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<Time>,
    /// URL of a page that explains the window.
    #[serde(skip_serializing_if = "Option::is_none", rename = "explanationURL")]
    pub explanation: Option<String>,
    /// Reason why the window is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Position of a window in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WindowState {
    /// The window is to come.
    Ahead,
    /// The CA offers no window.
    NotOffered,
    /// The window has begun.
    Open,
    /// The window is over.
    Past,
    /// The window could not be found out.
    Unknown,
}

impl ReportedWindow {
    /// Returns a state with no further facts.
    pub fn of(state: WindowState) -> Self {
        Self { state, start: None, end: None, explanation: None, why: None }
    }
}

/// Place where a certificate was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSource {
    /// Kind of place.
    pub kind: SourceKind,
    /// Namespace of a resource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name of a resource, path of a file or folder, `HOST:PORT` of a server.
    pub name: String,
}

/// Kinds of places that hold certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum SourceKind {
    /// The Secret of a Certificate.
    Certificate,
    /// A CertificateRequest that no Certificate has made.
    CertificateRequest,
    /// A file, a folder or standard input.
    File,
    /// A Secret that was named directly.
    Secret,
    /// A TLS server.
    Server,
}

/// Content of one certificate.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateContent {
    /// Names in the certificate.
    pub names: AlternativeNamesByKind,
    /// Subject, every part of it.
    pub subject: String,
    /// Common name of the subject; may be empty.
    pub common_name: String,
    /// Subject of the certificate's signer.
    pub issuer: String,
    /// Name of the issuer, if it is a CA that nobody trusts on purpose.
    #[serde(skip_serializing_if = "Option::is_none", rename = "testCA")]
    pub test_authority: Option<&'static str>,
    /// Serial number in lower-case hexadecimal, leading zeroes included.
    pub serial_number: String,
    /// Start of validity.
    pub not_before: Time,
    /// Last second of validity.
    pub not_after: Time,
    /// Whole days that are left; below 0 once the certificate has expired.
    pub days_left: i64,
    /// Public key of the certificate.
    pub key: CertificateKey,
    /// Algorithm of the signature.
    pub signature_algorithm: String,
    /// Digests of the whole certificate.
    pub fingerprints: Fingerprints,
    /// Digest of the public key (SHA-256), base64: the pin of HPKP, DANE's `3 1 1` and curl.
    pub spki_sha256: String,
    /// Usages of the key, in cert-manager's words.
    pub usages: Vec<String>,
    /// Whether the certificate may sign certificates.
    #[serde(rename = "isCA")]
    pub is_ca: bool,
    /// URLs of OCSP responders for the certificate.
    pub ocsp_urls: Vec<String>,
    /// URLs of revocation lists for the certificate.
    pub crl_urls: Vec<String>,
    /// Number of logs that have promised to list the certificate (RFC 6962).
    pub sct_count: usize,
    /// Parts of the certificate that cannot be read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// Names of a certificate by kind of name, in the certificate's order.
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
    /// Names of other kinds, each with its kind.
    pub others: Vec<String>,
}

/// The public key of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateKey {
    /// `RSA`, `ECDSA`, `Ed25519`, or the object identifier of another one.
    pub algorithm: String,
    /// Size in bits, if the key has a known size.
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
    /// Subject of the certificate's signer.
    pub issuer: String,
    /// Last second of validity.
    pub not_after: Time,
    /// Digest of the whole certificate (SHA-256) in lower-case hexadecimal.
    pub sha256: String,
    /// Whether the certificate has signed itself, as roots do.
    pub self_signed: bool,
    /// Whether the next certificate has signed this one; `None` for the last, or if the signature cannot be checked here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed_by_next: Option<bool>,
}

/// End of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ChainEnd {
    /// The chain ends with a certificate that has signed itself.
    Included,
    /// The chain ends below its root, as a server's chain should.
    NotIncluded,
    /// The chain is one certificate, which has signed itself.
    SelfSigned,
}

/// The Certificate that a certificate was issued for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedResource {
    /// Name of the Secret.
    pub secret_name: String,
    /// Number of the issuance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Time at which the certificate will be renewed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renewal_time: Option<Time>,
    /// Reason why the certificate has to be issued anew now, if it has to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// Whether the certificate has the names that the Certificate asks for.
    pub names_as_asked: bool,
    /// Whether the key is of the kind and size that the Certificate asks for; `None` if no key can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_as_asked: Option<bool>,
    /// Whether the certificate comes from the issuer that the Certificate asks for.
    pub issuer_as_asked: bool,
}

/// The server that shows a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedServer {
    /// Address and port of the connection.
    pub address: String,
    /// Name that was asked for (SNI).
    pub server_name: String,
    /// Version of TLS; `None` if the handshake was not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Reason why the handshake was not completed after the certificate was shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_fault: Option<String>,
    /// Origin of the trusted roots.
    pub roots: RootsOrigin,
    /// Whether a client that trusts these roots accepts the chain for the server name.
    pub verified: bool,
    /// Reason why such a client does not accept the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_fault: Option<String>,
    /// Kind of verification fault, for rules; `None` if the chain is accepted.
    #[serde(skip)]
    pub distrust: Option<Distrust>,
    /// Whether the certificate is for the server name, whoever signed the certificate.
    pub fits_name: bool,
}

/// Reasons why a client does not accept the chain that a server shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distrust {
    /// The certificate is over.
    Expired,
    /// Certificates between the server's own and a root are not shown.
    Incomplete,
    /// The client has no roots to judge by.
    NoRoots,
    /// The certificate is for another name.
    OtherName,
    /// No trusted CA has signed the certificate, or it may not be used for a server.
    Untrusted,
}

/// Origin of trusted roots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RootsOrigin {
    /// Roots of a file.
    File,
    /// Roots of this machine.
    Platform,
}

/// Returns the whole days from `now` to `not_after`, rounded down: below 0 exactly when `not_after` has passed.
pub fn days_left(not_after: Timestamp, now: Timestamp) -> i64 {
    left(not_after, now).as_secs().div_euclid(DAY)
}

/// Returns the time left to the end of a certificate; the last second counts.
pub fn left(not_after: Timestamp, now: Timestamp) -> SignedDuration {
    not_after.duration_since(Time::new(now).timestamp())
}

/// Returns the name of a CA that nobody trusts on purpose, by the organizations and common names of issuers.
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
