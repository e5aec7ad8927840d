//! Selection of the objects to work on: all, or given objects with everything below them.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::{Key, Kind, ObjectName};
use crate::store::Store;
use crate::store::error::StoreError;

/// Objects to work on. Clones share what they have learned.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    given: Option<Arc<BTreeSet<Key>>>,
    covered: Arc<Mutex<HashSet<Key>>>,
}

impl Selection {
    /// Selects everything in the store.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects these Certificates and Issuers, and what the Certificates own.
    pub fn only(given: BTreeSet<Key>) -> Self {
        Self { given: Some(Arc::new(given)), ..Self::default() }
    }

    /// Returns whether an object is worked on: it was given, or its chain of owners leads to a given one. A deleted
    /// Challenge without its Order is worked on if anything was given in its namespace, since nothing else takes its
    /// answer down. A key without a name stands for a whole kind and is always covered.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn covers(&self, store: &dyn Store, key: &Key) -> Result<bool, StoreError> {
        let Some(given) = &self.given else { return Ok(true) };
        if key.name.name.is_empty() || self.is_known(key) {
            return Ok(true);
        }
        let is_near = given.iter().any(|near| near.name.namespace == key.name.namespace);
        let mut link = key.clone();
        let mut is_leftover = false;
        while !given.contains(&link) && !self.is_known(&link) {
            let Some(record) = store.get(&link).await? else { return Ok(is_leftover) };
            let metadata = record.metadata();
            is_leftover |= is_near && link.kind == Kind::Challenge && metadata.is_deleted();
            let Some(owner) = metadata.controller() else { return Ok(false) };
            let Some(kind) = Kind::of_owner(&owner.api_version, &owner.kind) else {
                return Ok(false);
            };
            link = Key::new(kind, ObjectName::new(&metadata.namespace, &owner.name));
        }
        self.covered.lock().insert(key.clone());
        Ok(true)
    }

    fn is_known(&self, key: &Key) -> bool {
        self.covered.lock().contains(key)
    }
}
