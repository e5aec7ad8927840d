//! Requests to write files, and their results.

use crate::context::failure::Failure;
use crate::issue::results::files::Written;
use crate::model::ObjectName;

/// Request to write the files of a Certificate.
#[derive(Clone, Debug)]
pub(super) struct FilesToWrite {
    pub(super) certificate: ObjectName,
    pub(super) secret: ObjectName,
    /// Whether the write is reported even if no earlier write failed.
    pub(super) is_news: bool,
    /// Whether the certificate is a temporary one, until the CA issues.
    pub(super) is_temporary: bool,
}

/// Result of a request.
pub(super) struct WriteResult {
    pub(super) wish: FilesToWrite,
    /// Written files, and the report of the command that ran; `None` if the Secret is gone.
    pub(super) written: Result<Option<(Written, Option<String>)>, NotWritten>,
}

/// Reason why files were not written.
pub(super) enum NotWritten {
    /// The store has failed.
    Store(Failure),
    /// The disk has failed, or another process holds the folder.
    Disk(Failure),
    /// The command after the write has failed.
    Command(Failure),
}
