//! HTTPRoutes and Gateways, with the fields of Gateway API that a rule reads.

use serde::{Deserialize, Serialize};

use crate::model::Metadata;
use crate::model::common::Condition;
use crate::model::solver::ParentReference;

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
}

/// Of which namespaces routes may attach.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AllowedNamespaces {
    /// `Same` (where nothing is said), `All`, `Selector` or `None`.
    pub from: String,
}

/// How a Gateway is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GatewayStatusCase {
    /// `Accepted`, `Programmed`.
    pub conditions: Vec<Condition>,
    /// How its listeners are.
    pub listeners: Vec<ListenerStatusCase>,
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
