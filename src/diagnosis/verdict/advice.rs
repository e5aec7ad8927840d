//! Next step against each obstacle.

use super::failure_kind::FailureKind;
use super::next_step::{AnswerStep, NextStep};
use crate::acme::AccountKey;
use crate::acme::error::{self, AcmeError, ErrorSubject, Fault};
use crate::controllers::ReconcileError;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::words::refusal::{RefusedRequest, refused_request};
use crate::diagnosis::words::{facts, issuer};
use crate::model::order_budget::Denial;
use crate::model::{Challenge, Key, Kind, Problem};

/// Returns the step that helps against a fault in the work on an object of `issuer`; `None` if no step is known.
pub fn for_error(error: &ReconcileError, issuer: &Key) -> Option<NextStep> {
    match error {
        ReconcileError::Acme(error) => for_ca(error, issuer),
        ReconcileError::Store(error) => Some(NextStep::Store(Box::new(error.clone()))),
        ReconcileError::Solve(error) => error.remedy.as_deref().cloned().map(NextStep::Solver),
        // The message names the annotation.
        ReconcileError::Missing(_) | ReconcileError::Annotation(_) => None,
        // The timeline of the Certificate shows why it is issued again and again.
        ReconcileError::OverBudget(over)
            if matches!(over.denial, Denial::TooMany { .. })
                && over.holder.kind == Kind::Certificate =>
        {
            Some(NextStep::Timeline(over.holder.name.clone()))
        }
        // An object that waits until a known time goes on by itself.
        ReconcileError::OverBudget(over) if over.until.is_some() => None,
        ReconcileError::OverBudget(_) => Some(NextStep::AskOnceMore),
        ReconcileError::NameConflict(conflict) => Some(NextStep::FreeName {
            taken: conflict.key.clone(),
            ours: conflict.ours.clone(),
            passes: conflict.passes,
        }),
        ReconcileError::Keystore(why) => Some(NextStep::Keystore(why.clone())),
        ReconcileError::Panicked => Some(NextStep::Report),
    }
}

fn for_ca(error: &AcmeError, issuer: &Key) -> Option<NextStep> {
    let issuer = issuer.clone();
    let problem = match error {
        AcmeError::Transport { fault, .. } => {
            return Some(match fault {
                Fault::Untrusted => NextStep::TrustCa(issuer),
                Fault::NoSuchHost => NextStep::CheckServerAndResolver(issuer),
                Fault::Unusable => NextStep::CheckServer(issuer),
                Fault::Lookup => NextStep::CheckResolver,
                Fault::Passing => NextStep::CheckConnection(issuer),
            });
        }
        AcmeError::NotOffered { .. } => return Some(NextStep::BesideAcme),
        AcmeError::NotYet { .. } => return Some(NextStep::AuthorityAtFault),
        AcmeError::NotAcme { .. } | AcmeError::Protocol { .. } => {
            return Some(NextStep::CheckDirectory(issuer));
        }
        AcmeError::Refused { problem, .. } => problem,
    };
    if needs_user(problem.short_kind()) {
        return Some(for_pages(problem));
    }
    if error.sort() == ErrorSubject::Unavailable {
        return Some(NextStep::AuthorityAtFault);
    }
    let pages = problem.pages();
    (!pages.is_empty()).then(|| NextStep::ReadPages(pages.into_iter().map(str::to_owned).collect()))
}

/// Reports whether a problem of the type `kind` ends only when the user acts at the CA.
fn needs_user(kind: &str) -> bool {
    matches!(kind, "userActionRequired" | "agreementRequired")
}

/// Returns the step for a problem that only the user can end, on pages of the CA.
fn for_pages(problem: &Problem) -> NextStep {
    NextStep::OpenPages(problem.pages().into_iter().map(str::to_owned).collect())
}

/// Returns the step for an issuer that has no account at its CA. `problem` is the CA's answer, if the CA has answered;
/// `secret` is the name of the Secret with the account key.
pub fn for_issuer(
    problem: Option<&Problem>,
    message: &str,
    issuer: &Key,
    secret: &str,
) -> NextStep {
    let secret = secret.to_owned();
    let issuer = issuer.clone();
    let Some(problem) = problem else {
        let step = if issuer::lacks_secret(message) {
            NextStep::AddSecret(issuer)
        } else if issuer::spoils_binding_key(message) {
            NextStep::BindingKey
        } else if issuer::is_about_account_key(message) {
            NextStep::MendKey { issuer, secret }
        } else {
            NextStep::ChangeIssuer(issuer)
        };
        return then_again(step);
    };
    let step = match (problem.short_kind(), problem.status) {
        ("externalAccountRequired", _) => NextStep::GetBinding(issuer),
        _ if issuer::is_about_binding(problem) => NextStep::CompareBinding(issuer),
        ("invalidContact" | "invalidEmail" | "unsupportedContact", _) => {
            NextStep::ChangeContact(issuer)
        }
        (kind, _) if needs_user(kind) => for_pages(problem),
        ("badPublicKey" | "badSignatureAlgorithm", _) if problem.algorithms.is_empty() => {
            NextStep::OtherKindOfKey { issuer, secret }
        }
        ("badSignatureAlgorithm", _)
            if AccountKey::algorithm_among(&problem.algorithms).is_none() =>
        {
            NextStep::OtherAuthority(problem.algorithms.clone())
        }
        ("accountDoesNotExist" | "badPublicKey" | "badSignatureAlgorithm" | "unauthorized", _) => {
            NextStep::OtherKey { issuer, secret }
        }
        (_, 404) => NextStep::DirectoryUrl(issuer),
        _ => NextStep::ChangeIssuer(issuer),
    };
    then_again(step)
}

/// Adds to a step that the same command has to be run again afterwards.
pub fn then_again(step: NextStep) -> NextStep {
    NextStep::ThenAgain(Box::new(step))
}

/// Returns the step that helps after the order of a chain has failed; `None` if no step is known.
pub fn for_order(
    kind: FailureKind,
    problem: Option<&Problem>,
    challenge: Option<&Challenge>,
    chain: &Chain,
) -> Option<NextStep> {
    let issuer = || chain.named_issuer();
    match (kind, problem.map(Problem::short_kind), challenge) {
        (FailureKind::Validation, _, Some(challenge)) => {
            let kept = problem.and_then(|problem| facts::kept_by_resolver(challenge, problem));
            Some(match kept {
                Some(kept) => NextStep::KeptByResolver(kept, challenge.spec.record_name()),
                None => for_answer(challenge, chain.in_cluster),
            })
        }
        (FailureKind::Account, Some(kind), _) if needs_user(kind) => {
            problem.map(|problem| then_again(for_pages(problem)))
        }
        (
            FailureKind::Account,
            Some("accountDoesNotExist" | "badSignatureAlgorithm" | "unauthorized"),
            _,
        ) => {
            let secret = chain.account_key()?.to_owned();
            Some(then_again(NextStep::OtherAccount { issuer: issuer(), secret }))
        }
        // The CA's message names the page that lifts the pause.
        (FailureKind::RateLimited, _, _) if problem.is_some_and(error::says_paused) => {
            Some(NextStep::LiftPause)
        }
        // cert-manager does not wait until a limit is over.
        (FailureKind::RateLimited, _, _) => Some(NextStep::AfterLimit),
        (FailureKind::Usage, Some("invalidProfile"), _) => Some(NextStep::Profile(issuer())),
        (
            FailureKind::Usage,
            Some("rejectedIdentifier" | "unsupportedIdentifier" | "malformed"),
            _,
        ) => Some(NextStep::LeaveNameOut),
        (FailureKind::Usage, Some("badCSR"), _)
            if problem.map(refused_request) == Some(RefusedRequest::Key) =>
        {
            Some(NextStep::OtherKindOfCertificateKey)
        }
        _ => None,
    }
}

/// Returns the step for a challenge whose answer is not seen; the challenge's status says what is there in its place.
pub fn for_answer(challenge: &Challenge, in_cluster: bool) -> NextStep {
    let (challenge, sighting) = (challenge.clone(), facts::sighting(challenge));
    NextStep::Answer(Box::new(AnswerStep { challenge, sighting, in_cluster }))
}
