//! Files that are to be written, and what became of them.

use crate::context::failure::Failure;
use crate::issue::results::files::Written;
use crate::model::ObjectName;

/// Files to be written.
#[derive(Clone, Debug)]
pub(super) struct FilesToWrite {
    pub(super) certificate: ObjectName,
    pub(super) secret: ObjectName,
    /// Whether it is told even if nothing stood in the way before.
    pub(super) is_news: bool,
    /// Whether it is a temporary certificate, until the real one comes.
    pub(super) is_temporary: bool,
}

/// What became of a wish.
pub(super) struct Ended {
    pub(super) wish: FilesToWrite,
    /// Nothing was written where there is no Secret any more; beside it what ran for it.
    pub(super) written: Result<Option<(Written, Option<String>)>, NotWritten>,
}

/// Why files were not written.
pub(super) enum NotWritten {
    /// The store cannot be used any more.
    Store(Failure),
    /// The disk, or whoever shares it.
    Disk(Failure),
    /// The command that is run for it has failed.
    Command(Failure),
}
