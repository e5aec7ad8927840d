//! Objects of a cluster between a CA and the answer to HTTP-01, without a request sent along that path: the solvers' Pods,
//! Services, Ingresses and HTTPRoutes, and the objects to which these refer.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::gateway_objects::{GatewayCase, ListenerSetCase, ReferenceGrantCase, RouteCase};
use super::network_policy::NetworkPolicyCase;
use super::path_objects::{
    EndpointSliceCase, IngressCase, IngressClassCase, OpenShiftRouteCase, PodCase, ServiceCase,
};
use super::plugin_policy::PluginPolicyCase;
use crate::model::solver::Http01Solver;
use crate::model::{Event, Metadata, ObjectName};

/// Objects that were read of the path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterPathCase {
    /// Names that a solver in the cluster answers, or would answer.
    pub wanted: Vec<WantedPath>,
    /// Listed kinds, as `PLURAL/NAMESPACE`: only for these kinds a missing object is known to be missing.
    pub listed: BTreeSet<String>,
    /// Solvers' Pods.
    pub pods: Vec<PodCase>,
    /// Solvers' Services.
    pub services: Vec<ServiceCase>,
    /// EndpointSlices of the solvers' Services.
    pub endpoints: Vec<EndpointSliceCase>,
    /// Solvers' Ingresses, and others of the same hosts.
    pub ingresses: Vec<IngressCase>,
    /// Number of Ingresses with an address, by class.
    pub addressed: BTreeMap<String, usize>,
    /// Classes of Ingresses.
    pub classes: Vec<IngressClassCase>,
    /// Solvers' HTTPRoutes.
    pub routes: Vec<RouteCase>,
    /// Routes that OpenShift has made of solvers' Ingresses.
    pub openshift_routes: Vec<OpenShiftRouteCase>,
    /// Gateways that solvers name. A Gateway named only in `wanted` does not exist, if it was looked for.
    pub gateways: Vec<GatewayCase>,
    /// ListenerSets that solvers name; the Gateways of the sets are in `gateways`.
    pub listener_sets: Vec<ListenerSetCase>,
    /// ReferenceGrants of namespaces to which objects of other namespaces refer.
    pub grants: Vec<ReferenceGrantCase>,
    /// Labels of the namespaces of routes and ListenerSets, if a Gateway selects namespaces by labels.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// NetworkPolicies.
    pub policies: Vec<NetworkPolicyCase>,
    /// Policies of service meshes and network plugins.
    pub plugin_policies: Vec<PluginPolicyCase>,
    /// Services with a load balancer.
    pub balancers: Vec<ServiceCase>,
    /// Addresses of load balancers that are known by their names alone, by name.
    pub balancer_names: BTreeMap<String, Vec<IpAddr>>,
    /// Warning Events.
    pub warnings: Vec<Event>,
    /// UIDs of the Challenges that exist, read last, each with whether its answer has to be up.
    pub challenges: BTreeMap<String, bool>,
    /// Whether the resource definitions of Gateway API exist.
    pub has_gateway_api: Option<bool>,
}

/// Name that is answered by HTTP-01 in the cluster, or would be.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedPath {
    /// Name as it is ordered.
    pub domain: String,
    /// Namespace of the objects.
    pub namespace: String,
    /// Challenge of the name; `None` before there is a Challenge.
    pub challenge: Option<ObjectName>,
    /// Solver for the name.
    pub solver: Http01Solver,
}

impl ClusterPathCase {
    /// Reports whether a kind was listed in a namespace, so that an unlisted object does not exist.
    pub fn has_listed(&self, plural: &str, namespace: &str) -> bool {
        let of = |namespace: &str| self.listed.contains(&format!("{plural}/{namespace}"));
        of(namespace) || of("")
    }

    /// Records that a kind was listed in a namespace; in all namespaces if `namespace` is empty.
    pub fn note(&mut self, plural: &str, namespace: &str) {
        self.listed.insert(format!("{plural}/{namespace}"));
    }
}

/// Returns the age of an object; zero without a creation time.
pub fn age(metadata: &Metadata, now: Timestamp) -> SignedDuration {
    metadata
        .creation_timestamp
        .map_or(SignedDuration::ZERO, |made| now.duration_since(made.timestamp()))
}
