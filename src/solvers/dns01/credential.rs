//! Credentials of providers, read without outer white space and never printed; and credentials in the process's environment.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use zeroize::Zeroizing;

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
}
