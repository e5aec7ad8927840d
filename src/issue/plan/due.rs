//! Inspection of Certificates: whether they have to be issued now, and corrections to Certificates that are not due.

use std::sync::Arc;

use jiff::Timestamp;
use tracing::debug;

use super::renewal::mark_for_renewal;
use crate::context::failure::Failure;
use crate::controllers::ReconcileError;
use crate::controllers::certificate::{CertificateController, Due};
use crate::controllers::recorder::Recorder;
use crate::controllers::renewal_inquiry::RenewalInquiry;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::ObjectName;
use crate::reconcile::certificate::options::Options;
use crate::store::Store;
use crate::store::mirror::Mirror;

/// Inspection of any number of Certificates; each namespace is read once.
#[derive(Debug)]
pub struct Inspection {
    store: Arc<dyn Store>,
    controller: CertificateController,
    now: Timestamp,
}

impl Inspection {
    /// Builds an inspection; nothing is read yet.
    pub fn new(store: &Arc<dyn Store>, options: Options, now: Timestamp) -> Self {
        // The local store finds the objects that belong to another by itself.
        let store = if store.in_cluster() {
            Arc::new(Mirror::for_one_look(Arc::clone(store)))
        } else {
            Arc::clone(store)
        };
        let controller = CertificateController::new(Recorder::new(Arc::clone(&store)));
        let controller = controller.with(options);
        Self { store, controller, now }
    }

    /// Returns this inspection with an inquiry, which asks CAs when to renew Certificates that are not due otherwise.
    #[must_use]
    pub fn asking(self, inquiry: Option<RenewalInquiry>) -> Self {
        match inquiry {
            Some(inquiry) => Self { controller: self.controller.asking(inquiry), ..self },
            None => self,
        }
    }

    /// Store as this inspection reads it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Returns the revision of a due Certificate; `None` if its Secret holds the requested certificate. Writes: marks a
    /// Certificate that failed, so that it is tried again at once, because a person asks; and if this process drives, stores
    /// when the CA wants the renewal. [`Self::due`] only reads.
    ///
    /// # Errors
    /// Fails when the store does, or another Certificate has the same Secret.
    pub async fn begin_if_due(
        &self,
        name: &ObjectName,
        is_driving: bool,
    ) -> Result<Option<i64>, Failure> {
        let mut due = self.due(name).await?;
        if due == Due::No && is_driving {
            // A certificate that is good stays good if its CA does not answer.
            match self.controller.ask_when_to_renew(name, self.now).await {
                Ok(()) => due = self.due(name).await?,
                Err(error) => debug!(%error, certificate = %name, "its CA is not asked"),
            }
        }
        match due {
            Due::Issue { revision } => Ok(Some(revision)),
            Due::TryAgain { revision } => {
                mark_for_renewal(&self.store, name).await?;
                Ok(Some(revision))
            }
            Due::No | Due::Rival { .. } => Ok(None),
        }
    }

    /// Returns whether a Certificate has to be issued; nothing is changed.
    ///
    /// # Errors
    /// Fails when the store does, or another Certificate has the same Secret.
    pub async fn due(&self, name: &ObjectName) -> Result<Due, Failure> {
        match self.controller.due(name, self.now).await? {
            Due::Rival { name: rival } => {
                let message =
                    format!("Certificate {name}: its Secret belongs to Certificate {rival}");
                Err(Failure::new(FailureKind::Usage, message)
                    .hint("give one of the two another secretName"))
            }
            due => Ok(due),
        }
    }

    /// Corrects a Certificate that needs no issuance: its status, the labels of its Secret and its renewal time.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn put_right(&self, name: &ObjectName) -> Result<(), Failure> {
        self.controller.put_right(name, self.now).await.map_err(|error| match error {
            ReconcileError::Store(error) => error.into(),
            error => {
                let message = format!("cannot correct Certificate {name}: {error}");
                Failure::new(FailureKind::of_error(&error), message)
            }
        })
    }
}
