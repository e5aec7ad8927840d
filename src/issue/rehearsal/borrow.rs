//! Objects that a rehearsal copies from the real store: Issuers that the manifests leave out, account keys, and Secrets
//! of solvers and keystores. The real store is read, and never written.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::issue::preflight;
use crate::model::issuer::AcmeIssuer;
use crate::model::keystore::Keystores;
use crate::model::memory::is_ours;
use crate::model::solver::Dns01Solver;
use crate::model::{Certificate, Issuer, Key, Kind, ObjectName, Record};
use crate::store::Store;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;
use crate::store::resources::typed;

/// Adds, if they exist, the Issuers that the set refers to and lacks, and the Secrets of all its Issuers and keystores.
///
/// # Errors
/// Fails when the store does; a Secret that may not be read is left out.
pub(super) async fn borrow(
    records: &mut Vec<Record>,
    source: &Arc<dyn Store>,
    context: &Context,
) -> Result<(), Failure> {
    for key in preflight::certificates::issuers(records) {
        if has(records, &key) {
            continue;
        }
        if let Some(record) = source.get(&key).await? {
            records.push(as_manifest(&record));
        }
    }
    let mut secrets = Vec::new();
    for record in records.iter_mut() {
        let Some(key) = account_key(record, context)? else { continue };
        match source.get(&key).await {
            Ok(secret) => secrets.extend(secret.map(|secret| as_manifest(&secret))),
            Err(StoreError::Cluster(fault)) if is_forbidden(&fault) => {
                context.printer(&OutputArgs::default()).note(&format!(
                    "may not read {key} of {}: the rehearsal registers with a key of its own",
                    record.key
                ));
                if let Some(Value::Object(acme)) = record.object.pointer_mut("/spec/acme") {
                    acme.remove("disableAccountKeyGeneration");
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
    for record in records.iter() {
        for key in solver_keys(record, context)?.into_iter().chain(password_keys(record)?) {
            match source.get(&key).await {
                Ok(secret) => secrets.extend(secret.map(|secret| as_manifest(&secret))),
                // Missing Secrets of solvers are reported before the rehearsal begins.
                Err(StoreError::Cluster(fault)) if is_forbidden(&fault) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    secrets.sort_by(|one, other| one.key.cmp(&other.key));
    secrets.dedup_by(|one, other| one.key == other.key);
    secrets.retain(|secret| !has(records, &secret.key));
    records.extend(secrets);
    Ok(())
}

fn has(records: &[Record], key: &Key) -> bool {
    records.iter().any(|record| record.key == *key)
}

/// Returns the Secret with the account key of an Issuer.
fn account_key(record: &Record, context: &Context) -> Result<Option<Key>, StoreError> {
    let Some((namespace, acme)) = acme(record, context)? else { return Ok(None) };
    let name = acme.private_key_secret_ref.name;
    Ok((!name.is_empty()).then(|| Key::new(Kind::Secret, ObjectName::new(namespace, name))))
}

/// Returns the Secrets that the solvers of an Issuer name.
fn solver_keys(record: &Record, context: &Context) -> Result<Vec<Key>, StoreError> {
    let Some((namespace, acme)) = acme(record, context)? else { return Ok(Vec::new()) };
    let solvers = acme.solvers.iter().filter_map(|solver| solver.dns01.as_deref());
    let names = solvers.flat_map(Dns01Solver::secrets).map(|selector| selector.name);
    Ok(names.map(|name| Key::new(Kind::Secret, ObjectName::new(namespace, name))).collect())
}

/// Returns the Secrets that a Certificate names for the passwords of its keystores.
fn password_keys(record: &Record) -> Result<Vec<Key>, StoreError> {
    if record.key.kind != Kind::Certificate {
        return Ok(Vec::new());
    }
    let certificate = typed::<Certificate>(record.clone())?;
    let secrets = certificate.spec.keystores.iter().flat_map(Keystores::secrets);
    let place = |name: &str| ObjectName::new(&certificate.metadata.namespace, name);
    Ok(secrets.map(|secret| Key::new(Kind::Secret, place(&secret.name))).collect())
}

/// Returns the ACME section of an Issuer, and the namespace of its Secrets.
fn acme<'a>(
    record: &'a Record,
    context: &'a Context,
) -> Result<Option<(&'a str, AcmeIssuer)>, StoreError> {
    let namespace = match record.key.kind {
        Kind::Issuer => record.key.name.namespace.as_str(),
        Kind::ClusterIssuer => context.global.cluster_resource_namespace.as_str(),
        _ => return Ok(None),
    };
    let issuer = typed::<Issuer>(record.clone())?;
    Ok(issuer.spec.acme.map(|acme| (namespace, acme)))
}

fn is_forbidden(fault: &ClusterFault) -> bool {
    matches!(fault, ClusterFault::Forbidden { .. })
}

/// Returns the object as a manifest would have it: without owners, which are elsewhere, and without its status.
fn as_manifest(record: &Record) -> Record {
    let mut object = record.object.clone();
    let Some(fields) = object.as_object_mut() else { return record.clone() };
    fields.remove("status");
    let mut metadata = Map::new();
    for field in ["name", "namespace", "labels", "annotations"] {
        if let Some(value) = record.object.pointer(&format!("/metadata/{field}")) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        // Our annotations hold facts about the real CA.
        annotations.retain(|name, _| !is_ours(name));
    }
    fields.insert("metadata".to_owned(), json!(metadata));
    Record { key: record.key.clone(), object }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_borrowed_has_no_history() {
        let key = Key::new(Kind::Issuer, ObjectName::new("web", "acme"));
        let object = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {
                "name": "acme", "namespace": "web", "uid": "1", "resourceVersion": "7",
                "labels": {"team": "web"},
                "annotations": {"a": "b", "kubectl-acme/issuer-next-try": "2026-11-21T12:00:00Z"},
                "ownerReferences": [{"kind": "App", "name": "app", "uid": "2"}],
            },
            "spec": {"acme": {"server": "https://ca.example/"}},
            "status": {"acme": {"uri": "https://ca.example/account/1"}},
        });
        let expected = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer",
            "metadata": {
                "name": "acme", "namespace": "web",
                "labels": {"team": "web"}, "annotations": {"a": "b"},
            },
            "spec": {"acme": {"server": "https://ca.example/"}},
        });
        assert_eq!(as_manifest(&Record { key, object }).object, expected);
    }
}
