//! Pods, Services and Ingresses, with the fields of Kubernetes that a rule reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Metadata;
use crate::model::common::{Condition, is_true};

/// The annotation by which an Ingress named its class before there was a field.
const CLASS: &str = "kubernetes.io/ingress.class";
/// Whose value makes a class the default.
const DEFAULT_CLASS: &str = "ingressclass.kubernetes.io/is-default-class";

/// A Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCase {
    /// Metadata.
    pub metadata: Metadata,
    /// What is to run.
    pub spec: PodSpecCase,
    /// What runs.
    pub status: PodStatusCase,
}

/// What is to run in a Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodSpecCase {
    /// Containers.
    pub containers: Vec<ContainerCase>,
}

/// A container.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerCase {
    /// Name.
    pub name: String,
    /// Image.
    pub image: String,
}

/// What runs in a Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatusCase {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// State of each container.
    pub container_statuses: Vec<ContainerStatusCase>,
    /// Why the Pod as a whole is as it is, such as `Evicted`.
    pub reason: String,
}

/// State of a container.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatusCase {
    /// Name.
    pub name: String,
    /// How often it was started again.
    pub restart_count: u32,
    /// State now.
    pub state: ContainerStateCase,
    /// State before.
    pub last_state: ContainerStateCase,
}

/// What a container does.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStateCase {
    /// It waits.
    pub waiting: Option<ContainerReason>,
    /// It has ended.
    pub terminated: Option<ContainerReason>,
}

/// Why a container waits, or how it has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerReason {
    /// A word, such as `ImagePullBackOff`.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Exit code of what has ended.
    pub exit_code: i32,
}

/// A Service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceCase {
    /// Metadata.
    pub metadata: Metadata,
    /// What it is.
    pub spec: ServiceSpecCase,
    /// Where it is.
    pub status: BalancedStatus,
}

/// What a Service is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpecCase {
    /// `ClusterIP`, `NodePort` or `LoadBalancer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels of its Pods.
    pub selector: BTreeMap<String, String>,
    /// `Cluster` or `Local`; empty where nothing comes from outside.
    pub external_traffic_policy: String,
}

/// The status of what a load balancer may stand before.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BalancedStatus {
    /// The load balancer.
    pub load_balancer: BalancerAddresses,
}

/// Addresses of a load balancer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BalancerAddresses {
    /// One entry for each.
    pub ingress: Vec<BalancerAddress>,
}

/// One address of a load balancer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BalancerAddress {
    /// IP address.
    pub ip: String,
    /// Or a name.
    pub hostname: String,
}

/// A Route of OpenShift, which its ingress controller makes of an Ingress that it owns.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenShiftRouteCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Status, by the routers.
    pub status: OpenShiftRouteStatus,
}

/// The status of a Route of OpenShift.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenShiftRouteStatus {
    /// Entries, one for each router.
    pub ingress: Vec<OpenShiftRouterWord>,
}

/// The entry of one router in the status of a Route of OpenShift.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenShiftRouterWord {
    /// Conditions; `Admitted` tells whether the router serves the Route.
    pub conditions: Vec<Condition>,
}

/// Where a Service leads.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointSliceCase {
    /// Metadata; the label `kubernetes.io/service-name` has the Service.
    pub metadata: Metadata,
    /// Endpoints; nothing where the server says `null`.
    pub endpoints: Option<Vec<EndpointCase>>,
}

/// One endpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointCase {
    /// Addresses.
    pub addresses: Vec<String>,
    /// Whether it may be asked.
    pub conditions: EndpointConditions,
}

/// Whether an endpoint may be asked.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// Nothing counts as ready.
    pub ready: Option<bool>,
}

/// An Ingress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressCase {
    /// Metadata.
    pub metadata: Metadata,
    /// What is asked for.
    pub spec: IngressSpecCase,
    /// Where it is served.
    pub status: BalancedStatus,
}

/// What an Ingress asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSpecCase {
    /// Class.
    pub ingress_class_name: Option<String>,
    /// Rules.
    pub rules: Vec<IngressRuleCase>,
    /// Hosts that are served by TLS, with the Secrets that hold their certificates.
    pub tls: Vec<IngressTlsCase>,
}

/// Hosts of an Ingress that are served by TLS.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTlsCase {
    /// Hosts.
    pub hosts: Vec<String>,
    /// Name of the Secret; empty where the controller's own certificate is shown.
    pub secret_name: String,
}

/// A rule of an Ingress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressRuleCase {
    /// Host; empty for every one.
    pub host: String,
    /// Paths.
    pub http: IngressPaths,
}

/// Paths of a rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressPaths {
    /// One entry for each.
    pub paths: Vec<IngressPathCase>,
}

/// A path of an Ingress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressPathCase {
    /// Path.
    pub path: String,
    /// `Exact`, `Prefix` or `ImplementationSpecific`.
    pub path_type: String,
}

/// A namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceCase {
    /// Metadata.
    pub metadata: Metadata,
}

/// A class of Ingresses.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressClassCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Who serves it.
    pub spec: IngressClassSpec,
}

/// Who serves a class.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressClassSpec {
    /// Controller.
    pub controller: String,
}

impl PodCase {
    /// Tells whether it takes requests.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
    }
}

impl IngressCase {
    /// The class that it asks for, by field or annotation.
    pub fn class(&self) -> Option<&str> {
        let annotated = || self.metadata.annotations.get(CLASS).map(String::as_str);
        self.spec.ingress_class_name.as_deref().or_else(annotated)
    }

    /// Its addresses, IP addresses or names.
    pub fn addresses(&self) -> Vec<&str> {
        self.status.addresses()
    }

    /// Tells whether it has a rule for a host.
    pub fn has_host(&self, host: &str) -> bool {
        self.spec.rules.iter().any(|rule| rule.host.eq_ignore_ascii_case(host))
    }
}

impl IngressClassCase {
    /// Tells whether it is meant where an Ingress names none.
    pub fn is_default(&self) -> bool {
        self.metadata.annotations.get(DEFAULT_CLASS).is_some_and(|value| value == "true")
    }
}

impl BalancedStatus {
    /// Addresses, IP addresses or names.
    pub fn addresses(&self) -> Vec<&str> {
        let all = self.load_balancer.ingress.iter().flat_map(|one| [&one.ip, &one.hostname]);
        all.map(String::as_str).filter(|one| !one.is_empty()).collect()
    }
}
