//! Objects that hinder an issuance: dropped fields, next keys, quotas, immutable Secrets, Secrets that others wrote.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde_json::Value;

use super::{ClusterReader, ControlSubjects, DEFINITIONS, MAX_READ, list};
use crate::controllers::facts;
use crate::diagnosis::case::control::{
    DroppedCase, ImmutableSecretCase, IssuedSecretCase, NextKeyCase, QuotaCase,
};
use crate::model::common::is_true;
use crate::model::secret::TLS_KEY;
use crate::model::{Key, Kind, ObjectName, Secret};
use crate::store::cluster::raw_objects::Resource;
use crate::store::resources::typed;

/// JSON pointer to the manifest that `kubectl apply` stores.
const LAST_APPLIED_POINTER: &str =
    "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
/// cert-manager's reasons for a Secret that was changed after issuance or deleted.
const CHANGED_SECRET_REASONS: [&str; 6] = [
    "SecretMismatch",
    "IncorrectCertificate",
    "InvalidKeyPair",
    "InvalidCertificate",
    "MissingData",
    "DoesNotExist",
];
/// Field managers that may write the Secrets of certificates: cert-manager's controllers and this program.
const OWN_WRITERS: [&str; 2] = ["cert-manager", "kubectl-acme"];
/// Tools that manage objects, by the prefix of their labels and annotations.
const TOOL_PREFIXES: [&str; 8] = [
    "argocd.argoproj.io",
    "kustomize.toolkit.fluxcd.io",
    "helm.toolkit.fluxcd.io",
    "reflector.v1.k8s.emberstack.com",
    "external-secrets.io",
    "reconcile.external-secrets.io",
    "velero.io",
    "sealedsecrets.bitnami.com",
];

const QUOTAS: Resource =
    Resource { api_version: "v1", kind: "ResourceQuota", plural: "resourcequotas" };
const SECRETS: Resource = Resource { api_version: "v1", kind: "Secret", plural: "secrets" };

impl ClusterReader<'_> {
    /// Finds fields that the applied manifest has and the stored object lacks.
    pub(crate) async fn dropped(&self, around: &ControlSubjects) -> Vec<DroppedCase> {
        let asked = around.applied.iter().map(|key| async move {
            let read = self.read(&key.kind.plural(), self.store.get(key)).await.flatten()?;
            let applied = read.object.pointer(LAST_APPLIED_POINTER).and_then(Value::as_str)?;
            let applied: Value = serde_json::from_str(applied).ok()?;
            let mut fields = Vec::new();
            find_missing(&applied["spec"], &read.object["spec"], "spec", &mut fields);
            if fields.is_empty() {
                return None;
            }
            // A field that the definition knows was removed later, on purpose.
            let name = format!("{}.{}", key.kind.plural(), key.kind.group());
            let definition = self.of(DEFINITIONS, "");
            let definition = self.read(DEFINITIONS.plural, definition.get(&name)).await.flatten();
            if let Some(definition) = &definition {
                fields.retain(|field| !is_defined(definition, field));
            }
            let is_undefined = definition.is_some();
            fields.truncate(MAX_READ);
            let dropped = DroppedCase { object: key.clone(), fields, is_undefined };
            (!dropped.fields.is_empty()).then_some(dropped)
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Checks the Secrets with the keys of the next certificates.
    pub(crate) async fn next_keys(&self, around: &ControlSubjects) -> Vec<NextKeyCase> {
        let asked = around.open.iter().map(|(certificate, _)| async move {
            let status = &certificate.status;
            let secret = &status.next_private_key_secret_name;
            if secret.is_empty() || !is_true(&status.conditions, "Issuing") {
                return None;
            }
            let name = certificate.name();
            let key = Key::new(Kind::Secret, ObjectName::new(&name.namespace, secret));
            let read = self.read("secrets", self.store.get(&key)).await?;
            let read = read.map(typed::<Secret>).transpose().ok()?;
            let fault = match read {
                None => Some("it does not exist".to_owned()),
                Some(read) => match read.value(TLS_KEY) {
                    None => Some(format!("it has no entry {TLS_KEY}")),
                    Some(key) => facts::of_key(key).err(),
                },
            };
            Some(NextKeyCase { certificate: name, secret: secret.clone(), fault })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Finds used-up counts of quotas in namespaces where a Certificate has to be issued.
    pub(crate) async fn quotas(&self, around: &ControlSubjects) -> Vec<QuotaCase> {
        let open = around.open.iter().map(|(certificate, _)| &certificate.metadata.namespace);
        let namespaces: BTreeSet<&String> = open.collect();
        let asked = namespaces.into_iter().take(MAX_READ).map(|namespace| async move {
            let read = self.of(QUOTAS, namespace);
            self.read(QUOTAS.plural, read.fitting("", "")).await.unwrap_or_default()
        });
        let all = join_all(asked).await.into_iter().flatten();
        all.flat_map(|quota| used_up(&quota)).collect()
    }

    /// Finds immutable Secrets that are to get a new certificate.
    pub(crate) async fn immutable(&self, around: &ControlSubjects) -> Vec<ImmutableSecretCase> {
        let issuing = around
            .open
            .iter()
            .filter(|(certificate, _)| is_true(&certificate.status.conditions, "Issuing"));
        let asked = issuing.map(|(certificate, _)| async move {
            let (name, secret) = (certificate.name(), &certificate.spec.secret_name);
            let key = Key::new(Kind::Secret, ObjectName::new(&name.namespace, secret));
            let read = self.read("secrets", self.store.get(&key)).await??;
            let is_immutable = read.object["immutable"].as_bool() == Some(true);
            is_immutable.then(|| ImmutableSecretCase { certificate: name, secret: secret.clone() })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }

    /// Finds the writers of Secrets that were changed after issuance.
    pub(crate) async fn secrets(&self, around: &ControlSubjects) -> Vec<IssuedSecretCase> {
        let changed =
            around.open.iter().filter(|(_, why)| CHANGED_SECRET_REASONS.contains(&why.as_str()));
        let asked = changed.map(|(certificate, _)| async move {
            let (name, secret) = (certificate.name(), &certificate.spec.secret_name);
            // Only the metadata is requested, not the content.
            let read = self.of(SECRETS, &name.namespace);
            let this = format!("metadata.name={secret}");
            let read = self.read("secrets", read.outlined("", &this)).await?;
            let metadata = &read.first()?["metadata"];
            let entries = list(metadata, "/managedFields").iter();
            let has_data = |entry: &&Value| {
                ["f:data", "f:stringData"].iter().any(|field| !entry["fieldsV1"][field].is_null())
            };
            let writers = entries.filter(has_data);
            let writers = writers.filter_map(|entry| {
                let manager = entry["manager"].as_str()?;
                let is_own = OWN_WRITERS.iter().any(|own| manager.starts_with(own));
                let at = entry["time"].as_str().and_then(|at| at.parse().ok());
                (!is_own).then(|| (manager.to_owned(), at))
            });
            let names = ["labels", "annotations"].map(|field| metadata[field].as_object());
            let names = names.into_iter().flatten().flat_map(serde_json::Map::keys);
            let marks =
                names.filter(|name| TOOL_PREFIXES.iter().any(|tool| name.starts_with(tool)));
            Some(IssuedSecretCase {
                certificate: name,
                secret: secret.clone(),
                writers: writers.collect(),
                marks: marks.cloned().collect(),
            })
        });
        join_all(asked).await.into_iter().flatten().collect()
    }
}

/// Returns the plain counts of a quota that are used up.
fn used_up(quota: &Value) -> Vec<QuotaCase> {
    let text = |name: &str| quota["metadata"][name].as_str().unwrap_or_default().to_owned();
    let count = |list: &str, resource: &str| -> Option<u64> {
        quota["status"][list][resource].as_str()?.parse().ok()
    };
    let hard = quota["status"]["hard"].as_object();
    let resources = hard.into_iter().flat_map(serde_json::Map::keys);
    let full = resources.filter_map(|resource| {
        let (used, hard) = (count("used", resource)?, count("hard", resource)?);
        (used >= hard).then(|| QuotaCase {
            namespace: text("namespace"),
            name: text("name"),
            resource: resource.clone(),
            used,
            hard,
        })
    });
    full.collect()
}

/// Adds the paths of fields that `applied` has and `stored` lacks. An API server leaves out null fields.
fn find_missing(applied: &Value, stored: &Value, path: &str, found: &mut Vec<String>) {
    match (applied, stored) {
        (Value::Object(applied), Value::Object(stored)) => {
            for (name, value) in applied.iter().filter(|(_, value)| !value.is_null()) {
                let path = format!("{path}.{name}");
                match stored.get(name) {
                    Some(stored) => find_missing(value, stored, &path, found),
                    None => found.push(path),
                }
            }
        }
        (Value::Array(applied), Value::Array(stored)) if applied.len() == stored.len() => {
            for (index, (applied, stored)) in applied.iter().zip(stored).enumerate() {
                find_missing(applied, stored, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// Returns whether a definition knows a field in version `v1`.
fn is_defined(definition: &Value, path: &str) -> bool {
    let mut versions = list(definition, "/spec/versions").iter();
    let Some(version) = versions.find(|version| version["name"] == "v1") else { return true };
    let mut schema = &version["schema"]["openAPIV3Schema"];
    for part in path.split('.') {
        let is_open = schema["x-kubernetes-preserve-unknown-fields"].as_bool() == Some(true)
            || schema["additionalProperties"].is_object();
        if is_open {
            return true;
        }
        let (name, items) = part
            .split_once('[')
            .map_or((part, 0), |(name, rest)| (name, rest.matches(']').count()));
        schema = &schema["properties"][name];
        for _ in 0..items {
            schema = &schema["items"];
        }
        if schema.is_null() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_dropped_is_told_by_its_path() {
        let applied = json!({"a": 1, "b": {"c": null, "d": [{"e": 1}, {"f": 2}]}, "g": {}});
        let stored = json!({"a": 2, "b": {"d": [{"e": 1}, {}]}});
        let mut found = Vec::new();
        find_missing(&applied, &stored, "spec", &mut found);
        assert_eq!(found, ["spec.b.d[1].f", "spec.g"]);
    }

    #[test]
    fn a_definition_knows_what_it_has_and_what_it_keeps_as_it_is() {
        let solver =
            json!({"properties": {"config": {"x-kubernetes-preserve-unknown-fields": true}}});
        let spec = json!({"properties": {"solvers": {"items": solver}, "labels": {"additionalProperties": {}}}});
        let schema = json!({"openAPIV3Schema": {"properties": {"spec": spec}}});
        let definition = json!({"spec": {"versions": [{"name": "v1", "schema": schema}]}});
        for (path, expected) in [
            ("spec.solvers[0].config.any", true),
            ("spec.solvers[0].other", false),
            ("spec.labels.a", true),
            ("spec.profile", false),
        ] {
            assert_eq!(is_defined(&definition, path), expected, "{path}");
        }
    }
}
