//! Answers over HTTP and in handshakes that a CA would not take: the fault of each, as a cause and in words.

use crate::diagnosis::case::name::{AddressProbe, NameCase};
use crate::diagnosis::case::web::UNKNOWN_TOKEN;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::Grade;
use crate::model::Answer;
use crate::model::observation::{CheckResult, Observation};
use crate::reconcile::{http01_visible, shown};

/// ALPN protocol of TLS-ALPN-01 (RFC 8737 §6.2).
pub(super) const ACME_TLS: &str = "acme-tls/1";

/// Returns the fault of a body of status 200.
pub(super) fn body_fault(look: &AddressProbe, body: &str) -> (CauseId, Grade) {
    let expected = look.expected.as_str();
    let other = |text: &str| {
        let (token, thumbprint) = text.split_once('.')?;
        let (wanted, own) = expected.split_once('.')?;
        Some((token == wanted, thumbprint == own))
    };
    match other(body.trim_end()) {
        _ if body.contains(expected) => (CauseId::Http23, Grade::Certain),
        // The server makes answers to all tokens by itself.
        Some((true, false)) if generated_thumbprint(look).is_some() => {
            (CauseId::Http22, Grade::Certain)
        }
        Some((true, false)) => (CauseId::Acc05, Grade::Certain),
        _ => (CauseId::Http22, Grade::Certain),
    }
}

/// Returns the account's thumbprint that a server adds to every token, even to an unknown one; `None` if it does not.
fn generated_thumbprint(look: &AddressProbe) -> Option<&str> {
    let reply = look.web.as_ref()?.challenge.reply().filter(|reply| reply.status == 200)?;
    let (token, thumbprint) = reply.start.trim_end().split_once('.')?;
    (token == UNKNOWN_TOKEN).then_some(thumbprint)
}

/// Describes a server that makes answers by itself, for another account than the Challenge's; `None` if it does not.
pub(super) fn stateless(look: &AddressProbe) -> Option<String> {
    let thumbprint = generated_thumbprint(look)?;
    let own = look.expected.split_once('.')?.1;
    (thumbprint != own).then(|| {
        format!(
            "it answers every token by itself, for the account with the key thumbprint {thumbprint}; this account has {own}"
        )
    })
}

/// Describes the text around the answer that does not belong there; `None` if the answer itself is missing.
pub(super) fn surplus(look: &AddressProbe) -> Option<String> {
    let CheckResult::Reply { body, .. } = &look.observation.seen else { return None };
    let (before, after) = body.split_once(&look.expected).filter(|_| !look.expected.is_empty())?;
    let parts = [(before, "before"), (after, "behind")];
    let parts = parts.iter().filter(|(part, _)| !part.is_empty());
    let parts: Vec<String> = parts.map(|(part, place)| format!("{part:?} {place} it")).collect();
    (!parts.is_empty()).then(|| parts.join(" and "))
}

/// Describes what was seen of an answer, in a few words: for a TLS-ALPN-01 certificate, the fault of the certificate.
pub(super) fn lacks(name: &NameCase, look: &Observation, expected: Option<&str>) -> String {
    match &look.seen {
        CheckResult::Handshake { protocol, certificate } if protocol == ACME_TLS => {
            let answer = name.pending.as_ref().and_then(|of| Answer::of(of).ok());
            let wrong = answer.and_then(|answer| shown::wrong(&answer, certificate));
            wrong.map_or_else(|| saw(look), |wrong| format!("it {wrong}"))
        }
        CheckResult::Reply { status, body, .. }
            if *status != 200 && expected.is_some_and(|it| body.trim_end() == it) =>
        {
            format!("status {status} with the right answer, but a CA accepts 200 only")
        }
        _ => saw(look),
    }
}

/// Describes an observation in a few words.
pub(super) fn saw(observation: &Observation) -> String {
    match &observation.seen {
        CheckResult::Nothing { why, .. } | CheckResult::NoLook { why, .. } => why.clone(),
        CheckResult::Redirect { to, why } => format!("redirect to {to}: {why}"),
        CheckResult::Reply { status, body, .. } => {
            let start: String = body.chars().take(http01_visible::EXCERPT_CHARS_MAX).collect();
            format!("status {status}, {} bytes, beginning with {start:?}", body.len())
        }
        CheckResult::Handshake { protocol, certificate } => {
            format!("protocol {protocol:?}, a certificate of {}", certificate.subject)
        }
        CheckResult::Records { name, servers, .. } => {
            format!("{} servers asked for {name}", servers.len())
        }
    }
}
