//! What was told of objects lately.

use std::collections::HashMap;
use std::fmt;

use parking_lot::{Mutex, MutexGuard};

use crate::model::{ObjectReference, Record, Severity};

/// Most sayings that are remembered, as many as client-go's recorder.
const REMEMBERED: usize = 4_096;

/// Remembers Events, so that a repetition is known without asking a server: an API server finds the Events about one
/// object only by reading all of a namespace. cert-manager remembers its own, too, and only as long as it runs.
///
/// Each is kept as its text: taken apart it takes several times as much, and hardly one is said again.
#[derive(Default)]
pub struct EventCache(Mutex<HashMap<Saying, String>>);

/// UID of the object, reason, message, component, severity.
type Saying = (String, String, String, &'static str, Severity);

impl EventCache {
    /// The Event that said the same.
    pub(super) fn before(&self, about: &ObjectReference, notice: Notice<'_>) -> Option<Record> {
        let text = self.sayings().get(&saying(about, notice)).cloned()?;
        Record::new(serde_json::from_str(&text).ok()?)
    }

    /// Notes what was said.
    pub(super) fn remember(&self, about: &ObjectReference, notice: Notice<'_>, event: &Record) {
        let mut sayings = self.sayings();
        if sayings.len() >= REMEMBERED {
            sayings.clear();
        }
        sayings.insert(saying(about, notice), event.object.to_string());
    }

    /// Forgets an Event that is not as we remember it.
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

/// What is to be told of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notice<'a> {
    /// How bad it is.
    pub severity: Severity,
    /// A word, one of [`crate::model::event::reason`].
    pub reason: &'a str,
    /// A sentence.
    pub message: &'a str,
    /// Who says it, one of [`crate::model::event::source`].
    pub component: &'static str,
}
