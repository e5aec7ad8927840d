//! Keystores that a Certificate asks for beside its PEM files.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::common::SecretKeySelector;
use super::names::ObjectName;

/// Keystores of a Certificate (`spec.keystores`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keystores {
    /// Java's own format.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jks: Option<JksKeystore>,
    /// PKCS#12.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pkcs12: Option<Pkcs12Keystore>,
}

/// A keystore in Java's own format.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct JksKeystore {
    /// Whether the keystore is made.
    pub create: bool,
    /// Alias of the key; `certificate` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// Secret with the password; excludes `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<SecretKeySelector>,
    /// The password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
}

/// A keystore in the format of PKCS#12.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Pkcs12Keystore {
    /// Whether the keystore is made.
    pub create: bool,
    /// `LegacyRC2` (default), `LegacyDES`, `Modern2023` or `Modern2026`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub profile: String,
    /// Secret with the password; excludes `password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password_secret_ref: Option<SecretKeySelector>,
    /// The password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub password: Option<Password>,
}

/// A password; never printed.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Password(pub String);

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// A format of keystores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeystoreFormat {
    /// Java's own format.
    Jks,
    /// PKCS#12.
    Pkcs12,
}

impl KeystoreFormat {
    /// Both formats.
    pub const ALL: [Self; 2] = [Self::Jks, Self::Pkcs12];

    /// Returns the key of a Secret's data that holds the keystore.
    pub fn keystore_key(self) -> &'static str {
        match self {
            Self::Jks => "keystore.jks",
            Self::Pkcs12 => "keystore.p12",
        }
    }

    /// Returns the key of a Secret's data that holds the certificates of CAs, if the issuer names one.
    pub fn truststore_key(self) -> &'static str {
        match self {
            Self::Jks => "truststore.jks",
            Self::Pkcs12 => "truststore.p12",
        }
    }

    /// Returns the field below `spec.keystores` that asks for the format.
    pub fn field(self) -> &'static str {
        match self {
            Self::Jks => "jks",
            Self::Pkcs12 => "pkcs12",
        }
    }
}

/// Name of the format in cert-manager's events.
impl fmt::Display for KeystoreFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jks => "JKS",
            Self::Pkcs12 => "PKCS12",
        })
    }
}

/// Place of a keystore's password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordPlace<'a> {
    /// In a Secret.
    Secret(&'a SecretKeySelector),
    /// In the Certificate.
    Written(&'a str),
    /// Nowhere.
    Nowhere,
}

/// Reasons why a keystore cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKeystore {
    /// The Secret with the keystore's password does not exist.
    #[error("{format} keystore password Secret \"{}\" not found", place.name)]
    SecretNotFound {
        /// Format of the keystore.
        format: KeystoreFormat,
        /// The Secret.
        place: ObjectName,
        /// Key under which the password should be.
        entry: String,
    },
    /// The Secret does not have the named key, or has no data under the key.
    #[error("{format} keystore password Secret \"{}\" contains no data for key \"{entry}\"", place.name)]
    NoEntry {
        /// Format of the keystore.
        format: KeystoreFormat,
        /// The Secret.
        place: ObjectName,
        /// The key.
        entry: String,
    },
    /// The data under the named key is no text.
    #[error("{format} keystore password Secret \"{}\" has no text under key \"{entry}\"", place.name)]
    NoText {
        /// Format of the keystore.
        format: KeystoreFormat,
        /// The Secret.
        place: ObjectName,
        /// The key.
        entry: String,
    },
    /// The Certificate names no password.
    #[error("either passwordSecretRef or password must be set for {0} keystore")]
    NoPassword(KeystoreFormat),
    /// The keystore cannot be encoded.
    #[error("error encoding {0} keystore: {1}")]
    Unwritable(KeystoreFormat, String),
}

impl Keystores {
    /// Returns the formats that are to be made.
    pub fn wanted(&self) -> impl Iterator<Item = KeystoreFormat> + '_ {
        KeystoreFormat::ALL.into_iter().filter(|format| match format {
            KeystoreFormat::Jks => self.jks.as_ref().is_some_and(|jks| jks.create),
            KeystoreFormat::Pkcs12 => self.pkcs12.as_ref().is_some_and(|pkcs12| pkcs12.create),
        })
    }

    /// Returns the place of a format's password; a Secret counts before a written password.
    pub fn password(&self, format: KeystoreFormat) -> PasswordPlace<'_> {
        let (secret, written) = match format {
            KeystoreFormat::Jks => {
                let jks = self.jks.as_ref();
                (
                    jks.and_then(|jks| jks.password_secret_ref.as_ref()),
                    jks.and_then(|jks| jks.password.as_ref()),
                )
            }
            KeystoreFormat::Pkcs12 => {
                let pkcs12 = self.pkcs12.as_ref();
                (
                    pkcs12.and_then(|pkcs12| pkcs12.password_secret_ref.as_ref()),
                    pkcs12.and_then(|pkcs12| pkcs12.password.as_ref()),
                )
            }
        };
        match (secret.filter(|secret| !secret.name.is_empty()), written) {
            (Some(secret), _) => PasswordPlace::Secret(secret),
            (None, Some(Password(text))) if !text.is_empty() => PasswordPlace::Written(text),
            (None, _) => PasswordPlace::Nowhere,
        }
    }

    /// Returns the Secrets that hold passwords of keystores to be made.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretKeySelector> {
        self.wanted().filter_map(|format| match self.password(format) {
            PasswordPlace::Secret(secret) => Some(secret),
            PasswordPlace::Written(_) | PasswordPlace::Nowhere => None,
        })
    }

    /// Returns the alias of the key in the JKS keystore.
    pub fn alias(&self) -> &str {
        let alias = self.jks.as_ref().and_then(|jks| jks.alias.as_deref());
        alias.unwrap_or("certificate")
    }

    /// Returns the profile of PKCS#12; empty if none is named.
    pub fn profile(&self) -> &str {
        self.pkcs12.as_ref().map_or("", |pkcs12| &pkcs12.profile)
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "data reads better without borrows")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Checks the place of the only keystore's password, and the number of Secrets that are needed.
    fn check(jks: Value, expected: PasswordPlace<'_>, secrets: usize) {
        let keystores: Keystores = serde_json::from_value(json!({"jks": jks})).unwrap();
        assert_eq!(keystores.password(KeystoreFormat::Jks), expected);
        assert_eq!(keystores.secrets().count(), secrets);
    }

    #[test]
    fn a_password_is_in_a_secret_or_written() {
        let secret = SecretKeySelector { name: "pw".into(), key: "k".into() };
        let reference = json!({"name": "pw", "key": "k"});
        let asks = |create: bool, more: Value| {
            let mut jks = json!({"create": create});
            jks.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            jks
        };
        let by_secret = json!({"passwordSecretRef": reference});
        check(asks(true, by_secret.clone()), PasswordPlace::Secret(&secret), 1);
        check(asks(false, by_secret), PasswordPlace::Secret(&secret), 0);
        check(asks(true, json!({"password": "p"})), PasswordPlace::Written("p"), 0);
        let both = json!({"passwordSecretRef": {"name": ""}, "password": "p"});
        check(asks(true, both), PasswordPlace::Written("p"), 0);
        for nothing in [json!({}), json!({"password": ""})] {
            check(asks(true, nothing), PasswordPlace::Nowhere, 0);
        }
    }

    #[test]
    fn a_written_password_does_not_print() {
        let keystores: Keystores =
            serde_json::from_value(json!({"pkcs12": {"create": true, "password": "p4ss"}}))
                .unwrap();
        assert!(!format!("{keystores:?}").contains("p4ss"));
        assert_eq!(serde_json::to_value(&keystores).unwrap()["pkcs12"]["password"], "p4ss");
    }
}
