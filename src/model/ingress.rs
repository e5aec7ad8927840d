//! Ingress, Gateway and ListenerSet, as far as they ask for Certificates.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::common::Other;
use super::key::{Key, Kind};
use super::metadata::{Metadata, OwnerReference, Resource};
use super::names::ObjectName;

/// `networking.k8s.io/v1` Ingress.
pub type Ingress = Resource<IngressSpec, Value>;
/// `gateway.networking.k8s.io/v1` Gateway.
pub type Gateway = Resource<GatewaySpec, Value>;
/// `gateway.networking.k8s.io/v1` ListenerSet.
pub type ListenerSet = Resource<ListenerSetSpec, Value>;

/// Hosts and Secrets of an Ingress.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressSpec {
    /// Hosts, each group with the Secret that serves them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tls: Vec<IngressTls>,
    /// Everything else, such as `rules`.
    #[serde(flatten)]
    pub other: Other,
}

/// Hosts that one Secret serves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct IngressTls {
    /// Names, or addresses.
    pub hosts: Vec<String>,
    /// Name of the Secret.
    pub secret_name: String,
}

/// Listeners of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    /// Listeners of the Gateway.
    pub listeners: Vec<GatewayListener>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// Listeners that are added to a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSetSpec {
    /// Gateway that gets the listeners.
    pub parent_ref: ParentGateway,
    /// Listeners to be added.
    pub listeners: Vec<GatewayListener>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// The Gateway of a ListenerSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentGateway {
    /// Name of the Gateway.
    pub name: String,
    /// Namespace of the Gateway; that of the ListenerSet when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// One listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewayListener {
    /// Name of the listener.
    pub name: String,
    /// Host that the listener serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Protocol; listeners for `HTTPS` and `TLS` have certificates.
    pub protocol: String,
    /// TLS settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// TLS settings of a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// `Terminate` (which the API server writes if the field is absent) or `Passthrough`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// References to Secrets.
    pub certificate_refs: Vec<CertificateReference>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// Reference to the certificate of a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateReference {
    /// Group; empty for Secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind; `Secret` when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Namespace; that of the listener when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    pub name: String,
}

/// An object whose annotations may ask for Certificates.
#[derive(Clone, Debug, PartialEq)]
pub enum IngressLike {
    /// An Ingress.
    Ingress(Ingress),
    /// A Gateway.
    Gateway(Gateway),
    /// A ListenerSet.
    ListenerSet(ListenerSet),
}

impl IngressLike {
    /// Reads an object of one of the three kinds; an object of any other kind is read as an Ingress.
    ///
    /// # Errors
    /// Fails if the object does not have the shape of its kind.
    pub fn deserialize_as(kind: Kind, object: &Value) -> Result<Self, serde_json::Error> {
        if kind == Kind::Gateway {
            Gateway::deserialize(object).map(Self::Gateway)
        } else if kind == Kind::ListenerSet {
            ListenerSet::deserialize(object).map(Self::ListenerSet)
        } else {
            Ingress::deserialize(object).map(Self::Ingress)
        }
    }

    /// Returns the kind of the object.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ingress(_) => Kind::Ingress,
            Self::Gateway(_) => Kind::Gateway,
            Self::ListenerSet(_) => Kind::ListenerSet,
        }
    }

    /// Returns name, annotations and other metadata.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Ingress(ingress) => &ingress.metadata,
            Self::Gateway(gateway) => &gateway.metadata,
            Self::ListenerSet(set) => &set.metadata,
        }
    }

    /// Returns the key of the object.
    pub fn key(&self) -> Key {
        Key::new(self.kind(), self.metadata().object_name())
    }

    /// Returns the Gateway to which a ListenerSet adds its listeners; `None` for other kinds.
    pub fn parent(&self) -> Option<ObjectName> {
        let Self::ListenerSet(set) = self else { return None };
        let parent = &set.spec.parent_ref;
        let given = parent.namespace.as_ref().filter(|namespace| !namespace.is_empty());
        Some(ObjectName::new(given.unwrap_or(&set.metadata.namespace), &parent.name))
    }

    /// Returns the reference by which Certificates name the object as their managing owner.
    pub fn owner_reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind().api_version().to_owned(),
            kind: self.kind().as_str().to_owned(),
            name: self.metadata().name.clone(),
            uid: self.metadata().uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }

    /// Reports whether any TLS entry of the object names the given Secret.
    pub fn names_secret(&self, secret: &str) -> bool {
        match self {
            Self::Ingress(ingress) => ingress.spec.tls.iter().any(|tls| tls.secret_name == secret),
            Self::Gateway(Gateway { spec: GatewaySpec { listeners, .. }, .. })
            | Self::ListenerSet(ListenerSet { spec: ListenerSetSpec { listeners, .. }, .. }) => {
                let all = listeners.iter().filter_map(|listener| listener.tls.as_ref());
                all.flat_map(|tls| &tls.certificate_refs).any(|one| one.name == secret)
            }
        }
    }
}
