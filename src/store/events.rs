//! Events in the form cert-manager writes: one per object and occurrence; repeats raise the count of the Event.

use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::Value;

use super::error::{StoreError, invalid};
pub(crate) use super::event_cache::Notice;
use super::resources::typed;
use super::{Manager, Part, Scope, Store};
use crate::model::event::EventSource;
use crate::model::{
    Event, Key, Kind, Metadata, ObjectName, ObjectReference, Record, Resource, Severity,
};

/// Writer of our events, whatever the component's name.
const REPORTING_INSTANCE: &str = "kubectl-acme";
/// Namespace of the events about objects that have none.
const DEFAULT_NAMESPACE: &str = "default";
/// Longest name of an object (RFC 1123 §2.1); an event's name ends in a dot and sixteen digits.
const LONGEST_NAME: usize = 253;
/// Most attempts to write an event while other writers come in between.
const TRIES: usize = 8;

/// Writes an event about an object. If an equal event about the object exists, its count is raised.
pub async fn emit(
    store: &dyn Store,
    about: &ObjectReference,
    notice: Notice<'_>,
    now: Timestamp,
) -> Result<(), StoreError> {
    emit_all(store, about, &[notice], now).await
}

/// Writes events about an object side by side; their names sort in the given order.
pub async fn emit_all(
    store: &dyn Store,
    about: &ObjectReference,
    notices: &[Notice<'_>],
    now: Timestamp,
) -> Result<(), StoreError> {
    if notices.is_empty() {
        return Ok(());
    }
    let told = match store.event_cache() {
        Some(_) => Vec::new(),
        None => list_events(store, about).await?,
    };
    let written = notices.iter().zip(now.as_nanosecond()..).map(|(notice, nanosecond)| {
        let writer = Writer { store, about, notice: *notice, now };
        let before = match store.event_cache() {
            Some(told) => told.before(about, *notice),
            None => writer.same_of(&told).cloned(),
        };
        async move { writer.write(before, nanosecond).await }
    });
    try_join_all(written).await.map(drop)
}

/// Writes one event.
struct Writer<'a> {
    store: &'a dyn Store,
    about: &'a ObjectReference,
    notice: Notice<'a>,
    now: Timestamp,
}

impl Writer<'_> {
    async fn write(
        &self,
        mut before: Option<Record>,
        mut nanosecond: i128,
    ) -> Result<(), StoreError> {
        let named = self.store.under(Manager::Controller(self.notice.component));
        let store = named.as_deref().unwrap_or(self.store);
        for _ in 0..TRIES {
            let written = if let Some(event) = before {
                store.replace(count_up(typed(event)?, self.now)?, Part::Whole).await
            } else {
                let event = new_event(self.about, self.notice, self.now, nanosecond)?;
                store.create(event).await
            };
            match written {
                Ok(event) => {
                    if let Some(told) = store.event_cache() {
                        told.remember(self.about, self.notice, &event);
                    }
                    return Ok(());
                }
                Err(StoreError::AlreadyExists { .. }) => nanosecond += 1,
                Err(StoreError::Conflict { .. } | StoreError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            before = if let Some(told) = store.event_cache() {
                told.forget(self.about, self.notice);
                None
            } else {
                self.same_of(&list_events(store, self.about).await?).cloned()
            };
        }
        Err(StoreError::Conflict { key: Key::new(Kind::Event, name(self.about, nanosecond)) })
    }

    /// Finds the last event with this content.
    fn same_of<'r>(&self, told: &'r [Record]) -> Option<&'r Record> {
        let severity = match self.notice.severity {
            Severity::Normal => "Normal",
            Severity::Warning => "Warning",
        };
        told.iter().rfind(|record| {
            record.text("/reason") == self.notice.reason
                && record.text("/message") == self.notice.message
                && record.text("/type") == severity
                && record.text("/source/component") == self.notice.component
        })
    }
}

/// Namespace of the events about objects in a namespace, or in none.
pub fn home(namespace: &str) -> &str {
    if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace }
}

/// The reference by which an event names an object.
pub fn reference<S, T>(resource: &Resource<S, T>) -> ObjectReference {
    ObjectReference {
        api_version: resource.api_version.clone(),
        kind: resource.kind.clone(),
        name: resource.metadata.name.clone(),
        namespace: resource.metadata.namespace.clone(),
        resource_version: resource.metadata.resource_version.clone(),
        uid: resource.metadata.uid.clone(),
    }
}

async fn list_events(
    store: &dyn Store,
    about: &ObjectReference,
) -> Result<Vec<Record>, StoreError> {
    store.list(Kind::Event, &Scope::about(&about.uid).within(home(&about.namespace))).await
}

fn count_up(mut event: Event, now: Timestamp) -> Result<Record, StoreError> {
    event.tell_again(now);
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

/// Makes a name; names sort by time: sixteen hexadecimal digits hold nanoseconds until 2554.
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
