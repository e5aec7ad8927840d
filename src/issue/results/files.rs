//! Results on disk: `DIR/SECRETNAME/tls.crt` and `tls.key`, and the other forms that the Secret has. New files are
//! written beside the old files, then replace them by rename.
//!
//! The key is replaced first, and only when both files are complete: a full disk must not leave a key that does not fit
//! its certificate. A key is 0600 at every replacement, whatever mode or group the old key was given, because no secret
//! may become readable by an update; other users get copies (`examples/systemd`).

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::folder_turn::{WriteWait, wait_for_turn};
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::context::output_files::{draft_name, fail, on_disk};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk::{self, Draft, Durability, FileAccess, Folder, Links};
use crate::model::Secret;
use crate::store::folder::explain;

/// The files below `DIR/SECRETNAME`.
const KEY: &str = "tls.key";
const CERTIFICATE: &str = "tls.crt";
const MANIFEST: &str = "secret.yaml";
/// Other forms of key and chain that a Secret may have, and who may read them.
const OTHER_FORMS: [(&str, FileAccess); 7] = [
    ("key.der", FileAccess::Owner),
    ("tls-combined.pem", FileAccess::Owner),
    ("keystore.jks", FileAccess::Owner),
    ("keystore.p12", FileAccess::Owner),
    ("truststore.jks", FileAccess::Permitted),
    ("truststore.p12", FileAccess::Permitted),
    ("ca.crt", FileAccess::Permitted),
];

/// Paths to which a certificate and its key were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The chain, leaf first.
    pub certificate: PathBuf,
    /// The private key, readable by its owner only; `None` if another program has the key.
    pub key: Option<PathBuf>,
    /// The Secret as a manifest, if asked for.
    pub manifest: Option<PathBuf>,
    /// Files of other forms that the Secret no longer has: these files stay, because another program may use them.
    pub outdated: Vec<PathBuf>,
}

impl Written {
    /// Returns a line for each file that is no longer kept up to date, which says that the file stays.
    pub fn outdated_lines(&self) -> impl Iterator<Item = String> {
        self.outdated.iter().map(|path| {
            format!(
                "{} is no longer asked for: it stays as it is, and may be deleted",
                path.display()
            )
        })
    }
}

/// Checks that files can be written below `folder`, before anything is spent; leaves nothing there.
///
/// # Errors
/// Fails when no file can be written, or a signal came.
pub async fn expect_writable(folder: &Path, interrupted: &Interrupted) -> Result<(), Failure> {
    let here = folder.to_owned();
    on_disk(folder, interrupted, move || try_to_write(&here)).await
}

fn try_to_write(folder: &Path) -> Result<(), Failure> {
    let there = folder.ancestors().find(|folder| folder.as_os_str().is_empty() || folder.exists());
    let there =
        there.filter(|there| !there.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    disk::trial(there).map(drop).map_err(|error| {
        let message = format!("cannot write to {}: {}", folder.display(), explain(&error));
        Failure::usage(message).hint("name a folder that this user may write to: --out DIR")
    })
}

/// Writes certificate and key of a Secret below `folder`, the other forms that the Secret has, and the Secret as a manifest
/// if given; equal files are left alone. Links that others have put there are not followed, and pipes not waited for.
///
/// # Errors
/// Fails when the Secret lacks certificate or key, another process keeps the folder locked, a file cannot be written, or a
/// signal came. The files are then as before, unless the key is replaced and the certificate cannot be; the failure says so.
pub async fn write(
    folder: &Path,
    secret: &Secret,
    manifest: Option<String>,
    patience: &WriteWait,
) -> Result<Written, Failure> {
    let name = &secret.metadata.name;
    let (Some(certificate), Some(key)) = (secret.value("tls.crt"), secret.value("tls.key")) else {
        let message = format!("cannot write {}: Secret {name} holds no pair", folder.display());
        return Err(Failure::new(FailureKind::Unexpected, message));
    };
    let path = folder.join(name);
    let mut files = vec![Content { name: KEY, text: key.to_vec(), readers: FileAccess::Owner }];
    let manifest_path = manifest.as_ref().map(|_| path.join(MANIFEST));
    let manifest = manifest.map(String::into_bytes);
    files.extend(manifest.map(|text| Content { name: MANIFEST, text, readers: FileAccess::Owner }));
    let form =
        |(name, readers)| Some(Content { name, text: secret.value(name)?.to_vec(), readers });
    files.extend(OTHER_FORMS.into_iter().filter_map(form));
    // Last: a program that waits for a new certificate finds its key there already.
    let text = certificate.to_vec();
    files.push(Content { name: CERTIFICATE, text, readers: FileAccess::Permitted });
    let outdated = write_files(&path, files, patience).await?;
    let (certificate, key) = (path.join(CERTIFICATE), Some(path.join(KEY)));
    Ok(Written { certificate, key, manifest: manifest_path, outdated })
}

/// Writes a chain whose key another program has below `folder`, as [`write()`] does; a key in the folder belongs to another
/// certificate, and nothing is written beside that key.
///
/// # Errors
/// Fails when there is a key, another process keeps the folder locked, the file cannot be written, or a signal came.
pub async fn write_chain(
    folder: &Path,
    name: &str,
    chain: &[u8],
    patience: &WriteWait,
) -> Result<Written, Failure> {
    expect_no_key(folder, name, patience.interrupted()).await?;
    let path = folder.join(name);
    let (text, readers) = (chain.to_vec(), FileAccess::Permitted);
    let file = Content { name: CERTIFICATE, text, readers };
    let outdated = write_files(&path, vec![file], patience).await?;
    Ok(Written { certificate: path.join(CERTIFICATE), key: None, manifest: None, outdated })
}

/// Checks that no key of ours is in the folder to which only a chain is to be written.
///
/// # Errors
/// Fails when there is a key, or a signal came.
pub async fn expect_no_key(
    folder: &Path,
    name: &str,
    interrupted: &Interrupted,
) -> Result<(), Failure> {
    let path = folder.join(name);
    let here = path.join(KEY);
    if on_disk(&path, interrupted, move || Ok(here.exists())).await? {
        let chain = path.join(CERTIFICATE);
        let message =
            format!("cannot write {}: there is {KEY}, of another certificate", chain.display());
        return Err(Failure::usage(message).hint("write elsewhere: --out DIR"));
    }
    Ok(())
}

/// Writes files to a folder, and returns the files of other forms there that are no longer asked for.
async fn write_files(
    path: &Path,
    files: Vec<Content>,
    patience: &WriteWait,
) -> Result<Vec<PathBuf>, Failure> {
    let here = path.to_owned();
    let folder = in_turn(path, patience, move || open(&here)).await?;
    wait_for_turn(path, &folder, patience).await?;
    let here = path.to_owned();
    let replaced = move || {
        replace(&here, &folder, &files)?;
        Ok(outdated(&here, &files))
    };
    in_turn(path, patience, replaced).await
}

/// Runs `work` on disk as soon as one of the threads for folders is free.
async fn in_turn<T: Send + 'static>(
    place: &Path,
    patience: &WriteWait,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let _thread = patience.thread().await;
    on_disk(place, patience.interrupted(), work).await
}

/// Makes the folder of a Secret, and opens it.
fn open(path: &Path) -> Result<Folder, Failure> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.and_then(|()| Folder::open(path, Links::Trusted)).map_err(|error| fail(path, &error))
}

/// A file to be written.
struct Content {
    name: &'static str,
    text: Vec<u8>,
    readers: FileAccess,
}

/// Replaces the files of a folder, the key first; equal files are left alone.
fn replace(path: &Path, folder: &Folder, files: &[Content]) -> Result<(), Failure> {
    let drafts = files.iter().map(|file| draft(path, folder, file));
    let drafts: Vec<_> = drafts.collect::<Result<_, _>>()?;
    take_places(path, folder, drafts.into_iter().flatten())
}

/// Returns the files of other forms in a folder that are not among `files` any more.
fn outdated(path: &Path, files: &[Content]) -> Vec<PathBuf> {
    let others = OTHER_FORMS.iter().filter(|(form, _)| files.iter().all(|file| file.name != *form));
    let others = others.map(|(form, _)| path.join(form));
    others.filter(|path| fs::symlink_metadata(path).is_ok_and(|it| it.is_file())).collect()
}

/// Writes the new text of a file beside it, unless the file has that text already.
fn draft<'a>(
    path: &Path,
    folder: &'a Folder,
    file: &Content,
) -> Result<Option<(&'static str, Draft<'a>)>, Failure> {
    let Content { name, text, readers } = file;
    if folder.holds(name, text) {
        return Ok(None);
    }
    // A folder is not replaced by a file; the rename would fail when the key has been replaced already.
    if folder.has_folder(name) {
        return Err(fail(&path.join(name), &io::ErrorKind::IsADirectory.into()));
    }
    let draft = draft_name(name);
    match Draft::write(folder, (name, &draft), text, *readers, Durability::Lasting) {
        Ok(written) => Ok(Some((name, written))),
        Err(error) => Err(fail(&path.join(draft), &error)),
    }
}

/// Replaces files by their drafts.
fn take_places<'a>(
    path: &Path,
    folder: &Folder,
    drafts: impl Iterator<Item = (&'static str, Draft<'a>)>,
) -> Result<(), Failure> {
    let mut is_new_key = false;
    let mut is_new = false;
    for (name, draft) in drafts {
        draft.take_place().map_err(|error| {
            let mut failure = fail(&path.join(name), &error);
            if is_new_key {
                failure.message.push_str("; the new key beside it does not fit the certificate");
            }
            failure
        })?;
        is_new = true;
        is_new_key |= name == KEY;
    }
    if is_new { folder.keep_names().map_err(|error| fail(path, &error)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::PermissionsExt;

    use jiff::Timestamp;
    use tokio::time::Instant;

    use super::*;
    use crate::model::{Blob, Metadata};

    fn secret(certificate: &str) -> Secret {
        let key = format!("KEY OF {certificate}");
        let data = [("tls.crt", certificate), ("tls.key", &key)];
        Secret {
            metadata: Metadata { name: "web-tls".to_owned(), ..Metadata::default() },
            data: data.map(|(k, v)| (k.to_owned(), Blob(v.as_bytes().to_vec()))).into(),
            ..Secret::default()
        }
    }

    async fn write(folder: &Path, secret: &Secret) -> Result<Written, Failure> {
        super::write(folder, secret, None, &WriteWait::new(&Interrupted::default())).await
    }

    #[tokio::test]
    async fn certificate_and_key_are_replaced_as_a_whole_and_the_key_is_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &secret("OLD")).await.unwrap();
        let written = write(folder.path(), &secret("NEW")).await.unwrap();
        assert_eq!(fs::read_to_string(&written.certificate).unwrap(), "NEW");
        assert_eq!(
            fs::metadata(written.key.as_ref().unwrap()).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read_dir(folder.path().join("web-tls")).unwrap().count(), 2);
    }

    /// Every file of a pair's folder, and what is in it; folders have nothing.
    fn files(folder: &Path) -> Vec<(String, String)> {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| {
                let name = entry.file_name().into_string().unwrap();
                (name, fs::read_to_string(entry.path()).unwrap_or_default())
            })
            .collect();
        files.sort();
        files
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_is_told_beforehand_and_a_good_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        for good in ["", "etc/ssl"] {
            try_to_write(&folder.path().join(good)).unwrap();
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        fs::write(folder.path().join("file"), "").unwrap();
        for bad in ["file", "file/below"] {
            let bad = folder.path().join(bad);
            let failure = try_to_write(&bad).unwrap_err();
            let expected = format!("cannot write to {}: it is not a folder", bad.display());
            assert_eq!((failure.kind, failure.message), (FailureKind::Usage, expected));
        }
    }

    #[tokio::test]
    async fn a_pair_of_which_one_file_cannot_be_written_stays_as_it_was() {
        for obstacle in ["tls.key", "tls.crt", "tls.key.new", "tls.crt.new"] {
            let out = tempfile::tempdir().unwrap();
            let folder = out.path().join("web-tls");
            write(out.path(), &secret("OLD")).await.unwrap();
            // A folder gives way to no file, not even for root.
            let obstacle = folder.join(obstacle);
            fs::remove_file(&obstacle).ok();
            fs::create_dir(&obstacle).unwrap();
            let before = files(&folder);
            let failure = write(out.path(), &secret("NEW")).await.unwrap_err();
            let told = format!("cannot write {}: it is a folder, not a file", obstacle.display());
            assert_eq!(failure.message, told);
            assert_eq!(files(&folder), before);
            fs::remove_dir(&obstacle).unwrap();
            write(out.path(), &secret("NEW")).await.unwrap();
            let pair = [("tls.crt", "NEW"), ("tls.key", "KEY OF NEW")];
            assert_eq!(files(&folder), pair.map(|(name, text)| (name.into(), text.into())));
        }
    }

    #[tokio::test]
    async fn a_pair_that_is_broken_half_way_is_called_so_and_put_right_later() {
        let out = tempfile::tempdir().unwrap();
        let written = write(out.path(), &secret("OLD")).await.unwrap();
        let path = out.path().join("web-tls");
        let folder = open(&path).unwrap();
        let drafts = [(KEY, "KEY OF NEW"), (CERTIFICATE, "NEW")].map(|(name, text)| {
            let file = Content { name, text: text.into(), readers: FileAccess::Owner };
            draft(&path, &folder, &file).unwrap().unwrap()
        });
        fs::remove_file(&written.certificate).unwrap();
        fs::create_dir(&written.certificate).unwrap();
        let failure = take_places(&path, &folder, drafts.into_iter()).unwrap_err();
        let told = format!(
            "cannot write {}: it is a folder, not a file; the new key beside it does not fit the certificate",
            written.certificate.display()
        );
        assert_eq!(failure.message, told);
        fs::remove_dir(&written.certificate).unwrap();
        assert_eq!(files(&path), [("tls.key".to_owned(), "KEY OF NEW".to_owned())]);
        write(out.path(), &secret("NEW")).await.unwrap();
        assert_eq!(fs::read_to_string(&written.certificate).unwrap(), "NEW");
    }

    #[tokio::test]
    async fn a_secret_without_a_pair_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), &Secret::default()).await.is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// Writes to a folder that a reader has locked; time passes at once. Returns the failure.
    async fn refused(patience: &WriteWait) -> (FailureKind, String) {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("web-tls");
        fs::create_dir(&results).unwrap();
        let theirs = File::open(&results).unwrap();
        theirs.lock_shared().unwrap();
        let failure =
            super::write(folder.path(), &secret("NEW"), None, patience).await.unwrap_err();
        assert_eq!(fs::read_dir(&results).unwrap().count(), 0);
        // A child process that another test has just begun may have its descriptor.
        theirs.unlock().unwrap();
        super::write(folder.path(), &secret("NEW"), None, patience).await.unwrap();
        let told = failure.message.replace(&folder.path().display().to_string(), "OUT");
        let us = format!("process {}", std::process::id());
        (failure.kind, told.replace(&us, "another process"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_folder_that_stays_locked_is_named() {
        let told = "cannot write OUT/web-tls: another process holds a lock on that folder";
        let interrupted = Interrupted::default();
        for (patience, seconds) in [
            (WriteWait::new(&interrupted), 10),
            (WriteWait::until(Timestamp::MAX, &interrupted), 10),
            (WriteWait::until(Timestamp::MIN, &interrupted), 1),
        ] {
            let begun = Instant::now();
            assert_eq!(refused(&patience).await, (FailureKind::Unexpected, told.to_owned()));
            assert_eq!(begun.elapsed().as_secs(), seconds);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_signal_ends_the_wait_for_a_locked_folder() {
        let interrupted = Interrupted::default();
        interrupted.by_system.cancel();
        let told = "cannot write OUT/web-tls: interrupted while another process holds a lock on that folder";
        let patience = WriteWait::new(&interrupted);
        assert_eq!(refused(&patience).await, (FailureKind::Terminated, told.to_owned()));
    }
}
