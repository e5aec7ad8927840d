//! Names of objects: kind, namespace and name.

use std::fmt;

use super::names::ObjectName;

/// Kinds that this program reads and writes.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Kind {
    /// `cert-manager.io/v1` Certificate.
    Certificate,
    /// `cert-manager.io/v1` CertificateRequest.
    CertificateRequest,
    /// `acme.cert-manager.io/v1` Challenge.
    Challenge,
    /// `cert-manager.io/v1` ClusterIssuer.
    ClusterIssuer,
    /// `v1` Event.
    Event,
    /// `gateway.networking.k8s.io/v1` Gateway.
    Gateway,
    /// `networking.k8s.io/v1` Ingress.
    Ingress,
    /// `cert-manager.io/v1` Issuer.
    Issuer,
    /// `gateway.networking.k8s.io/v1` ListenerSet.
    ListenerSet,
    /// `acme.cert-manager.io/v1` Order.
    Order,
    /// `v1` Secret.
    Secret,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 11] = [
        Self::Certificate,
        Self::CertificateRequest,
        Self::Challenge,
        Self::ClusterIssuer,
        Self::Event,
        Self::Gateway,
        Self::Ingress,
        Self::Issuer,
        Self::ListenerSet,
        Self::Order,
        Self::Secret,
    ];

    /// The six kinds that cert-manager defines for ACME, in the order of the chain.
    pub const SIX: [Self; 6] = [
        Self::Certificate,
        Self::CertificateRequest,
        Self::Order,
        Self::Challenge,
        Self::Issuer,
        Self::ClusterIssuer,
    ];

    /// The kinds whose annotations ask for Certificates.
    pub const ASKING: [Self; 3] = [Self::Ingress, Self::Gateway, Self::ListenerSet];

    /// Returns the kind as manifests write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Certificate => "Certificate",
            Self::CertificateRequest => "CertificateRequest",
            Self::Challenge => "Challenge",
            Self::ClusterIssuer => "ClusterIssuer",
            Self::Event => "Event",
            Self::Gateway => "Gateway",
            Self::Ingress => "Ingress",
            Self::Issuer => "Issuer",
            Self::ListenerSet => "ListenerSet",
            Self::Order => "Order",
            Self::Secret => "Secret",
        }
    }

    /// Returns the singular in lower case, as `kubectl get -o name` writes it before the group.
    pub fn singular(self) -> String {
        self.as_str().to_ascii_lowercase()
    }

    /// Returns the plural in lower case, as in URLs.
    pub fn plural(self) -> String {
        let ending = if self == Self::Ingress { "es" } else { "s" };
        format!("{}{ending}", self.singular())
    }

    /// Returns the short names that kubectl takes.
    pub fn short_names(self) -> &'static [&'static str] {
        match self {
            Self::Certificate => &["cert", "certs"],
            Self::CertificateRequest => &["cr", "crs"],
            Self::ClusterIssuer => &["ciss"],
            Self::Event => &["ev"],
            Self::Gateway => &["gtw"],
            Self::Ingress => &["ing"],
            Self::Issuer => &["iss"],
            Self::ListenerSet => &["lset"],
            Self::Challenge | Self::Order | Self::Secret => &[],
        }
    }

    /// Returns the API group, empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Certificate | Self::CertificateRequest | Self::ClusterIssuer | Self::Issuer => {
                "cert-manager.io"
            }
            Self::Challenge | Self::Order => "acme.cert-manager.io",
            Self::Event | Self::Secret => "",
            Self::Gateway | Self::ListenerSet => "gateway.networking.k8s.io",
            Self::Ingress => "networking.k8s.io",
        }
    }

    /// Returns the `apiVersion` of manifests.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Certificate | Self::CertificateRequest | Self::ClusterIssuer | Self::Issuer => {
                "cert-manager.io/v1"
            }
            Self::Challenge | Self::Order => "acme.cert-manager.io/v1",
            Self::Event | Self::Secret => "v1",
            Self::Gateway | Self::ListenerSet => "gateway.networking.k8s.io/v1",
            Self::Ingress => "networking.k8s.io/v1",
        }
    }

    /// Reports whether objects of the kind yield certificates: Certificates, and CertificateRequests without a Certificate.
    pub fn is_issued(self) -> bool {
        matches!(self, Self::Certificate | Self::CertificateRequest)
    }

    /// Reports whether objects of the kind have a namespace.
    pub fn is_namespaced(self) -> bool {
        self != Self::ClusterIssuer
    }

    /// Finds a kind by a user's input: kind, singular, plural, short name, each with or without `.group`.
    pub fn parse(text: &str) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        Self::ALL.into_iter().find(|kind| {
            let names = [kind.singular(), kind.plural()];
            let short = kind.short_names().iter().map(|s| (*s).to_owned());
            names.into_iter().chain(short).any(|name| {
                lower == name
                    || lower == format!("{name}.{}", kind.group())
                    || lower == format!("{name}.v1.{}", kind.group())
            })
        })
    }

    /// Finds the kind of an owner to follow; objects that ask for Certificates are left out on the way up from them.
    pub fn of_owner(api_version: &str, kind: &str) -> Option<Self> {
        Self::of_manifest(api_version, kind).filter(|kind| !Self::ASKING.contains(kind))
    }

    /// Finds a kind by `apiVersion` and `kind` of a manifest.
    pub fn of_manifest(api_version: &str, kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.as_str() == kind && k.api_version() == api_version)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Kind and name: the identity of an object in a store.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Key {
    /// Kind.
    pub kind: Kind,
    /// Namespace and name.
    pub name: ObjectName,
}

impl Key {
    /// Makes a key.
    pub fn new(kind: Kind, name: ObjectName) -> Self {
        Self { kind, name }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.name)
    }
}
