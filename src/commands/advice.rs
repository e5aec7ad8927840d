//! The next step: what helps against which obstacle, one line each.

use super::failure::{Failure, Kind as FailureKind};
use crate::acme::refusal::Sort;
use crate::acme::{AcmeError, Fault};
use crate::cli;
use crate::controllers::ReconcileError;
use crate::model::{Challenge, ChallengeType, Key, Problem};
use crate::store::StoreError;

/// What helps when the store cannot be used.
pub const STORE: &str = "put that right, or choose another state folder with --local=DIR";

/// What helps against a fault that stands in the way of an object whose issuer this is.
pub fn for_error(error: &ReconcileError, issuer: &Key) -> Option<String> {
    match error {
        ReconcileError::Acme(error) => for_ca(error, issuer),
        ReconcileError::Store(StoreError::Unusable { .. }) => Some(STORE.to_owned()),
        ReconcileError::Store(error) => error.hints().into_iter().next(),
        ReconcileError::Solve(error) => error.hint.clone(),
        ReconcileError::Missing(_) => None,
    }
}

fn for_ca(error: &AcmeError, issuer: &Key) -> Option<String> {
    Some(match (error, error.sort()) {
        (AcmeError::Transport { fault: Fault::Untrusted, .. }, _) => format!(
            "put the CA's root into spec.acme.caBundle of {issuer}, or set skipTLSVerify for a test"
        ),
        (AcmeError::Transport { fault: Fault::NoSuchHost, .. }, _) => {
            format!("check spec.acme.server of {issuer}")
        }
        (AcmeError::Transport { fault: Fault::Passing, .. }, _) => format!(
            "check spec.acme.server of {issuer}, and whether this machine may connect there (firewall, proxy)"
        ),
        (AcmeError::NoDirectory { .. } | AcmeError::Protocol { .. }, _) => format!(
            "check that spec.acme.server of {issuer} is the URL of an ACME directory, and that no proxy answers in the CA's place"
        ),
        (AcmeError::Refused { .. }, Sort::Unavailable) => {
            "the fault is the CA's own; its status page may tell more".to_owned()
        }
        (AcmeError::Refused { .. }, _) => return None,
    })
}

/// What helps when an Issuer has no account at its CA; the problem is the CA's, where it has answered.
pub fn for_issuer(problem: Option<&Problem>, message: &str, issuer: &Key) -> String {
    let binding = "spec.acme.externalAccountBinding";
    let change = match problem.map(|problem| (problem.short_kind(), problem.status)) {
        Some(("externalAccountRequired", _)) => format!(
            "get a key ID and an HMAC key from the CA, and name them in {binding} of {issuer}"
        ),
        Some((_, _)) if message.contains("xternal account binding") => {
            format!("compare key ID and HMAC key in {binding} of {issuer} with those the CA gave")
        }
        Some(("invalidContact" | "unsupportedContact", _)) => {
            format!("change spec.acme.email of {issuer}")
        }
        Some((_, 404)) => {
            format!("spec.acme.server of {issuer} must be the URL of an ACME directory")
        }
        None if message.contains("\" not found in namespace ") => {
            format!("add that Secret to the manifests, or change {issuer}")
        }
        Some(_) | None => format!("change {issuer}"),
    };
    format!("{change}; then run the same command again")
}

/// What helps when an order failed so.
pub fn for_order(
    failure: Failure,
    problem: Option<&Problem>,
    challenge: Option<&Challenge>,
) -> Failure {
    match (failure.kind, problem.map(Problem::short_kind), challenge) {
        (FailureKind::Validation, _, Some(challenge)) => failure.hint(for_name(challenge)),
        // The page that lifts the pause stands in the CA's words.
        (FailureKind::RateLimited, _, _) => failure.hint(
            "do what the CA asks for in its answer; waiting alone does not help; then run the same command again",
        ),
        (FailureKind::Usage, Some("rejectedIdentifier" | "unsupportedIdentifier"), _) => {
            failure.hint("take the name out of the Certificate, or ask another CA for it")
        }
        _ => failure,
    }
}

/// What helps when the answer to a challenge is not seen where it should be.
pub fn for_name(challenge: &Challenge) -> String {
    let name = &challenge.spec.dns_name;
    match challenge.spec.kind {
        ChallengeType::Http01 => format!(
            "see that {name} leads to this machine in public DNS, and that port 80 is open to the internet"
        ),
        ChallengeType::TlsAlpn01 => format!(
            "see that {name} leads to this machine in public DNS, that port 443 is open to the internet, and that nothing \
             ends TLS on the way"
        ),
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 => {
            format!("see that the TXT record of {name} is published")
        }
        ChallengeType::DnsPersist01 => {
            let (record, value) = (challenge.spec.record_name(), &challenge.spec.key);
            format!("see that there is such a record: {record} TXT \"{value}\"")
        }
    }
}

/// Adds the commands that show more of an order that failed.
pub fn where_to_look(failure: Failure, certificate: &Key, order: &str) -> Failure {
    let order = cli::like(&format!("describe order/{order}"));
    let timeline = cli::like(&format!("timeline certificate/{}", certificate.name.name));
    failure
        .hint(format!("{order} shows the CA's answers"))
        .hint(format!("{timeline} shows every step"))
}
