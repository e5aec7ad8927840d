//! Credentials in files, where clouds put credentials for a process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use super::credential::Credential;
use crate::disk;
use crate::solvers::SolveError;

/// Most bytes of a file, far above any credential.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Longest time to read a file; a pipe may never end.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads a token from a file.
pub(super) async fn read_credential(path: &str) -> Result<Credential, SolveError> {
    let text = read(path).await.map_err(|error| {
        SolveError::lasting(
            format!("cannot read the token in {path}"),
            error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
        )
    })?;
    Ok(Credential::new(&text))
}

/// Reads a file of credentials: a regular file, a link or a pipe, as named by the user who runs the program.
pub(super) async fn read(path: &str) -> io::Result<Zeroizing<String>> {
    let path = PathBuf::from(path);
    let reading = tokio::task::spawn_blocking(move || disk::read_given(&path, MAX_FILE_BYTES));
    match tokio::time::timeout(READ_TIMEOUT, reading).await {
        Ok(Ok(read)) => read.map(Zeroizing::new),
        Ok(Err(_)) => Err(io::Error::other("interrupted")),
        Err(_) => {
            Err(io::Error::other(format!("nothing came within {} s", READ_TIMEOUT.as_secs())))
        }
    }
}
