//! What a mirror remembers of objects that are gone.

use std::collections::{HashMap, VecDeque};

use crate::model::Record;

/// How many gone objects are remembered: more than can be told late.
const REMEMBERED: usize = 1_000;

/// Objects that are gone, with the last that was seen of each: the watch may tell of them later, and so may looks that
/// are under way.
#[derive(Debug, Default)]
pub(super) struct Gone {
    /// By UID.
    last: HashMap<String, Record>,
    /// The oldest first.
    order: VecDeque<String>,
}

impl Gone {
    pub(super) fn has(&self, uid: &str) -> bool {
        self.last.contains_key(uid)
    }

    /// Whether something of that name is gone, or of that owner.
    pub(super) fn is_like(&self, record: &Record) -> bool {
        let owner = owner_uid(record);
        self.last.values().any(|last| {
            last.key.name == record.key.name || (owner.is_some() && owner_uid(last) == owner)
        })
    }

    /// Whether an object was seen after it was believed to be gone.
    pub(super) fn is_before(&self, record: &Record) -> bool {
        self.last.get(record.uid()).is_some_and(|last| is_newer(record, last))
    }

    pub(super) fn note(&mut self, last: Record) {
        let uid = last.uid().to_owned();
        if self.last.insert(uid.clone(), last).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.last.remove(&oldest);
        }
    }

    pub(super) fn forget(&mut self, uid: &str) {
        self.last.remove(uid);
        self.order.retain(|gone| gone != uid);
    }
}

/// The UID of the managing owner.
pub(super) fn owner_uid(record: &Record) -> Option<&str> {
    let owners = record.object.pointer("/metadata/ownerReferences")?.as_array()?;
    owners.iter().find(|owner| owner["controller"] == true)?["uid"].as_str()
}

/// Whether an object is from after another one; `resourceVersion` counts up in every store that we know.
pub(super) fn is_newer(record: &Record, than: &Record) -> bool {
    let version = |record: &Record| record.resource_version().parse::<u64>().ok();
    match (version(record), version(than)) {
        (Some(one), Some(other)) => one > other,
        // What cannot be compared is told in order.
        _ => record.object != than.object,
    }
}
