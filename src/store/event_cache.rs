//! Cache of the Events that were written lately.

use std::collections::HashMap;
use std::fmt;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{ObjectReference, Record, Severity};

/// Most Events that are kept, as many as client-go's recorder keeps.
const MAX_EVENTS: usize = 4_096;

/// Cache of Events, so that a repetition is known without asking a server: an API server finds the Events about one
/// object only by reading all of a namespace. cert-manager keeps its own, too, and only as long as it runs.
///
/// Each Event is kept as its text: parsed it takes several times as much memory, and hardly an Event is repeated.
#[derive(Default)]
pub struct EventCache(Mutex<HashMap<Saying, String>>);

/// Key of an Event: UID of the object, reason, message, component, severity.
type Saying = (String, String, String, &'static str, Severity);

impl EventCache {
    /// Returns the Event that was written with this content before.
    pub(super) fn before(&self, about: &ObjectReference, notice: Notice<'_>) -> Option<Record> {
        let text = self.sayings().get(&saying(about, notice)).cloned()?;
        Record::new(serde_json::from_str(&text).ok()?)
    }

    /// Stores an Event that was written.
    pub(super) fn remember(&self, about: &ObjectReference, notice: Notice<'_>, event: &Record) {
        let mut sayings = self.sayings();
        if sayings.len() >= MAX_EVENTS {
            sayings.clear();
        }
        sayings.insert(saying(about, notice), event.object.to_string());
    }

    /// Removes an Event that is not as it was stored.
    pub(super) fn forget(&self, about: &ObjectReference, notice: Notice<'_>) {
        self.sayings().remove(&saying(about, notice));
    }

    fn sayings(&self) -> MutexGuard<'_, HashMap<Saying, String>> {
        self.0.lock()
    }
}

impl fmt::Debug for EventCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventCache({} sayings)", self.sayings().len())
    }
}

fn saying(about: &ObjectReference, notice: Notice<'_>) -> Saying {
    (
        about.uid.clone(),
        notice.reason.to_owned(),
        notice.message.to_owned(),
        notice.component,
        notice.severity,
    )
}

/// Content of an Event about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice<'a> {
    /// Severity.
    pub severity: Severity,
    /// Reason, one of [`crate::model::event::reason`].
    pub reason: &'a str,
    /// Message, a sentence.
    pub message: &'a str,
    /// Component that reports, one of [`crate::model::event::source`].
    pub component: &'static str,
}
