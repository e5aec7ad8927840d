//! Credentials of providers, read without outer white space and never printed: in the process's environment, in files where
//! clouds put them for a process, and in texts of others, where they are hidden.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::text::encoded;
use crate::disk;
use crate::solvers::SolveError;

/// Most bytes of a file of credentials, far above any credential.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Longest time to read a file of credentials; a pipe may never end.
const READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Fewest bytes of a credential; a shorter text is no credential, and hiding it would tear holes into words.
const MIN_CREDENTIAL_BYTES: usize = 4;
/// Text in place of a credential.
const MASK: &str = "***";

/// A password, key or token.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Credential(Zeroizing<String>);

impl Credential {
    /// Takes a text; a line break at the end, as editors and `echo` leave in Secrets, is not part of the credential.
    pub fn new(text: &str) -> Self {
        Self(Zeroizing::new(text.trim().to_owned()))
    }

    /// Returns the text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether the credential is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Credential {
    fn from(text: String) -> Self {
        Self::new(&Zeroizing::new(text))
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credential(..)")
    }
}

/// Surroundings of the process: variables that name credentials or their sources. Present only if an Issuer may use them.
#[derive(Clone, Default)]
pub struct Ambient(BTreeMap<String, Credential>);

impl Ambient {
    /// Reads the process's environment, as far as the clouds' own tools would read it.
    pub fn of_process() -> Self {
        let clouds = ["AWS_", "AZURE_", "IDENTITY_", "GOOGLE_", "GCE_", "CLOUDSDK_", "HOME"];
        let is_ours = |name: &str| clouds.iter().any(|start| name.starts_with(start));
        let all = std::env::vars_os();
        let texts = all.filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)));
        texts.filter(|(name, _)| is_ours(name)).collect()
    }

    /// Returns names and values, which distinguish one set of surroundings from another.
    pub(super) fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|(name, value)| [name.as_str(), value.expose()])
    }

    /// Returns a variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(Credential::expose).filter(|value| !value.is_empty())
    }
}

impl<N: Into<String>, V: AsRef<str>> FromIterator<(N, V)> for Ambient {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let read = |(name, value): (N, V)| (name.into(), Credential::new(value.as_ref()));
        Self(variables.into_iter().map(read).collect())
    }
}

impl fmt::Debug for Ambient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// Reads a token from a file.
pub(super) async fn read_credential(path: &str) -> Result<Credential, SolveError> {
    let text = read_file(path).await.map_err(|error| {
        SolveError::lasting(
            format!("cannot read the token in {path}"),
            error.to_string().split(" (os error").next().unwrap_or_default().to_owned(),
        )
    })?;
    Ok(Credential::new(&text))
}

/// Reads a file of credentials: a regular file, a link or a pipe, as named by the user who runs the program.
pub(super) async fn read_file(path: &str) -> io::Result<Zeroizing<String>> {
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

/// Returns the text of another program without these credentials: as they are, as URLs encode them and as Basic
/// authentication does; of a credential with several lines, each line is hidden.
pub(super) fn without<'a>(text: &str, hidden: impl Iterator<Item = &'a Credential>) -> String {
    let mut forms: Vec<Zeroizing<String>> = Vec::new();
    for credential in hidden {
        for line in credential.expose().lines().chain([credential.expose()]) {
            let line = line.trim();
            if line.len() >= MIN_CREDENTIAL_BYTES {
                forms.push(Zeroizing::new(line.to_owned()));
                forms.push(Zeroizing::new(encoded(line)));
                let in_base64 = BASE64_STANDARD.encode(line);
                forms.push(Zeroizing::new(in_base64.trim_end_matches('=').to_owned()));
            }
        }
    }
    // Longest first: one may hold another.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.iter().fold(text.to_owned(), |text, form| text.replace(form.as_str(), MASK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_around_a_credential_is_not_part_of_it() {
        assert_eq!(Credential::new(" token\r\n").expose(), "token");
        assert!(Credential::new("\n").is_empty());
    }

    #[test]
    fn neither_kind_prints_what_it_holds() {
        let ambient = Ambient::from_iter([("AWS_SECRET_ACCESS_KEY", "hush"), ("AWS_REGION", "")]);
        let printed = format!("{:?} {ambient:?}", Credential::new("hush"));
        assert!(
            !printed.contains("hush") && printed.contains("AWS_SECRET_ACCESS_KEY"),
            "{printed}"
        );
        assert_eq!(ambient.variable("AWS_SECRET_ACCESS_KEY"), Some("hush"));
        assert_eq!(ambient.variable("AWS_REGION"), None);
    }

    #[test]
    fn credentials_are_hidden_however_they_are_written() {
        let hidden = ["hush hush", "ab", "-----BEGIN KEY-----\nMIIabc\nMIIdef\n-----END KEY-----"];
        let hidden = hidden.map(Credential::new);
        for (text, expected) in [
            ("token=hush%20hush&x=ab", "token=***&x=ab"),
            ("Basic aHVzaCBodXNo", "Basic ***"),
            ("said \"hush hush\"", "said \"***\""),
            ("key MIIabc is bad", "key *** is bad"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without(text, hidden.iter()), expected);
        }
    }
}
