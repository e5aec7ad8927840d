//! Credentials that lie in files, where clouds put them for a process.

use super::credential::Credential;
use crate::solvers::SolveError;

/// Reads a token from a file.
pub(super) async fn read_credential(path: &str) -> Result<Credential, SolveError> {
    let text = tokio::fs::read_to_string(path).await.map_err(|error| SolveError {
        what: format!("cannot read the token in {path}"),
        why: error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
        needs_person: true,
        hint: None,
        until: None,
    })?;
    let text = zeroize::Zeroizing::new(text);
    Ok(Credential::new(&text))
}
