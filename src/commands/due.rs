//! Whether a Certificate has to be issued now.

use std::sync::Arc;

use jiff::Timestamp;

use super::failure::{Failure, Kind};
use super::renewal::mark_for_renewal;
use crate::controllers::certificate::{CertificateController, Due};
use crate::controllers::recorder::Recorder;
use crate::model::ObjectName;
use crate::store::Store;

/// Returns the revision from which a Certificate moves on when it is due, and nothing when its Secret holds what is asked for.
/// A person asks: one that failed is tried again at once.
///
/// # Errors
/// Fails when the store does, or another Certificate has the same Secret.
pub async fn due(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    now: Timestamp,
) -> Result<Option<i64>, Failure> {
    match look(store, name, now).await? {
        Due::Issue { revision } => Ok(Some(revision)),
        Due::TryAgain { revision } => {
            mark_for_renewal(store, name, now).await?;
            Ok(Some(revision))
        }
        Due::No | Due::Rival { .. } => Ok(None),
    }
}

/// Looks whether it has to be issued; nothing is changed.
///
/// # Errors
/// Fails when the store does, or another Certificate has the same Secret.
pub async fn look(
    store: &Arc<dyn Store>,
    name: &ObjectName,
    now: Timestamp,
) -> Result<Due, Failure> {
    let controller = CertificateController::new(Recorder::new(Arc::clone(store)));
    match controller.due(name, now).await? {
        Due::Rival { name: rival } => {
            let message = format!("Certificate {name}: its Secret belongs to Certificate {rival}");
            Err(Failure::new(Kind::Usage, message).hint("give one of the two another secretName"))
        }
        due => Ok(due),
    }
}
