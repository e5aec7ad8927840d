//! Errors of the database, in plain words.

use std::path::Path;

use rusqlite::{Error, ErrorCode, ffi};

use crate::store::error::StoreError;

/// Makes the store's error from the database's.
pub(super) fn unusable(file: &Path, error: &Error) -> StoreError {
    refused(file, explain(error))
}

/// Makes the store's error for a database that we refuse.
pub(super) fn refused(file: &Path, why: impl Into<String>) -> StoreError {
    StoreError::Unusable { place: file.display().to_string(), why: why.into() }
}

/// Makes the store's error for a part of the database that cannot be read.
pub(super) fn damaged(file: &Path, what: &str) -> StoreError {
    refused(file, format!("it is damaged: {what} in it cannot be read"))
}

/// Returns whether a database is only in use by another process.
pub(super) fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Describes an error of the database in plain words.
pub(super) fn explain(error: &Error) -> String {
    let Some(inner) = error.sqlite_error() else { return error.to_string() };
    let why = match (inner.code, inner.extended_code) {
        (ErrorCode::DiskFull, _) => "there is no space left on the disk",
        (ErrorCode::ReadOnly | ErrorCode::PermissionDenied, _) => "this user may not write there",
        (ErrorCode::CannotOpen, _) => "it cannot be opened; is the folder this user's to write?",
        (ErrorCode::NotADatabase, _) => NOT_OURS,
        (ErrorCode::DatabaseCorrupt, _) => {
            "it is damaged; move it away, or put a copy in its place"
        }
        (ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked, _) => {
            "another process has kept it busy for too long"
        }
        (ErrorCode::SystemIoFailure, ffi::SQLITE_IOERR_WRITE | ffi::SQLITE_IOERR_TRUNCATE) => {
            "it cannot be written: the disk failed, or the file-size limit of this process is reached"
        }
        // The index of the log is made anew by each process, and a full disk has no room for it.
        (ErrorCode::SystemIoFailure, ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMMAP) => {
            "there is no space left on the disk, or the disk failed"
        }
        (ErrorCode::SystemIoFailure, _) => "the disk failed; it may be full",
        _ => return error.to_string(),
    };
    why.into()
}

/// Reason for refusing an empty file: no file of ours is ever empty.
pub(super) const EMPTIED: &str =
    "it is empty, and what was in it is lost; put a copy in its place, or remove it to begin anew";
/// Reason for refusing a file of another kind.
pub(super) const NOT_OURS: &str = "it is not a file that kubectl-acme wrote";
