//! What is said of issuers and their accounts: by cert-manager in the condition Ready (in Go's words), and by CAs.

use super::http_words;
use crate::model::Problem;
use crate::model::cause::Symptom;

/// Tells whether cert-manager says that it could not reach a server; it keeps trying
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

/// What keeps a controller from its CA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionFault {
    /// Whoever answers has a certificate that nobody trusts.
    Untrusted,
    /// Whoever answers has a certificate of another host.
    OtherHost,
    /// Nobody answers, or the host is not found.
    Unreached,
}

/// Reads what cert-manager says of its way to a CA, in Go's words: `Failed to register ACME account: Get "URL": …`.
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
        http_words::symptom(said)?,
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

/// Tells whether an issuer's message names a Secret that is not there, in cert-manager's words.
pub fn lacks_secret(message: &str) -> bool {
    message.contains("\" not found in namespace ")
}

/// Tells whether the key of an external account binding is there, and cannot be read: cert-manager's words end otherwise than ours.
pub fn spoils_binding_key(message: &str) -> bool {
    message.contains("external account binding key")
}

/// Tells whether an issuer's message is about an account key that cannot be used.
pub fn is_about_account_key(message: &str) -> bool {
    message.starts_with("Account private key is invalid: ")
}

/// Tells whether a CA speaks of the external account binding, which has no type of problem of its own.
pub fn is_about_binding(problem: &Problem) -> bool {
    let detail = problem.detail.to_ascii_lowercase();
    let mut words = detail.split(|c: char| !c.is_ascii_alphanumeric());
    ["external account", "externalaccount"].iter().any(|word| detail.contains(word))
        || words.any(|word| matches!(word, "eab" | "hmac"))
}

/// What a CA says of an external account binding that it does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingFault {
    /// Key ID or HMAC key are not those that the CA has.
    Key,
    /// It was used, or has expired.
    Spent,
    /// It does not say.
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

/// Tells whether a CA says that the account is no longer one.
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
