//! Whether Certificates have to be issued now, and what is put right of those that are not due.

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

/// Looks at any number of Certificates; each namespace is read once.
#[derive(Debug)]
pub struct Inspection {
    store: Arc<dyn Store>,
    controller: CertificateController,
    now: Timestamp,
}

impl Inspection {
    /// Begins; nothing is read yet.
    pub fn new(store: &Arc<dyn Store>, options: Options, now: Timestamp) -> Self {
        // This machine's own store finds by itself what belongs to an object.
        let store = if store.in_cluster() {
            Arc::new(Mirror::for_one_look(Arc::clone(store)))
        } else {
            Arc::clone(store)
        };
        let controller = CertificateController::new(Recorder::new(Arc::clone(&store)));
        let controller = controller.with(options);
        Self { store, controller, now }
    }

    /// The same that asks CAs when to renew what is not due otherwise.
    #[must_use]
    pub fn asking(self, inquiry: Option<RenewalInquiry>) -> Self {
        match inquiry {
            Some(inquiry) => Self { controller: self.controller.asking(inquiry), ..self },
            None => self,
        }
    }

    /// The store as this look sees it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Tells from which revision a due Certificate moves on; nothing when its Secret holds what is asked for. Writes: one that
    /// failed is marked, so that it is tried again at once, since a person asks, and where nobody else drives what its CA says of
    /// its renewal is kept. [`Self::look`] only reads.
    ///
    /// # Errors
    /// Fails when the store does, or another Certificate has the same Secret.
    pub async fn begin_if_due(
        &self,
        name: &ObjectName,
        is_driving: bool,
    ) -> Result<Option<i64>, Failure> {
        let mut due = self.look(name).await?;
        if due == Due::No && is_driving {
            // What is good goes on being good when its CA says nothing.
            match self.controller.ask_when_to_renew(name, self.now).await {
                Ok(()) => due = self.look(name).await?,
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

    /// Looks whether it has to be issued; nothing is changed.
    ///
    /// # Errors
    /// Fails when the store does, or another Certificate has the same Secret.
    pub async fn look(&self, name: &ObjectName) -> Result<Due, Failure> {
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

    /// Puts right what needs no issuance.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn put_right(&self, name: &ObjectName) -> Result<(), Failure> {
        self.controller.put_right(name, self.now).await.map_err(|error| match error {
            ReconcileError::Store(error) => error.into(),
            error => {
                let message = format!("cannot put Certificate {name} right: {error}");
                Failure::new(FailureKind::of_error(&error), message)
            }
        })
    }
}
