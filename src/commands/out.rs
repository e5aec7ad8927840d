//! Results on disk: `DIR/SECRETNAME/tls.crt` and `tls.key`, each replaced by rename, the key first.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::failure::{Failure, Kind};
use crate::model::Secret;
use crate::store::folder::explain;

/// Where a certificate and its key were written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The chain, leaf first.
    pub certificate: PathBuf,
    /// The private key, readable by its owner only.
    pub key: PathBuf,
}

/// Writes certificate and key of a Secret below `folder`; what is there already and equal is left alone.
///
/// # Errors
/// Fails when the Secret holds no pair, or a file cannot be written; the other file is then as it was.
pub fn write(folder: &Path, secret: &Secret) -> Result<Written, Failure> {
    let name = &secret.metadata.name;
    let (Some(certificate), Some(key)) = (secret.value("tls.crt"), secret.value("tls.key")) else {
        let message = format!("cannot write {}: Secret {name} holds no pair", folder.display());
        return Err(Failure::new(Kind::Unexpected, message));
    };
    let folder = folder.join(name);
    let fail = |path: &Path, error: &io::Error| {
        let message = format!("cannot write {}: {}", path.display(), explain(error));
        Failure::new(Kind::Unexpected, message)
    };
    DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|e| fail(&folder, &e))?;
    let _turn = turn(&folder);
    let written = Written { certificate: folder.join("tls.crt"), key: folder.join("tls.key") };
    replace(&written.key, key, 0o600).map_err(|e| fail(&written.key, &e))?;
    replace(&written.certificate, certificate, 0o644)
        .map_err(|e| fail(&written.certificate, &e))?;
    Ok(written)
}

/// Writes a Secret as a manifest.
///
/// # Errors
/// Fails when the file cannot be written.
pub fn write_manifest(folder: &Path, secret: &Secret, yaml: &str) -> Result<PathBuf, Failure> {
    let path = folder.join(&secret.metadata.name).join("secret.yaml");
    replace(&path, yaml.as_bytes(), 0o600).map_err(|error| {
        let message = format!("cannot write {}: {}", path.display(), explain(&error));
        Failure::new(Kind::Unexpected, message)
    })?;
    Ok(path)
}

/// Writes a file that anybody may read.
///
/// # Errors
/// Fails when it cannot be written.
pub fn write_text(path: &Path, text: &str) -> Result<(), Failure> {
    replace(path, text.as_bytes(), 0o644).map_err(|error| {
        let message = format!("cannot write {}: {}", path.display(), explain(&error));
        Failure::new(Kind::Unexpected, message)
    })
}

/// Waits until nobody else writes to a folder, such as `run` beside a command that watches it; where the file system knows no
/// locks, the writers are few.
fn turn(folder: &Path) -> Option<File> {
    let folder = File::open(folder).ok()?;
    folder.lock().ok()?;
    Some(folder)
}

/// Replaces a file as a whole: readers see the old text or the new one, even after a power cut.
fn replace(path: &Path, text: &[u8], mode: u32) -> io::Result<()> {
    if fs::read(path).is_ok_and(|old| old == text) {
        return Ok(());
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&beside)?;
    let written = file.write_all(text).and_then(|()| file.sync_all());
    let renamed = written.and_then(|()| fs::rename(&beside, path));
    if renamed.is_err() {
        // Nothing half-written stays behind.
        fs::remove_file(&beside).ok();
    }
    renamed?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::model::{Blob, Metadata};

    fn secret(certificate: &str) -> Secret {
        let data = [("tls.crt", certificate), ("tls.key", "KEY")];
        Secret {
            metadata: Metadata { name: "web-tls".to_owned(), ..Metadata::default() },
            data: data.map(|(k, v)| (k.to_owned(), Blob(v.as_bytes().to_vec()))).into(),
            ..Secret::default()
        }
    }

    #[test]
    fn certificate_and_key_are_replaced_as_a_whole_and_the_key_is_ours_alone() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &secret("OLD")).unwrap();
        let written = write(folder.path(), &secret("NEW")).unwrap();
        assert_eq!(fs::read_to_string(&written.certificate).unwrap(), "NEW");
        assert_eq!(fs::metadata(&written.key).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path().join("web-tls")).unwrap().count(), 2);
    }

    #[test]
    fn a_secret_without_a_pair_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        assert!(write(folder.path(), &Secret::default()).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
