//! Shape that all objects share: kind, key, metadata, spec and status.
//!
//! One generic `Resource` with a spec, a status and this crate's metadata stands in place of kube's derive: this floor
//! stays free of the client, unknown fields survive, and both kinds of issuer are one type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::{Other, Time};
use super::key::{Key, Kind};
use super::names::ObjectName;

/// Reference to an owner, by which garbage collection finds the owner's dependents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OwnerReference {
    /// `apiVersion` of the owner.
    pub api_version: String,
    /// Kind of the owner.
    pub kind: String,
    /// Name of the owner; in the same namespace, or cluster-scoped.
    pub name: String,
    /// UID of the owner.
    pub uid: String,
    /// Whether this owner manages the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller: Option<bool>,
    /// Whether foreground deletion of the owner waits for the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_owner_deletion: Option<bool>,
}

/// `metadata` of every object; unknown fields are kept in `other`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    /// Name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Prefix from which the store makes the name when there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub generate_name: String,
    /// Namespace, empty for cluster-scoped objects.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Labels.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Owners.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owner_references: Vec<OwnerReference>,
    /// Finalizers: deletion waits until the list is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub finalizers: Vec<String>,
    /// Identity over time, given by the store.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// Revision, given by the store; opaque text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub resource_version: String,
    /// Number of changes of the spec.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// Time at which the store took the object in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Time>,
    /// Time at which deletion was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletion_timestamp: Option<Time>,
    /// Everything else, such as `managedFields`.
    #[serde(flatten)]
    pub other: Other,
}

impl Metadata {
    /// Returns namespace and name.
    pub fn object_name(&self) -> ObjectName {
        ObjectName::new(&self.namespace, &self.name)
    }

    /// Returns the owner that manages the object, if any.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|o| o.controller == Some(true))
    }

    /// Returns key and UID of the managing owner, if its kind is known here.
    pub fn controller_key(&self) -> Option<(Key, &str)> {
        let owner = self.controller()?;
        let kind = Kind::of_owner(&owner.api_version, &owner.kind)?;
        Some((Key::new(kind, ObjectName::new(&self.namespace, &owner.name)), &owner.uid))
    }

    /// Reports whether the object of the given UID manages this object.
    pub fn is_controlled_by(&self, uid: &str) -> bool {
        !uid.is_empty() && self.controller().is_some_and(|owner| owner.uid == uid)
    }

    /// Reports whether deletion was asked for.
    pub fn is_deleted(&self) -> bool {
        self.deletion_timestamp.is_some()
    }

    /// Reports whether deletion was asked for, and finalizers put it off.
    pub fn is_held(&self) -> bool {
        self.is_deleted() && !self.finalizers.is_empty()
    }
}

/// Typed object: `S` is its spec, `T` its status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource<S, T> {
    /// `apiVersion`.
    #[serde(default)]
    pub api_version: String,
    /// `kind`.
    #[serde(default)]
    pub kind: String,
    /// Name, labels, owners and the like.
    #[serde(default)]
    pub metadata: Metadata,
    /// Desired state.
    pub spec: S,
    /// Observed state.
    #[serde(default = "T::default", bound(deserialize = "T: Default + Deserialize<'de>"))]
    pub status: T,
}

impl<S, T> Resource<S, T> {
    /// Returns namespace and name.
    pub fn name(&self) -> ObjectName {
        self.metadata.object_name()
    }

    /// Returns the reference by which a dependent names this object as its managing owner.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            name: self.metadata.name.clone(),
            uid: self.metadata.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// An object as a store holds it: the whole JSON, so that unknown fields survive.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// Kind and name.
    pub key: Key,
    /// The object, `apiVersion` and `kind` included.
    pub object: Value,
}

impl Record {
    /// Wraps an object, and reads kind and name from the object.
    ///
    /// Returns `None` if the kind is missing or not known here.
    pub fn new(object: Value) -> Option<Self> {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or("");
        let kind = Kind::of_manifest(text("/apiVersion"), text("/kind"))?;
        let name = ObjectName::new(text("/metadata/namespace"), text("/metadata/name"));
        Some(Self { key: Key::new(kind, name), object })
    }

    /// Returns a text in the object by JSON pointer, empty when absent.
    pub fn text(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or("")
    }

    /// Returns the metadata, typed.
    pub fn metadata(&self) -> Metadata {
        self.object.get("metadata").and_then(|m| Metadata::deserialize(m).ok()).unwrap_or_default()
    }

    /// Returns `metadata.resourceVersion`, empty before the first write.
    pub fn resource_version(&self) -> &str {
        self.text("/metadata/resourceVersion")
    }

    /// Returns `metadata.uid`, empty before the first write.
    pub fn uid(&self) -> &str {
        self.text("/metadata/uid")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_as_kubectl_finds_them() {
        for (text, kind) in [
            ("certs", Some(Kind::Certificate)),
            ("Certificate", Some(Kind::Certificate)),
            ("certificates.cert-manager.io", Some(Kind::Certificate)),
            ("cr", Some(Kind::CertificateRequest)),
            ("challenges.acme.cert-manager.io", Some(Kind::Challenge)),
            ("ciss", Some(Kind::ClusterIssuer)),
            ("orders.v1.acme.cert-manager.io", Some(Kind::Order)),
            ("pods", None),
        ] {
            assert_eq!(Kind::parse(text), kind, "{text}");
        }
    }
}
