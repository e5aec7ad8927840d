//! Objects that serve a route: Gateways, ListenerSets, and the labels and grants that permit references between them.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::{GATEWAYS, PathReader};
use crate::diagnosis::case::Unobserved;
use crate::diagnosis::case::gateway_objects::{GatewayCase, ListenerCase, ListenerSetCase};
use crate::diagnosis::case::path_objects::NamespaceCase;
use crate::evidence::listed::{ListError, late, list, resource, typed};
use crate::evidence::patience::PROBE_TIMEOUT;
use crate::model::ObjectName;
use crate::model::solver::ParentReference;
use crate::store::Manager;
use crate::store::cluster::raw_objects::Resource;
use crate::store::error::StoreError;

/// Largest number of objects of one kind that are read one by one.
const MAX_NAMED: usize = 10;

const NAMESPACES: Resource = resource("v1", "Namespace", "namespaces");
const LISTENER_SETS: Resource = resource(
    "gateway.networking.k8s.io/v1",
    "ListenerSet",
    "listenersets.gateway.networking.k8s.io",
);
// Every release of Gateway API serves this version.
const GRANTS: Resource = resource(
    "gateway.networking.k8s.io/v1beta1",
    "ReferenceGrant",
    "referencegrants.gateway.networking.k8s.io",
);

impl PathReader<'_> {
    /// Reads the parents that solvers and their routes name, and the objects that these refer to.
    pub(crate) async fn read_gateways(&mut self) {
        let (mut gateways, mut sets) = (BTreeSet::new(), BTreeSet::new());
        let mut name = |parent: &ParentReference, own: &str| {
            let namespace = parent.namespace.as_deref().unwrap_or(own);
            let name = ObjectName::new(namespace, &parent.name);
            match parent.kind.as_deref().unwrap_or("Gateway") {
                "Gateway" => gateways.insert(name),
                "ListenerSet" => sets.insert(name),
                _ => false,
            };
        };
        for wanted in &self.path.wanted {
            let parents = wanted.solver.gateway_http_route.iter().flat_map(|g| &g.parent_refs);
            parents.for_each(|parent| name(parent, &wanted.namespace));
        }
        for route in &self.path.routes {
            let own = &route.metadata.namespace;
            route.spec.parent_refs.iter().for_each(|parent| name(parent, own));
        }
        let sets: Vec<ListenerSetCase> = self.each("listenersets", LISTENER_SETS, sets).await;
        for set in &sets {
            let parent = &set.spec.parent_ref;
            let namespace = parent.namespace.as_ref().unwrap_or(&set.metadata.namespace);
            gateways.insert(ObjectName::new(namespace, &parent.name));
        }
        self.path.listener_sets = sets;
        let gateways: Vec<GatewayCase> = self.each("gateways", GATEWAYS, gateways).await;
        self.path.gateways = gateways;
        self.read_namespaces().await;
        self.read_grants().await;
    }

    /// Reads the named objects of a kind; none if the cluster does not define the kind.
    async fn each<T: DeserializeOwned>(
        &mut self,
        plural: &str,
        resource: Resource,
        names: BTreeSet<ObjectName>,
    ) -> Vec<T> {
        let cluster = self.cluster;
        let read = names.into_iter().take(MAX_NAMED).map(|name| async move {
            let all = cluster.foreign(resource, &name.namespace, Manager::Person);
            let found = timeout(PROBE_TIMEOUT, all.get(&name.name)).await;
            (name, found)
        });
        let mut all = Vec::new();
        for (name, found) in join_all(read).await {
            let shown = match name.namespace.as_str() {
                "" => name.name.clone(),
                _ => name.to_string(),
            };
            let (why, is_forbidden) = match found {
                Ok(Ok(found)) => {
                    self.path.note(plural, &shown);
                    all.extend(found.and_then(typed));
                    continue;
                }
                Ok(Err(StoreError::Cluster(fault))) if fault.is_undefined() => continue,
                Ok(Err(error)) => (error.to_string(), error.lacks_permission()),
                Err(_) => (late(), false),
            };
            self.unseen.push(Unobserved {
                what: format!("{} {shown}", resource.kind),
                why,
                is_forbidden,
            });
        }
        all
    }

    fn listeners(&self) -> impl Iterator<Item = (&str, &ListenerCase)> {
        let of_sets = self.path.listener_sets.iter().flat_map(|set| {
            let own = set.metadata.namespace.as_str();
            set.spec.listeners.iter().map(move |one| (own, one))
        });
        let of_gateways = self.path.gateways.iter().flat_map(|gateway| {
            let own = gateway.metadata.namespace.as_str();
            gateway.spec.listeners.iter().map(move |one| (own, one))
        });
        of_sets.chain(of_gateways)
    }

    /// Reads the labels of namespaces, if a Gateway or listener selects by them.
    async fn read_namespaces(&mut self) {
        let by_listener =
            self.listeners().any(|(_, one)| one.allowed_routes.namespaces.from == "Selector");
        let mut of_gateways = self.path.gateways.iter();
        let by_gateway =
            of_gateways.any(|one| one.spec.allowed_listeners.namespaces.from == "Selector");
        let mut names = BTreeSet::new();
        if by_listener {
            names.extend(self.path.wanted.iter().map(|wanted| wanted.namespace.clone()));
        }
        if by_gateway {
            let sets = self.path.listener_sets.iter();
            names.extend(sets.map(|set| set.metadata.namespace.clone()));
        }
        let names = names.into_iter().map(|name| ObjectName::new("", name)).collect();
        let read: Vec<NamespaceCase> = self.each("namespaces", NAMESPACES, names).await;
        let labels = read.into_iter().map(|one| (one.metadata.name, one.metadata.labels));
        self.path.namespaces.extend(labels);
    }

    /// Reads the ReferenceGrants of namespaces to which objects of other namespaces refer.
    async fn read_grants(&mut self) {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for (own, listener) in self.listeners() {
            let secrets = listener.tls.iter().flat_map(|tls| &tls.certificate_refs);
            let elsewhere = secrets.filter_map(|secret| secret.namespace.clone());
            names.extend(elsewhere.filter(|namespace| namespace != own));
        }
        for route in &self.path.routes {
            let backends = route.spec.rules.iter().flat_map(|rule| &rule.backend_refs);
            let elsewhere = backends.filter_map(|backend| backend.namespace.clone());
            names.extend(elsewhere.filter(|namespace| *namespace != route.metadata.namespace));
        }
        let cluster = self.cluster;
        let read = names.into_iter().take(MAX_NAMED).map(|namespace| async move {
            let found = list(cluster, GRANTS, &namespace, "", "").await;
            (namespace, found)
        });
        for (namespace, found) in join_all(read).await {
            match found {
                Ok(found) => {
                    self.path.note("referencegrants", &namespace);
                    self.path.grants.extend(found);
                }
                Err(ListError::Undefined) => {}
                Err(ListError::Failed { why, is_forbidden }) => {
                    let what = format!("the ReferenceGrants of namespace {namespace}");
                    self.unseen.push(Unobserved { what, why, is_forbidden });
                }
            }
        }
    }
}
