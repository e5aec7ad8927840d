//! Pods, Services and Ingresses, with the fields of Kubernetes that a rule reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Metadata;
use crate::model::common::{Condition, is_true};

/// Annotation that held the class of an Ingress before there was a field.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
/// Annotation that makes a class the default if its value is `true`.
const DEFAULT_CLASS_ANNOTATION: &str = "ingressclass.kubernetes.io/is-default-class";

/// A Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PodCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: PodSpecCase,
    /// Status.
    pub status: PodStatusCase,
}

/// Specification of a Pod.
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

/// Status of a Pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PodStatusCase {
    /// `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
    pub phase: String,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// State of each container.
    pub container_statuses: Vec<ContainerStatusCase>,
    /// Reason for the state of the Pod as a whole, such as `Evicted`.
    pub reason: String,
}

/// State of a container.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerStatusCase {
    /// Name.
    pub name: String,
    /// Number of restarts.
    pub restart_count: u32,
    /// Current state.
    pub state: ContainerStateCase,
    /// Previous state.
    pub last_state: ContainerStateCase,
}

/// State of a container that waits or has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ContainerStateCase {
    /// Reason of the wait, if the container waits.
    pub waiting: Option<ContainerReason>,
    /// Reason of the end, if the container has ended.
    pub terminated: Option<ContainerReason>,
}

/// Reason why a container waits, or has ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContainerReason {
    /// A word, such as `ImagePullBackOff`.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Exit code of an ended container.
    pub exit_code: i32,
}

/// A Service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: ServiceSpecCase,
    /// Status.
    pub status: BalancedStatus,
}

/// Specification of a Service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceSpecCase {
    /// `ClusterIP`, `NodePort` or `LoadBalancer`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels of the Service's Pods.
    pub selector: BTreeMap<String, String>,
    /// `Cluster` or `Local`; empty if nothing comes from outside.
    pub external_traffic_policy: String,
}

/// Status of an object that may have a load balancer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BalancedStatus {
    /// Addresses of the load balancer.
    pub load_balancer: BalancerAddresses,
}

/// Addresses of a load balancer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BalancerAddresses {
    /// One entry for each address.
    pub ingress: Vec<BalancerAddress>,
}

/// One address of a load balancer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BalancerAddress {
    /// IP address.
    pub ip: String,
    /// Host name, if there is no IP address.
    pub hostname: String,
}

/// Route of OpenShift, which OpenShift's ingress controller makes of an Ingress; the Ingress owns the Route.
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
    pub ingress: Vec<OpenShiftRouterStatus>,
}

/// The entry of one router in the status of a Route of OpenShift.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct OpenShiftRouterStatus {
    /// Conditions; `Admitted` says whether the router serves the Route.
    pub conditions: Vec<Condition>,
}

/// Endpoints of a Service.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointSliceCase {
    /// Metadata; the label `kubernetes.io/service-name` names the Service.
    pub metadata: Metadata,
    /// Endpoints; `None` if the API server sends `null`.
    pub endpoints: Option<Vec<EndpointCase>>,
}

/// One endpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct EndpointCase {
    /// Addresses.
    pub addresses: Vec<String>,
    /// Readiness of the endpoint.
    pub conditions: EndpointConditions,
}

/// Readiness of an endpoint.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct EndpointConditions {
    /// Whether the endpoint is ready; `None` counts as ready.
    pub ready: Option<bool>,
}

/// An Ingress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: IngressSpecCase,
    /// Status, with the addresses.
    pub status: BalancedStatus,
}

/// Specification of an Ingress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSpecCase {
    /// Class.
    pub ingress_class_name: Option<String>,
    /// Rules.
    pub rules: Vec<IngressRuleCase>,
    /// Hosts with TLS, and the Secrets with the hosts' certificates.
    pub tls: Vec<IngressTlsCase>,
}

/// Hosts of an Ingress with TLS.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTlsCase {
    /// Hosts.
    pub hosts: Vec<String>,
    /// Name of the Secret; empty if the controller's own certificate is shown.
    pub secret_name: String,
}

/// A rule of an Ingress.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressRuleCase {
    /// Host; empty for every host.
    pub host: String,
    /// Paths.
    pub http: IngressPaths,
}

/// Paths of a rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressPaths {
    /// One entry for each path.
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
    /// Specification.
    pub spec: IngressClassSpec,
}

/// Specification of a class of Ingresses.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct IngressClassSpec {
    /// Controller that serves the class.
    pub controller: String,
}

impl PodCase {
    /// Reports whether the Pod takes requests.
    pub fn is_ready(&self) -> bool {
        is_true(&self.status.conditions, "Ready")
    }
}

impl IngressCase {
    /// Returns the class of the Ingress, by field or annotation.
    pub fn class(&self) -> Option<&str> {
        let annotated = || self.metadata.annotations.get(CLASS_ANNOTATION).map(String::as_str);
        self.spec.ingress_class_name.as_deref().or_else(annotated)
    }

    /// Returns the addresses of the Ingress: IP addresses or host names.
    pub fn addresses(&self) -> Vec<&str> {
        self.status.addresses()
    }

    /// Reports whether the Ingress has a rule for a host.
    pub fn has_host(&self, host: &str) -> bool {
        self.spec.rules.iter().any(|rule| rule.host.eq_ignore_ascii_case(host))
    }
}

impl IngressClassCase {
    /// Reports whether the class is the default for Ingresses that name no class.
    pub fn is_default(&self) -> bool {
        self.metadata.annotations.get(DEFAULT_CLASS_ANNOTATION).is_some_and(|value| value == "true")
    }
}

impl BalancedStatus {
    /// Returns the addresses: IP addresses or host names.
    pub fn addresses(&self) -> Vec<&str> {
        let all = self.load_balancer.ingress.iter().flat_map(|one| [&one.ip, &one.hostname]);
        all.map(String::as_str).filter(|one| !one.is_empty()).collect()
    }
}
