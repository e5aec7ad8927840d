//! Resources in a cluster: the Kubernetes API.
//!
//! The crate `kube` is named in this folder only. Requests are raw JSON, so that fields which we do not know survive;
//! watches go through kube's runtime.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::try_join_all;
use futures_util::stream::BoxStream;
use http::Method;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};

pub use self::confinement::Confinement;
pub use self::connection::Connection;
pub use self::server_messages::{guard_that_says, is_refused_by_admission};

use self::access_request::AccessRequest;
use self::confinement::Reach;
use self::definitions::UnservedKind;
use self::request::Purpose;
use self::watching::polished;
use self::wire::{Call, Wire, path, path_of};
use super::error::{StoreError, invalid};
use super::event_cache::EventCache;
use super::object::{has_status, leave_out_bulk};
use super::{Change, Manager, Part, Scope, Store, written};
use crate::model::{Key, Kind, Record};

pub mod access_request;
mod confinement;
mod connection;
mod creating;
pub mod definitions;
mod identity;
pub mod lease;
pub mod lease_object;
mod login;
mod merging;
pub mod permissions;
pub mod raw_objects;
pub mod refusal;
mod request;
mod server_messages;
pub mod survey;
pub mod temporary;
mod watching;
mod wire;
mod writing;

/// Objects in one page of a list.
const PAGE: &str = "500";
/// Most attempts at a list whose state the server forgets.
const LISTS: u32 = 3;

/// Store on the Kubernetes API. Identity, revision, generation, deletion and validation are the server's; writes are
/// noted under the [`Manager`] of this view of it.
///
/// Beside the contract of [`Store`]: objects whose owner is deleted go a moment later; the server drops fields that the
/// definitions do not know; a watch of Secrets gives their metadata only; and a watch, once begun, fails only with a
/// fault that does not pass by itself; a permission that goes then may come back.
#[derive(Clone)]
pub struct ClusterStore {
    link: Arc<Link>,
    manager: Manager,
    /// Part of the cluster that is listed and watched; `None` for all of it.
    confined: Option<Arc<Confinement>>,
}

/// State that all views of one cluster share.
struct Link {
    wire: Wire,
    context: Option<String>,
    namespace: String,
    told: EventCache,
    /// Ends the watches when the last view is dropped.
    open: CancellationToken,
    _close: DropGuard,
}

impl ClusterStore {
    /// Connects. The server gets no request yet; a log-in plugin of the kubeconfig is run.
    ///
    /// # Errors
    /// Fails with a [`ClusterFault`](crate::store::cluster_fault::ClusterFault) if the configuration or its credentials cannot be used.
    pub async fn connect(connection: &Connection) -> Result<Self, StoreError> {
        let connected = connection.connect().await?;
        let open = CancellationToken::new();
        let link = Link {
            wire: connected.wire,
            context: connected.context,
            namespace: connected.namespace,
            told: EventCache::default(),
            _close: open.clone().drop_guard(),
            open,
        };
        Ok(Self { link: Arc::new(link), manager: Manager::Person, confined: None })
    }

    /// Makes a view for users whose Roles reach only a part: [`Scope::all`] means no more than that part.
    #[must_use]
    pub fn confined_by(&self, confinement: Confinement) -> Self {
        Self { confined: Some(Arc::new(confinement)), ..self.clone() }
    }

    /// Makes a view for users whose Role reaches only a namespace.
    #[must_use]
    pub fn confined_to(&self, namespace: &str) -> Self {
        let namespaces = BTreeSet::from([namespace.to_owned()]);
        self.confined_by(Confinement { namespaces, ..Confinement::default() })
    }

    /// URL of the API server.
    pub fn server(&self) -> &str {
        &self.link.wire.server
    }

    /// Context of the kubeconfig; `None` inside a cluster.
    pub fn context(&self) -> Option<&str> {
        self.link.context.as_deref()
    }

    /// The namespace of objects that name none: the requested namespace, else the context's.
    pub fn namespace(&self) -> &str {
        &self.link.namespace
    }

    /// Checks that the server serves the six kinds, in the version we use.
    ///
    /// # Errors
    /// Fails with [`ClusterFault::Undefined`](crate::store::cluster_fault::ClusterFault::Undefined), which names the served versions, or if the server does not answer.
    pub async fn check_definitions(&self) -> Result<(), StoreError> {
        definitions::check(&self.link.wire).await
    }

    /// Lists those of the six kinds that the server does not serve in the version that we use.
    ///
    /// # Errors
    /// Fails if the server does not answer.
    pub async fn unserved_kinds(&self) -> Result<Vec<UnservedKind>, StoreError> {
        definitions::unserved(&self.link.wire).await
    }

    /// kube's client, for resources that are not ours.
    pub fn client(&self) -> kube::Client {
        self.link.wire.client.clone()
    }

    fn wire(&self) -> &Wire {
        &self.link.wire
    }

    async fn call(&self, deed: &AccessRequest<'_>, call: Call) -> Result<Value, StoreError> {
        match self.wire().call(deed, call).await {
            Ok(answer) => Ok(answer.body),
            Err(error) => Err(definitions::explain(self.wire(), error, deed).await),
        }
    }

    async fn write(
        &self,
        deed: &AccessRequest<'_>,
        call: Call,
        key: &Key,
    ) -> Result<Record, StoreError> {
        let call = call.with("fieldManager", self.manager.name());
        polished(key.kind, self.call(deed, call).await?)
            .ok_or_else(|| invalid(key, "the server's answer is no such object"))
    }

    async fn replace_part(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        let key = record.key.clone();
        if !request::can_be(&key) {
            return Err(StoreError::NotFound { key });
        }
        let call = match part {
            Part::Whole => return self.replace_whole(record).await,
            Part::Finalizers => return self.replace_finalizers(&key, record).await,
            Part::Status if !has_status(key.kind) => {
                return Err(invalid(&key, format!("a {} has no status", key.kind)));
            }
            Part::Metadata => {
                let patch = request::metadata(&record);
                Call::new(Method::PATCH, path_of(&key)).body("application/json-patch+json", &patch)
            }
            Part::Status => {
                let deed = AccessRequest::on_status("patch", &key);
                return self.write(&deed, request::status(&record), &key).await;
            }
        };
        self.write(&AccessRequest::on("patch", &key), call, &key).await
    }

    async fn remove(&self, key: &Key, uid: Option<&str>) -> Result<Option<Record>, StoreError> {
        if !request::can_be(key) {
            return Ok(None);
        }
        let mut options = json!({ "propagationPolicy": "Background" });
        if let Some(uid) = uid {
            options["preconditions"] = json!({ "uid": uid });
        }
        let call = Call::new(Method::DELETE, path_of(key)).body("application/json", &options);
        match self.call(&AccessRequest::on("delete", key), call).await {
            // About an object that is gone the server returns a status only.
            Ok(answer) => Ok(polished(key.kind, answer).filter(|r| r.metadata().is_held())),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Requests to the server for a scope, in parts; empty if the server need not be asked.
    fn reach(&self, kind: Kind, scope: &Scope) -> Vec<Reach> {
        if let Some(confinement) = &self.confined {
            return confinement.reach(kind, scope);
        }
        let is_nowhere = !kind.is_namespaced() && scope.namespace.is_some();
        if is_nowhere { Vec::new() } else { vec![Reach::all_of(scope.clone())] }
    }

    /// Lists the objects of one part.
    async fn list_part(&self, kind: Kind, part: &Reach) -> Result<Vec<Record>, StoreError> {
        for _ in 0..LISTS {
            if let Some(records) = self.pages(kind, part).await? {
                return Ok(records);
            }
        }
        Err(request::forgotten(self.server(), kind).into())
    }

    async fn pages(&self, kind: Kind, part: &Reach) -> Result<Option<Vec<Record>>, StoreError> {
        let scope = &part.scope;
        let namespace = scope.namespace.as_deref().unwrap_or_default();
        let deed = AccessRequest::over("list", kind, namespace);
        let mut records = Vec::new();
        let mut next = String::new();
        loop {
            let mut call = Call::new(Method::GET, path(kind, namespace)).with("limit", PAGE);
            if let Some(selector) = request::selector(kind, part) {
                call = call.with("fieldSelector", selector);
            }
            if !next.is_empty() {
                call = call.with("continue", next);
            }
            let mut page = match self.wire().answer(&deed, &call).await? {
                Ok(answer) => answer.body,
                Err(status) if status.code == 410 => return Ok(None),
                Err(status) => {
                    let error = refusal::refused(self.server(), &deed, &status);
                    return Err(definitions::explain(self.wire(), error, &deed).await);
                }
            };
            if let Some(Value::Array(items)) = page.get_mut("items").map(Value::take) {
                let found = items.into_iter().filter_map(|item| polished(kind, item));
                records.extend(found.filter(|record| scope.fits(record)).map(|mut record| {
                    if scope.brief {
                        leave_out_bulk(&mut record.object);
                    }
                    record
                }));
            }
            next = page.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or("").into();
            if next.is_empty() {
                return Ok(Some(records));
            }
        }
    }
}

impl fmt::Debug for ClusterStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClusterStore({})", self.server())
    }
}

#[async_trait]
impl Store for ClusterStore {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        if !request::can_be(key) {
            return Ok(None);
        }
        let call = Call::new(Method::GET, path_of(key));
        match self.call(&AccessRequest::on("get", key), call).await {
            Ok(object) => Ok(polished(key.kind, object)),
            Err(StoreError::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        let parts = self.reach(kind, scope);
        let parts = try_join_all(parts.iter().map(|part| self.list_part(kind, part))).await?;
        let mut records: Vec<_> = parts.into_iter().flatten().collect();
        records.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(records)
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        let (key, body) = request::new(record)?;
        let call = Call::new(Method::POST, path(key.kind, &key.name.namespace));
        let call = call.body("application/json", &body);
        let deed = AccessRequest::on("create", &key).making(&body);
        written::log_write("created", "", self.write(&deed, call, &key).await)
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        let (word, before) = (written::word(part), record.resource_version().to_owned());
        written::log_write(word, &before, self.replace_part(record, part).await)
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        written::log_write("applied", "", self.apply_for(record, Purpose::Keep).await)
    }

    async fn delete(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        written::deleted(key, self.remove(key, None).await)
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<Option<Record>, StoreError> {
        written::deleted(key, self.remove(key, Some(uid)).await)
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        let open = self.link.open.clone();
        let watch = |part| watching::changes(self.wire().clone(), kind, part, open.clone());
        let mut parts: Vec<_> = self.reach(kind, &scope).into_iter().map(watch).collect();
        match parts.len() {
            0 => watching::nothing(open),
            1 => parts.remove(0),
            _ => merging::merged(parts),
        }
    }

    fn under(&self, manager: Manager) -> Option<Arc<dyn Store>> {
        Some(Arc::new(self.managed_by(manager)))
    }

    fn reaches(&self, key: &Key) -> bool {
        self.confined.as_ref().is_none_or(|part| part.holds(key))
    }

    fn in_cluster(&self) -> bool {
        true
    }

    fn event_cache(&self) -> Option<&EventCache> {
        Some(&self.link.told)
    }
}
