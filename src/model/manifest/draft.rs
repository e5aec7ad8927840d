//! A document on its way from tree to typed manifest, and the API version in which it is written.

use super::fields;
use super::schema::{Findings, check};
use super::tree::{Content, FieldEntry, Node, Position};
use crate::model::field::{FieldPath, Matter, Remark};
use crate::model::key::Kind;
use crate::model::seal::Seal;
use crate::model::text::closest;

/// Object that is read from a manifest.
#[derive(Debug)]
pub(crate) struct Draft {
    /// Index of the source that has the object.
    pub(crate) source: usize,
    pub(crate) kind: Kind,
    /// Old API version of the object, if any.
    pub(crate) version: Option<Version>,
    pub(crate) node: Node,
    pub(crate) found: Findings,
}

/// Classification of a document.
pub(crate) enum DocumentKind {
    Ours(Kind, Option<Version>),
    /// Object that this program does not read; holds its kind.
    Foreign(String),
}

/// Metadata that stores write and manifests need not have.
const GIVEN_BY_STORE: [&str; 10] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generation",
    "managedFields",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];
/// Annotations of Ingresses and Gateways that name an issuer, now and up to cert-manager 0.10, or leave that to its flags.
const ISSUER_ANNOTATIONS: [&str; 5] = [
    "cert-manager.io/cluster-issuer",
    "cert-manager.io/issuer",
    "certmanager.k8s.io/cluster-issuer",
    "certmanager.k8s.io/issuer",
    "kubernetes.io/tls-acme",
];
/// Beginning of a value that SOPS has encrypted.
const SOPS_VALUE: &str = "ENC[AES256_GCM,";
/// Annotation in which kubectl leaves a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Takes lists (`kind: List`, `kind: CertificateList`) apart, as kubectl does.
pub(crate) fn expand(node: Node) -> Vec<Node> {
    let kind = node.text_of("kind").to_owned();
    let Some(item_kind) = kind.strip_suffix("List") else { return vec![node] };
    let version = node.text_of("apiVersion").to_owned();
    let mut node = node;
    let Some(FieldEntry { value: Node { content: Content::List(items), .. }, .. }) =
        node.take("items")
    else {
        return vec![node];
    };
    let complete = |mut item: Node| {
        // Items of a typed list may leave out what the list says; a field that is there is kept.
        if !item_kind.is_empty() && item.get("kind").is_none() {
            item.put("kind", Node::text(item.at, item_kind));
            item.put("apiVersion", Node::text(item.at, &*version));
        }
        item
    };
    items.into_iter().map(complete).flat_map(expand).collect()
}

/// Classifies a document; a document that is read, or that may be one, must not be encrypted.
pub(crate) fn identify(node: &Node) -> Result<DocumentKind, Remark> {
    let found = identify_clear(node);
    match (&found, find_seal(node)) {
        // Encryption in objects of other kinds does not matter.
        (Ok(DocumentKind::Foreign(kind)), _) if !kind.starts_with(SOPS_VALUE) => found,
        (_, Some(seal)) => {
            let remark = Remark::new(FieldPath::default(), seal.deed());
            Err(Remark { seal: Some(seal), ..remark })
        }
        (_, None) => found,
    }
}

/// Returns the program that has encrypted an object: SOPS adds metadata, and encrypts each value by itself.
fn find_seal(node: &Node) -> Option<Seal> {
    let is_sealed =
        |node: &Node| node.as_text().is_some_and(|it| it.trim().starts_with(SOPS_VALUE));
    let values = ["data", "stringData"].into_iter().filter_map(|field| node.get(field));
    let mut values = values.flat_map(Node::entries).map(|entry| &entry.value);
    let mut kind = ["apiVersion", "kind"].into_iter().filter_map(|field| node.get(field));
    let has_metadata = node.get("sops.mac").is_some() || node.get("sops.version").is_some();
    (has_metadata || kind.any(is_sealed) || values.any(is_sealed)).then_some(Seal::Sops)
}

fn identify_clear(node: &Node) -> Result<DocumentKind, Remark> {
    let error = |path: &str, message: String| Remark::new(FieldPath::of(path), message);
    if !node.is_object() {
        let message =
            format!("expected an object with apiVersion and kind, found {}", node.describe());
        return Err(Remark::new(FieldPath::default(), message));
    }
    let (version, kind) = (node.text_of("apiVersion"), node.text_of("kind"));
    for (field, text) in [("apiVersion", version), ("kind", kind)] {
        if text.is_empty() {
            let remark = error(field, "is required".to_owned());
            return Err(remark.hint("every manifest begins with apiVersion and kind"));
        }
    }
    if let Some(kind) = Kind::of_manifest(version, kind) {
        // An exported CertificateRequest with an owner is left out: its Certificate makes the next one.
        if kind == Kind::CertificateRequest && is_owned(node) {
            return Ok(DocumentKind::Foreign(kind.as_str().to_owned()));
        }
        return Ok(classify(kind, None));
    }
    let (group, number) = version.split_once('/').unwrap_or(("", version));
    let ours = ["cert-manager.io", "acme.cert-manager.io", "certmanager.k8s.io"].contains(&group);
    let Some(named) = Kind::ALL.into_iter().find(|known| known.as_str() == kind) else {
        let meant = closest(kind, Kind::ALL.into_iter().map(Kind::as_str));
        return match meant {
            Some(meant)
                if ours || group.is_empty() && Kind::of_manifest(version, meant).is_some() =>
            {
                Err(error("kind", format!("unknown kind {kind}, did you mean {meant}?")))
            }
            _ => Ok(DocumentKind::Foreign(kind.to_owned())),
        };
    };
    if let Some(old) = Version::parse(version, named) {
        return Ok(classify(named, Some(old)));
    }
    if ours || group.is_empty() {
        let what = if ours && group == named.group() {
            format!("there is no version {number}")
        } else {
            format!("there is no {kind} in {version}")
        };
        return Err(error("apiVersion", what).hint(format!("write {}", named.api_version())));
    }
    Ok(DocumentKind::Foreign(kind.to_owned()))
}

fn is_owned(node: &Node) -> bool {
    let owners = node.get("metadata.ownerReferences");
    owners.is_some_and(|owners| matches!(&owners.content, Content::List(all) if !all.is_empty()))
}

/// Returns the annotation of an Ingress or Gateway that makes cert-manager create a Certificate for the object.
pub(crate) fn asks_for_certificate(node: &Node) -> Option<&'static str> {
    let annotations = node.get("metadata.annotations")?.entries();
    ISSUER_ANNOTATIONS.into_iter().find(|name| annotations.iter().any(|entry| entry.key == *name))
}

fn classify(kind: Kind, version: Option<Version>) -> DocumentKind {
    match fields::of(kind) {
        Some(_) => DocumentKind::Ours(kind, version),
        None => DocumentKind::Foreign(kind.as_str().to_owned()),
    }
}

impl Draft {
    /// Returns kind and name for people.
    pub(crate) fn title(&self) -> String {
        title(self.kind.as_str(), &self.node)
    }

    /// Removes the fields that a cluster wrote into the object before the object was exported.
    pub(crate) fn strip(&mut self) {
        let mut left_out = Vec::new();
        if let Some(status) = self.node.take("status")
            && !status.value.entries().is_empty()
        {
            left_out.push("status".to_owned());
        }
        let Some(metadata) = self.node.get_mut("metadata") else { return };
        for field in GIVEN_BY_STORE {
            if metadata.take(field).is_some_and(|entry| !entry.value.is_null()) {
                left_out.push(format!("metadata.{field}"));
            }
        }
        if let Some(annotations) = metadata.get_mut("annotations") {
            annotations.take(LAST_APPLIED);
        }
        if !left_out.is_empty() {
            let message = format!("left out what a cluster had written: {}", left_out.join(", "));
            self.warn("metadata", message);
        }
    }

    /// Checks every field; the returned JSON can be read as the typed object.
    pub(crate) fn check_fields(&mut self) -> serde_json::Value {
        match fields::of(self.kind) {
            Some(shape) => check(&self.node, shape, &FieldPath::default(), &mut self.found),
            None => self.node.to_value(),
        }
    }

    pub(crate) fn refuse(&mut self, dotted: &str, message: impl Into<String>) {
        self.found.error(&FieldPath::of(dotted), message);
    }

    pub(crate) fn warn(&mut self, dotted: &str, message: impl Into<String>) {
        self.found.warnings.push(Remark::new(FieldPath::of(dotted), message));
    }

    /// Returns the position of a field.
    pub(crate) fn position(&self, path: &FieldPath) -> Position {
        self.node.find(path, Matter::Value)
    }
}

/// Returns kind and name for people, as far as the object has them.
pub(crate) fn title(kind: &str, node: &Node) -> String {
    format!("{kind} {}", node.text_of("metadata.name")).trim().to_owned()
}

/// An API version before `v1`, oldest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
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
    pub(crate) fn parse(api_version: &str, kind: Kind) -> Option<Self> {
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
