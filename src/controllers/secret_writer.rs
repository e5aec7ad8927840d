//! Writes of the Secret that a Certificate names, with the issued certificate or a temporary one.

use jiff::Timestamp;

use super::keystores::Passwords;
use super::recorder::Recorder;
use super::secret_builder::Builder;
use super::{ReconcileError, facts};
use crate::acme::{PrivateKey, temporary};
use crate::model::event::{reason, source};
use crate::model::keystore::NoKeystore;
use crate::model::{Blob, Certificate, Kind, Secret};
use crate::reconcile::certificate::types::Outcome;
use crate::reconcile::{Note, secret_content};
use crate::store::events::reference;
use crate::store::resources::Resources;

/// Writes the Secrets of Certificates.
#[derive(Debug)]
pub(super) struct SecretWriter {
    secrets: Resources<Secret>,
    recorder: Recorder,
    is_owned: bool,
}

impl SecretWriter {
    /// Builds a writer to the store of this recorder.
    pub(super) fn new(recorder: &Recorder) -> Self {
        let secrets = Resources::new(recorder.store().clone(), Kind::Secret);
        let recorder = recorder.clone();
        Self { secrets: secrets.written_by(source::ISSUING), recorder, is_owned: false }
    }

    /// Returns the writer with or without the Certificate as the owner of its Secret.
    pub(super) fn owned(self, is_owned: bool) -> Self {
        Self { is_owned, ..self }
    }

    /// Builds and writes the Secret. A missing password is also reported as an event.
    ///
    /// # Errors
    /// Fails if the Secret cannot be built, or the store fails.
    pub(super) async fn apply(
        &self,
        certificate: &Certificate,
        existing: Option<&Secret>,
        now: Timestamp,
        build: impl FnOnce(Builder<'_>) -> Result<Secret, ReconcileError>,
    ) -> Result<(), ReconcileError> {
        let passwords = &Passwords::read(&self.secrets, certificate).await?;
        let secret =
            match build(Builder { certificate, existing, passwords, is_owned: self.is_owned, now })
            {
                Ok(secret) => secret,
                Err(error) => {
                    if let ReconcileError::Keystore(why) = &error
                        && let NoKeystore::SecretNotFound { .. } = **why
                    {
                        let reason = reason::KEYSTORE_PASSWORD_SECRET_NOT_FOUND;
                        let note = Note::warning(source::ISSUING, reason, why.to_string());
                        self.recorder.note(&reference(certificate), &note, now).await?;
                    }
                    return Err(error);
                }
            };
        self.secrets.apply(&secret).await?;
        Ok(())
    }

    /// Writes a key with a certificate that no issuer has signed.
    ///
    /// # Errors
    /// Fails if no such certificate can be made, there is no password for a keystore, or the store fails.
    pub(super) async fn temporary(
        &self,
        certificate: &Certificate,
        existing: Option<&Secret>,
        key: &PrivateKey,
        now: Timestamp,
    ) -> Result<Outcome, ReconcileError> {
        let missing = |why: String| {
            ReconcileError::Missing(format!("cannot make a temporary certificate: {why}"))
        };
        let spec = &certificate.spec;
        let chain = temporary::certificate(spec, key, now).map_err(missing)?.into_bytes();
        let leaf = facts::of_chain(&chain).map_err(missing)?;
        let metadata = secret_content::metadata(&certificate.metadata.name, spec, None, &leaf);
        let build =
            |builder: Builder<'_>| builder.of_pair(key, &Blob(chain), &Blob::default(), metadata);
        self.apply(certificate, existing, now, build).await?;
        Ok(Outcome::TemporaryStored)
    }
}
