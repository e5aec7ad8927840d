//! Keystores of a Secret: written under their passwords, and checked against the spec.

use std::collections::BTreeMap;

use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::acme::PrivateKey;
use crate::keystores::pkcs12::Profile;
use crate::keystores::{Contents, jks, pkcs12};
use crate::model::keystore::{KeystoreFormat, Keystores, NoKeystore, PasswordPlace};
use crate::model::secret::{CA_CRT, TLS_CRT, TLS_KEY};
use crate::model::{Blob, Certificate, ObjectName, Record, Secret, SecretKeySelector};
use crate::reconcile::facts::KeystoreFacts;
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Passwords of the keystores that a Certificate asks for, or why there is none.
#[derive(Debug, Default)]
pub struct Passwords(BTreeMap<KeystoreFormat, Result<Zeroizing<String>, NoKeystore>>);

impl Passwords {
    /// Reads the passwords; a Certificate without keystores costs nothing.
    ///
    /// # Errors
    /// Fails if the store does.
    pub async fn read(
        secrets: &Resources<Secret>,
        certificate: &Certificate,
    ) -> Result<Self, StoreError> {
        let mut passwords = Self::default();
        let Some(keystores) = &certificate.spec.keystores else { return Ok(passwords) };
        for format in keystores.wanted() {
            let password = match keystores.password(format) {
                PasswordPlace::Written(text) => Ok(Zeroizing::new(text.to_owned())),
                PasswordPlace::Nowhere => Err(NoKeystore::NoPassword(format)),
                PasswordPlace::Secret(SecretKeySelector { name, key }) => {
                    let place = ObjectName::new(&certificate.metadata.namespace, name);
                    let secret = secrets.get_known(&place).await?;
                    password_in(secret.as_ref(), format, place, key.clone())
                }
            };
            passwords.0.insert(format, password);
        }
        Ok(passwords)
    }

    fn of(&self, format: KeystoreFormat) -> Result<&str, NoKeystore> {
        match self.0.get(&format) {
            Some(Ok(password)) => Ok(password),
            Some(Err(why)) => Err(why.clone()),
            None => Err(NoKeystore::NoPassword(format)),
        }
    }
}

/// Returns the password of a keystore from a Secret.
///
/// # Errors
/// Fails if the Secret does not exist, or has no such text under `entry`.
pub fn password_in(
    secret: Option<&Secret>,
    format: KeystoreFormat,
    place: ObjectName,
    entry: String,
) -> Result<Zeroizing<String>, NoKeystore> {
    let Some(secret) = secret else {
        return Err(NoKeystore::SecretNotFound { format, place, entry });
    };
    let Some(value) = secret.value(&entry).filter(|value| !value.is_empty()) else {
        return Err(NoKeystore::NoEntry { format, place, entry });
    };
    match std::str::from_utf8(value) {
        Ok(text) => Ok(Zeroizing::new(text.to_owned())),
        Err(_) => Err(NoKeystore::NoText { format, place, entry }),
    }
}

/// Returns the Secrets that a Certificate, given as stored, names for passwords.
pub(super) fn password_secrets(certificate: &Record) -> impl Iterator<Item = ObjectName> + '_ {
    let namespace = &certificate.key.name.namespace;
    let fields = KeystoreFormat::ALL.map(KeystoreFormat::field);
    let at = |field| format!("/spec/keystores/{field}/passwordSecretRef/name");
    let names = fields.into_iter().map(move |field| certificate.text(&at(field)));
    names.filter(|name| !name.is_empty()).map(move |name| ObjectName::new(namespace, name))
}

/// Puts the keystores that are asked for beside key and chain, and removes all others.
///
/// # Errors
/// Fails if a keystore has no password or cannot be encoded; the data may then hold some keystores.
pub(super) fn put(
    data: &mut BTreeMap<String, Blob>,
    keystores: Option<&Keystores>,
    passwords: &Passwords,
    created: Timestamp,
) -> Result<(), NoKeystore> {
    for format in KeystoreFormat::ALL {
        data.remove(format.keystore_key());
        data.remove(format.truststore_key());
    }
    let Some(keystores) = keystores else { return Ok(()) };
    for format in keystores.wanted() {
        let password = passwords.of(format)?;
        let unwritable = |why: String| NoKeystore::Unwritable(format, why);
        let value = |key: &str| data.get(key).map_or(&[][..], |blob| &blob.0);
        let key = PrivateKey::from_pem(value(TLS_KEY)).map_err(|e| unwritable(e.to_string()))?;
        let (chain, authorities) = (certificates(value(TLS_CRT)), certificates(value(CA_CRT)));
        let contents = Contents { key: key.pkcs8(), chain: &chain, authorities: &authorities };
        let (keystore, truststore) = match format {
            KeystoreFormat::Jks => (
                jks::keystore(&contents, keystores.alias(), password, created),
                jks::truststore(&authorities, password, created),
            ),
            KeystoreFormat::Pkcs12 => {
                let profile = Profile::of(keystores.profile());
                (
                    pkcs12::keystore(profile, &contents, password),
                    pkcs12::truststore(profile, &authorities, password),
                )
            }
        };
        let keystore = keystore.map_err(|error| unwritable(error.to_string()))?;
        data.insert(format.keystore_key().to_owned(), Blob(keystore));
        if !authorities.is_empty() {
            let truststore = truststore.map_err(|error| unwritable(error.to_string()))?;
            data.insert(format.truststore_key().to_owned(), Blob(truststore));
        }
    }
    Ok(())
}

/// Returns the facts about each keystore in a Secret.
pub(super) fn inspect(
    secret: &Secret,
    keystores: Option<&Keystores>,
    passwords: &Passwords,
) -> BTreeMap<KeystoreFormat, KeystoreFacts> {
    let has = |key| secret.value(key).is_some_and(|value| !value.is_empty());
    let there = KeystoreFormat::ALL
        .into_iter()
        .filter(|format| has(format.keystore_key()) || has(format.truststore_key()));
    let facts = |format: KeystoreFormat| {
        let is_wanted = |keystores: &&Keystores| keystores.wanted().any(|other| other == format);
        let Some(keystores) = keystores.filter(is_wanted) else { return KeystoreFacts::Unasked };
        let Ok(password) = passwords.of(format) else { return KeystoreFacts::Unknown };
        let file = secret.value(format.keystore_key()).unwrap_or_default();
        let is_open = match format {
            KeystoreFormat::Jks => jks::opens(file, keystores.alias(), password),
            KeystoreFormat::Pkcs12 => {
                pkcs12::opens(file, Profile::of(keystores.profile()), password)
            }
        };
        let is_whole = has(format.truststore_key()) == has(CA_CRT);
        if is_open && is_whole { KeystoreFacts::AsAsked } else { KeystoreFacts::Outdated }
    };
    there.map(|format| (format, facts(format))).collect()
}

/// Returns the certificates of a PEM text, DER.
fn certificates(text: &[u8]) -> Vec<Vec<u8>> {
    let blocks = pem::parse_many(text).unwrap_or_default();
    let blocks = blocks.into_iter().filter(|block| block.tag() == "CERTIFICATE");
    blocks.map(pem::Pem::into_contents).collect()
}
