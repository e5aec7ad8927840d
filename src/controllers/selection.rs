//! What a command drives: everything, or the Certificates it was given with all that hangs on them.

use std::collections::BTreeSet;

use crate::model::{Key, Kind, ObjectName};
use crate::store::{Store, StoreError};

/// Which objects are worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Everything in the store.
    All,
    /// These objects (Certificates and Issuers), and what Certificates own.
    Only(BTreeSet<Key>),
}

impl Selection {
    /// Tells whether an object is worked on: it was given, or its chain of owners leads to one that was.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn covers(&self, store: &dyn Store, key: &Key) -> Result<bool, StoreError> {
        let Self::Only(given) = self else { return Ok(true) };
        if key.name.name.is_empty() {
            return Ok(true);
        }
        let mut key = key.clone();
        loop {
            if given.contains(&key) {
                return Ok(true);
            }
            let Some(record) = store.get(&key).await? else { return Ok(false) };
            let metadata = record.metadata();
            let Some(owner) = metadata.controller() else { return Ok(false) };
            let Some(kind) = Kind::of_manifest(&owner.api_version, &owner.kind) else {
                return Ok(false);
            };
            key = Key::new(kind, ObjectName::new(&metadata.namespace, &owner.name));
        }
    }
}
