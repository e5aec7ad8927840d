//! Builds the Secrets of a Certificate, temporary and final.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::ReconcileError;
use super::keystores::{self, Passwords};
use crate::acme::{KeyEncoding, KeyError, PrivateKey};
use crate::model::secret::{CA_CRT, TLS_CRT, TLS_KEY};
use crate::model::{Blob, Certificate, CertificateSpec, Kind, Metadata, Secret};
use crate::reconcile::facts::{OutputFormat, annotation};
use crate::reconcile::secret_content::SecretMetadata;

/// Builds the temporary Secret that holds the key of a running issuance: PKCS#8, whatever the spec says.
///
/// # Errors
/// Fails if the key cannot be encoded.
pub fn next_key(
    certificate: &Certificate,
    name: Option<String>,
    key: &PrivateKey,
) -> Result<Secret, KeyError> {
    let pem = key.to_pem(KeyEncoding::Pkcs8)?;
    let label = |key: &str| (key.to_owned(), "true".to_owned());
    let generate_name =
        if name.is_none() { format!("{}-", certificate.metadata.name) } else { String::new() };
    Ok(Secret {
        metadata: Metadata {
            name: name.unwrap_or_default(),
            generate_name,
            namespace: certificate.metadata.namespace.clone(),
            labels: BTreeMap::from([label(annotation::NEXT_PRIVATE_KEY), label(annotation::FAO)]),
            owner_references: vec![certificate.owner_reference()],
            ..Metadata::default()
        },
        secret_type: "Opaque".to_owned(),
        data: BTreeMap::from([(TLS_KEY.to_owned(), Blob(pem.as_bytes().to_vec()))]),
        ..Secret::default()
    })
}

/// Builder of the Secret that a Certificate names; an existing Secret keeps its type.
#[derive(Clone, Copy, Debug)]
pub struct Builder<'a> {
    /// The Certificate.
    pub certificate: &'a Certificate,
    /// The Secret as it is.
    pub existing: Option<&'a Secret>,
    /// Passwords of the keystores that are asked for.
    pub passwords: &'a Passwords,
    /// Whether the Certificate owns the Secret, so that both go together.
    pub is_owned: bool,
    /// Moment of the build.
    pub now: Timestamp,
}

impl Builder<'_> {
    /// Builds the Secret with a key and its chain; `authorities` are the CA's certificates, which no ACME server gives.
    ///
    /// # Errors
    /// Fails if the key or a keystore cannot be encoded.
    pub fn of_pair(
        self,
        key: &PrivateKey,
        chain: &Blob,
        authorities: &Blob,
        metadata: SecretMetadata,
    ) -> Result<Secret, ReconcileError> {
        let spec = &self.certificate.spec;
        let key = key.to_pem(encoding(spec))?;
        let mut data = BTreeMap::from([
            (TLS_CRT.to_owned(), chain.clone()),
            (TLS_KEY.to_owned(), Blob(key.as_bytes().to_vec())),
        ]);
        if !authorities.is_empty() {
            data.insert(CA_CRT.to_owned(), authorities.clone());
        }
        put_formats(&mut data, spec);
        keystores::put(&mut data, spec.keystores.as_ref(), self.passwords, self.now)?;
        Ok(Secret { data, ..self.with_metadata(metadata) })
    }

    /// Builds the Secret with its present pair, other labels and annotations, and the forms that the spec asks for.
    ///
    /// # Errors
    /// Fails if a keystore cannot be encoded.
    pub fn repaired(self, metadata: SecretMetadata) -> Result<Secret, ReconcileError> {
        let spec = &self.certificate.spec;
        let mut data = self.existing.map(|existing| existing.data.clone()).unwrap_or_default();
        for format in self.existing.map(formats_in).unwrap_or_default() {
            data.remove(format.key());
        }
        put_formats(&mut data, spec);
        keystores::put(&mut data, spec.keystores.as_ref(), self.passwords, self.now)?;
        Ok(Secret { data, ..self.with_metadata(metadata) })
    }

    fn with_metadata(self, metadata: SecretMetadata) -> Secret {
        let Metadata { namespace, .. } = &self.certificate.metadata;
        let owner = self.is_owned.then(|| self.certificate.owner_reference());
        Secret {
            api_version: Kind::Secret.api_version().to_owned(),
            kind: Kind::Secret.as_str().to_owned(),
            metadata: Metadata {
                name: self.certificate.spec.secret_name.clone(),
                namespace: namespace.clone(),
                labels: metadata.labels,
                annotations: metadata.annotations,
                owner_references: owner.into_iter().collect(),
                ..Metadata::default()
            },
            secret_type: self.existing.map_or_else(
                || "kubernetes.io/tls".to_owned(),
                |existing| existing.secret_type.clone(),
            ),
            ..Secret::default()
        }
    }
}

/// Returns the additional forms in a Secret that match its key and chain.
pub fn formats_in(secret: &Secret) -> BTreeSet<OutputFormat> {
    let is_true = |format: &OutputFormat| {
        let there = secret.value(format.key());
        let (key, chain) = (secret.value(TLS_KEY), secret.value(TLS_CRT));
        let made = key.zip(chain).and_then(|(key, chain)| in_format(*format, key, chain));
        there.is_some() && there == made.as_deref()
    };
    OutputFormat::ALL.into_iter().filter(is_true).collect()
}

fn encoding(spec: &CertificateSpec) -> KeyEncoding {
    match spec.private_key.as_ref().map(|key| key.encoding.as_str()) {
        Some("PKCS8") => KeyEncoding::Pkcs8,
        _ => KeyEncoding::Pkcs1,
    }
}

/// Adds the additional forms that a spec asks for to key and chain.
fn put_formats(data: &mut BTreeMap<String, Blob>, spec: &CertificateSpec) {
    for format in OutputFormat::of(spec) {
        let (Some(key), Some(chain)) = (data.get(TLS_KEY), data.get(TLS_CRT)) else { return };
        if let Some(made) = in_format(format, &key.0, &chain.0) {
            data.insert(format.key().to_owned(), Blob(made));
        }
    }
}

fn in_format(format: OutputFormat, key: &[u8], chain: &[u8]) -> Option<Vec<u8>> {
    match format {
        OutputFormat::CombinedPem => Some([key, b"\n", chain].concat()),
        OutputFormat::Der => pem::parse(key).ok().map(pem::Pem::into_contents),
    }
}
