//! The state folder: who may read it, and plain words for what goes wrong there.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::Path;

use super::StoreError;

/// The folder in which a file is.
pub(super) fn of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the folder and those above it, for their owner only; one that is there stays as it is.
pub(super) fn make(folder: &Path) -> Result<(), StoreError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| unusable(folder, &error))
}

/// Opens a file for reading and writing; a new one is its owner's only.
pub(super) fn open_file(path: &Path) -> Result<File, StoreError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|error| unusable(path, &error))
}

/// Says in plain words why a file or folder cannot be used.
pub(super) fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unusable { place: path.display().to_string(), why: explain(error) }
}

/// Says in plain words why the system refuses to make or write a file or folder.
pub fn explain(error: &io::Error) -> String {
    let why = match error.kind() {
        ErrorKind::PermissionDenied => "this user may not write there",
        ErrorKind::ReadOnlyFilesystem => "the file system is read-only",
        ErrorKind::StorageFull => "there is no space left",
        ErrorKind::QuotaExceeded => "this user's quota is used up",
        ErrorKind::FileTooLarge => "the file-size limit of this process is reached",
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "it is not a folder",
        ErrorKind::IsADirectory => "it is a folder, not a file",
        ErrorKind::NotFound => "nothing can be made there",
        _ => return error.to_string(),
    };
    why.to_owned()
}
