//! Server-side apply, and its dry run.

use http::Method;

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::request::{self, Purpose};
use super::wire::{Call, path_of};
use crate::model::Record;
use crate::store::error::StoreError;
use crate::store::manager::Manager;

impl ClusterStore {
    /// Makes a store that writes under another manager's name.
    #[must_use]
    pub fn managed_by(&self, manager: Manager) -> Self {
        Self { manager, ..self.clone() }
    }

    /// Returns what an object would become by apply (dry run): schema, webhooks and quotas are checked, and nothing is
    /// written.
    ///
    /// # Errors
    /// Fails as the apply itself would.
    pub async fn try_out(&self, record: Record) -> Result<Record, StoreError> {
        self.apply_for(record, Purpose::TryOut).await
    }

    pub(super) async fn apply_for(
        &self,
        record: Record,
        purpose: Purpose,
    ) -> Result<Record, StoreError> {
        let (key, body) = request::manifest(record)?;
        let force = self.manager.takes_over().to_string();
        let mut call = Call::new(Method::PATCH, path_of(&key)).with("force", force);
        if purpose == Purpose::TryOut {
            call = call.with("dryRun", "All");
        }
        let call = call.body("application/apply-patch+yaml", &body);
        self.write(&AccessRequest::on("patch", &key), call, &key).await
    }
}
