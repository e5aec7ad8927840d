//! Fields that have another name, place or spelling in `v1`.

use super::ingress;
use crate::model::field::FieldPath;
use crate::model::key::Kind;
use crate::model::manifest::draft::Version;
use crate::model::manifest::{Content, Draft, Node};

/// Rename of a field in a Certificate's spec: last version with the field, old name, new path, spelling of the values.
type Rename = (Version, &'static str, &'static str, fn(&str) -> String);

const CERTIFICATE_FIELDS: [Rename; 6] = [
    (Version::V1Alpha2, "organization", "subject.organizations", str::to_owned),
    (Version::V1Alpha3, "keyAlgorithm", "privateKey.algorithm", str::to_uppercase),
    (Version::V1Alpha3, "keySize", "privateKey.size", str::to_owned),
    (Version::V1Alpha3, "keyEncoding", "privateKey.encoding", str::to_uppercase),
    (Version::V1Beta1, "uriSANs", "uris", str::to_owned),
    (Version::V1Beta1, "emailSANs", "emailAddresses", str::to_owned),
];

/// DNS providers whose key was written in lower case up to `v1alpha3`.
const PROVIDER_KEYS: [(&str, &str); 3] =
    [("clouddns", "cloudDNS"), ("azuredns", "azureDNS"), ("acmedns", "acmeDNS")];

/// Annotations of `v1alpha1`, each with its successor.
const ANNOTATIONS: [(&str, &str); 9] = [
    ("certmanager.k8s.io/issuer", "cert-manager.io/issuer"),
    ("certmanager.k8s.io/cluster-issuer", "cert-manager.io/cluster-issuer"),
    ("certmanager.k8s.io/alt-names", "cert-manager.io/alt-names"),
    ("certmanager.k8s.io/ip-sans", "cert-manager.io/ip-sans"),
    ("certmanager.k8s.io/common-name", "cert-manager.io/common-name"),
    ("certmanager.k8s.io/issuer-name", "cert-manager.io/issuer-name"),
    ("certmanager.k8s.io/issuer-kind", "cert-manager.io/issuer-kind"),
    ("certmanager.k8s.io/acme-http01-edit-in-place", "acme.cert-manager.io/http01-edit-in-place"),
    ("certmanager.k8s.io/acme-http01-ingress-class", "acme.cert-manager.io/http01-ingress-class"),
];

/// Returns the current name of an annotation that cert-manager read up to 0.10.
pub(super) fn new_annotation(name: &str) -> Option<&'static str> {
    ANNOTATIONS.iter().find_map(|(old, new)| (*old == name).then_some(*new))
}

/// Annotations of `v1alpha1` that have no successor.
const GONE_ANNOTATIONS: [&str; 2] =
    ["certmanager.k8s.io/acme-challenge-type", "certmanager.k8s.io/acme-dns01-provider"];

/// Renames the fields of one draft and returns what was changed, in words.
pub(super) fn rename(draft: &mut Draft, version: Version) -> Vec<String> {
    let mut changes = Vec::new();
    if version == Version::V1Alpha1 {
        annotations(&mut draft.node, &mut changes);
    }
    match draft.kind {
        Kind::Certificate => certificate(draft, version, &mut changes),
        Kind::ClusterIssuer | Kind::Issuer if version <= Version::V1Alpha3 => {
            issuer(&mut draft.node, &mut changes);
        }
        Kind::Ingress => changes.extend(ingress::convert(&mut draft.node)),
        Kind::CertificateRequest
        | Kind::Challenge
        | Kind::ClusterIssuer
        | Kind::Event
        | Kind::Gateway
        | Kind::Issuer
        | Kind::ListenerSet
        | Kind::Order
        | Kind::Secret => {}
    }
    changes
}

fn certificate(draft: &mut Draft, version: Version, changes: &mut Vec<String>) {
    if let Some(group) = draft.node.get_mut("spec.issuerRef.group")
        && group.as_text() == Some("certmanager.k8s.io")
    {
        *group = Node::text(group.at, "cert-manager.io");
        changes.push("spec.issuerRef.group is now cert-manager.io".to_owned());
    }
    let mut clashes = Vec::new();
    let Some(spec) = draft.node.get_mut("spec") else { return };
    for (last, old, new, spelling) in CERTIFICATE_FIELDS {
        if version > last || spec.get(old).is_none() {
            continue;
        }
        if spec.get(new).is_some_and(|value| !value.is_null()) {
            clashes.push((old, new));
            continue;
        }
        let Some(mut entry) = spec.take(old) else { continue };
        if let Content::Text(text) = &mut entry.value.content {
            *text = spelling(text);
        }
        spec.put(new, entry.value);
        changes.push(format!("spec.{old} is now spec.{new}"));
    }
    for (old, new) in clashes {
        let path = FieldPath::of("spec").key(old);
        draft.found.error(&path, format!("is the old name of spec.{new}, which is there too"));
    }
}

fn issuer(node: &mut Node, changes: &mut Vec<String>) {
    let Some(solvers) = node.get_mut("spec.acme.solvers") else { return };
    for (index, solver) in solvers.items_mut().iter_mut().enumerate() {
        let Some(dns01) = solver.get_mut("dns01") else { continue };
        for (old, new) in provider_keys(dns01) {
            changes.push(format!("spec.acme.solvers[{index}].dns01.{old} is now {new}"));
        }
    }
}

/// Writes provider keys as `v1` does and returns the changed keys, each old and new.
pub(super) fn provider_keys(dns01: &mut Node) -> Vec<(&'static str, &'static str)> {
    let entries = dns01.entries_mut().map(Vec::as_mut_slice).unwrap_or_default();
    let mut changed = Vec::new();
    for entry in entries {
        if let Some((old, new)) = PROVIDER_KEYS.into_iter().find(|(old, _)| entry.key == *old) {
            new.clone_into(&mut entry.key);
            changed.push((old, new));
        }
    }
    changed
}

fn annotations(node: &mut Node, changes: &mut Vec<String>) {
    let Some(annotations) = node.get_mut("metadata.annotations") else { return };
    for (old, new) in ANNOTATIONS {
        for entry in annotations.entries_mut().into_iter().flatten().filter(|e| e.key == old) {
            new.clone_into(&mut entry.key);
            changes.push(format!("annotation {old} is now {new}"));
        }
    }
    for gone in GONE_ANNOTATIONS {
        if annotations.take(gone).is_some() {
            changes.push(format!("annotation {gone} is gone: the issuer's solvers decide"));
        }
    }
}
