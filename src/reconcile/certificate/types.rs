//! Observations, actions and outcomes of the Certificate machine.

use super::options::Options;
use super::readiness::Assessment;
use crate::model::event::source;
use crate::model::order_ledger::Ledger;
use crate::model::{Certificate, CertificateRequest, Time};
use crate::reconcile::Wake;
use crate::reconcile::facts::{KeyFacts, LeafFacts, RequestFacts, SecretFacts};
use crate::reconcile::policy::Violation;
use crate::reconcile::renewal::{Window, WindowError};
use crate::reconcile::renewal_info::{Answer, Suggestion};
use crate::reconcile::secret_content::SecretMetadata;

/// Observations of one step beside the Certificate.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Secret that the Certificate names, if it exists.
    pub secret: Option<SecretFacts>,
    /// Temporary Secrets that the Certificate owns.
    pub next_keys: Vec<NextKey>,
    /// CertificateRequests that the Certificate owns.
    pub requests: Vec<RequestFacts>,
    /// Other Certificates of the namespace that name the same Secret.
    pub rivals: Vec<Rival>,
    /// Renewal windows of the Certificate.
    pub windows: Result<Vec<Window>, WindowError>,
    /// Ledger of the orders for this Certificate.
    pub ledger: Ledger,
    /// Suggestion of the CA for the certificate in the Secret.
    pub suggestion: Option<Suggestion>,
    /// Settings from flags.
    pub options: Options,
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
    /// Moment of creation.
    pub created: Option<Time>,
}

/// Next action.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Records this outcome, and does nothing else.
    Conclude(Outcome),
    /// Creates this CertificateRequest; its signing request is to be signed with the key in the named Secret.
    CreateRequest(Box<CertificateRequest>, String),
    /// Deletes a temporary Secret; lists the fields that its key does not fit.
    DeleteNextKey(String, Vec<&'static str>),
    /// Deletes this CertificateRequest, but none that took its name since.
    DeleteRequest(Box<CertificateRequest>),
    /// Gives the Secret these labels and annotations, and every form that the spec asks for; key and chain stay.
    RepairSecret(SecretMetadata),
    /// Stores the key for the next certificate, under the given name or a new one.
    StoreNextKey(Option<String>, KeyOrigin),
    /// Writes key and certificate into the Secret.
    StoreSecret(Box<Delivery>),
    /// Writes this temporary Secret's key into the Secret, with an untrusted certificate, until the real one comes.
    StoreTemporary(String),
    /// Waits.
    Wait(Wake),
}

/// Content of the Secret.
#[derive(Clone, Debug, PartialEq)]
pub struct Delivery {
    /// CertificateRequest that holds the chain.
    pub request: String,
    /// Temporary Secret that holds the key.
    pub next_key: String,
    /// Revision: number of the issuance.
    pub revision: i64,
    /// Labels and annotations.
    pub metadata: SecretMetadata,
}

/// Origin of the key for the next certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Newly generated.
    Generated,
    /// Newly generated, because the key in the Secret, which should be kept, cannot be read.
    Replacement,
    /// Copied from the Secret.
    Reused,
}

/// Outcome of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The Secret was assessed.
    Assessed(Box<Assessment>),
    /// A certificate must be issued.
    Due {
        /// Rule that is violated.
        violation: Violation,
        /// Reason that no renewal window could be kept.
        window_error: Option<WindowError>,
        /// Whether the issuance is so early because the CA wants it.
        is_hastened: bool,
    },
    /// The CA was asked when to renew the certificate; its answer.
    RenewalAsked(Box<LeafFacts>, Answer),
    /// The CA is not to be asked any more.
    RenewalNotAsked,
    /// An object was deleted without a note.
    Deleted,
    /// The issuance failed.
    Failed {
        /// Reason word, perhaps from the condition that denied the request.
        reason: String,
        /// Human-readable sentence.
        message: String,
    },
    /// Nothing can go on until the spec changes.
    Impossible {
        /// Reason from [`crate::model::event::reason`].
        reason: &'static str,
        /// Human-readable sentence.
        message: String,
    },
    /// Key and certificate are in the Secret.
    Issued(i64),
    /// No key can be made of this spec.
    KeyImpossible(String),
    /// A key was deleted because of these fields.
    KeyOutdated(Vec<&'static str>),
    /// The temporary Secret exists, whether or not the status names it.
    NextKeyFound(String),
    /// The temporary Secret is gone.
    NextKeyGone,
    /// A key was stored in this temporary Secret.
    NextKeyStored(String, KeyOrigin),
    /// A CertificateRequest was created.
    RequestCreated(String),
    /// No signing request can be made of this spec.
    RequestImpossible(String),
    /// The Secret has a temporary certificate.
    TemporaryStored,
    /// The rest of the Secret, beside key and chain, is as it should be.
    SecretRepaired,
}

impl Outcome {
    /// Returns the controller name under which the outcome is written, from [`source`].
    pub fn writer(&self) -> &'static str {
        match self {
            Self::Assessed(_) | Self::RenewalAsked(..) | Self::RenewalNotAsked => source::READINESS,
            Self::Due { .. } => source::TRIGGER,
            Self::Impossible { .. }
            | Self::KeyImpossible(_)
            | Self::KeyOutdated(_)
            | Self::NextKeyFound(_)
            | Self::NextKeyGone
            | Self::NextKeyStored(..) => source::KEY_MANAGER,
            Self::RequestCreated(_) | Self::RequestImpossible(_) => source::REQUEST_MANAGER,
            Self::Deleted
            | Self::Failed { .. }
            | Self::Issued(_)
            | Self::SecretRepaired
            | Self::TemporaryStored => source::ISSUING,
        }
    }
}

/// Returns the CertificateRequest of `status.revision`.
pub(crate) fn current<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<&'a RequestFacts> {
    let revision = certificate.status.revision?;
    observed.requests.iter().find(|facts| facts.request.revision() == Some(revision))
}

/// Returns the revision of the next issuance.
pub(crate) fn next_revision(certificate: &Certificate) -> i64 {
    certificate.status.revision.unwrap_or(0) + 1
}

/// Returns the CertificateRequest of the next issuance.
pub(crate) fn next<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<&'a RequestFacts> {
    let revision = next_revision(certificate);
    observed.requests.iter().find(|facts| facts.request.revision() == Some(revision))
}
