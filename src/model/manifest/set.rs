//! Rules for the objects of a set together: namespaces, and nothing twice.

use std::collections::{HashMap, HashSet};

use super::complaint::{Location, Source};
use super::draft::Draft;
use super::tree::Node;
use crate::model::certificate::{LIST_COMMON_NAME, STRAY_COMMON_NAME, is_listed};
use crate::model::field::{FieldPath, Remark};
use crate::model::key::Kind;
use crate::model::validation::object_name_fault;

/// Gives the object its namespace, and refuses a namespace that contradicts `-n`, as kubectl does.
pub(crate) fn settle_namespace(draft: &mut Draft, namespaces: &Namespaces<'_>) {
    let written = draft.node.text_of("metadata.namespace").to_owned();
    if !draft.kind.is_namespaced() {
        if let Some(metadata) = draft.node.get_mut("metadata")
            && metadata.take("namespace").is_some()
        {
            draft.warn(
                "metadata",
                format!("a {} has no namespace, {written} is ignored", draft.kind),
            );
        }
        return;
    }
    if written.is_empty() {
        let namespace = namespaces.given.unwrap_or(namespaces.default);
        if let Some(metadata) = draft.node.get_mut("metadata") {
            let at = metadata.at;
            metadata.take("namespace");
            // Metadata that are no object are reported when the fields are checked.
            metadata.put("namespace", Node::text(at, namespace));
        }
    } else if let Some(given) = namespaces.given
        && given != written
    {
        draft.refuse(
            "metadata.namespace",
            format!(
                "the namespace from the provided object \"{written}\" does not match the namespace \"{given}\". You must pass '--namespace={written}' to perform this operation."
            ),
        );
    } else if let Some(why) = object_name_fault(&written) {
        draft
            .refuse("metadata.namespace", format!("\"{written}\" is not a valid namespace: {why}"));
    }
}

/// Refuses objects without a usable name.
pub(crate) fn check_name(draft: &mut Draft) {
    let name = draft.node.text_of("metadata.name").to_owned();
    if !name.is_empty() {
        if let Some(why) = object_name_fault(&name) {
            draft.refuse("metadata.name", format!("\"{name}\" is not a valid name: {why}"));
        }
    } else if draft.node.get("metadata.generateName").is_some() {
        let path = FieldPath::of("metadata.generateName");
        let remark = Remark::new(path, "cannot be used when manifests are applied");
        draft.found.refuse(remark.hint("write name: every run would make another object"));
    } else if draft.node.get("metadata").is_some_and(Node::is_object) {
        draft.refuse("metadata.name", "is required");
    }
}

/// Refuses the same object twice, and two Certificates that would write one Secret.
pub(crate) fn check_twice(drafts: &mut [Draft], sources: &[Source]) {
    let mut objects: HashMap<(Kind, String, String), Location> = HashMap::new();
    let mut secrets: HashMap<(String, String), (String, Location)> = HashMap::new();
    for draft in drafts {
        let text = |path: &str| draft.node.text_of(path).to_owned();
        let (name, namespace) = (text("metadata.name"), text("metadata.namespace"));
        let secret = text("spec.secretName");
        let place = |path: &str| Location {
            file: sources.get(draft.source).map(|source| source.name.clone()).unwrap_or_default(),
            at: draft.position(&FieldPath::of(path)),
        };
        let (at_name, at_secret) = (place("metadata.name"), place("spec.secretName"));
        if name.is_empty() {
            continue;
        }
        let key = (draft.kind, namespace.clone(), name.clone());
        if let Some(first) = objects.get(&key) {
            draft.refuse("metadata.name", format!("the same object stands at {first}"));
            continue;
        }
        objects.insert(key, at_name);
        if draft.kind != Kind::Certificate || secret.is_empty() {
            continue;
        }
        let key = (namespace, secret);
        if let Some((other, first)) = secrets.get(&key) {
            let message = format!("Certificate {other} at {first} writes the same Secret");
            let remark = Remark::new(FieldPath::of("spec.secretName"), message);
            draft.found.refuse(remark.hint("give one of the two another secretName"));
            continue;
        }
        secrets.insert(key, (name, at_secret));
    }
}

/// Refuses common names that are none of the requested names, if an ACME issuer of the same set is to certify them.
pub(crate) fn check_common_names(drafts: &mut [Draft]) {
    let scope = |kind: Kind, draft: &Draft| {
        let namespace = draft.node.text_of("metadata.namespace");
        if kind == Kind::Issuer { namespace.to_owned() } else { String::new() }
    };
    let is_acme = |draft: &&Draft| draft.node.get("spec.acme").is_some_and(Node::is_object);
    let issuers: HashSet<(Kind, String, String)> = drafts
        .iter()
        .filter(|draft| matches!(draft.kind, Kind::Issuer | Kind::ClusterIssuer))
        .filter(is_acme)
        .map(|draft| {
            (draft.kind, scope(draft.kind, draft), draft.node.text_of("metadata.name").to_owned())
        })
        .collect();
    for draft in drafts.iter_mut().filter(|draft| draft.kind == Kind::Certificate) {
        let kind = match draft.node.text_of("spec.issuerRef.kind") {
            "ClusterIssuer" => Kind::ClusterIssuer,
            _ => Kind::Issuer,
        };
        let name = draft.node.text_of("spec.issuerRef.name").to_owned();
        let common_name = draft.node.text_of("spec.commonName");
        let texts = |path: &str| -> Vec<String> {
            let items = draft.node.get(path).map(Node::items).unwrap_or_default();
            items.iter().filter_map(Node::as_text).map(str::to_owned).collect()
        };
        let (names, addresses) = (texts("spec.dnsNames"), texts("spec.ipAddresses"));
        if issuers.contains(&(kind, scope(kind, draft), name))
            && !is_listed(common_name, &names, &addresses)
        {
            let path = FieldPath::of("spec.commonName");
            let message = format!("\"{common_name}\" {STRAY_COMMON_NAME}");
            draft.found.refuse(Remark::new(path, message).hint(LIST_COMMON_NAME));
        }
    }
}

/// Namespaces for objects that name no namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Namespaces<'a> {
    /// Namespace given by `-n`; objects may not contradict `-n`.
    pub given: Option<&'a str>,
    /// Namespace of the context, `default` locally.
    pub default: &'a str,
}
