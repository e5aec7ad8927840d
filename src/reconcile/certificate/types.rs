//! What the Certificate machine looks at, decides, and hears.

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
    /// What was asked of CAs for it.
    pub ledger: Ledger,
    /// What its CA wants of the certificate in the Secret.
    pub suggestion: Option<Suggestion>,
    /// What whoever drives has been told.
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
    /// Delete this CertificateRequest, and none that took its name since.
    DeleteRequest(Box<CertificateRequest>),
    /// Give the Secret these labels and annotations, and every form that the spec asks for; key and chain stay.
    RepairSecret(SecretMetadata),
    /// Store the key for the next certificate, under that name or a new one.
    StoreNextKey(Option<String>, KeyOrigin),
    /// Write key and certificate into the Secret.
    StoreSecret(Box<Delivery>),
    /// Write the key in that temporary Secret into the Secret, with a certificate that nobody trusts, until the real one comes.
    StoreTemporary(String),
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
    /// A certificate must be issued.
    Due {
        /// Why.
        violation: Violation,
        /// Why no renewal window could be kept.
        window_error: Option<WindowError>,
        /// Whether it is so early because the CA wants it.
        is_hastened: bool,
    },
    /// The CA was asked when to renew the certificate, and what it said.
    RenewalAsked(Box<LeafFacts>, Answer),
    /// The CA is not to be asked any more.
    RenewalNotAsked,
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
    /// No key can be made of this spec.
    KeyImpossible(String),
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
    /// The Secret has a temporary certificate.
    TemporaryStored,
    /// What the Secret holds beside key and chain is as it should be.
    SecretRepaired,
}

impl Outcome {
    /// Under which controller's name it is written: one of [`source`].
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

/// The CertificateRequest of `status.revision`.
pub(crate) fn current<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<&'a RequestFacts> {
    let revision = certificate.status.revision?;
    observed.requests.iter().find(|facts| facts.request.revision() == Some(revision))
}

/// Number of the next issuance.
pub(crate) fn next_revision(certificate: &Certificate) -> i64 {
    certificate.status.revision.unwrap_or(0) + 1
}

/// The CertificateRequest of the next issuance.
pub(crate) fn next<'a>(
    certificate: &Certificate,
    observed: &'a Observed,
) -> Option<&'a RequestFacts> {
    let revision = next_revision(certificate);
    observed.requests.iter().find(|facts| facts.request.revision() == Some(revision))
}
