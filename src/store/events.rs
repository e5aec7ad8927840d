//! Events in the form cert-manager writes: one per object and occurrence, a repeated one counted up.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

use super::object::invalid;
use super::resources::typed;
use super::{Part, Scope, Store, StoreError};
use crate::model::event::EventSource;
use crate::model::{Event, Key, Kind, Metadata, ObjectName, ObjectReference, Record, Severity};

/// Who writes our events, whatever the component's name.
const REPORTING_INSTANCE: &str = "kubectl-acme";
/// Namespace of the events about objects that have none.
const DEFAULT_NAMESPACE: &str = "default";
/// Longest name of an object (RFC 1123 §2.1); an event's name ends in a dot and sixteen digits.
const LONGEST_NAME: usize = 253;
/// Most sayings that are remembered, as many as client-go's recorder.
const REMEMBERED: usize = 4_096;
/// How often an event is written again because somebody else wrote in between.
const TRIES: usize = 8;

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
    pub component: &'a str,
}

/// Writes an event about an object. When the same was told of it before, that event is counted up.
pub async fn emit(
    store: &dyn Store,
    about: &ObjectReference,
    notice: Notice<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let mut nanosecond = now.as_nanosecond();
    for _ in 0..TRIES {
        let before = match store.told() {
            Some(told) => told.before(about, notice).map(typed).transpose()?,
            None => told_before(store, about, notice).await?,
        };
        let written = match before {
            Some(event) => store.replace(counted_up(event, now)?, Part::Whole).await,
            None => store.create(new_event(about, notice, now, nanosecond)?).await,
        };
        match written {
            Ok(event) => {
                if let Some(told) = store.told() {
                    told.remember(about, notice, event);
                }
                return Ok(());
            }
            Err(StoreError::AlreadyExists { .. }) => nanosecond += 1,
            Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {
                if let Some(told) = store.told() {
                    told.forget(about, notice);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Err(StoreError::Conflict { key: Key::new(Kind::Event, name(about, nanosecond)) })
}

/// The namespace of the events about the objects of a namespace, or of none.
pub fn home(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

/// The reference by which an event names an object.
pub fn reference(record: &Record) -> ObjectReference {
    ObjectReference {
        api_version: record.key.kind.api_version().into(),
        kind: record.key.kind.as_str().into(),
        name: record.key.name.name.clone(),
        namespace: record.key.name.namespace.clone(),
        resource_version: record.resource_version().into(),
        uid: record.uid().into(),
    }
}

/// The same for an object whose type is known.
pub fn reference_to(kind: Kind, metadata: &Metadata) -> ObjectReference {
    ObjectReference {
        api_version: kind.api_version().into(),
        kind: kind.as_str().into(),
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        resource_version: metadata.resource_version.clone(),
        uid: metadata.uid.clone(),
    }
}

/// What was told lately, so that a repetition is known without asking a server: an API server finds the events about one
/// object only by reading all of a namespace. cert-manager remembers its own, too, and only as long as it runs.
#[derive(Debug, Default)]
pub struct Told(Mutex<HashMap<Saying, Record>>);

/// UID of the object, reason, message, component, severity.
type Saying = (String, String, String, String, Severity);

impl Told {
    fn before(&self, about: &ObjectReference, notice: Notice<'_>) -> Option<Record> {
        self.sayings().get(&saying(about, notice)).cloned()
    }

    fn remember(&self, about: &ObjectReference, notice: Notice<'_>, event: Record) {
        let mut sayings = self.sayings();
        if sayings.len() >= REMEMBERED {
            sayings.clear();
        }
        sayings.insert(saying(about, notice), event);
    }

    fn forget(&self, about: &ObjectReference, notice: Notice<'_>) {
        self.sayings().remove(&saying(about, notice));
    }

    fn sayings(&self) -> std::sync::MutexGuard<'_, HashMap<Saying, Record>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn saying(about: &ObjectReference, notice: Notice<'_>) -> Saying {
    (
        about.uid.clone(),
        notice.reason.to_owned(),
        notice.message.to_owned(),
        notice.component.to_owned(),
        notice.severity,
    )
}

async fn told_before(
    store: &dyn Store,
    about: &ObjectReference,
    notice: Notice<'_>,
) -> Result<Option<Event>, StoreError> {
    let severity = match notice.severity {
        Severity::Normal => "Normal",
        Severity::Warning => "Warning",
    };
    let same = |record: &Record| {
        record.text("/reason") == notice.reason
            && record.text("/message") == notice.message
            && record.text("/type") == severity
            && record.text("/source/component") == notice.component
    };
    let scope = Scope::about(&about.uid).within(home(&about.namespace));
    let told = store.list(Kind::Event, &scope).await?;
    told.into_iter().rfind(same).map(typed).transpose()
}

fn counted_up(mut event: Event, now: Timestamp) -> Result<Record, StoreError> {
    event.count = Some(event.count.unwrap_or(1).saturating_add(1));
    event.last_timestamp = event.last_timestamp.max(Some(now.into()));
    record(&event)
}

fn new_event(
    about: &ObjectReference,
    notice: Notice<'_>,
    now: Timestamp,
    nanosecond: i128,
) -> Result<Record, StoreError> {
    let ObjectName { namespace, name } = name(about, nanosecond);
    let mut event = Event {
        api_version: Kind::Event.api_version().into(),
        kind: Kind::Event.as_str().into(),
        metadata: Metadata { name, namespace, ..Metadata::default() },
        involved_object: about.clone(),
        reason: notice.reason.into(),
        message: notice.message.into(),
        source: EventSource { component: notice.component.into() },
        first_timestamp: Some(now.into()),
        last_timestamp: Some(now.into()),
        count: Some(1),
        severity: notice.severity,
        reporting_component: notice.component.into(),
        reporting_instance: REPORTING_INSTANCE.into(),
        ..Event::default()
    };
    // An API server shows this field of the newer form in every Event of the older one.
    event.other.insert("eventTime".into(), Value::Null);
    record(&event)
}

/// Names sort by time: sixteen hexadecimal digits hold nanoseconds until 2554.
fn name(about: &ObjectReference, nanosecond: i128) -> ObjectName {
    let namespace = home(&about.namespace);
    let suffix = format!(".{nanosecond:016x}");
    let object: String = about.name.chars().take(LONGEST_NAME - suffix.len()).collect();
    ObjectName::new(namespace, format!("{object}{suffix}"))
}

fn record(event: &Event) -> Result<Record, StoreError> {
    let key = Key::new(Kind::Event, event.metadata.object_name());
    match serde_json::to_value(event) {
        Ok(object) => Ok(Record { key, object }),
        Err(error) => Err(invalid(&key, format!("it is no JSON: {error}"))),
    }
}
