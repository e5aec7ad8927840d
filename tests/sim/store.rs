//! The store as one process has it: what an API server may do between a request and its answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use kubectl_acme::model::cause::Guard;
use kubectl_acme::model::{Key, Kind, ObjectName, Record};
use kubectl_acme::store::cluster_fault::ClusterFault;
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::event_cache::EventCache;
use kubectl_acme::store::{Change, Part, Scope, Store};
use serde_json::json;
use tokio::task::unconstrained;
use tokio::time::sleep;

use super::events::Event;
use super::plan::{Fault, Side, StoreFault, WatchFault};
use super::world::{Life, World};

/// The store of one process.
pub(crate) struct SimStore {
    life: Arc<Life>,
    told: EventCache,
}

impl std::fmt::Debug for SimStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SimStore({:?})", self.life)
    }
}

impl SimStore {
    pub(crate) fn new(life: &Arc<Life>) -> Self {
        Self { life: Arc::clone(life), told: EventCache::default() }
    }

    fn world(&self) -> &World {
        &self.life.world
    }

    fn unreachable() -> StoreError {
        let server = "https://api.example".to_owned();
        ClusterFault::Unreachable { server, why: "the connection was closed".to_owned() }.into()
    }

    /// Before something is done: what strikes, and the error instead of it.
    async fn before(
        &self,
        deed: &'static str,
        key: &Key,
    ) -> Result<Option<StoreFault>, StoreError> {
        self.life.step().await;
        let world = self.world();
        world.latency().await;
        let is_write = !matches!(deed, "get" | "list");
        if !is_write && world.setting.cluster {
            world.tell(Event::Reads { key: key.clone() });
        }
        let kind = key.kind;
        let point = format!("store {deed} {kind}");
        let fault = match world.strikes(&point) {
            // A store of our own is a file: it is busy at most.
            Some(Fault::Store { what, .. }) if world.setting.cluster => Some(what),
            Some(Fault::Store { what: StoreFault::Raced, .. }) => Some(StoreFault::Raced),
            _ if world.setting.cluster && world.is_out(Side::ApiServer) => {
                Some(StoreFault::Lost { done: false })
            }
            _ => None,
        };
        let seconds = world.elapsed() / 1000;
        if let Some(StoreFault::Forbidden(long)) = fault {
            world.forbidden.lock().insert(point.clone(), seconds + long);
        }
        let is_forbidden = world.forbidden.lock().get(&point).is_some_and(|until| *until > seconds);
        if is_forbidden {
            let verb = match deed {
                "create" => "create",
                "delete" => "delete",
                "get" => "get",
                "list" => "list",
                _ => "update",
            };
            let resource = format!("{}.{}", kind.plural(), kind.group());
            let said = "forbidden by the plan".to_owned();
            return Err(ClusterFault::Forbidden { verb, resource, namespace: None, said }.into());
        }
        match fault {
            Some(StoreFault::Lost { done: false }) => Err(Self::unreachable()),
            Some(StoreFault::Quota) if is_write => {
                let why = "exceeded quota".to_owned();
                Err(StoreError::Denied { key: key.clone(), why, guard: Guard::Quota })
            }
            Some(StoreFault::Raced) if is_write => {
                self.raced(key).await;
                Ok(None)
            }
            other => Ok(other),
        }
    }

    /// Somebody puts a label on.
    async fn raced(&self, key: &Key) {
        let world = self.world();
        if let Some(mut record) = world.peek(key) {
            let labels = &mut record.object["metadata"]["labels"];
            if !labels.is_object() {
                *labels = json!({});
            }
            labels["seen-at"] = world.elapsed().to_string().into();
            world.store.replace(record, Part::Metadata).await.unwrap();
            world.written.notify_waiters();
        }
    }

    /// Afterwards: what was done is told, and the answer may be lost.
    async fn after<T>(
        &self,
        (deed, key, before): (&'static str, Key, Option<Record>),
        fault: Option<StoreFault>,
        done: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let world = self.world();
        world.written.notify_waiters();
        let place = self.life.place;
        match &done {
            Ok(_) => {
                let after = world.peek(&key);
                if before != after {
                    let identity = self.life.identity.get().cloned();
                    let deed = deed.to_owned();
                    world.tell(Event::Wrote { place, identity, deed, key, before, after });
                }
            }
            Err(error) => {
                let (deed, key, why) = (deed.to_owned(), key.to_string(), error.to_string());
                world.tell(Event::NotWritten { place, deed, key, why });
            }
        }
        self.answered(fault).await?;
        done
    }

    async fn answered(&self, fault: Option<StoreFault>) -> Result<(), StoreError> {
        if let Some(StoreFault::Slow(seconds)) = fault {
            sleep(Duration::from_secs(seconds)).await;
        }
        self.life.step().await;
        if fault == Some(StoreFault::Lost { done: true }) {
            return Err(Self::unreachable());
        }
        Ok(())
    }
}

#[async_trait]
impl Store for SimStore {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let fault = self.before("get", key).await?;
        let read = self.world().store.get(key).await;
        self.answered(fault).await?;
        read
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let fault = self.before("list", &Key::new(kind, ObjectName::default())).await?;
        let read = self.world().store.list(kind, scope).await;
        self.answered(fault).await?;
        read
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        let fault = self.before("create", &record.key).await?;
        let given = record.key.clone();
        let done = self.world().store.create(record).await;
        let key = done.as_ref().map_or(given, |made| made.key.clone());
        self.after(("create", key, None), fault, done).await
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        let deed = match part {
            Part::Finalizers => "finalizers",
            Part::Metadata => "metadata",
            Part::Status => "status",
            Part::Whole => "whole",
        };
        let key = record.key.clone();
        let fault = self.before(deed, &key).await?;
        let before = self.world().peek(&key);
        let done = self.world().store.replace(record, part).await;
        self.after((deed, key, before), fault, done).await
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        let key = record.key.clone();
        let fault = self.before("apply", &key).await?;
        let before = self.world().peek(&key);
        let done = self.world().store.apply(record).await;
        self.after(("apply", key, before), fault, done).await
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let fault = self.before("delete", key).await?;
        let before = self.world().peek(key);
        let done = self.world().store.delete(key).await;
        self.after(("delete", key.clone(), before), fault, done).await
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        let fault = self.before("delete", key).await?;
        let before = self.world().peek(key);
        let done = self.world().store.delete_exactly(key, uid).await;
        self.after(("delete", key.clone(), before), fault, done).await
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        let watching = Watching {
            changes: self.world().store.watch(kind, scope.clone()),
            life: Arc::clone(&self.life),
            again: None,
            kind,
            scope,
        };
        stream::unfold(watching, |mut watching| async {
            let change = watching.next().await?;
            Some((change, watching))
        })
        .boxed()
    }

    fn in_cluster(&self) -> bool {
        self.world().setting.cluster
    }

    fn event_cache(&self) -> Option<&EventCache> {
        self.world().setting.cluster.then_some(&self.told)
    }
}

/// A watch that may lag, repeat itself, and begin anew.
struct Watching {
    changes: BoxStream<'static, Result<Change, StoreError>>,
    life: Arc<Life>,
    again: Option<Change>,
    kind: Kind,
    scope: Scope,
}

impl Watching {
    /// The next change, told to whoever watches in the order in which they came: tokio draws lots among those who wait for one value.
    async fn heard(&mut self, world: &World) -> Option<Result<Change, StoreError>> {
        loop {
            let mut written = pin!(world.written.notified());
            written.as_mut().enable();
            // Whoever has done much in one go is told by tokio that nothing has come.
            if let Some(change) = unconstrained(self.changes.next()).now_or_never() {
                return change;
            }
            written.await;
        }
    }

    async fn next(&mut self) -> Option<Result<Change, StoreError>> {
        if let Some(again) = self.again.take() {
            return Some(Ok(again));
        }
        let world = Arc::clone(&self.life.world);
        loop {
            let change = self.heard(&world).await?;
            self.life.step().await;
            world.latency().await;
            if world.setting.cluster
                && let Some(until) = world.is_deaf(self.kind)
            {
                sleep(Duration::from_millis(until * 1000 - world.elapsed())).await;
                self.changes = world.store.watch(self.kind, self.scope.clone());
                continue;
            }
            match world.strikes(&format!("watch {}", self.kind)) {
                Some(Fault::Watch { what: WatchFault::Lags(seconds), .. })
                    if world.setting.cluster =>
                {
                    sleep(Duration::from_secs(seconds)).await;
                }
                Some(Fault::Watch { what: WatchFault::Repeats, .. }) => {
                    self.again = change.as_ref().ok().cloned();
                }
                // A store of our own tells long what has gone, and nobody falls so far behind.
                Some(Fault::Watch { what: WatchFault::BeginsAnew, .. })
                    if world.setting.cluster =>
                {
                    self.changes = world.store.watch(self.kind, self.scope.clone());
                    continue;
                }
                _ => {}
            }
            return Some(change);
        }
    }
}
