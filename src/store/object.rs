//! One object taken apart: metadata typed, all else as given; and the rules for its names and data.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize as _;
use serde_json::{Map, Value};

use super::error::{StoreError, invalid};
use crate::model::{Key, Kind, Metadata, ObjectName, Record};

/// Fields of `metadata` that only a store writes and that [`Metadata`] does not name.
const SERVER_MANAGED: [&str; 3] = ["deletionGracePeriodSeconds", "managedFields", "selfLink"];

/// Paths of an object's bulk: signing requests, certificates and the CA's offers.
const BULK: [&str; 4] =
    ["/spec/request", "/status/authorizations", "/status/ca", "/status/certificate"];

/// An object between two writes; without `Debug`, as Secrets pass through here.
#[derive(Clone, PartialEq)]
pub(super) struct Object {
    /// Kind.
    pub kind: Kind,
    /// Metadata; unknown fields are kept in its `other`.
    pub metadata: Metadata,
    /// Everything but `metadata`.
    pub fields: Map<String, Value>,
}

impl Object {
    /// Takes a record apart.
    pub(super) fn read(record: Record) -> Result<Self, StoreError> {
        let Record { key, object } = record;
        let Value::Object(mut fields) = object else {
            return Err(invalid(&key, "it is not an object"));
        };
        let metadata = match fields.remove("metadata") {
            Some(Value::Object(metadata)) => metadata,
            Some(_) => return Err(invalid(&key, "its metadata is not an object")),
            None => Map::new(),
        };
        let given = metadata.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let mut metadata = Metadata::deserialize(Value::Object(given))
            .map_err(|error| invalid(&key, format!("its metadata cannot be read: {error}")))?;
        metadata.name = key.name.name;
        metadata.namespace = key.name.namespace;
        fields.insert("apiVersion".into(), key.kind.api_version().into());
        fields.insert("kind".into(), key.kind.as_str().into());
        Ok(Self { kind: key.kind, metadata, fields })
    }

    /// Puts the object together again.
    pub(super) fn into_record(self) -> Result<Record, StoreError> {
        let key = self.key();
        let metadata = serde_json::to_value(self.metadata)
            .map_err(|error| invalid(&key, format!("its metadata cannot be written: {error}")))?;
        let mut fields = self.fields;
        fields.insert("metadata".into(), metadata);
        Ok(Record { key, object: Value::Object(fields) })
    }

    /// Kind and name.
    pub(super) fn key(&self) -> Key {
        Key::new(self.kind, ObjectName::new(&self.metadata.namespace, &self.metadata.name))
    }

    /// Removes the fields that only the store may set.
    pub(super) fn drop_server_managed(&mut self) {
        let metadata = &mut self.metadata;
        metadata.uid.clear();
        metadata.resource_version.clear();
        metadata.generation = None;
        metadata.creation_timestamp = None;
        metadata.deletion_timestamp = None;
        metadata.other.retain(|name, _| !SERVER_MANAGED.contains(&name.as_str()));
        if has_status(self.kind) {
            self.fields.remove("status");
        }
    }

    /// Takes over the fields that only the store may set from the stored object, status included.
    pub(super) fn keep_server_managed(&mut self, stored: &Self) {
        self.drop_server_managed();
        let (metadata, kept) = (&mut self.metadata, &stored.metadata);
        metadata.uid.clone_from(&kept.uid);
        metadata.resource_version.clone_from(&kept.resource_version);
        metadata.generate_name.clone_from(&kept.generate_name);
        metadata.generation = kept.generation;
        metadata.creation_timestamp = kept.creation_timestamp;
        metadata.deletion_timestamp = kept.deletion_timestamp;
        for name in SERVER_MANAGED {
            if let Some(value) = kept.other.get(name) {
                metadata.other.insert(name.into(), value.clone());
            }
        }
        if has_status(self.kind) {
            self.set_status(stored.fields.get("status").cloned());
        }
        if let Some(kind) = stored.fields.get("type").filter(|_| self.kind == Kind::Secret) {
            self.fields.entry("type").or_insert_with(|| kind.clone());
        }
    }

    /// Sets the status; an empty status counts as none.
    pub(super) fn set_status(&mut self, status: Option<Value>) {
        let empty = |status: &Value| status.as_object().is_some_and(Map::is_empty);
        match status.filter(|status| !status.is_null() && !empty(status)) {
            Some(status) => self.fields.insert("status".into(), status),
            None => self.fields.remove("status"),
        };
    }

    /// Returns whether two objects want the same state: all but metadata and status is equal.
    pub(super) fn wants_same(&self, other: &Self) -> bool {
        let wanted = |(name, _): &(&String, &Value)| name.as_str() != "status";
        self.fields.iter().filter(wanted).eq(other.fields.iter().filter(wanted))
    }

    /// Checks namespace and name (RFC 1123 labels, as Kubernetes asks for).
    pub(super) fn check_name(&self) -> Result<(), StoreError> {
        let Metadata { name, namespace, .. } = &self.metadata;
        if !self.kind.is_namespaced() && !namespace.is_empty() {
            return Err(invalid(&self.key(), format!("a {} has no namespace", self.kind)));
        }
        if self.kind.is_namespaced() && namespace.is_empty() {
            return Err(invalid(&self.key(), "it has no namespace"));
        }
        if self.kind.is_namespaced() && (namespace.len() > 63 || !is_label(namespace)) {
            let why = "it must be at most 63 lower-case letters, digits and '-', and begin and end with a letter or digit";
            return Err(invalid(&self.key(), format!("\"{namespace}\" is no namespace: {why}")));
        }
        if name.is_empty() {
            return Err(invalid(&self.key(), "it has neither a name nor a generateName"));
        }
        if name.len() > 253 || !name.split('.').all(is_label) {
            let why = "it must be at most 253 lower-case letters, digits, '-' and '.', and begin and end with a letter or digit";
            return Err(invalid(&self.key(), format!("\"{name}\" is no name: {why}")));
        }
        Ok(())
    }

    /// Brings a Secret into the form it is stored in: `stringData` merged into `data`, a type given.
    pub(super) fn settle_secret(&mut self) -> Result<(), StoreError> {
        if self.kind != Kind::Secret {
            return Ok(());
        }
        let key = self.key();
        let mut data = entries(&key, "data", self.fields.remove("data"))?;
        for value in data.values_mut() {
            *value = match &*value {
                Value::Null => "".into(),
                value => folded_base64(value)
                    .ok_or_else(|| invalid(&key, "a value in its data is not base64"))?
                    .into(),
            };
        }
        for (name, text) in entries(&key, "stringData", self.fields.remove("stringData"))? {
            let Value::String(text) = text else {
                return Err(invalid(&key, "a value in its stringData is not a text"));
            };
            data.insert(name, STANDARD.encode(text).into());
        }
        if !data.is_empty() {
            self.fields.insert("data".into(), Value::Object(data));
        }
        self.fields.entry("type").or_insert_with(|| "Opaque".into());
        Ok(())
    }
}

/// Returns whether objects of the kind have a `status` that is written apart, and so a generation.
pub(super) fn has_status(kind: Kind) -> bool {
    match kind {
        Kind::Event | Kind::Secret => false,
        Kind::Certificate
        | Kind::CertificateRequest
        | Kind::Challenge
        | Kind::ClusterIssuer
        | Kind::Gateway
        | Kind::Ingress
        | Kind::ListenerSet
        | Kind::Issuer
        | Kind::Order => true,
    }
}

/// Leaves the bulk out of an object.
pub(super) fn leave_out_bulk(object: &mut Value) {
    for pointer in BULK {
        match object.pointer_mut(pointer) {
            Some(Value::String(text)) => text.clear(),
            Some(Value::Array(entries)) => entries.clear(),
            Some(_) | None => {}
        }
    }
}

/// Returns the object with its bulk left out; `None` if the object has no bulk.
pub(super) fn without_bulk(object: &Value) -> Option<Value> {
    BULK.iter().find(|pointer| object.pointer(pointer).is_some())?;
    let mut brief = object.clone();
    leave_out_bulk(&mut brief);
    Some(brief)
}

/// The entries of one map of a Secret. The error says nothing about the values.
fn entries(key: &Key, field: &str, value: Option<Value>) -> Result<Map<String, Value>, StoreError> {
    match value {
        Some(Value::Object(entries)) => Ok(entries),
        Some(Value::Null) | None => Ok(Map::new()),
        Some(_) => Err(invalid(key, format!("its {field} is not a map"))),
    }
}

/// Base64 without the line breaks that manifests have in it; `None` if the value is no base64.
fn folded_base64(value: &Value) -> Option<String> {
    let text = value.as_str()?;
    let folded: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(&folded).is_ok().then_some(folded)
}

fn is_label(text: &str) -> bool {
    let inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(inside) && !text.starts_with('-') && !text.ends_with('-')
}
