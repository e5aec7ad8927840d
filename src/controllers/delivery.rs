//! Delivery: the Secrets of a Certificate, temporary and final.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::facts::{TLS_CRT, TLS_KEY};
use crate::acme::{KeyEncoding, KeyError, PrivateKey};
use crate::model::{
    Blob, Certificate, CertificateRequest, CertificateSpec, Kind, Metadata, Secret,
};
use crate::reconcile::facts::annotation;
use crate::reconcile::secret_content::SecretMetadata;

/// The temporary Secret that holds the key of a running issuance: PKCS#8, whatever the spec says.
///
/// # Errors
/// Fails when the key cannot be written down.
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

/// The Secret that the Certificate names, with what was issued; an existing one keeps its type.
///
/// # Errors
/// Fails when the key cannot be written down.
pub fn issued(
    certificate: &Certificate,
    request: &CertificateRequest,
    key: &PrivateKey,
    metadata: SecretMetadata,
    existing: Option<&Secret>,
) -> Result<Secret, KeyError> {
    let spec = &certificate.spec;
    let key = key.to_pem(encoding(spec))?;
    let chain = &request.status.certificate;
    let mut data = BTreeMap::from([
        (TLS_CRT.to_owned(), chain.clone()),
        (TLS_KEY.to_owned(), Blob(key.as_bytes().to_vec())),
    ]);
    if !request.status.ca.is_empty() {
        data.insert("ca.crt".to_owned(), request.status.ca.clone());
    }
    if has_format(spec, "DER")
        && let Some(der) = der(&key)
    {
        data.insert("key.der".to_owned(), der);
    }
    if has_format(spec, "CombinedPEM") {
        let combined = [key.as_bytes(), b"\n", &chain.0].concat();
        data.insert("tls-combined.pem".to_owned(), Blob(combined));
    }
    Ok(Secret { data, ..relabelled(certificate, metadata, existing) })
}

/// The Secret that the Certificate names, with other labels and annotations.
pub fn relabelled(
    certificate: &Certificate,
    metadata: SecretMetadata,
    existing: Option<&Secret>,
) -> Secret {
    Secret {
        api_version: Kind::Secret.api_version().to_owned(),
        kind: Kind::Secret.as_str().to_owned(),
        metadata: Metadata {
            name: certificate.spec.secret_name.clone(),
            namespace: certificate.metadata.namespace.clone(),
            labels: metadata.labels,
            annotations: metadata.annotations,
            ..Metadata::default()
        },
        secret_type: existing.map_or_else(
            || "kubernetes.io/tls".to_owned(),
            |existing| existing.secret_type.clone(),
        ),
        data: existing.map(|existing| existing.data.clone()).unwrap_or_default(),
        ..Secret::default()
    }
}

fn encoding(spec: &CertificateSpec) -> KeyEncoding {
    match spec.private_key.as_ref().map(|key| key.encoding.as_str()) {
        Some("PKCS8") => KeyEncoding::Pkcs8,
        _ => KeyEncoding::Pkcs1,
    }
}

fn has_format(spec: &CertificateSpec, format: &str) -> bool {
    let formats = spec.additional_output_formats.iter();
    formats.filter_map(|entry| entry.get("type").and_then(Value::as_str)).any(|f| f == format)
}

/// The bytes inside a PEM block of one's own making.
fn der(pem: &str) -> Option<Blob> {
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).collect();
    STANDARD.decode(body).ok().map(Blob)
}
