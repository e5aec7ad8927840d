//! What is written to a store that lasts, in the log: which object, and what of it.

use tracing::info;

use super::Part;
use super::error::StoreError;
use crate::model::{Key, Kind, Record};

/// A part of an object in one word.
pub(super) fn word(part: Part) -> &'static str {
    match part {
        Part::Finalizers => "finalizers",
        Part::Metadata => "metadata",
        Part::Status => "status",
        Part::Whole => "content",
    }
}

/// Tells of a write that has changed something since that revision, where one is given.
pub(super) fn told(
    change: &'static str,
    before: &str,
    written: Result<Record, StoreError>,
) -> Result<Record, StoreError> {
    if let Ok(record) = &written
        && record.resource_version() != before
    {
        tell(&record.key, change);
    }
    written
}

/// Tells of an object that is gone, or goes once its finalizers are off.
pub(super) fn deleted(
    key: &Key,
    held: Result<Option<Record>, StoreError>,
) -> Result<Option<Record>, StoreError> {
    match &held {
        Ok(None) => tell(key, "deleted"),
        Ok(Some(_)) => tell(key, "ending"),
        Err(_) => {}
    }
    held
}

/// Events tell of changes themselves.
fn tell(key: &Key, change: &'static str) {
    if key.kind != Kind::Event {
        info!(object = %key, change, "wrote");
    }
}
