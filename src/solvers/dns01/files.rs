//! Credentials that lie in files, where clouds put them for a process.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use super::credential::Credential;
use crate::disk;
use crate::solvers::SolveError;

/// Far above any credential.
const LARGEST: u64 = 1 << 20;
/// How long a file may take; a pipe may never end.
const LONGEST: Duration = Duration::from_secs(10);

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

/// Reads a file of credentials: a regular one, a link or a pipe, as whoever runs this has named it.
pub(super) async fn read(path: &str) -> io::Result<Zeroizing<String>> {
    let path = PathBuf::from(path);
    let reading = tokio::task::spawn_blocking(move || disk::read_given(&path, LARGEST));
    match tokio::time::timeout(LONGEST, reading).await {
        Ok(Ok(read)) => read.map(Zeroizing::new),
        Ok(Err(_)) => Err(io::Error::other("interrupted")),
        Err(_) => Err(io::Error::other(format!("nothing came within {} s", LONGEST.as_secs()))),
    }
}
