//! What is worth a look beside an object's own reason: every look may write another one.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde_json::Value;

use crate::model::{Key, Kind, Record};

/// What Challenges were when last heard of, but for their reasons.
#[derive(Debug, Default)]
pub(super) struct Substances(HashMap<Key, u64>);

impl Substances {
    /// Remembers the object; tells whether more has changed than the reason of a Challenge.
    pub(super) fn is_new(&mut self, record: &Record) -> bool {
        if record.key.kind != Kind::Challenge {
            return true;
        }
        let now = substance(record);
        self.0.insert(record.key.clone(), now) != Some(now)
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

/// What an object is but for its reason, and for what the store counts and notes at every write.
fn substance(record: &Record) -> u64 {
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
