//! The state folder: who may read it, and plain words for what goes wrong there.
//!
//! Account keys and keys of certificates are in it, so nothing is read or written there before it is clear whose it is. The folder
//! and its files belong to this user or root. The files are open to nobody else (0600); nobody else may write to the folder,
//! for whoever could would put files of theirs in the place of ours. Others may *look* into it (0755): a folder made by `mkdir`, a
//! bind mount, a cache of a CI runner or a share on NFS are like that, names and sizes are all that is to be seen, and what we make
//! ourselves has 0700. A group that may write is refused as everybody else is, but for one: on the volume of a Pod with `fsGroup`
//! kubelet opens folders and files to that group at each mount, however they were closed, so a group of this process that a folder
//! hands down (setgid) may write, as long as nobody else may. Links are followed above the folder, never in its place or in a file's. Whoever may rename a folder above
//! it may take the state away, but cannot have it used.

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

/// Makes the folder and those above it, for their owner only; one that is there must be private.
pub(super) fn make(folder: &Path) -> Result<(), StoreError> {
    private::make_private(folder).map_err(|refusal| refused(folder, refusal))
}

/// Fails unless a folder that is there is private.
pub(super) fn expect_private(folder: &Path) -> Result<(), StoreError> {
    private::judge_folder(folder).map_err(|refusal| refused(folder, refusal))
}

/// Fails unless a file is private, where it is there.
pub(super) fn expect_private_file(path: &Path) -> Result<(), StoreError> {
    private::judge_file(path).map_err(|refusal| refused(path, refusal))
}

/// Opens a private file for reading and writing; a new one is its owner's only.
pub(super) fn open_file(path: &Path) -> Result<File, StoreError> {
    private::open_private(path).map_err(|refusal| refused(path, refusal))
}

/// Opens a private file for reading; nothing where there is none.
pub(super) fn open_file_to_read(path: &Path) -> Result<Option<File>, StoreError> {
    match private::open_private_to_read(path) {
        Ok(file) => Ok(Some(file)),
        Err(Unprotected::System(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(refusal) => Err(refused(path, refusal)),
    }
}

fn refused(path: &Path, refusal: Unprotected) -> StoreError {
    match refusal {
        Unprotected::System(error) => unusable(path, &error),
        Unprotected::Exposed(exposure) => StoreError::Exposed { place: path.to_owned(), exposure },
    }
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
