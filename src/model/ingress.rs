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
    /// Which hosts are served by which Secret.
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
    /// The Secret.
    pub secret_name: String,
}

/// Listeners of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GatewaySpec {
    /// What it listens for.
    pub listeners: Vec<GatewayListener>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// Listeners that are added to a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerSetSpec {
    /// The Gateway.
    pub parent_ref: ParentGateway,
    /// What is listened for.
    pub listeners: Vec<GatewayListener>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// The Gateway of a ListenerSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ParentGateway {
    /// Its name.
    pub name: String,
    /// Its namespace; that of the ListenerSet when absent.
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
    /// Its name.
    pub name: String,
    /// The host it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// `HTTPS` and `TLS` have certificates.
    pub protocol: String,
    /// How TLS is ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<ListenerTls>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// How a listener ends TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ListenerTls {
    /// `Terminate` (which the API server writes where it is absent) or `Passthrough`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// The Secrets.
    pub certificate_refs: Vec<CertificateReference>,
    /// Everything else.
    #[serde(flatten)]
    pub other: Other,
}

/// Where the certificate of a listener is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CertificateReference {
    /// Group; none for Secrets.
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
    /// Reads an object of one of the three kinds; one of any other kind is read as an Ingress.
    ///
    /// # Errors
    /// Fails when it does not have the shape of its kind.
    pub fn deserialize_as(kind: Kind, object: &Value) -> Result<Self, serde_json::Error> {
        if kind == Kind::Gateway {
            Gateway::deserialize(object).map(Self::Gateway)
        } else if kind == Kind::ListenerSet {
            ListenerSet::deserialize(object).map(Self::ListenerSet)
        } else {
            Ingress::deserialize(object).map(Self::Ingress)
        }
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Ingress(_) => Kind::Ingress,
            Self::Gateway(_) => Kind::Gateway,
            Self::ListenerSet(_) => Kind::ListenerSet,
        }
    }

    /// Name, annotations and the like.
    pub fn metadata(&self) -> &Metadata {
        match self {
            Self::Ingress(ingress) => &ingress.metadata,
            Self::Gateway(gateway) => &gateway.metadata,
            Self::ListenerSet(set) => &set.metadata,
        }
    }

    /// Its key.
    pub fn key(&self) -> Key {
        Key::new(self.kind(), self.metadata().object_name())
    }

    /// The Gateway to which a ListenerSet adds its listeners.
    pub fn parent(&self) -> Option<ObjectName> {
        let Self::ListenerSet(set) = self else { return None };
        let parent = &set.spec.parent_ref;
        let given = parent.namespace.as_ref().filter(|namespace| !namespace.is_empty());
        Some(ObjectName::new(given.unwrap_or(&set.metadata.namespace), &parent.name))
    }

    /// Reference by which its Certificates name it as their managing owner.
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

    /// Tells whether any of its TLS entries names that Secret.
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
