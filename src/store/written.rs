//! Log of the writes to a store that lasts: the object, and the part that was written.

use tracing::info;

use super::Part;
use super::error::StoreError;
use crate::model::{Key, Kind, Record};

/// Word for a part of an object.
pub(super) fn word(part: Part) -> &'static str {
    match part {
        Part::Finalizers => "finalizers",
        Part::Metadata => "metadata",
        Part::Status => "status",
        Part::Whole => "content",
    }
}

/// Logs a write that has changed an object since the revision `before`, if given.
pub(super) fn log_write(
    change: &'static str,
    before: &str,
    written: Result<Record, StoreError>,
) -> Result<Record, StoreError> {
    if let Ok(record) = &written
        && record.resource_version() != before
    {
        log(&record.key, change);
    }
    written
}

/// Logs an object that is gone, or goes once its finalizers are off.
pub(super) fn deleted(
    key: &Key,
    held: Result<Option<Record>, StoreError>,
) -> Result<Option<Record>, StoreError> {
    match &held {
        Ok(None) => log(key, "deleted"),
        Ok(Some(_)) => log(key, "ending"),
        Err(_) => {}
    }
    held
}

/// Logs a change, except of Events, which report changes themselves.
fn log(key: &Key, change: &'static str) {
    if key.kind != Kind::Event {
        info!(object = %key, change, "wrote");
    }
}
