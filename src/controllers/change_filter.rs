//! Classification of changes: those that any reconcile may write, and those that others want.
//!
//! A Challenge of which only the reason has changed keeps its pause: a reason that differs at each reconcile would
//! cause endless requests to providers, servers and the cluster. What others want of an object (spec, deletion, labels)
//! ends its pause even during a reconcile: a deletion must not wait for a CA's Retry-After.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::work_queue::News;
use crate::model::memory::is_ours;
use crate::model::{Key, Kind, Record};

/// Digests of each object at its last change.
#[derive(Debug, Default)]
pub(super) struct ChangeFilter(HashMap<Key, Digests>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digests {
    /// Digest of what others want of the object.
    wish: u64,
    /// Digest of a Challenge or an Order without its reason.
    without_reason: Option<u64>,
}

impl ChangeFilter {
    /// Remembers the object; returns the kind of news, which is nothing if only the reason of a Challenge or an Order
    /// has changed.
    pub(super) fn news(&mut self, record: &Record) -> News {
        if matches!(record.key.kind, Kind::Secret | Kind::Event) {
            return News::Wish;
        }
        let has_reason = matches!(record.key.kind, Kind::Challenge | Kind::Order);
        let without_reason = has_reason.then(|| digest_without_reason(record));
        let now = Digests { wish: digest_wish(record), without_reason };
        match self.0.insert(record.key.clone(), now) {
            Some(before) if before.wish != now.wish => News::Wish,
            Some(before) if now.without_reason.is_some() && before == now => News::Nothing,
            Some(_) => News::Progress,
            None => News::Wish,
        }
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Forgets all objects: every later change is news.
    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }
}

/// Returns a digest of what no reconcile writes: UID, generation (spec, deletion), labels and others' annotations.
fn digest_wish(record: &Record) -> u64 {
    let metadata = &record.object["metadata"];
    let mut hasher = DefaultHasher::new();
    for field in ["uid", "generation", "deletionTimestamp", "labels"] {
        metadata[field].to_string().hash(&mut hasher);
    }
    let annotations = metadata["annotations"].as_object().into_iter().flatten();
    for (name, value) in annotations.filter(|(name, _)| !is_ours(name)) {
        (name, value.as_str()).hash(&mut hasher);
    }
    hasher.finish()
}

/// Returns a digest of an object without its reason, and without fields that the store updates at every write.
fn digest_without_reason(record: &Record) -> u64 {
    let mut object = record.object.clone();
    if let Some(fields) = object.as_object_mut()
        && let Some(Value::Object(status)) = fields.get_mut("status")
    {
        status.remove("reason");
        if status.is_empty() {
            fields.remove("status");
        }
    }
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for field in ["generation", "managedFields", "resourceVersion"] {
            metadata.remove(field);
        }
    }
    let mut hasher = DefaultHasher::new();
    object.to_string().hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Checks the news if a Challenge or an Order changes like this.
    fn check(change: &Value, expected: News) {
        check_kind("Challenge", change, expected);
        check_kind("Order", change, expected);
    }

    fn check_kind(kind: &str, change: &Value, expected: News) {
        let mut object = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": kind, "status": {"state": "pending"},
            "metadata": {"name": "web", "namespace": "web", "generation": 1, "resourceVersion": "1"},
        });
        let mut filter = ChangeFilter::default();
        let mut news = |object: &Value| filter.news(&Record::new(object.clone()).unwrap());
        assert_eq!(news(&object), News::Wish, "it is new");
        for (pointer, value) in change.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        assert_eq!(news(&object), expected, "{kind} {change}");
    }

    #[test]
    fn what_a_look_may_write_is_told_from_what_others_want() {
        check(&json!({"/metadata/resourceVersion": "2", "/status/reason": "no"}), News::Nothing);
        check(&json!({"/status/state": "valid"}), News::Progress);
        check(&json!({"/metadata/annotations": {"kubectl-acme/attempts": "2"}}), News::Progress);
        check(&json!({"/metadata/finalizers": ["acme.cert-manager.io/finalizer"]}), News::Progress);
        check(&json!({"/metadata/annotations": {"a-person": "was here"}}), News::Wish);
        check(&json!({"/metadata/generation": 2}), News::Wish);
    }
}
