//! Writes of existing objects: server-side apply and its dry run; replacement of all of an object beyond its status, and of
//! its finalizers.

use http::Method;
use serde_json::{Value, json};

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::request::{self, Purpose};
use super::wire::{Call, path_of};
use crate::model::{Key, Kind, Record};
use crate::store::error::StoreError;
use crate::store::{Manager, Store as _};

/// Most attempts of a write without a revision while other writers come in between.
const TRIES: u32 = 8;

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

    /// Replaces all but the status, of the given revision or, without a revision, of any.
    pub(super) async fn replace_whole(&self, record: Record) -> Result<Record, StoreError> {
        let (key, body) = request::whole(record)?;
        let mut body = body;
        let conditional = body.pointer("/metadata/resourceVersion").is_some();
        if key.kind == Kind::Event && conditional {
            // Roles let controllers create and patch Events, as cert-manager's does, and no more.
            let call = Call::new(Method::PATCH, path_of(&key));
            let call = call.body("application/merge-patch+json", &body);
            return self.write(&AccessRequest::on("patch", &key), call, &key).await;
        }
        for _ in 0..TRIES {
            if !conditional {
                let stored = self.get(&key).await?;
                let stored = stored.ok_or_else(|| StoreError::NotFound { key: key.clone() })?;
                body["metadata"]["resourceVersion"] = stored.resource_version().into();
            }
            let call = Call::new(Method::PUT, path_of(&key)).body("application/json", &body);
            match self.write(&AccessRequest::on("update", &key), call, &key).await {
                Err(StoreError::Conflict { .. }) if !conditional && is_without_uid(&body) => {}
                written => return written,
            }
        }
        Err(StoreError::Conflict { key })
    }

    /// Applies finalizers under our manager's name, as cert-manager does; finalizers that are not wanted any more go,
    /// whichever manager has put them on.
    pub(super) async fn replace_finalizers(
        &self,
        key: &Key,
        record: Record,
    ) -> Result<Record, StoreError> {
        let wanted = record.metadata().finalizers;
        let deed = AccessRequest::on("patch", key);
        if wanted.is_empty() {
            let patch = request::without_finalizers(&record);
            let call = Call::new(Method::PATCH, path_of(key));
            return self.write(&deed, call.body("application/json-patch+json", &patch), key).await;
        }
        let body = request::finalizers(key, &record, &wanted);
        let call = Call::new(Method::PATCH, path_of(key)).with("force", "true");
        let call = call.body("application/apply-patch+yaml", &body);
        let applied = self.write(&deed, call, key).await?;
        let metadata = applied.metadata();
        if metadata.finalizers.iter().all(|finalizer| wanted.contains(finalizer)) {
            return Ok(applied);
        }
        let patch = json!([
            { "op": "replace", "path": "/metadata/resourceVersion", "value": metadata.resource_version },
            { "op": "add", "path": "/metadata/finalizers", "value": wanted },
        ]);
        let call = Call::new(Method::PATCH, path_of(key));
        self.write(&deed, call.body("application/json-patch+json", &patch), key).await
    }
}

fn is_without_uid(body: &Value) -> bool {
    body.pointer("/metadata/uid").is_none()
}
