//! HTTPRoutes, Gateways, ListenerSets and ReferenceGrants, with the fields of Gateway API that a rule reads.

use serde::{Deserialize, Serialize};

use super::network_policy::LabelSelection;
use crate::model::Metadata;
use crate::model::common::Condition;
use crate::model::solver::ParentReference;

/// The API group of all of these.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// An HTTPRoute.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteCase {
    /// Metadata.
    pub metadata: Metadata,
    /// What is asked for.
    pub spec: RouteSpecCase,
    /// What its parents say.
    pub status: RouteStatusCase,
}

/// What an HTTPRoute asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteSpecCase {
    /// Hosts.
    pub hostnames: Vec<String>,
    /// Parents.
    pub parent_refs: Vec<ParentReference>,
    /// Where requests go.
    pub rules: Vec<RouteRuleCase>,
}

/// Where an HTTPRoute leads requests.
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

/// What the parents of an HTTPRoute say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteStatusCase {
    /// One entry for each that has said anything.
    pub parents: Vec<RouteParentCase>,
}

/// What one parent of an HTTPRoute says.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RouteParentCase {
    /// Which.
    pub parent_ref: ParentReference,
    /// Whose word it is.
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
    /// What is asked for.
    pub spec: GatewaySpecCase,
    /// How it is.
    pub status: GatewayStatusCase,
}

/// What a Gateway asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpecCase {
    /// Class.
    pub gateway_class_name: String,
    /// Listeners.
    pub listeners: Vec<ListenerCase>,
    /// Which ListenerSets may add listeners; none where nothing is said.
    pub allowed_listeners: AllowedListenersCase,
}

/// Which ListenerSets may add listeners to a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedListenersCase {
    /// Of which namespaces.
    pub namespaces: AllowedNamespaces,
}

/// A set of listeners beside those of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListenerSetCase {
    /// Metadata.
    pub metadata: Metadata,
    /// What is asked for.
    pub spec: ListenerSetSpecCase,
    /// How it is.
    pub status: GatewayStatusCase,
}

/// What a ListenerSet asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSetSpecCase {
    /// Its Gateway.
    pub parent_ref: ParentReference,
    /// Listeners.
    pub listeners: Vec<ListenerCase>,
}

/// Leave for objects of other namespaces to refer to objects of this one.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReferenceGrantCase {
    /// Metadata.
    pub metadata: Metadata,
    /// To whom, for what.
    pub spec: ReferenceGrantSpec,
}

/// To whom a ReferenceGrant gives leave, and for what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReferenceGrantSpec {
    /// Who may refer.
    pub from: Vec<GrantFrom>,
    /// What may be referred to.
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
    /// Name; every one where there is none.
    pub name: Option<String>,
}

/// One object that refers to another one in a namespace that is not its own.
#[derive(Clone, Copy, Debug)]
pub struct CrossReference<'a> {
    /// Kind of who refers, of Gateway API.
    pub from_kind: &'a str,
    /// Its namespace.
    pub from: &'a str,
    /// Group and kind of what it refers to.
    pub to_kind: (&'a str, &'a str),
    /// Namespace and name of that.
    pub to: (&'a str, &'a str),
}

impl ReferenceGrantCase {
    /// Tells whether it permits a reference.
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
    /// Host, also as `*.example.com`; empty for every one.
    pub hostname: String,
    /// Which routes may attach.
    pub allowed_routes: AllowedRoutesCase,
    /// Certificates.
    pub tls: Option<ListenerTls>,
}

/// How a listener shows certificates.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// Secrets with them.
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

/// Which routes may attach to a listener.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedRoutesCase {
    /// Of which namespaces.
    pub namespaces: AllowedNamespaces,
    /// Of which kinds; those of the protocol where none is named.
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

/// Of which namespaces something may attach.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedNamespaces {
    /// `Same` (for routes where nothing is said), `All`, `Selector` or `None` (for ListenerSets where nothing is said).
    pub from: String,
    /// Labels of the namespaces, where it is `Selector`.
    pub selector: LabelSelection,
}

/// How a Gateway is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayStatusCase {
    /// `Accepted`, `Programmed`.
    pub conditions: Vec<Condition>,
    /// How its listeners are.
    pub listeners: Vec<ListenerStatusCase>,
    /// Where it is reached.
    pub addresses: Vec<GatewayAddressCase>,
}

/// An address of a Gateway.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayAddressCase {
    /// IP address, or a name.
    pub value: String,
}

/// How a listener is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ListenerStatusCase {
    /// Name.
    pub name: String,
    /// `Accepted`, `Programmed`, `ResolvedRefs`.
    pub conditions: Vec<Condition>,
}
