//! Temporary certificates on disk: a server begins with one until the real certificate takes its place. No temporary
//! certificate takes the place of a certificate that is still good, which an earlier store may have left there.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::future::pending;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt as _;
use jiff::Timestamp;
use parking_lot::Mutex;

use super::files::{self, Written};
use super::folder_turn::WriteWait;
use crate::acme::{chain, temporary};
use crate::context::failure::Failure;
use crate::context::output_files::on_disk;
use crate::controllers::facts;
use crate::disk::read_given;
use crate::model::certificate::ISSUING;
use crate::model::common::is_true;
use crate::model::{Certificate, Key, Kind, ObjectName, Record, Secret};
use crate::reconcile::facts::annotation;
use crate::store::resources::typed;
use crate::store::{Change, Scope, Store};

/// Longest chain that is read, in bytes.
const CHAIN_LIMIT: u64 = 1 << 20;

/// Returns whether a Certificate asks for a temporary certificate, and has one while it waits for its first real one.
pub fn is_in_place(certificate: &Certificate) -> bool {
    let asked = certificate.metadata.annotations.get(annotation::TEMPORARY);
    let status = &certificate.status;
    asked.is_some_and(|value| value == "true")
        && is_true(&status.conditions, ISSUING)
        && status.revision.is_none()
        && status.not_after.is_some()
}

/// Writes the temporary certificate of a Secret below `folder`; `None` if there is none, or a good one is there.
///
/// # Errors
/// Fails when a file cannot be read or written.
pub async fn write(
    folder: &Path,
    secret: &Secret,
    patience: &WriteWait,
) -> Result<Option<Written>, Failure> {
    if !facts::of_secret(secret).is_temporary() {
        return Ok(None);
    }
    let path = folder.join(&secret.metadata.name).join("tls.crt");
    let now = Timestamp::now();
    let is_good = move || {
        let leaf = read_given(&path, CHAIN_LIMIT).ok().and_then(|pem| chain::leaf(&pem).ok());
        Ok(leaf.is_some_and(|leaf| !temporary::is_issuer(&leaf.issuer) && leaf.not_after > now))
    };
    if on_disk(folder, patience.interrupted(), is_good).await? {
        return Ok(None);
    }
    files::write(folder, secret, None, patience).await.map(Some)
}

/// Paths to which temporary certificates were written.
#[derive(Debug, Default)]
pub struct TemporaryFiles(Mutex<BTreeMap<Key, PathBuf>>);

impl TemporaryFiles {
    /// Writes the temporary certificates of these Certificates as they come, until the future is dropped. A failure to write
    /// is reported with the real certificates.
    pub async fn write_as_they_come(
        &self,
        store: &Arc<dyn Store>,
        folder: Option<&Path>,
        keys: &BTreeSet<Key>,
        patience: &WriteWait,
    ) -> Infallible {
        let Some(folder) = folder.filter(|_| keys.iter().any(|key| key.kind == Kind::Certificate))
        else {
            return pending().await;
        };
        let mut changes = store.watch(Kind::Certificate, Scope::all());
        while let Some(change) = changes.next().await {
            let records = match change {
                Ok(Change::Applied(record)) => vec![record],
                Ok(Change::Resynced(records)) => records,
                Ok(Change::Deleted(_)) | Err(_) => Vec::new(),
            };
            for record in records.into_iter().filter(|record| keys.contains(&record.key)) {
                let key = record.key.clone();
                match write_if_in_place(store, record, folder, patience).await {
                    Ok(Some(Written { certificate, .. })) => {
                        self.0.lock().insert(key, certificate);
                    }
                    Ok(None) => {}
                    Err(error) => {
                        tracing::debug!(%key, %error, "its temporary certificate is not written");
                    }
                }
            }
        }
        pending().await
    }

    /// Returns the files of these Certificates.
    pub fn of<'a>(&self, keys: impl Iterator<Item = &'a Key>) -> Vec<(&'a Key, PathBuf)> {
        let files = self.0.lock();
        keys.filter_map(|key| Some((key, files.get(key)?.clone()))).collect()
    }
}

async fn write_if_in_place(
    store: &Arc<dyn Store>,
    record: Record,
    folder: &Path,
    patience: &WriteWait,
) -> Result<Option<Written>, Failure> {
    let certificate: Certificate = typed(record)?;
    if !is_in_place(&certificate) {
        return Ok(None);
    }
    let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
    let Some(secret) = store.get(&Key::new(Kind::Secret, name)).await? else { return Ok(None) };
    write(folder, &typed(secret)?, patience).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rcgen::{CertificateParams, DnType, KeyPair};
    use serde_json::json;

    use super::*;
    use crate::acme::{KeyEncoding, PrivateKey};
    use crate::context::blocking::Interrupted;
    use crate::model::{CertificateSpec, KeyAlgorithm};

    /// A Secret with a temporary certificate.
    fn secret() -> Secret {
        let key = PrivateKey::generate(KeyAlgorithm::Ecdsa(256)).unwrap();
        let names = vec!["www.example.com".to_owned()];
        let spec = CertificateSpec { dns_names: names, ..CertificateSpec::default() };
        let pem = temporary::certificate(&spec, &key, Timestamp::now()).unwrap();
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": "web-tls", "namespace": "default"},
            "data": {
                "tls.crt": crate::model::Blob(pem.into_bytes()),
                "tls.key": crate::model::Blob(key.to_pem(KeyEncoding::Pkcs8).unwrap().as_bytes().to_vec()),
            },
        }))
        .unwrap()
    }

    /// Writes beside a certificate that ends in that year, if given; checks whether the temporary one is there then.
    async fn check(end: Option<i32>, expected: bool) {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("web-tls");
        let mut before = None;
        if let Some(year) = end {
            let mut params = CertificateParams::new(["www.example.com".to_owned()]).unwrap();
            params.distinguished_name.push(DnType::CommonName, "A real CA");
            params.not_after = rcgen::date_time_ymd(year, 1, 1);
            let pem = params.self_signed(&KeyPair::generate().unwrap()).unwrap().pem();
            fs::create_dir(&place).unwrap();
            fs::write(place.join("tls.crt"), &pem).unwrap();
            before = Some(pem);
        }
        let patience = WriteWait::new(&Interrupted::default());
        let written = write(folder.path(), &secret(), &patience).await.unwrap();
        assert_eq!(written.is_some(), expected);
        let now = fs::read_to_string(place.join("tls.crt")).unwrap();
        assert_eq!(Some(now) != before, expected);
    }

    #[tokio::test]
    async fn a_temporary_certificate_takes_the_place_of_none_that_is_good() {
        check(None, true).await;
        check(Some(2020), true).await;
        check(Some(2999), false).await;
    }

    #[tokio::test]
    async fn a_real_certificate_is_not_written_as_a_temporary_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut secret = secret();
        secret.metadata.annotations.insert(annotation::ISSUER_NAME.into(), "acme".into());
        let patience = WriteWait::new(&Interrupted::default());
        assert_eq!(write(folder.path(), &secret, &patience).await.unwrap(), None);
    }
}
