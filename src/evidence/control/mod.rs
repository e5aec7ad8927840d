//! State of the cluster: the controllers that work on the objects, and what may hinder them. A bounded number of
//! concurrent requests; each may fail, and none stores anything: the API server keeps nothing of an access review.

pub(crate) mod admission;
pub(crate) mod objects;
pub(crate) mod parts;
pub(crate) mod webhooks;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::timeout;

use super::investigator::Investigator;
use super::patience::PROBE_TIMEOUT;
use super::wanted_names;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::control::{
    ControlCase, ControllerCase, LackingCase, LapsedLeaseCase, LeaseCase, WarningCase,
};
use crate::diagnosis::case::{Case, Unobserved};
use crate::model::solver::Webhook;
use crate::model::{Certificate, Key, Kind, ObjectName};

use crate::store::cluster::lease_object::{HolderKind, LapsedLease, LeaseHolder};
use crate::store::cluster::permissions::Permission;
use crate::store::cluster::raw_objects::{RawObjects, Resource};
use crate::store::cluster::{ClusterStore, survey};
use crate::store::error::StoreError;
use crate::store::{Manager, Store};

/// Largest number of objects and namespaces that are read one by one.
pub(super) const MAX_READ: usize = 10;
/// Largest number of characters kept of a message by others.
const MAX_MESSAGE_CHARS: usize = 500;
/// Largest number of warnings that are kept.
const MAX_WARNINGS: usize = 100;
/// Namespace in which Helm installs cert-manager.
const HELM_NAMESPACE: &str = "cert-manager";
/// Label selector of cert-manager's controller.
pub(super) const CONTROLLER_LABELS: &str = "app.kubernetes.io/name=cert-manager";
/// Permissions that the controller must have in the namespace of a Certificate, by verb and resource.
const CONTROLLER_PERMISSIONS: [(&str, &str); 5] = [
    ("update", "certificates.cert-manager.io"),
    ("create", "certificaterequests.cert-manager.io"),
    ("create", "orders.acme.cert-manager.io"),
    ("create", "challenges.acme.cert-manager.io"),
    ("create", "secrets"),
];

pub(super) const DEPLOYMENTS: Resource =
    Resource { api_version: "apps/v1", kind: "Deployment", plural: "deployments.apps" };
pub(super) const PODS: Resource = Resource { api_version: "v1", kind: "Pod", plural: "pods" };
const NAMESPACES: Resource =
    Resource { api_version: "v1", kind: "Namespace", plural: "namespaces" };
const EVENTS: Resource = Resource { api_version: "v1", kind: "Event", plural: "events" };
pub(super) const DEFINITIONS: Resource = Resource {
    api_version: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions.apiextensions.k8s.io",
};

/// Objects that the requests to the cluster are about.
#[derive(Debug, Default)]
pub(super) struct ControlSubjects {
    /// Whether there is any Certificate or issuer to ask about.
    is_asked: bool,
    /// Certificates that have to be issued, a bounded number, each with the reason.
    pub(super) open: Vec<(Certificate, String)>,
    /// Namespaces of all Certificates that have to be issued.
    namespaces: BTreeSet<String>,
    /// Objects, by kind and name, that Events of others may warn about.
    objects: BTreeSet<(String, ObjectName)>,
    /// Objects applied with `kubectl apply`, a bounded number.
    pub(super) applied: Vec<Key>,
    /// Webhooks for DNS-01 that are in use, each with its issuer; a bounded number.
    pub(super) webhooks: Vec<(Key, Webhook)>,
}

impl ControlSubjects {
    pub(super) fn of(case: &Case) -> Self {
        let mut around = Self {
            is_asked: !case.certificates.is_empty() || !case.issuers.is_empty(),
            ..Self::default()
        };
        let applied = "kubectl.kubernetes.io/last-applied-configuration";
        for of in case.certificates.iter().filter(|of| of.is_open()) {
            let name = of.certificate.name();
            around.namespaces.insert(name.namespace.clone());
            let mut add = |kind: Kind, name: ObjectName| {
                around.objects.insert((kind.to_string(), name));
            };
            add(Kind::Certificate, name.clone());
            of.requests.iter().for_each(|it| add(Kind::CertificateRequest, it.name()));
            of.orders.iter().for_each(|it| add(Kind::Order, it.name()));
            of.challenges.iter().for_each(|it| add(Kind::Challenge, it.name()));
            let issuer = issuer_key(&of.certificate);
            if let Some(key) = &issuer {
                add(key.kind, key.name.clone());
            }
            let is_applied = of.certificate.metadata.annotations.contains_key(applied);
            if is_applied && around.applied.len() < MAX_READ {
                around.applied.push(Key::new(Kind::Certificate, name));
            }
            if around.open.len() < MAX_READ {
                let why = of.due.as_ref().map(|due| due.reason.clone()).unwrap_or_default();
                around.open.push((of.certificate.clone(), why));
            }
        }
        for of in &case.issuers {
            let Some(issuer) = &of.issuer else { continue };
            let is_applied = issuer.metadata.annotations.contains_key(applied);
            if is_applied && around.applied.len() < 2 * MAX_READ {
                around.applied.push(of.key.clone());
            }
        }
        around.webhooks = wanted_names::webhooks(case);
        around.webhooks.truncate(MAX_READ);
        around
    }
}

/// Reader of a cluster, which notes what could not be read.
pub(super) struct ClusterReader<'a> {
    pub(super) by: &'a Investigator,
    pub(super) cluster: &'a ClusterStore,
    pub(super) store: &'a Arc<dyn Store>,
    hidden: Mutex<BTreeMap<String, (String, bool)>>,
}

impl ClusterReader<'_> {
    pub(super) fn of(&self, resource: Resource, namespace: &str) -> RawObjects {
        self.cluster.foreign(resource, namespace, Manager::Person)
    }

    /// Returns what `read` yields within the probe timeout; otherwise notes `what` with the reason and returns `None`.
    pub(super) async fn read<T>(
        &self,
        what: &str,
        read: impl Future<Output = Result<T, StoreError>>,
    ) -> Option<T> {
        let (why, is_forbidden) = match timeout(PROBE_TIMEOUT, read).await {
            Ok(Ok(read)) => return Some(read),
            Ok(Err(StoreError::NotFound { .. })) => return None,
            Ok(Err(error)) => (error.to_string(), error.lacks_permission()),
            Err(_) => (format!("no answer within {} s", PROBE_TIMEOUT.as_secs()), false),
        };
        self.hidden.lock().insert(what.to_owned(), (why, is_forbidden));
        None
    }

    /// Lists the objects of all namespaces, or of Helm's namespace if listing all is forbidden.
    async fn everywhere(&self, resource: Resource, labels: &str) -> Vec<Value> {
        let read = async {
            match self.of(resource, "").fitting(labels, "").await {
                Err(error) if error.lacks_permission() => {
                    self.of(resource, HELM_NAMESPACE).fitting(labels, "").await
                }
                listed => listed,
            }
        };
        self.read(resource.plural, read).await.unwrap_or_default()
    }
}

impl Investigator {
    /// Reads the state of the cluster; the second value names in one line what could not be read.
    pub(super) async fn control(
        &self,
        around: &ControlSubjects,
    ) -> (ControlCase, Option<Unobserved>) {
        let (Some(cluster), Some(store)) = (&self.cluster, &self.store) else {
            return (ControlCase::default(), None);
        };
        if !around.is_asked {
            return (ControlCase::default(), None);
        }
        let look = ClusterReader { by: self, cluster, store, hidden: Mutex::default() };
        let (deployments, pods, (leases, lapsed), webhooks, definitions, namespaces, warnings) = tokio::join!(
            look.everywhere(DEPLOYMENTS, CONTROLLER_LABELS),
            look.everywhere(PODS, CONTROLLER_LABELS),
            leases(&look),
            look.configurations(),
            definitions(&look),
            namespaces(&look, around),
            warnings(&look, around),
        );
        let controllers = ClusterReader::controllers(&deployments, &pods);
        let ending = namespaces.iter().filter_map(find_ending).collect();
        let (admission, lacking, dns_webhooks, dropped, next_keys, immutable, quotas, secrets) = tokio::join!(
            look.admission(&webhooks, &namespaces),
            find_lacking(&look, around, &controllers),
            look.dns_webhooks(around, &controllers),
            look.dropped(around),
            look.next_keys(around),
            look.immutable(around),
            look.quotas(around),
            look.secrets(around),
        );
        let case = ControlCase {
            controllers,
            leases,
            lapsed,
            undefined: Vec::new(),
            admission,
            dns_webhooks,
            definitions,
            dropped,
            ending,
            next_keys,
            immutable,
            quotas,
            secrets,
            lacking,
            warnings,
        };
        (case, merge_unread(look.hidden.into_inner()))
    }
}

/// Merges everything that could not be read into one entry: separate entries would say no more.
fn merge_unread(hidden: BTreeMap<String, (String, bool)>) -> Option<Unobserved> {
    let (why, _) = hidden.values().next()?.clone();
    let is_forbidden = hidden.values().all(|(_, is_forbidden)| *is_forbidden);
    let what = hidden.into_keys().collect::<Vec<_>>().join(", ");
    Some(Unobserved { what: format!("the cluster's {what}"), why, is_forbidden })
}

pub(super) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn list<'v>(object: &'v Value, pointer: &str) -> &'v [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

pub(super) fn name_of(object: &Value) -> ObjectName {
    ObjectName::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"))
}

/// Shortens a message by others to the length that is kept.
pub(super) fn cut(said: &str) -> String {
    said.chars().take(MAX_MESSAGE_CHARS).collect()
}

async fn leases(look: &ClusterReader<'_>) -> (Vec<LeaseCase>, Vec<LapsedLeaseCase>) {
    let read = look.read("leases", survey::leases(look.cluster)).await;
    let (holders, lapsed) = read.unwrap_or_default();
    let of = |lease: LapsedLease| LapsedLeaseCase {
        namespace: lease.namespace,
        holder: lease.identity,
        renewed: lease.renewed,
    };
    let lapsed = lapsed.into_iter().map(of).collect();
    let lease = |holder: LeaseHolder| LeaseCase {
        is_ours: matches!(holder.who, HolderKind::Ours(_)),
        namespace: holder.namespace,
        holder: holder.identity,
    };
    (holders.into_iter().map(lease).collect(), lapsed)
}

/// Reads the releases that the labels of the CustomResourceDefinitions name, by definition.
async fn definitions(look: &ClusterReader<'_>) -> BTreeMap<String, String> {
    let listed = look.of(DEFINITIONS, "");
    let listed = look.read(DEFINITIONS.plural, listed.outlined(CONTROLLER_LABELS, "")).await;
    let release = |definition: &Value| {
        let label = text(definition, "/metadata/labels/app.kubernetes.io~1version");
        let name = text(definition, "/metadata/name");
        (!label.is_empty()).then(|| (name.to_owned(), label.to_owned()))
    };
    listed.unwrap_or_default().iter().filter_map(release).collect()
}

/// Reads the namespaces in which a Certificate has to be issued, a bounded number.
async fn namespaces(look: &ClusterReader<'_>, around: &ControlSubjects) -> Vec<Value> {
    let asked = around.namespaces.iter().take(MAX_READ).map(|name| async move {
        let namespace = look.of(NAMESPACES, "");
        look.read(NAMESPACES.plural, namespace.get(name)).await.flatten()
    });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Returns the name of a namespace that is being deleted, and the API server's reasons why it is not gone yet.
fn find_ending(namespace: &Value) -> Option<(String, String)> {
    let is_ending = text(namespace, "/status/phase") == "Terminating";
    let holds = list(namespace, "/status/conditions").iter();
    let holds = holds.filter(|condition| text(condition, "/status") == "True");
    let holds: Vec<&str> = holds.map(|condition| text(condition, "/message")).collect();
    is_ending.then(|| (name_of(namespace).name, cut(&holds.join("; "))))
}

/// Reads the warning Events about the objects of the case.
async fn warnings(look: &ClusterReader<'_>, around: &ControlSubjects) -> Vec<WarningCase> {
    let mut places: BTreeSet<&str> = around.namespaces.iter().map(String::as_str).collect();
    if places.len() > MAX_READ {
        places = BTreeSet::from([""]);
    }
    let listed = places.into_iter().map(|place| async move {
        let events = look.of(EVENTS, place);
        look.read(EVENTS.plural, events.fitting("", "type=Warning")).await.unwrap_or_default()
    });
    let events = join_all(listed).await.concat();
    let warning = |event: &Value| {
        let kind = text(event, "/involvedObject/kind").to_owned();
        let name = ObjectName::new(
            text(event, "/involvedObject/namespace"),
            text(event, "/involvedObject/name"),
        );
        let is_asked = around.objects.contains(&(kind.clone(), name.clone()));
        is_asked.then(|| WarningCase {
            about: format!("{kind} {name}"),
            name,
            reason: text(event, "/reason").to_owned(),
            message: cut(text(event, "/message")),
            at: last_time(event),
            count: count(event),
            by: reporter(event).to_owned(),
        })
    };
    events.iter().filter_map(warning).take(MAX_WARNINGS).collect()
}

/// Time of the last occurrence of an Event: Events of `events.k8s.io` have other fields for this time.
fn last_time(event: &Value) -> Option<Timestamp> {
    let fields = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/firstTimestamp"];
    fields.iter().find_map(|field| text(event, field).parse().ok())
}

/// Number of occurrences of an Event.
fn count(event: &Value) -> u64 {
    let fields = ["/series/count", "/count"].iter();
    fields.filter_map(|field| event.pointer(field)?.as_u64()).max().unwrap_or(1)
}

/// Name of the program that wrote an Event; empty if the Event has none.
fn reporter(event: &Value) -> &str {
    let fields = ["/reportingComponent", "/source/component"].iter();
    fields.map(|field| text(event, field)).find(|by| !by.is_empty()).unwrap_or_default()
}

/// Finds permissions that the controller's account lacks where a Certificate has to be issued. Few users may ask this.
async fn find_lacking(
    look: &ClusterReader<'_>,
    around: &ControlSubjects,
    controllers: &[ControllerCase],
) -> Vec<LackingCase> {
    // If there are several controllers, another one may work in this namespace.
    let ([controller], Some(namespace)) = (controllers, around.namespaces.first()) else {
        return Vec::new();
    };
    let account = &ObjectName::new(&controller.name.namespace, &controller.account);
    let asked = CONTROLLER_PERMISSIONS.map(|(verb, resource)| async move {
        let wanted = Permission::new(verb, resource, namespace);
        let may = timeout(PROBE_TIMEOUT, look.cluster.account_may(account, &wanted)).await;
        (may == Ok(Some(false))).then(|| LackingCase {
            account: format!("system:serviceaccount:{}:{}", account.namespace, account.name),
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            namespace: namespace.clone(),
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}
