//! What a change of an object tells, beside what every look may write.
//!
//! A Challenge whose own reason is all that changed keeps its pause: a reason that differs at each look would have us
//! ask providers, servers and the cluster without end. What others want of an object (spec, deletion, labels) ends its
//! pause even while it is looked at: a deletion must not wait for a CA's Retry-After.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use super::work_queue::Heard;
use crate::model::memory::is_ours;
use crate::model::{Key, Kind, Record};

/// What objects were when last heard of.
#[derive(Debug, Default)]
pub(super) struct ChangeFilter(HashMap<Key, Digests>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digests {
    /// What others want of it.
    wish: u64,
    /// A Challenge or an Order but for its reason.
    without_reason: Option<u64>,
}

impl ChangeFilter {
    /// Remembers the object; tells what is new of it: nothing when no more has changed than the reason of a Challenge or an
    /// Order.
    pub(super) fn news(&mut self, record: &Record) -> Heard {
        if matches!(record.key.kind, Kind::Secret | Kind::Event) {
            return Heard::Wish;
        }
        let has_reason = matches!(record.key.kind, Kind::Challenge | Kind::Order);
        let without_reason = has_reason.then(|| digest_without_reason(record));
        let now = Digests { wish: wish(record), without_reason };
        match self.0.insert(record.key.clone(), now) {
            Some(before) if before.wish != now.wish => Heard::Wish,
            Some(before) if now.without_reason.is_some() && before == now => Heard::Nothing,
            Some(_) => Heard::Progress,
            None => Heard::Wish,
        }
    }

    /// Forgets an object that is gone.
    pub(super) fn forget(&mut self, key: &Key) {
        self.0.remove(key);
    }

    /// Forgets all: whatever comes next is new.
    pub(super) fn forget_all(&mut self) {
        self.0.clear();
    }
}

/// What no look writes: who it is, its spec and its deletion, which the generation counts, labels and others' annotations.
fn wish(record: &Record) -> u64 {
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

/// What an object is but for its reason, and for what the store counts and notes at every write.
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

    /// What is heard when a Challenge or an Order changes so.
    fn check(change: &Value, expected: Heard) {
        check_kind("Challenge", change, expected);
        check_kind("Order", change, expected);
    }

    fn check_kind(kind: &str, change: &Value, expected: Heard) {
        let mut object = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": kind, "status": {"state": "pending"},
            "metadata": {"name": "web", "namespace": "web", "generation": 1, "resourceVersion": "1"},
        });
        let mut filter = ChangeFilter::default();
        let mut news = |object: &Value| filter.news(&Record::new(object.clone()).unwrap());
        assert_eq!(news(&object), Heard::Wish, "it is new");
        for (pointer, value) in change.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            object.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        assert_eq!(news(&object), expected, "{kind} {change}");
    }

    #[test]
    fn what_a_look_may_write_is_told_from_what_others_want() {
        check(&json!({"/metadata/resourceVersion": "2", "/status/reason": "no"}), Heard::Nothing);
        check(&json!({"/status/state": "valid"}), Heard::Progress);
        check(&json!({"/metadata/annotations": {"kubectl-acme/attempts": "2"}}), Heard::Progress);
        check(
            &json!({"/metadata/finalizers": ["acme.cert-manager.io/finalizer"]}),
            Heard::Progress,
        );
        check(&json!({"/metadata/annotations": {"a-person": "was here"}}), Heard::Wish);
        check(&json!({"/metadata/generation": 2}), Heard::Wish);
    }
}
