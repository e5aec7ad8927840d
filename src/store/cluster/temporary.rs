//! Temporary objects of ours: marked with the time of their end, so that a later process can remove the objects of a
//! killed process.
//!
//! Only objects with our label and our manager, whose end has passed by the cluster's clock, are removed.

use http::Method;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::ClusterStore;
use super::access_request::AccessRequest;
use super::raw_objects::RawObjects;
use super::wire::Call;
use crate::store::Manager;
use crate::store::error::StoreError;

/// Annotation with the time until which the maker may need the object, by the cluster's clock.
pub const UNTIL_ANNOTATION: &str = "kubectl-acme/until";

impl ClusterStore {
    /// Returns the cluster's time, to the second; our own if the server sends none.
    ///
    /// # Errors
    /// Fails if the server does not answer.
    pub async fn clock(&self) -> Result<Timestamp, StoreError> {
        let call = Call::new(Method::GET, "/version".to_owned());
        let answer = self.wire().call(&AccessRequest::other("get", "version", ""), call).await?;
        Ok(answer.date.unwrap_or_else(Timestamp::now))
    }
}

/// Marks an object that is about to be made: with a label, whose name gives its sort, and with the time of its end.
pub fn mark(object: &mut Value, label: &str, value: &str, until: Timestamp) {
    set(&mut object["metadata"], "labels", label, value);
    set(&mut object["metadata"], "annotations", UNTIL_ANNOTATION, &format!("{until:.0}"));
}

/// Sets one label or annotation.
pub fn set(metadata: &mut Value, field: &str, name: &str, value: &str) {
    if !metadata[field].is_object() {
        metadata[field] = Value::Object(Map::new());
    }
    metadata[field][name] = value.into();
}

/// Finds objects with that label that we made and whose end has passed, and no others.
///
/// # Errors
/// Fails if the server does not list the objects.
pub async fn outstayed(
    all: &RawObjects,
    label: &str,
    now: Timestamp,
) -> Result<Vec<Value>, StoreError> {
    let mut objects = all.labelled(label).await?;
    objects.retain(|object| is_ours(object, label) && has_outstayed(object, now));
    Ok(objects)
}

/// Returns whether the label was written under our manager's name: anybody can copy a label.
fn is_ours(object: &Value, label: &str) -> bool {
    let label = format!("f:{label}");
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().any(|entry| {
        entry["manager"] == Manager::Person.name()
            && entry["fieldsV1"]["f:metadata"]["f:labels"][&label].is_object()
    })
}

fn has_outstayed(object: &Value, now: Timestamp) -> bool {
    let metadata = &object["metadata"];
    let until =
        metadata["annotations"][UNTIL_ANNOTATION].as_str().and_then(|text| text.parse().ok());
    metadata["deletionTimestamp"].is_null() && until.is_some_and(|until: Timestamp| until < now)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LABEL: &str = "kubectl-acme/rehearsal";

    /// An object as the server shows it, whose label was set under that name.
    fn shown(manager: &str, until: &str) -> Value {
        json!({"metadata": {
            "labels": {LABEL: "uid"},
            "annotations": {UNTIL_ANNOTATION: until},
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
                {"manager": manager, "fieldsV1": {"f:metadata": {"f:labels": {format!("f:{LABEL}"): {}}}}},
            ],
        }})
    }

    #[track_caller]
    fn check(object: &Value, expected: bool) {
        let now = "2026-11-21T12:00:00Z".parse().unwrap();
        assert_eq!(is_ours(object, LABEL) && has_outstayed(object, now), expected, "{object}");
    }

    #[test]
    fn only_what_we_made_and_nobody_needs_any_more_is_found() {
        check(&shown("kubectl-acme", "2026-11-21T11:59:59Z"), true);
        check(&shown("kubectl-acme", "2026-11-21T12:00:00Z"), false);
        check(&shown("kubectl-acme", "soon"), false);
        check(&shown("kubectl-create", "2026-11-21T11:59:59Z"), false);
        let mut going = shown("kubectl-acme", "2026-11-21T11:59:59Z");
        going["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:59Z".into();
        check(&going, false);
    }

    #[test]
    fn a_mark_is_what_is_looked_for() {
        let mut object = json!({"metadata": {"annotations": {"theirs": "stays"}}});
        mark(&mut object, LABEL, "uid", "2026-11-21T11:59:59.7Z".parse().unwrap());
        assert_eq!(object["metadata"]["labels"], json!({LABEL: "uid"}));
        let annotations = json!({"theirs": "stays", UNTIL_ANNOTATION: "2026-11-21T11:59:59Z"});
        assert_eq!(object["metadata"]["annotations"], annotations);
    }
}
