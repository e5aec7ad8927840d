//! Memory of a mirror for objects that are gone, or that may be: a list lacks them.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::model::{ObjectName, Record};

/// Most gone objects that are kept: more than can be reported late.
const MAX_TOMBSTONES: usize = 1_000;
/// Pause after the first read of a lacking object without an answer; each pause is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Objects that are gone: the watch may report them later, and so may reads that are under way.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    /// Tombstones by UID.
    last: HashMap<String, Tombstone>,
    /// UIDs, the oldest first.
    order: VecDeque<String>,
}

/// Facts that tell a gone object from another: a thousand Orders with their certificates would take megabytes.
#[derive(Debug)]
struct Tombstone {
    name: ObjectName,
    /// The UID of the managing owner.
    owner: Option<String>,
    /// The last `resourceVersion` that was seen.
    version: String,
}

impl Tombstones {
    pub(super) fn has(&self, uid: &str) -> bool {
        self.last.contains_key(uid)
    }

    /// Returns whether an object of that name, or of that owner, is gone.
    pub(super) fn is_like(&self, record: &Record) -> bool {
        let owner = owner_uid(record);
        self.last.values().any(|last| {
            last.name == record.key.name || (owner.is_some() && last.owner.as_deref() == owner)
        })
    }

    /// Returns whether an object was seen after it was believed to be gone.
    pub(super) fn is_before(&self, record: &Record) -> bool {
        let last = self.last.get(record.uid());
        last.is_some_and(|last| {
            let version = record.resource_version();
            is_after(version, &last.version).unwrap_or_else(|| version != last.version)
        })
    }

    pub(super) fn note(&mut self, last: &Record) {
        let uid = last.uid().to_owned();
        let tombstone = Tombstone {
            name: last.key.name.clone(),
            owner: owner_uid(last).map(str::to_owned),
            version: last.resource_version().to_owned(),
        };
        if self.last.insert(uid.clone(), tombstone).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > MAX_TOMBSTONES
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

/// Returns whether an object is newer than another. Objects that cannot be compared count in the order of arrival.
pub(super) fn is_newer(record: &Record, than: &Record) -> bool {
    is_after(record.resource_version(), than.resource_version())
        .unwrap_or_else(|| record.object != than.object)
}

/// Returns whether a `resourceVersion` is newer than another; it counts up in every store that we know.
fn is_after(version: &str, other: &str) -> Option<bool> {
    Some(version.parse::<u64>().ok()? > other.parse().ok()?)
}

/// Objects of one kind that this process has written and that the last list of everything lacked: made after the list, or
/// gone since. The watch reports nothing more of an object that has gone, and has yet to report the other; until then
/// another list may lack it, too. So the object is read, until the store answers.
pub(super) struct Unheard {
    records: Vec<Record>,
    pause: Duration,
    next_read: Instant,
}

impl Unheard {
    /// Makes the set of objects that a list lacks, to be read at once.
    pub(super) fn new(records: Vec<Record>) -> Self {
        Self { records, pause: FIRST_PAUSE, next_read: Instant::now() }
    }

    /// Waits for the next read; for ever if no object is left.
    pub(super) async fn due(&self) {
        if self.records.is_empty() {
            return std::future::pending().await;
        }
        sleep_until(self.next_read).await;
    }

    /// Takes the objects that are to be read now.
    pub(super) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Keeps the objects for which the store did not answer, until the next read.
    pub(super) fn keep(&mut self, unanswered: Vec<Record>) {
        self.records = unanswered;
        self.next_read = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }
}
