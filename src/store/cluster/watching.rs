//! Watches through kube's runtime: kube lists, watches with bookmarks, lists again when it fell behind, and backs off.
//!
//! Watches of Secrets carry metadata only. Once a watch has begun, faults that pass by themselves are not reported; the
//! watch goes on when the server is back.

use std::collections::{HashSet, VecDeque};
use std::fmt;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::core::DynamicResourceScope;
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Map;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::access_request::AccessRequest;
use super::confinement::Reach;
use super::wire::Wire;
use super::{definitions, refusal, request};
use crate::model::{Key, Kind, Record};
use crate::store::error::StoreError;
use crate::store::{Change, Scope};

/// Makes the stream of a watch without changes.
pub(super) fn nothing(open: CancellationToken) -> BoxStream<'static, Result<Change, StoreError>> {
    let empty = stream::once(async { Ok(Change::Resynced(Vec::new())) });
    empty.chain(stream::pending()).take_until(open.cancelled_owned()).boxed()
}

type WatchEvents = BoxStream<'static, watcher::Result<Event<Value>>>;

/// Makes the stream of changes, which ends when `open` is cancelled.
pub(super) fn changes(
    wire: Wire,
    kind: Kind,
    reach: Reach,
    open: CancellationToken,
) -> BoxStream<'static, Result<Change, StoreError>> {
    let events = events(&wire, kind, &reach);
    let scope = reach.scope;
    let watcher = ApiWatcher {
        wire,
        kind,
        scope: Scope { brief: false, ..scope },
        events,
        listed: Vec::new(),
        told: HashSet::new(),
        begun: false,
        waiting: VecDeque::new(),
    };
    let changes = stream::unfold(watcher, |mut watcher| async {
        watcher.next().await.map(|change| (change, watcher))
    });
    changes.take_until(open.cancelled_owned()).boxed()
}

fn events(wire: &Wire, kind: Kind, reach: &Reach) -> WatchEvents {
    let (group, version) = (kind.group(), "v1");
    let named = GroupVersionKind::gvk(group, version, kind.as_str());
    let resource = ApiResource::from_gvk_with_plural(&named, &kind.plural());
    let field_selector = request::selector(kind, reach);
    let config = watcher::Config { field_selector, ..watcher::Config::default() };
    let namespace = reach.scope.namespace.as_deref().filter(|_| kind.is_namespaced());
    let client = wire.client.clone();
    // We should not hold the content of all Secrets of a cluster.
    if kind == Kind::Secret {
        return watch_objects::<PartialObjectMeta<DynamicObject>>(
            client, namespace, &resource, config,
        );
    }
    watch_objects::<DynamicObject>(client, namespace, &resource, config)
}

fn watch_objects<K>(
    client: kube::Client,
    namespace: Option<&str>,
    resource: &ApiResource,
    config: watcher::Config,
) -> WatchEvents
where
    K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>
        + Clone
        + fmt::Debug
        + Serialize
        + DeserializeOwned
        + Send
        + 'static,
{
    let api: Api<K> = match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, resource),
        None => Api::all_with(client, resource),
    };
    watcher::watcher(api, config).default_backoff().map(|event| event.map(plain)).boxed()
}

fn plain<K: Serialize>(event: Event<K>) -> Event<Value> {
    // What was read as JSON can be written as such.
    let plain = |object: K| serde_json::to_value(object).unwrap_or_default();
    match event {
        Event::Apply(object) => Event::Apply(plain(object)),
        Event::Delete(object) => Event::Delete(plain(object)),
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(plain(object)),
        Event::InitDone => Event::InitDone,
    }
}

struct ApiWatcher {
    wire: Wire,
    kind: Kind,
    scope: Scope,
    events: WatchEvents,
    /// Records that a list under way has found so far.
    listed: Vec<Record>,
    /// Objects that the watcher believes to be in the scope; kept only if they can leave it without being deleted.
    told: HashSet<Key>,
    /// Whether the watch has sent anything yet.
    begun: bool,
    waiting: VecDeque<Change>,
}

impl ApiWatcher {
    async fn next(&mut self) -> Option<Result<Change, StoreError>> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                return Some(Ok(change));
            }
            match self.events.next().await? {
                Ok(event) => self.take(event),
                Err(error) => {
                    if let Some(error) = self.handle_error(error).await {
                        return Some(Err(error));
                    }
                }
            }
        }
    }

    fn take(&mut self, event: Event<Value>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(object) => {
                let record = polished(self.kind, object);
                self.listed.extend(record.filter(|record| self.scope.fits(record)));
            }
            Event::InitDone => {
                let mut records = std::mem::take(&mut self.listed);
                records.sort_by(|one, other| one.key.cmp(&other.key));
                self.begun = true;
                self.told.clear();
                if self.scope.can_be_left() {
                    self.told.extend(records.iter().map(|record| record.key.clone()));
                }
                self.waiting.push_back(Change::Resynced(records));
            }
            Event::Apply(object) => {
                if let Some(record) = polished(self.kind, object) {
                    self.push_change(record);
                }
            }
            Event::Delete(object) => {
                let Some(record) = polished(self.kind, object) else { return };
                if self.told.remove(&record.key) || self.scope.fits(&record) {
                    self.waiting.push_back(Change::Deleted(record));
                }
            }
        }
    }

    fn push_change(&mut self, record: Record) {
        if self.scope.fits(&record) {
            if self.scope.can_be_left() {
                self.told.insert(record.key.clone());
            }
            self.waiting.push_back(Change::Applied(record));
        } else if self.told.remove(&record.key) {
            self.waiting.push_back(Change::Deleted(record));
        }
    }

    /// Returns the error if it has to be reported: before the first change, or when it does not pass by itself.
    async fn handle_error(&mut self, error: watcher::Error) -> Option<StoreError> {
        let (verb, status) = match error {
            watcher::Error::InitialListFailed(error) => ("list", answer(error)),
            watcher::Error::WatchStartFailed(error) | watcher::Error::WatchFailed(error) => {
                ("watch", answer(error))
            }
            watcher::Error::WatchError(status) => ("watch", Ok(*status)),
            watcher::Error::NoResourceVersion => return None,
        };
        let namespace = self.scope.namespace.clone().unwrap_or_default();
        let deed = AccessRequest::over(verb, self.kind, &namespace);
        let error = match status {
            // The watch fell behind; kube's watcher begins anew.
            Ok(status) if status.code == 410 => return None,
            Ok(status) => refusal::refused(&self.wire.server, &deed, &status),
            Err(error) => refusal::unanswered(&self.wire.server, &error).into(),
        };
        if self.begun && error.may_pass() {
            tracing::debug!(%error, kind = %self.kind, "the watch was cut; it begins again");
            return None;
        }
        if self.begun && error.lacks_permission() {
            tracing::warn!(%error, "this watch begins again when the permission is back");
            return None;
        }
        Some(definitions::explain(&self.wire, error, &deed).await)
    }
}

fn answer(error: kube::Error) -> Result<kube::core::Status, kube::Error> {
    match error {
        kube::Error::Api(status) => Ok(*status),
        error => Err(error),
    }
}

/// Returns an object in the form for callers: with its kind, without the book-keeping of field managers, and without an
/// empty status.
pub(crate) fn polished(kind: Kind, object: Value) -> Option<Record> {
    let Value::Object(mut fields) = object else { return None };
    fields.insert("apiVersion".into(), kind.api_version().into());
    fields.insert("kind".into(), kind.as_str().into());
    if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
        metadata.remove("managedFields");
        metadata.remove("selfLink");
    }
    if fields.get("status").and_then(Value::as_object).is_some_and(Map::is_empty) {
        fields.remove("status");
    }
    let record = Record::new(Value::Object(fields))?;
    (!record.key.name.name.is_empty()).then_some(record)
}
