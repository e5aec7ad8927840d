//! HTTPRoutes, Gateways, ListenerSets and ReferenceGrants, with the fields of Gateway API that a rule reads.

use serde::{Deserialize, Serialize};

use super::network_policy::LabelSelection;
use crate::model::Metadata;
use crate::model::common::Condition;
use crate::model::solver::ParentReference;

/// API group of all kinds in this module.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// An HTTPRoute.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: RouteSpecCase,
    /// Status, as the parents report it.
    pub status: RouteStatusCase,
}

/// Specification of an HTTPRoute.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteSpecCase {
    /// Hosts.
    pub hostnames: Vec<String>,
    /// Parents.
    pub parent_refs: Vec<ParentReference>,
    /// Rules for requests.
    pub rules: Vec<RouteRuleCase>,
}

/// Rule of an HTTPRoute: the back ends that get requests.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteRuleCase {
    /// Back ends.
    pub backend_refs: Vec<BackendRefCase>,
}

/// A back end of an HTTPRoute.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct BackendRefCase {
    /// API group; that of Services when empty.
    pub group: String,
    /// Kind; `Service` when empty.
    pub kind: String,
    /// Namespace; the route's when absent.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Status of an HTTPRoute, as its parents report it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteStatusCase {
    /// One entry for each parent that has reported.
    pub parents: Vec<RouteParentCase>,
}

/// Report of one parent of an HTTPRoute.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteParentCase {
    /// The parent.
    pub parent_ref: ParentReference,
    /// Controller that reports.
    pub controller_name: String,
    /// `Accepted`, `ResolvedRefs`.
    pub conditions: Vec<Condition>,
}

/// A Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: GatewaySpecCase,
    /// Status.
    pub status: GatewayStatusCase,
}

/// Specification of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpecCase {
    /// Class.
    pub gateway_class_name: String,
    /// Listeners.
    pub listeners: Vec<ListenerCase>,
    /// ListenerSets that may add listeners; none if the Gateway names none.
    pub allowed_listeners: AllowedListenersCase,
}

/// ListenerSets that may add listeners to a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedListenersCase {
    /// Namespaces of the ListenerSets.
    pub namespaces: AllowedNamespaces,
}

/// Set of listeners beside the listeners of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListenerSetCase {
    /// Metadata.
    pub metadata: Metadata,
    /// Specification.
    pub spec: ListenerSetSpecCase,
    /// Status.
    pub status: GatewayStatusCase,
}

/// Specification of a ListenerSet.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSetSpecCase {
    /// Gateway of the ListenerSet.
    pub parent_ref: ParentReference,
    /// Listeners.
    pub listeners: Vec<ListenerCase>,
}

/// Permission for objects of other namespaces to refer to objects of the grant's namespace.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReferenceGrantCase {
    /// Metadata.
    pub metadata: Metadata,
    /// References that are permitted.
    pub spec: ReferenceGrantSpec,
}

/// References that a ReferenceGrant permits.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReferenceGrantSpec {
    /// Objects that may refer.
    pub from: Vec<GrantFrom>,
    /// Objects that may be referred to.
    pub to: Vec<GrantTo>,
}

/// Objects that may refer to others.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GrantFrom {
    /// API group.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace.
    pub namespace: String,
}

/// Objects that may be referred to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GrantTo {
    /// API group; empty for Services and Secrets.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Name; every name if absent.
    pub name: Option<String>,
}

/// Reference from one object to an object of another namespace.
#[derive(Clone, Copy, Debug)]
pub struct CrossReference<'a> {
    /// Kind of the object that refers, of Gateway API.
    pub from_kind: &'a str,
    /// Namespace of the object that refers.
    pub from: &'a str,
    /// Group and kind of the target.
    pub to_kind: (&'a str, &'a str),
    /// Namespace and name of the target.
    pub to: (&'a str, &'a str),
}

impl ReferenceGrantCase {
    /// Reports whether the grant permits a reference.
    pub fn permits(&self, reference: CrossReference<'_>) -> bool {
        let CrossReference { from_kind, from, to_kind, to: (namespace, name) } = reference;
        let is_from =
            |one: &GrantFrom| one.group == GROUP && one.kind == from_kind && one.namespace == from;
        let is_to = |one: &GrantTo| {
            (one.group.as_str(), one.kind.as_str()) == to_kind
                && one.name.as_deref().is_none_or(|own| own.is_empty() || own == name)
        };
        self.metadata.namespace == namespace
            && self.spec.from.iter().any(is_from)
            && self.spec.to.iter().any(is_to)
    }
}

/// A listener of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerCase {
    /// Name.
    pub name: String,
    /// Port.
    pub port: u16,
    /// `HTTP`, `HTTPS`, `TLS`, `TCP` or `UDP`.
    pub protocol: String,
    /// Host, also as `*.example.com`; empty for every host.
    pub hostname: String,
    /// Routes that may attach.
    pub allowed_routes: AllowedRoutesCase,
    /// Certificates.
    pub tls: Option<ListenerTls>,
}

/// Certificates of a listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// Secrets with the certificates.
    pub certificate_refs: Vec<ListenerSecret>,
}

/// A Secret that a listener names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListenerSecret {
    /// Namespace; the Gateway's when absent.
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// Routes that may attach to a listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedRoutesCase {
    /// Namespaces of the routes.
    pub namespaces: AllowedNamespaces,
    /// Kinds of the routes; the kinds of the protocol if empty.
    pub kinds: Vec<RouteKindCase>,
}

/// A kind of route.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteKindCase {
    /// API group; that of Gateway API when empty.
    pub group: String,
    /// Kind.
    pub kind: String,
}

/// Namespaces from which objects may attach.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedNamespaces {
    /// `Same` (default for routes), `All`, `Selector` or `None` (default for ListenerSets).
    pub from: String,
    /// Labels of the namespaces, for `Selector`.
    pub selector: LabelSelection,
}

/// Status of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayStatusCase {
    /// `Accepted`, `Programmed`.
    pub conditions: Vec<Condition>,
    /// Status of each listener.
    pub listeners: Vec<ListenerStatusCase>,
    /// Addresses at which the Gateway is reached.
    pub addresses: Vec<GatewayAddressCase>,
}

/// An address of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayAddressCase {
    /// IP address, or a name.
    pub value: String,
}

/// Status of a listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListenerStatusCase {
    /// Name.
    pub name: String,
    /// `Accepted`, `Programmed`, `ResolvedRefs`.
    pub conditions: Vec<Condition>,
}
