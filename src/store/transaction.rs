//! What the rules of a store need from whatever holds its objects: one transaction.

use super::error::StoreError;
use crate::model::{Key, Record};
use crate::surroundings::Surroundings;

/// All objects, within one transaction: either everything that was done is kept, or nothing.
pub(crate) trait Transaction {
    /// Where UIDs and the ends of generated names are drawn from.
    fn surroundings(&self) -> &Surroundings;
    /// Reads one object.
    fn read(&self, key: &Key) -> Result<Option<Record>, StoreError>;
    /// Counts the revision up and returns it.
    fn next_revision(&mut self) -> Result<i64, StoreError>;
    /// Stores an object, new or changed, under its revision.
    fn put(&mut self, record: &Record, revision: i64) -> Result<(), StoreError>;
    /// Takes an object away; the record is how it was last seen.
    fn remove(&mut self, record: &Record, revision: i64) -> Result<(), StoreError>;
    /// Tells whether the object with that UID is there.
    fn is_there(&self, uid: &str) -> Result<bool, StoreError>;
    /// Finds the objects that name that UID among their owners.
    fn dependents(&self, uid: &str) -> Result<Vec<Key>, StoreError>;
    /// Finds so many of the Events that were told last before a moment.
    fn told_before(&self, moment: &str, most: u32) -> Result<Vec<Key>, StoreError>;
    /// Finds so many of the Events about the object with that UID, beyond the newest that are kept.
    fn told_beyond(&self, about: &str, kept: u32, most: u32) -> Result<Vec<Key>, StoreError>;
}
