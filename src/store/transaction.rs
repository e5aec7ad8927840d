//! Interface between the rules of a store and its objects: one transaction.

use super::error::StoreError;
use crate::model::{Key, Record};
use crate::surroundings::Surroundings;

/// All objects, within one transaction: either all of its changes are kept, or none.
pub(crate) trait Transaction {
    /// Source of the random values for UIDs and the ends of generated names.
    fn surroundings(&self) -> &Surroundings;
    /// Reads one object.
    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError>;
    /// Raises the revision and returns it.
    fn next_revision(&mut self) -> Result<i64, StoreError>;
    /// Stores an object, new or changed, under its revision.
    fn put(&mut self, record: &Record, revision: i64) -> Result<(), StoreError>;
    /// Removes an object; the record is its last state.
    fn remove(&mut self, record: &Record, revision: i64) -> Result<(), StoreError>;
    /// Returns whether the object with that UID is there.
    fn is_there(&self, uid: &str) -> Result<bool, StoreError>;
    /// Finds the objects that name that UID among their owners.
    fn dependents(&self, uid: &str) -> Result<Vec<Key>, StoreError>;
    /// Finds at most `most` of the Events whose last occurrence was before a moment.
    fn told_before(&self, moment: &str, most: u32) -> Result<Vec<Key>, StoreError>;
    /// Finds at most `most` of the Events about the object with that UID, beyond the newest `kept`.
    fn told_beyond(&self, about: &str, kept: u32, most: u32) -> Result<Vec<Key>, StoreError>;
}
