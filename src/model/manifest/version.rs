//! API versions before `v1`.

use crate::model::key::Kind;

/// An API version before `v1`, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `certmanager.k8s.io/v1alpha1`, cert-manager up to 0.10.
    V1Alpha1,
    /// `cert-manager.io/v1alpha2`, since 0.11.
    V1Alpha2,
    /// `cert-manager.io/v1alpha3`, since 0.15.
    V1Alpha3,
    /// `cert-manager.io/v1beta1`, since 0.16.
    V1Beta1,
}

impl Version {
    /// Reads the `apiVersion` of a manifest of the given kind; `None` if the version is not an old one.
    pub fn parse(api_version: &str, kind: Kind) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        if kind == Kind::Ingress {
            let is_old = ["extensions", kind.group()].contains(&group) && version == "v1beta1";
            return is_old.then_some(Self::V1Beta1);
        }
        if kind.group().is_empty() || Kind::ASKING.contains(&kind) {
            return None;
        }
        match version {
            "v1alpha1" if group == "certmanager.k8s.io" => Some(Self::V1Alpha1),
            "v1alpha2" if group == kind.group() => Some(Self::V1Alpha2),
            "v1alpha3" if group == kind.group() => Some(Self::V1Alpha3),
            "v1beta1" if group == kind.group() => Some(Self::V1Beta1),
            _ => None,
        }
    }
}
