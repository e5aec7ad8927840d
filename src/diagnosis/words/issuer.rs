//! Messages about issuers and their accounts: of cert-manager in the condition Ready (in Go's wording), and of CAs.

use super::http;
use crate::model::Problem;
use crate::model::cause::Symptom;

/// Reports whether cert-manager says that it could not reach a server; cert-manager keeps trying
/// (`tests/fixtures/traces/07-issuer-errors.jsonl`).
pub fn is_unreachable(message: &str) -> bool {
    [
        "dial tcp",
        "read tcp",
        "write tcp",
        "i/o timeout",
        "context deadline exceeded",
        "connection reset by peer",
        "broken pipe",
        "net/http: ",
        "http: server closed idle connection",
        "unexpected EOF",
        ": EOF",
    ]
    .iter()
    .any(|words| message.contains(words))
}

/// Fault between a controller and its CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionFault {
    /// The server has an untrusted certificate.
    Untrusted,
    /// The server has a certificate of another host.
    OtherHost,
    /// No server answers, or the host is not found.
    Unreached,
}

/// Reads the fault from cert-manager's message, in Go's wording: `Failed to register ACME account: Get "URL": …`.
pub fn connection_fault(message: &str) -> Option<ConnectionFault> {
    let (_, said) = message.split_once("\": ")?;
    if said.contains("x509: certificate is valid for")
        || said.contains("x509: certificate is not valid for any names")
    {
        return Some(ConnectionFault::OtherHost);
    }
    if said.contains("x509: ") {
        return Some(ConnectionFault::Untrusted);
    }
    let unreached = matches!(
        http::symptom(said)?,
        Symptom::Unreachable
            | Symptom::ConnectionRefused
            | Symptom::NoReply
            | Symptom::HungUp
            | Symptom::TlsPortSilent
            | Symptom::NoAddress
            | Symptom::ResolverSilent
            | Symptom::NameServersFail
    );
    unreached.then_some(ConnectionFault::Unreached)
}

/// Reports whether an issuer's message names a Secret that does not exist, in cert-manager's wording.
pub fn lacks_secret(message: &str) -> bool {
    message.contains("\" not found in namespace ")
}

/// Reports whether a binding's key exists and cannot be read; cert-manager's message ends otherwise than ours.
pub fn spoils_binding_key(message: &str) -> bool {
    message.contains("external account binding key")
}

/// Reports whether an issuer's message is about an account key that cannot be used.
pub fn is_about_account_key(message: &str) -> bool {
    message.starts_with("Account private key is invalid: ")
}

/// Reports whether a CA's problem is about the external account binding, for which there is no type of problem.
pub fn is_about_binding(problem: &Problem) -> bool {
    let detail = problem.detail.to_ascii_lowercase();
    let mut words = detail.split(|c: char| !c.is_ascii_alphanumeric());
    ["external account", "externalaccount"].iter().any(|word| detail.contains(word))
        || words.any(|word| matches!(word, "eab" | "hmac"))
}

/// Reason why a CA does not take an external account binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingFault {
    /// Key ID or HMAC key differ from the CA's.
    Key,
    /// The binding was used, or has expired.
    Spent,
    /// The CA does not say.
    Unknown,
}

/// Reads why a CA does not take an external account binding.
pub fn binding_fault(problem: &Problem) -> BindingFault {
    let detail = problem.detail.to_ascii_lowercase();
    let says = |marks: &[&str]| marks.iter().any(|mark| detail.contains(mark));
    if says(&["already", " used", "expired", "revoked", "not awaiting", "consumed"]) {
        BindingFault::Spent
    } else if says(&[
        "mac",
        "signature",
        "verif",
        "decode",
        "unknown",
        "malformed",
        "not made with",
        "not found",
        "invalid",
        "no such",
        "does not exist",
    ]) {
        BindingFault::Key
    } else {
        BindingFault::Unknown
    }
}

/// Reports whether a CA says that the account is no longer valid.
pub fn says_account_is_over(problem: &Problem) -> bool {
    [
        "account is not valid",
        "has status \"deactivated\"",
        "has status \"revoked\"",
        "account is deactivated",
        "exists but is deactivated",
    ]
    .iter()
    .any(|words| problem.detail.to_ascii_lowercase().contains(words))
}
