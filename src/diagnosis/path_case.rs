//! What of a cluster stands between a CA and the answer to HTTP-01, without a request sent along that path: the solvers' Pods,
//! Services, Ingresses and HTTPRoutes, and what these refer to.

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

/// All that was read of the path.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterPathCase {
    /// Names that are answered by a solver in the cluster, or would be.
    pub wanted: Vec<WantedPath>,
    /// What has been listed, a plural and a namespace with `/` between them: of nothing else is it known that it is not there.
    pub listed: BTreeSet<String>,
    /// Solvers' Pods.
    pub pods: Vec<PodCase>,
    /// Solvers' Services.
    pub services: Vec<ServiceCase>,
    /// Where those lead.
    pub endpoints: Vec<EndpointSliceCase>,
    /// Solvers' Ingresses, and others of the same hosts.
    pub ingresses: Vec<IngressCase>,
    /// How many Ingresses have an address, by their class.
    pub addressed: BTreeMap<String, usize>,
    /// Classes of Ingresses.
    pub classes: Vec<IngressClassCase>,
    /// Solvers' HTTPRoutes.
    pub routes: Vec<RouteCase>,
    /// Routes that OpenShift has made of solvers' Ingresses.
    pub openshift_routes: Vec<OpenShiftRouteCase>,
    /// Gateways that solvers name; none is there for a name that stands in `wanted` alone, if it was looked for.
    pub gateways: Vec<GatewayCase>,
    /// ListenerSets that solvers name; the Gateways that these name are among the others.
    pub listener_sets: Vec<ListenerSetCase>,
    /// ReferenceGrants of namespaces to which something of another namespace refers.
    pub grants: Vec<ReferenceGrantCase>,
    /// Labels of the namespaces in which routes and ListenerSets are, where a Gateway goes by them.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
    /// NetworkPolicies.
    pub policies: Vec<NetworkPolicyCase>,
    /// Policies of service meshes and network plugins.
    pub plugin_policies: Vec<PluginPolicyCase>,
    /// Services with a load balancer.
    pub balancers: Vec<ServiceCase>,
    /// Addresses of load balancers that are known by their names alone.
    pub balancer_names: BTreeMap<String, Vec<IpAddr>>,
    /// Events that warn.
    pub warnings: Vec<Event>,
    /// UIDs of the Challenges that are there, looked for last, and whether the answer of each has to be up.
    pub challenges: BTreeMap<String, bool>,
    /// Whether the definitions of Gateway API are there.
    pub has_gateway_api: Option<bool>,
}

/// A name that is answered by HTTP-01 in the cluster, or would be.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WantedPath {
    /// Name as it is ordered.
    pub domain: String,
    /// Namespace of the objects.
    pub namespace: String,
    /// Its Challenge; nothing before there is one.
    pub challenge: Option<ObjectName>,
    /// How it is answered.
    pub solver: Http01Solver,
}

impl ClusterPathCase {
    /// Tells whether what is not known of a kind in a namespace is not there.
    pub fn has_listed(&self, plural: &str, namespace: &str) -> bool {
        let of = |namespace: &str| self.listed.contains(&format!("{plural}/{namespace}"));
        of(namespace) || of("")
    }

    /// Notes that a kind was listed in a namespace; in all of them where that is empty.
    pub fn note(&mut self, plural: &str, namespace: &str) {
        self.listed.insert(format!("{plural}/{namespace}"));
    }
}

/// How long an object has been there.
pub fn age(metadata: &Metadata, now: Timestamp) -> SignedDuration {
    metadata
        .creation_timestamp
        .map_or(SignedDuration::ZERO, |made| now.duration_since(made.timestamp()))
}
