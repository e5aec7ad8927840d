//! Kinds of objects, other than this program's own, that lead to Certificates.

use super::path::{GATEWAYS, INGRESSES, LISTENER_SETS, PODS, ROUTES, SERVICES};
use crate::model::Kind;
use crate::store::cluster::raw_objects::Resource;

/// Hint with the names of the kinds, for an unknown kind.
pub(super) const KINDS: &str = "kinds that lead to Certificates: ingress, gateway, listenerset, httproute, service, pod, secret";

/// Kind of object, other than this program's own, that leads to Certificates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelatedKind {
    Gateway,
    HttpRoute,
    Ingress,
    ListenerSet,
    Pod,
    Secret,
    Service,
}

impl RelatedKind {
    /// Parses `KIND/NAME`, with kubectl's names for kinds.
    pub(super) fn parse(word: &str) -> Option<(Self, String)> {
        let (kind, name) = word.split_once('/')?;
        // The API group may follow the kind.
        let kind = kind.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let kind = match kind.as_str() {
            "gateway" | "gateways" | "gtw" => Self::Gateway,
            "httproute" | "httproutes" => Self::HttpRoute,
            "ingress" | "ingresses" | "ing" => Self::Ingress,
            "listenerset" | "listenersets" | "lset" => Self::ListenerSet,
            "pod" | "pods" | "po" => Self::Pod,
            "secret" | "secrets" => Self::Secret,
            "service" | "services" | "svc" => Self::Service,
            _ => return None,
        };
        (!name.is_empty() && !name.contains('/')).then(|| (kind, name.to_owned()))
    }

    /// Names of the kind at the API server; `None` for Secrets, which every store has.
    pub(super) fn resource(self) -> Option<Resource> {
        match self {
            Self::Gateway => Some(GATEWAYS),
            Self::HttpRoute => Some(ROUTES),
            Self::Ingress => Some(INGRESSES),
            Self::ListenerSet => Some(LISTENER_SETS),
            Self::Pod => Some(PODS),
            Self::Service => Some(SERVICES),
            Self::Secret => None,
        }
    }

    /// Kind in every store; `None` for kinds that only a cluster has.
    pub(super) fn stored(self) -> Option<Kind> {
        match self {
            Self::Gateway => Some(Kind::Gateway),
            Self::Ingress => Some(Kind::Ingress),
            Self::ListenerSet => Some(Kind::ListenerSet),
            Self::HttpRoute | Self::Pod | Self::Secret | Self::Service => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_taken_as_kubectl_takes_them() {
        for (word, expected) in [
            ("ingress/shop", Some(RelatedKind::Ingress)),
            ("Ing/shop", Some(RelatedKind::Ingress)),
            ("svc/shop", Some(RelatedKind::Service)),
            ("httproutes.gateway.networking.k8s.io/shop", Some(RelatedKind::HttpRoute)),
            ("gateway.gateway.networking.k8s.io/edge", Some(RelatedKind::Gateway)),
            ("secret/tls", Some(RelatedKind::Secret)),
            ("lset/more", Some(RelatedKind::ListenerSet)),
            ("certificate/shop", None),
            ("ingress/", None),
            ("ingress/a/b", None),
            ("shop", None),
        ] {
            assert_eq!(RelatedKind::parse(word).map(|(kind, _)| kind), expected, "{word}");
        }
    }
}
