//! Certificates and keys in files.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use zeroize::Zeroizing;

use crate::acme::chain::ChainFault;
use crate::acme::inspection::Material;
use crate::acme::{KeyError, PrivateKey};
use crate::context::blocking::{Interrupted, Unfinished, aside};
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk;
use crate::input::files::reason;
use crate::model::secret::{TLS_CRT, TLS_KEY};

/// Size limit of a file in bytes, far above any chain.
const MAX_FILE_BYTES: u64 = 5 << 20;
/// Argument that stands for standard input.
const STDIN: &str = "-";

/// Returns whether a path is an existing file, or a folder with a certificate.
pub fn is_there(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_dir() || path.join(TLS_CRT).exists())
}

/// Reads certificates and a key from a file, standard input, or a folder with `tls.crt` and `tls.key`.
///
/// # Errors
/// Fails when the input cannot be read or holds no certificate, or a signal interrupts.
pub async fn read(name: &str, interrupted: &Interrupted) -> Result<Material, Failure> {
    let path = PathBuf::from(name);
    let reading = move || if path == Path::new(STDIN) { read_stdin() } else { read_path(&path) };
    let found = unwrap_reading(aside(interrupted, Duration::ZERO, reading).await)?;
    let unusable = |why: String| Failure::usage(format!("cannot read {name}: {why}"));
    match found.map_err(unusable)? {
        found if found.certificates.is_empty() => {
            Err(unusable("there is a private key in it, and no certificate".to_owned()))
        }
        found => Ok(found),
    }
}

/// Reads a private key, PEM or DER.
///
/// # Errors
/// Fails when the file holds no usable key, or a signal interrupts.
pub async fn read_key(path: &Path, interrupted: &Interrupted) -> Result<PrivateKey, Failure> {
    let file = path.to_owned();
    let reading = move || {
        let bytes = Zeroizing::new(bytes_of(&file).map_err(|error| reason(&error))?);
        // If the file is neither, the PEM error is clearer.
        PrivateKey::from_pem(&bytes)
            .or_else(|why| PrivateKey::from_der(&bytes).map_err(|_| why.to_string()))
    };
    let key = unwrap_reading(aside(interrupted, Duration::ZERO, reading).await)?;
    key.map_err(|why| Failure::usage(format!("cannot use --key {}: {why}", path.display())))
}

/// Unwraps the result of reading in another thread, and converts a signal or a panic into a failure.
fn unwrap_reading<T>(ended: Result<T, Unfinished>) -> Result<T, Failure> {
    ended.map_err(|left| match left {
        Unfinished::Signal(kind) => Failure::silent(kind),
        Unfinished::Panic => Failure::new(FailureKind::Unexpected, "reading certificates panicked"),
    })
}

fn read_stdin() -> Result<Material, String> {
    material(disk::read_bytes(io::stdin().lock(), MAX_FILE_BYTES))
}

fn read_path(path: &Path) -> Result<Material, String> {
    if !path.is_dir() {
        return read_file(path);
    }
    let within = |name: &str, why: String| format!("{name}: {why}");
    let chain = read_file(&path.join(TLS_CRT)).map_err(|why| within(TLS_CRT, why))?;
    let key = path.join(TLS_KEY);
    if !key.exists() {
        return Ok(chain);
    }
    // A user who may not read the key may still see the certificate.
    let key = match read_file(&key) {
        Ok(found) => found.key,
        Err(why) => Some(Err(KeyError::Unreadable(within(TLS_KEY, why)))),
    };
    Ok(Material { key: key.or(chain.key), ..chain })
}

fn read_file(path: &Path) -> Result<Material, String> {
    material(bytes_of(path))
}

fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    disk::read_bytes(File::open(path)?, MAX_FILE_BYTES)
}

fn material(read: io::Result<Vec<u8>>) -> Result<Material, String> {
    let bytes = Zeroizing::new(read.map_err(|error| reason(&error))?);
    Material::find(&bytes).map_err(|fault| match fault {
        ChainFault::Empty => "there is no certificate in it".to_owned(),
        fault => fault.to_string(),
    })
}
