//! Objects on the path to solvers in a cluster, read once for each namespace and kind. No request goes along the path.

pub(crate) mod gateways;
pub(crate) mod plugin_policies;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::investigator::{Investigator, MAX_NAMES};
use super::listed::{ListError, list, resource};
use super::path::plugin_policies::plugin_policies;
use super::patience::PROBE_TIMEOUT;
use super::wanted_names::{chosen, ordered};
use crate::diagnosis::case::path::{ClusterPathCase, WantedPath};
use crate::diagnosis::case::path_objects::{IngressCase, ServiceCase};
use crate::diagnosis::case::{Case, Unobserved};
use crate::model::{Challenge, ChallengeType, Event, Kind, State};
use crate::store::cluster::ClusterStore;
use crate::store::cluster::raw_objects::Resource;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Label of the objects of solvers.
const SOLVER_LABEL: &str = "acme.cert-manager.io/http01-solver=true";
/// Largest number of names of load balancers that are looked up.
const MAX_BALANCERS: usize = 5;
/// Largest number of namespaces that are listed one by one.
const MAX_NAMESPACES: usize = 5;

pub(super) const PODS: Resource = resource("v1", "Pod", "pods");
pub(super) const SERVICES: Resource = resource("v1", "Service", "services");
const EVENTS: Resource = resource("v1", "Event", "events");
const SLICES: Resource =
    resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices.discovery.k8s.io");
pub(super) const INGRESSES: Resource =
    resource("networking.k8s.io/v1", "Ingress", "ingresses.networking.k8s.io");
const CLASSES: Resource =
    resource("networking.k8s.io/v1", "IngressClass", "ingressclasses.networking.k8s.io");
const OPENSHIFT_ROUTES: Resource =
    resource("route.openshift.io/v1", "Route", "routes.route.openshift.io");
const POLICIES: Resource =
    resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies.networking.k8s.io");
pub(super) const ROUTES: Resource =
    resource("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes.gateway.networking.k8s.io");
pub(super) const GATEWAYS: Resource =
    resource("gateway.networking.k8s.io/v1", "Gateway", "gateways.gateway.networking.k8s.io");
pub(super) const LISTENER_SETS: Resource = resource(
    "gateway.networking.k8s.io/v1",
    "ListenerSet",
    "listenersets.gateway.networking.k8s.io",
);

/// Lists the names that are, or would be, answered by HTTP-01 in the cluster.
pub(super) fn wanted(case: &Case) -> Vec<WantedPath> {
    let mut all: Vec<WantedPath> = Vec::new();
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let is_proven = of.order().is_some_and(|order| {
            matches!(order.status.state, Some(State::Ready | State::Processing | State::Valid))
        });
        if is_proven {
            continue;
        }
        let namespace = &of.certificate.metadata.namespace;
        for domain in ordered(&of.certificate) {
            let is_of = |c: &&Challenge| c.spec.shown_domain() == domain;
            let (challenge, solver) = match of.current_challenges().find(is_of) {
                Some(challenge) if challenge.has_ended() || challenge.metadata.is_deleted() => {
                    continue;
                }
                Some(challenge) => (Some(challenge.name()), challenge.spec.solver.http01.clone()),
                None => match chosen(case, &of.certificate, &domain) {
                    Some(Ok(chosen)) if chosen.kind == ChallengeType::Http01 => {
                        (None, chosen.solver.http01)
                    }
                    _ => continue,
                },
            };
            let Some(solver) = solver else { continue };
            let is_known = |one: &WantedPath| one.domain == domain && one.namespace == *namespace;
            if !all.iter().any(is_known) && all.len() < MAX_NAMES {
                all.push(WantedPath { domain, namespace: namespace.clone(), challenge, solver });
            }
        }
    }
    all
}

impl Investigator {
    /// Reads the objects between the CA and the answers in a cluster; `None` if no name is answered there.
    pub(super) async fn path(
        &self,
        wanted: Vec<WantedPath>,
    ) -> Option<(ClusterPathCase, Vec<Unobserved>)> {
        let cluster = self.cluster.as_ref()?;
        let store = self.store.as_ref()?;
        if wanted.is_empty() {
            return None;
        }
        let mut namespaces: BTreeSet<String> = wanted.iter().map(|w| w.namespace.clone()).collect();
        let own = namespaces.clone();
        if namespaces.len() > MAX_NAMESPACES {
            namespaces = [String::new()].into();
        }
        let mut reader = PathReader {
            cluster,
            path: ClusterPathCase { wanted, ..ClusterPathCase::default() },
            unseen: Vec::new(),
        };
        for namespace in &namespaces {
            reader.read_solvers(namespace).await;
        }
        let plugin_policies = plugin_policies(cluster, &namespaces);
        let (policies, ()) = tokio::join!(plugin_policies, async {
            reader.read_ingresses(&own).await;
            reader.read_gateways().await;
        });
        reader.path.plugin_policies = policies;
        reader.path.balancer_names = self.balancer_names(&reader.path).await;
        // Last of all: missing objects may belong to Challenges that end meanwhile.
        for namespace in &namespaces {
            reader.read_challenges(store, namespace).await;
        }
        reader.keep_own_warnings();
        Some((reader.path, reader.unseen))
    }
}

impl Investigator {
    /// Looks up the addresses of load balancers that Ingresses and Gateways give by name; failed lookups are left out.
    async fn balancer_names(&self, path: &ClusterPathCase) -> BTreeMap<String, Vec<IpAddr>> {
        let ingresses = path.ingresses.iter().flat_map(IngressCase::addresses);
        let gateways = path.gateways.iter().flat_map(|gateway| &gateway.status.addresses);
        let all = ingresses.chain(gateways.map(|one| one.value.as_str()));
        let names: BTreeSet<&str> = all.filter(|one| one.parse::<IpAddr>().is_err()).collect();
        let looked = names.into_iter().take(MAX_BALANCERS).map(|name| async move {
            let found = self.outside(self.fetcher.resolver.addresses(name)).await.ok()?.ok()?;
            Some((name.to_owned(), found))
        });
        join_all(looked).await.into_iter().flatten().collect()
    }
}

/// Reader of one kind after the other.
pub(super) struct PathReader<'a> {
    pub(super) cluster: &'a ClusterStore,
    pub(super) path: ClusterPathCase,
    pub(super) unseen: Vec<Unobserved>,
}

impl PathReader<'_> {
    /// Reads the objects that belong to solvers in one namespace, or in all if `namespace` is empty.
    async fn read_solvers(&mut self, namespace: &str) {
        let cluster = self.cluster;
        let (pods, services, slices, routes, openshift, policies, events) = tokio::join!(
            list(cluster, PODS, namespace, SOLVER_LABEL, ""),
            list(cluster, SERVICES, namespace, SOLVER_LABEL, ""),
            list(cluster, SLICES, namespace, SOLVER_LABEL, ""),
            list(cluster, ROUTES, namespace, SOLVER_LABEL, ""),
            list(cluster, OPENSHIFT_ROUTES, namespace, SOLVER_LABEL, ""),
            list(cluster, POLICIES, namespace, "", ""),
            list::<Event>(cluster, EVENTS, namespace, "", "type=Warning"),
        );
        let by_route = |w: &WantedPath| w.solver.gateway_http_route.is_some();
        let is_by_route = self.path.wanted.iter().any(by_route);
        match &routes {
            Ok(_) => self.path.has_gateway_api = Some(true),
            Err(ListError::Undefined) => self.path.has_gateway_api = Some(false),
            Err(ListError::Failed { .. }) => {}
        }
        let mut missed: Vec<(&str, ListError)> = Vec::new();
        let path = &mut self.path;
        let mut note = |plural: &'static str, failed: Option<ListError>| match failed {
            None => path.listed.insert(format!("{plural}/{namespace}")),
            Some(failed) => {
                missed.push((plural, failed));
                false
            }
        };
        let pods = split(pods, |failed| note("pods", failed));
        let services = split(services, |failed| note("services", failed));
        let slices = split(slices, |failed| note("endpointslices", failed));
        let routes = split(routes, |failed| match failed {
            Some(_) if !is_by_route => false,
            failed => note("httproutes", failed),
        });
        // Kinds that not every cluster has, and additional evidence, are not reported as missing.
        let policies = policies.unwrap_or_default();
        let events = events.unwrap_or_default();
        self.path.pods.extend(pods);
        self.path.services.extend(services);
        self.path.endpoints.extend(slices);
        self.path.routes.extend(routes);
        self.path.openshift_routes.extend(openshift.unwrap_or_default());
        self.path.policies.extend(policies);
        self.path.warnings.extend(events);
        self.miss(namespace, missed);
    }

    /// Notes the kinds that could not be listed, as one entry for a namespace.
    fn miss(&mut self, namespace: &str, missed: Vec<(&str, ListError)>) {
        let mut plurals = Vec::new();
        let mut first = None;
        for (plural, unlisted) in missed {
            if let ListError::Failed { why, is_forbidden } = unlisted {
                plurals.push(plural);
                first.get_or_insert((why, is_forbidden));
            }
        }
        let Some((why, is_forbidden)) = first else { return };
        let place = match namespace {
            "" => "all namespaces".to_owned(),
            namespace => format!("namespace {namespace}"),
        };
        let what = format!("the solvers' {} in {place}", plurals.join(", "));
        self.unseen.push(Unobserved { what, why, is_forbidden });
    }

    /// Reads which Challenges exist: objects of solvers that belong to none of them are left over.
    async fn read_challenges(&mut self, store: &Arc<dyn Store>, namespace: &str) {
        let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
        let scope = match namespace {
            "" => Scope::all(),
            namespace => Scope::namespace(namespace),
        };
        if let Ok(Ok(found)) = timeout(PROBE_TIMEOUT, all.list(&scope.brief())).await {
            let is_up =
                |c: &Challenge| c.status.presented && !c.has_ended() && !c.metadata.is_deleted();
            let found = found.into_iter().map(|c| (c.metadata.uid.clone(), is_up(&c)));
            self.path.challenges.extend(found);
            self.path.note("challenges", namespace);
        }
    }

    /// Reads the Ingresses of all namespaces, if they may be listed: a host may be taken in another namespace.
    async fn read_ingresses(&mut self, namespaces: &BTreeSet<String>) {
        let by_ingress = |w: &WantedPath| w.solver.ingress.is_some();
        let is_wanted = self.path.wanted.iter().any(by_ingress);
        let cluster = self.cluster;
        let (everywhere, classes, balancers) = tokio::join!(
            list::<IngressCase>(cluster, INGRESSES, "", "", ""),
            list(cluster, CLASSES, "", "", ""),
            list(cluster, SERVICES, "", "", "spec.type=LoadBalancer"),
        );
        // A user with rights in one namespace only may list none of these.
        if let Ok(classes) = classes {
            self.path.classes = classes;
            self.path.note("ingressclasses", "");
        }
        let balancers: Vec<ServiceCase> = balancers.unwrap_or_default();
        let mut unaddressed = balancers.iter().filter(|it| it.status.addresses().is_empty());
        if let Some(of) = unaddressed.next().map(|service| &service.metadata) {
            let about =
                format!("type=Warning,involvedObject.kind=Service,involvedObject.name={}", of.name);
            let events = list::<Event>(cluster, EVENTS, &of.namespace, "", &about).await;
            self.path.warnings.extend(events.unwrap_or_default());
        }
        self.path.balancers = balancers;
        let found = if let Ok(found) = everywhere {
            self.path.note("ingresses", "");
            found
        } else {
            let each = namespaces.iter().map(|namespace| async move {
                (namespace, list::<IngressCase>(cluster, INGRESSES, namespace, "", "").await)
            });
            let mut all = Vec::new();
            for (namespace, found) in join_all(each).await {
                match found {
                    Ok(found) => {
                        self.path.note("ingresses", namespace);
                        all.extend(found);
                    }
                    Err(unlisted) if is_wanted => {
                        self.miss(namespace, vec![("ingresses", unlisted)]);
                    }
                    Err(_) => {}
                }
            }
            all
        };
        for ingress in &found {
            if !ingress.addresses().is_empty() {
                let class = ingress.class().unwrap_or_default().to_owned();
                *self.path.addressed.entry(class).or_default() += 1;
            }
        }
        let (label, value) = SOLVER_LABEL.split_once('=').unwrap_or_default();
        let wanted = &self.path.wanted;
        let is_about = |ingress: &IngressCase| {
            let metadata = &ingress.metadata;
            metadata.labels.get(label).is_some_and(|found| found == value)
                || wanted.iter().any(|w| ingress.has_host(&w.domain))
                || wanted.iter().any(|w| {
                    let edited = w.solver.ingress.as_ref().map(|ingress| ingress.name.as_str());
                    w.namespace == metadata.namespace && edited == Some(metadata.name.as_str())
                })
        };
        self.path.ingresses = found.into_iter().filter(is_about).collect();
    }

    /// Keeps only the Events about objects that were read.
    fn keep_own_warnings(&mut self) {
        let path = &self.path;
        let pods = path.pods.iter().map(|one| &one.metadata.uid);
        let services = path.services.iter().map(|one| &one.metadata.uid);
        let ingresses = path.ingresses.iter().map(|one| &one.metadata.uid);
        let routes = path.routes.iter().map(|one| &one.metadata.uid);
        let balancers = path.balancers.iter().map(|one| &one.metadata.uid);
        let all = pods.chain(services).chain(ingresses).chain(routes).chain(balancers);
        let known: BTreeSet<String> = all.cloned().collect();
        self.path.warnings.retain(|event| known.contains(&event.involved_object.uid));
    }
}

/// Returns the listed objects, none after a failure; passes the failure, or `None`, to `note`.
fn split<T>(
    listed: Result<Vec<T>, ListError>,
    note: impl FnOnce(Option<ListError>) -> bool,
) -> Vec<T> {
    let (found, failed) = match listed {
        Ok(found) => (found, None),
        Err(failed) => (Vec::new(), Some(failed)),
    };
    note(failed);
    found
}
