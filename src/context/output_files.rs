//! Files whose names a user gives: tried before any work is done, replaced as a whole, and written within a time limit.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;

use super::blocking::{Interrupted, Unfinished, aside};
use super::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk::{self, Durability, FileAccess, Folder, Links};
use crate::hints::invocation::quoted;
use crate::store::folder::explain;

/// Longest wait for file work, which a file system nearly always does at once.
const FILE_SYSTEM_TIMEOUT: Duration = Duration::from_mins(1);
/// Longest wait for file work after a signal: a pair of files should not be left half written.
pub const FILE_WORK_GRACE: Duration = Duration::from_secs(1);

/// Writes a file that anybody may read.
///
/// # Errors
/// Fails if the file cannot be written, or a signal came.
pub async fn write_text(path: &Path, text: &str, interrupted: &Interrupted) -> Result<(), Failure> {
    let (here, text) = (path.to_owned(), text.as_bytes().to_vec());
    on_disk(path, interrupted, move || {
        let replaced = || {
            let name =
                here.file_name().and_then(OsStr::to_str).ok_or(io::ErrorKind::InvalidInput)?;
            // A pipe or a terminal gets the text itself; no file is replaced.
            if fs::metadata(&here).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
                return fs::write(&here, &text);
            }
            let folder = Folder::open(here.parent().unwrap_or(&here), Links::All)?;
            if folder.holds(name, &text) {
                return Ok(());
            }
            let draft = draft_name(name);
            folder.replace(name, &draft, &text, FileAccess::Permitted, Durability::Lasting)
        };
        replaced().map_err(|error| fail(&here, &error))
    })
    .await
}

/// Checks that a file can be written, before any work is done for it; leaves no trace.
///
/// # Errors
/// Fails if the file cannot be written, or a signal came.
pub async fn expect_file(path: &Path, interrupted: &Interrupted) -> Result<(), Failure> {
    let here = path.to_owned();
    on_disk(path, interrupted, move || try_to_replace(&here)).await
}

fn try_to_replace(path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let tried = match fs::metadata(path) {
        Ok(there) if there.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        // A pipe or a terminal is not replaced.
        Ok(there) if !there.is_file() => Ok(()),
        Ok(_) | Err(_) => disk::trial(folder).map(drop),
    };
    tried.map_err(|error| {
        let failure = fail(path, &error);
        let is_absent = error.kind() == io::ErrorKind::NotFound;
        let hint = is_absent.then(|| {
            format!("make its folder first: mkdir -p {}", quoted(&folder.display().to_string()))
        });
        let failure = Failure { kind: FailureKind::Usage, ..failure };
        hint.into_iter().fold(failure, Failure::hint)
    })
}

/// Runs file work at a path; a file system that does not answer holds up neither a signal nor the command for ever.
pub async fn on_disk<T: Send + 'static>(
    place: &Path,
    interrupted: &Interrupted,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (kind, why) = match timeout(FILE_SYSTEM_TIMEOUT, aside(interrupted, FILE_WORK_GRACE, work))
        .await
    {
        Ok(Ok(done)) => return done,
        Ok(Err(Unfinished::Signal(kind))) => {
            (kind, "interrupted while its file system does not answer".to_owned())
        }
        Ok(Err(Unfinished::Panic)) => (FailureKind::Unexpected, "the program failed".to_owned()),
        Err(_) => {
            let why =
                format!("its file system has not answered for {} s", FILE_SYSTEM_TIMEOUT.as_secs());
            (FailureKind::Unexpected, why)
        }
    };
    Err(Failure::new(kind, format!("cannot write {}: {why}", place.display())))
}

/// Returns the name under which the new text of a file is written before the file is replaced.
pub fn draft_name(name: &str) -> String {
    format!("{name}.new")
}

/// Returns the failure to write a file.
pub fn fail(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write {}: {}", path.display(), explain(error));
    Failure::new(FailureKind::Unexpected, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_replaced_is_told_beforehand_and_a_good_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old.xml"), "old").unwrap();
        for good in ["old.xml", "new.xml"] {
            try_to_replace(&at(good)).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(at("old.xml")).unwrap(), "old");
        for (bad, why, hints) in [
            ("", "it is a folder, not a file", 0),
            ("old.xml/new.xml", "it is not a folder", 0),
            ("none/new.xml", "nothing can be made there", 1),
        ] {
            let failure = try_to_replace(&at(bad)).unwrap_err();
            assert_eq!((failure.kind, failure.hints.len()), (FailureKind::Usage, hints), "{bad}");
            assert!(failure.message.ends_with(why), "{failure:?}");
        }
    }
}
