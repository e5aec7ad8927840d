//! Bodies of requests: the parts of a record that are sent, and their form.

use http::Method;
use serde_json::{Map, Value, json};

use super::confinement::Reach;
use super::wire::{Call, path_of};
use crate::model::memory::is_ours;
use crate::model::{Key, Kind, ObjectName, Record};
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;
use crate::store::object::Object;

/// Returns whether there can be an object of that name at all; a request for another could mean something else.
pub(super) fn can_be(key: &Key) -> bool {
    check(key).is_ok()
}

fn check(key: &Key) -> Result<(), StoreError> {
    let bare = Record { key: key.clone(), object: json!({}) };
    Object::read(bare)?.check_name()
}

/// Makes the body of a new object, without the fields that only the server may set.
pub(super) fn new(record: Record) -> Result<(Key, Value), StoreError> {
    let mut object = Object::read(record)?;
    object.drop_server_managed();
    if object.metadata.name.is_empty() && !object.metadata.generate_name.is_empty() {
        check(&Key::new(object.kind, ObjectName::new(&object.metadata.namespace, "generated")))?;
    } else {
        object.check_name()?;
    }
    settle(object)
}

/// Makes the body of all but the status, for the revision of the record.
pub(super) fn whole(record: Record) -> Result<(Key, Value), StoreError> {
    settle(without_status(record)?)
}

/// Makes the body of a manifest: without status, and without the annotations by which we remember.
pub(super) fn manifest(record: Record) -> Result<(Key, Value), StoreError> {
    let mut object = without_status(record)?;
    object.metadata.annotations.retain(|name, _| !is_ours(name));
    settle(object)
}

/// Reads all but the fields that only the server may set, with UID and revision of the record.
fn without_status(record: Record) -> Result<Object, StoreError> {
    let mut object = Object::read(record)?;
    object.check_name()?;
    let (uid, revision) = (object.metadata.uid.clone(), object.metadata.resource_version.clone());
    object.drop_server_managed();
    object.metadata.uid = uid;
    object.metadata.resource_version = revision;
    Ok(object)
}

/// Makes the body; a Secret gets the form of storage, and a type that is not given stays open, as it cannot be changed.
fn settle(mut object: Object) -> Result<(Key, Value), StoreError> {
    let typed = object.fields.get("type").is_some_and(|kind| kind != "");
    object.settle_secret()?;
    if !typed {
        object.fields.remove("type");
    }
    let Record { key, object } = object.into_record()?;
    Ok((key, object))
}

/// A patch of labels, annotations, finalizers and owner references.
pub(super) fn metadata(record: &Record) -> Value {
    let metadata = record.metadata();
    let mut patch = conditions(record);
    patch.extend([
        json!({ "op": "add", "path": "/metadata/labels", "value": metadata.labels }),
        json!({ "op": "add", "path": "/metadata/annotations", "value": metadata.annotations }),
        json!({ "op": "add", "path": "/metadata/finalizers", "value": metadata.finalizers }),
        json!({ "op": "add", "path": "/metadata/ownerReferences", "value": metadata.owner_references }),
    ]);
    Value::Array(patch)
}

/// Patch of the status alone; an empty status is removed.
pub(super) fn status(record: &Record) -> Call {
    let call = Call::new(Method::PATCH, format!("{}/status", path_of(&record.key)));
    let status = record.object.get("status").filter(|status| says_something(status));
    let Some(status) = status else {
        let patch = json!({ "metadata": identity(record), "status": null });
        return call.body("application/merge-patch+json", &patch);
    };
    let mut patch = conditions(record);
    patch.push(json!({ "op": "add", "path": "/status", "value": status }));
    call.body("application/json-patch+json", &Value::Array(patch))
}

fn says_something(status: &Value) -> bool {
    status.as_object().is_some_and(|fields| !fields.is_empty())
}

/// Body that applies the finalizers.
pub(super) fn finalizers(key: &Key, record: &Record, wanted: &[String]) -> Value {
    let mut metadata = identity(record);
    metadata.insert("name".into(), key.name.name.clone().into());
    if key.kind.is_namespaced() {
        metadata.insert("namespace".into(), key.name.namespace.clone().into());
    }
    metadata.insert("finalizers".into(), wanted.into());
    json!({ "apiVersion": key.kind.api_version(), "kind": key.kind.as_str(), "metadata": metadata })
}

/// Patch that removes all finalizers.
pub(super) fn without_finalizers(record: &Record) -> Value {
    let mut patch = conditions(record);
    patch.push(json!({ "op": "add", "path": "/metadata/finalizers", "value": [] }));
    Value::Array(patch)
}

/// UID and revision, if the record has them: the server refuses the write when they have changed.
fn identity(record: &Record) -> Map<String, Value> {
    let given = [("uid", record.uid()), ("resourceVersion", record.resource_version())];
    let given = given.into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// Conditions on UID and revision for a patch by operations.
fn conditions(record: &Record) -> Vec<Value> {
    let replaced = |(name, value): (String, Value)| json!({ "op": "replace", "path": format!("/metadata/{name}"), "value": value });
    identity(record).into_iter().map(replaced).collect()
}

/// Field selector for the part of a request that the server can select by itself.
pub(super) fn selector(kind: Kind, reach: &Reach) -> Option<String> {
    if let Some(name) = &reach.name {
        return Some(format!("metadata.name={name}"));
    }
    let uid = reach.scope.involved_uid.as_ref().filter(|_| kind == Kind::Event)?;
    Some(format!("involvedObject.uid={uid}"))
}

/// Makes the fault of a server that forgets a list before it has been read.
pub(super) fn forgotten(server: &str, kind: Kind) -> ClusterFault {
    ClusterFault::Failing {
        server: server.to_owned(),
        verb: "list",
        what: kind.plural(),
        said: "it forgets the list before we have read it".into(),
    }
}

/// Purpose of an apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The result is kept.
    Keep,
    /// Dry run: the server does all but the last step.
    TryOut,
}
