//! State folder: who may read it, and plain words for faults there.
//!
//! Account keys and keys of certificates are in the folder, so its owner is checked before any read or write. Folder
//! and files belong to this user or root. The files are closed to others (0600). Others may not write to the folder,
//! since they could replace our files; they may *read* it (0755), as with a folder made by `mkdir`, a bind mount, a
//! cache of a CI runner or a share on NFS: only names and sizes show, and a folder of our making has 0700. A group that
//! may write is refused, too, with one exception: on the volume of a Pod with `fsGroup` kubelet opens folders and files
//! to that group at each mount, however they were closed, so a group of this process that a folder hands down (setgid)
//! may write, as long as no other user may. Links are followed above the folder, never in place of the folder or of a
//! file. A user who may rename a folder above may take the state away, but cannot have another state used.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::error::StoreError;
use crate::disk::private::{self, Unprotected};

/// The folder in which a file is.
pub(super) fn of(file: &Path) -> &Path {
    match file.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Makes the folder and the folders above it, for their owner only; an existing folder must be private.
pub(super) fn make(folder: &Path) -> Result<(), StoreError> {
    private::make_private(folder).map_err(|refusal| store_error(folder, refusal))
}

/// Fails unless an existing folder is private.
pub(super) fn expect_private(folder: &Path) -> Result<(), StoreError> {
    private::judge_folder(folder).map_err(|refusal| store_error(folder, refusal))
}

/// Fails unless an existing file is private.
pub(super) fn expect_private_file(path: &Path) -> Result<(), StoreError> {
    private::judge_file(path).map_err(|refusal| store_error(path, refusal))
}

/// Opens a private file for reading and writing; a new file is its owner's only.
pub(super) fn open_file(path: &Path) -> Result<File, StoreError> {
    private::open_private(path).map_err(|refusal| store_error(path, refusal))
}

/// Opens a private file for reading; `None` if there is no file.
pub(super) fn open_file_to_read(path: &Path) -> Result<Option<File>, StoreError> {
    match private::open_private_to_read(path) {
        Ok(file) => Ok(Some(file)),
        Err(Unprotected::System(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(refusal) => Err(store_error(path, refusal)),
    }
}

fn store_error(path: &Path, refusal: Unprotected) -> StoreError {
    match refusal {
        Unprotected::System(error) => unusable(path, &error),
        Unprotected::Exposed(exposure) => StoreError::Exposed { place: path.to_owned(), exposure },
    }
}

/// Makes the error for a file or folder that cannot be used, in plain words.
pub(super) fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unusable { place: path.display().to_string(), why: explain(error) }
}

/// Describes in plain words why the system refuses to make or write a file or folder.
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
