//! Certificate: issue when a policy is violated, keep the Secret good, renew when due.
//!
//! cert-manager spreads this over six controllers that talk through the `Issuing` condition,
//! `status.nextPrivateKeySecretName`, `status.revision` and the CertificateRequest; here it is one machine, whose
//! deeds come in the same order.

use std::borrow::Cow;

use jiff::Timestamp;

use super::facts::{KeyFacts, RequestFacts, SecretFacts};
use super::policy::Violation;
use super::readiness::Assessment;
use super::renewal::{Window, WindowError};
use super::secret_content::SecretMetadata;
use super::{Note, Recorded, Wake, issuing, trigger};
use crate::model::common::{condition, is_true, set_condition};
use crate::model::event::{reason, source};
use crate::model::memory::Memory;
use crate::model::{
    Certificate, CertificateRequest, CertificateStatus, Condition, ConditionStatus, Severity, Time,
};

/// Condition: whether the Secret holds what the spec asks for.
pub const READY: &str = "Ready";
/// Condition: whether a certificate is being issued.
pub const ISSUING: &str = "Issuing";

/// What the machine looks at beside the Certificate.
#[derive(Clone, Debug)]
pub struct Observed {
    /// The Secret it names, if there is one.
    pub secret: Option<SecretFacts>,
    /// Temporary Secrets that it owns.
    pub next_keys: Vec<NextKey>,
    /// CertificateRequests that it owns.
    pub requests: Vec<RequestFacts>,
    /// Other Certificates of its namespace that name the same Secret.
    pub rivals: Vec<Rival>,
    /// Its renewal windows.
    pub windows: Result<Vec<Window>, WindowError>,
}

/// A temporary Secret with the key of the running issuance.
#[derive(Clone, Debug, PartialEq)]
pub struct NextKey {
    /// Name of the Secret.
    pub secret: String,
    /// The key, or why it cannot be read.
    pub key: Result<KeyFacts, String>,
}

/// Another Certificate that names the same Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rival {
    /// Name.
    pub name: String,
    /// When it was made.
    pub created: Option<Time>,
}

/// The next deed.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Nothing to do but to record this.
    Conclude(Outcome),
    /// Make this CertificateRequest; its signing request is to be signed with the key in that Secret.
    CreateRequest(Box<CertificateRequest>, String),
    /// Delete a temporary Secret; the fields that its key does not fit.
    DeleteNextKey(String, Vec<&'static str>),
    /// Delete a CertificateRequest.
    DeleteRequest(String),
    /// Give the Secret these labels and annotations; its data stays.
    RepairSecret(SecretMetadata),
    /// Store the key for the next certificate, under that name or a new one.
    StoreNextKey(Option<String>, KeyOrigin),
    /// Write key and certificate into the Secret.
    StoreSecret(Box<Delivery>),
    /// Wait.
    Wait(Wake),
}

/// What goes into the Secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// CertificateRequest that holds the chain.
    pub request: String,
    /// Temporary Secret that holds the key.
    pub next_key: String,
    /// Number of the issuance.
    pub revision: i64,
    /// Labels and annotations.
    pub metadata: SecretMetadata,
}

/// Where the key for the next certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Made anew.
    Generated,
    /// Made anew, because the one in the Secret, which should be kept, cannot be read.
    Replacement,
    /// Copied from the Secret.
    Reused,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The Secret was looked at.
    Assessed(Box<Assessment>),
    /// A certificate must be issued; with it, why no renewal window could be kept.
    Due(Violation, Option<WindowError>),
    /// Something was deleted of which nobody needs to hear.
    Deleted,
    /// The issuance failed.
    Failed {
        /// A word, which may be that of whoever denied the request.
        reason: String,
        /// A sentence.
        message: String,
    },
    /// Nothing can go on until the spec changes.
    Impossible {
        /// One of [`crate::model::event::reason`].
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// Key and certificate are in the Secret.
    Issued(i64),
    /// A key was thrown away because of these fields.
    KeyOutdated(Vec<&'static str>),
    /// The temporary Secret exists, known to the status or not.
    NextKeyFound(String),
    /// The temporary Secret is gone.
    NextKeyGone,
    /// A key was stored in this temporary Secret.
    NextKeyStored(String, KeyOrigin),
    /// A CertificateRequest was made.
    RequestCreated(String),
    /// No signing request can be made of this spec.
    RequestImpossible(String),
    /// Labels and annotations are as they should be.
    SecretRepaired,
}

/// Decides what to do next.
pub fn next_action(certificate: &Certificate, observed: &Observed, now: Timestamp) -> Action {
    if certificate.metadata.is_deleted() {
        return Action::Wait(Wake::OnChange);
    }
    if is_true(&certificate.status.conditions, ISSUING) {
        return trigger::assess(certificate, observed, now)
            .unwrap_or_else(|| issuing::next_action(certificate, observed, now));
    }
    if let Some(left) = observed.next_keys.first() {
        return Action::DeleteNextKey(left.secret.clone(), Vec::new());
    }
    if !certificate.status.next_private_key_secret_name.is_empty() {
        return Action::Conclude(Outcome::NextKeyGone);
    }
    trigger::next_action(certificate, observed, now)
}

/// Folds an outcome into status and notes.
pub fn record(
    certificate: &Certificate,
    outcome: Outcome,
    now: Timestamp,
) -> Recorded<CertificateStatus> {
    let mut status = certificate.status.clone();
    let mut notes = Vec::new();
    match outcome {
        Outcome::Assessed(assessment) => assessment.write(&mut status, now),
        Outcome::Deleted | Outcome::SecretRepaired => {}
        Outcome::Due(violation, window_error) => {
            if let Some(why) = window_error {
                let message =
                    format!("Renewing certificate without satisfying renewal windows due to {why}");
                notes.push(Note::warning(source::TRIGGER, reason::WINDOW_ERROR, message));
            }
            let message = violation.message.clone();
            notes.push(Note::normal(source::TRIGGER, reason::ISSUING, message));
            set_issuing(
                certificate,
                &mut status,
                ConditionStatus::True,
                violation.reason,
                violation.message,
                now,
            );
        }
        Outcome::Failed { reason, message } => {
            let message = format!(
                "The certificate request has failed to complete and will be retried: {message}"
            );
            notes.push(Note {
                severity: Severity::Warning,
                reason: Cow::Owned(reason.clone()),
                message: message.clone(),
                source: source::ISSUING,
            });
            set_issuing(certificate, &mut status, ConditionStatus::False, &reason, message, now);
            status.last_failure_time = Some(now.into());
            status.failed_issuance_attempts =
                Some(status.failed_issuance_attempts.unwrap_or(0).saturating_add(1));
        }
        Outcome::Impossible { reason, message } => {
            notes.push(Note::warning(source::KEY_MANAGER, reason, message.clone()));
            keep_issuing(certificate, &mut status, message, now);
        }
        Outcome::Issued(revision) => {
            let message = "The certificate has been successfully issued";
            notes.push(Note::normal(source::ISSUING, reason::ISSUING, message));
            status.conditions.retain(|condition| condition.kind != ISSUING);
            status.revision = Some(revision);
            status.last_failure_time = None;
            status.failed_issuance_attempts = None;
        }
        Outcome::KeyOutdated(fields) => {
            let fields = fields.join(" ");
            let message = format!("Regenerating private key due to change in fields: [{fields}]");
            notes.push(Note::normal(source::KEY_MANAGER, reason::DELETED, message));
        }
        Outcome::NextKeyFound(secret) => status.next_private_key_secret_name = secret,
        Outcome::NextKeyGone => status.next_private_key_secret_name.clear(),
        Outcome::NextKeyStored(secret, origin) => {
            notes.extend(key_notes(&certificate.spec.secret_name, &secret, origin));
            status.next_private_key_secret_name = secret;
        }
        Outcome::RequestCreated(name) => {
            let message = format!("Created new CertificateRequest resource \"{name}\"");
            notes.push(Note::normal(source::REQUEST_MANAGER, reason::REQUESTED, message));
        }
        Outcome::RequestImpossible(why) => {
            let message = format!("{}{why} - will not retry", issuing::NO_REQUEST);
            let note =
                Note::warning(source::REQUEST_MANAGER, reason::REQUEST_FAILED, message.clone());
            notes.push(note);
            keep_issuing(certificate, &mut status, message, now);
        }
    }
    Recorded { status, memory: Memory::default(), notes }
}

fn set_issuing(
    certificate: &Certificate,
    status: &mut CertificateStatus,
    value: ConditionStatus,
    reason: &str,
    message: String,
    now: Timestamp,
) {
    let new = Condition {
        kind: ISSUING.to_owned(),
        status: value,
        reason: reason.to_owned(),
        message,
        last_transition_time: None,
        observed_generation: certificate.metadata.generation,
    };
    set_condition(&mut status.conditions, new, now);
}

/// Changes what the condition says and leaves it True.
fn keep_issuing(
    certificate: &Certificate,
    status: &mut CertificateStatus,
    message: String,
    now: Timestamp,
) {
    let known = condition(&status.conditions, ISSUING).map(|issuing| issuing.reason.clone());
    let reason = known.unwrap_or_default();
    set_issuing(certificate, status, ConditionStatus::True, &reason, message, now);
}

fn key_notes(secret: &str, next_key: &str, origin: KeyOrigin) -> Vec<Note> {
    let stored = || {
        let message = format!("Stored new private key in temporary Secret resource \"{next_key}\"");
        Note::normal(source::KEY_MANAGER, reason::GENERATED, message)
    };
    match origin {
        KeyOrigin::Generated => vec![stored()],
        KeyOrigin::Reused => {
            let message =
                format!("Reusing private key stored in existing Secret resource \"{secret}\"");
            vec![Note::normal(source::KEY_MANAGER, reason::REUSED, message)]
        }
        KeyOrigin::Replacement => {
            let message = format!(
                "Failed to decode private key stored in Secret \"{secret}\" - generating new key"
            );
            vec![Note::warning(source::KEY_MANAGER, reason::DECODE_FAILED, message), stored()]
        }
    }
}

/// The CertificateRequest of `status.revision`.
pub(super) fn current<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<&'a RequestFacts> {
    let revision = certificate.status.revision?;
    observed.requests.iter().find(|facts| facts.revision() == Some(revision))
}

/// Number of the next issuance.
pub(super) fn next_revision(certificate: &Certificate) -> i64 {
    certificate.status.revision.unwrap_or(0) + 1
}

/// The CertificateRequest of the next issuance.
pub(super) fn next<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<&'a RequestFacts> {
    let revision = next_revision(certificate);
    observed.requests.iter().find(|facts| facts.revision() == Some(revision))
}
