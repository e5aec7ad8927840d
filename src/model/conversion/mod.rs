//! Old API versions to `v1` (cert-manager up to 0.16, and up to 1.5 for those who never changed their files).
//!
//! Conversion works on the tree, so that complaints about a field still know its line. What has a counterpart is moved
//! there with a warning; what has none is refused with the field that must change.

mod acme_config;
mod renames;

use super::manifest::{Draft, Node};
use super::metadata::Kind;

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
    /// Reads the `apiVersion` of a manifest of that kind; nothing when it is no old one.
    pub fn parse(api_version: &str, kind: Kind) -> Option<Self> {
        let (group, version) = api_version.split_once('/')?;
        if kind.group().is_empty() {
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

/// Converts every draft that is written in an old version.
///
/// It takes the whole set, because up to 0.10 the solvers of an Issuer were chosen in its Certificates.
pub(crate) fn convert(drafts: &mut [Draft]) {
    let mut changes = acme_config::move_to_issuers(drafts);
    changes.resize(drafts.len(), Vec::new());
    for (draft, mut changes) in drafts.iter_mut().zip(changes) {
        let Some(version) = draft.version else { continue };
        changes.extend(renames::rename(draft, version));
        let now = draft.kind.api_version();
        let was = draft.node.text_of("apiVersion").to_owned();
        let mut message = format!("{was} is an old version, read as {now}");
        if !changes.is_empty() {
            message = format!("{message}: {}", changes.join("; "));
        }
        draft.warn("apiVersion", message);
        if let Some(field) = draft.node.get_mut("apiVersion") {
            *field = Node::text(field.at, now);
        }
    }
}
