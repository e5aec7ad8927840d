//! Certificates that an Ingress, Gateway or ListenerSet asks for by its annotations, and the changes needed for that.
//!
//! Follows cert-manager 1.21 (`pkg/controller/certificate-shim`), also in its test for outdated Certificates.
//! Differences: a Certificate that this program made is deleted when its object no longer asks for any, annotations of
//! cert-manager before 0.11 are read, and `a.example, b.example` are two names in a Certificate of this program.
//! cert-manager keeps the blank, an impossible name; its Certificates are read its way ([`Lists`]), since a wait for
//! another one would not end. Unlike other machines, this one returns all changes at once, as a list.

mod annotations;
mod asked_by;
mod entries;
mod outdated;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

pub use self::annotations::{InvalidAnnotation, Lists, OldAnnotations, UntidyAnnotations};
use self::annotations::{modern, translate};
use self::entries::SecretHosts;
pub use self::entries::Skipped;
use super::Note;
use crate::model::event::{reason, source};
use crate::model::ingress::{Gateway, IngressLike};
use crate::model::{
    Certificate, CertificateSpec, CertificateStatus, IssuerRef, Key, Kind, Metadata, ObjectName,
};

/// Label by which `kubectl apply --prune` would take a Certificate for one of its manifests.
const APPLYSET_LABEL: &str = "applyset.kubernetes.io/part-of";
/// Finalizer of an object whose dependents are deleted first.
const FOREGROUND_FINALIZER: &str = "foregroundDeletion";
/// Annotation that asks for a Certificate without naming an issuer, unless a flag names another annotation.
pub const TLS_ACME: &str = "kubernetes.io/tls-acme";

/// Settings from flags for every Ingress, Gateway and ListenerSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defaults {
    /// Issuer of objects that name none; its name is empty if there is no default issuer.
    pub issuer: IssuerRef,
    /// Annotations by which an Ingress asks for a Certificate of the default issuer.
    pub asking: Vec<String>,
    /// Annotations that Certificates copy from their object.
    pub copied: Vec<String>,
    /// Reading of lists in annotations.
    pub lists: Lists,
}

impl Default for Defaults {
    fn default() -> Self {
        Self {
            issuer: IssuerRef {
                name: String::new(),
                kind: "Issuer".to_owned(),
                group: "cert-manager.io".to_owned(),
            },
            asking: vec![TLS_ACME.to_owned()],
            copied: Vec::new(),
            lists: Lists::Trimmed,
        }
    }
}

/// Observations of one step beside the object itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed<'a> {
    /// Certificates of the object's namespace.
    pub certificates: &'a [Certificate],
    /// The Gateway of a ListenerSet.
    pub parent: Option<&'a Gateway>,
}

/// Change of one Certificate.
#[derive(Clone, Debug, PartialEq)]
pub enum CertificateChange {
    /// Creates the Certificate.
    Create(Box<Certificate>),
    /// Writes the Certificate as asked for.
    Update(Box<Certificate>),
    /// Deletes the Certificate, which is not asked for any more.
    Delete(Box<Certificate>),
}

impl CertificateChange {
    /// Returns the note for a change that is done.
    pub fn note(&self, of: Kind) -> Note {
        let (reason, done, name) = match self {
            Self::Create(one) => (reason::CREATE_CERTIFICATE, "created", &one.metadata.name),
            Self::Update(one) => (reason::UPDATE_CERTIFICATE, "updated", &one.metadata.name),
            Self::Delete(one) => {
                (reason::DELETE_CERTIFICATE, "deleted unrequired", &one.metadata.name)
            }
        };
        let message = format!("Successfully {done} Certificate \"{name}\"");
        Note::normal(source_of(of), reason, message)
    }
}

/// Changes needed for one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Notes for the time before any change.
    pub warnings: Vec<Note>,
    /// Changes, in this order.
    pub changes: Vec<CertificateChange>,
}

/// Reason that an object that asks gets no Certificate, or not all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadConfig {
    /// Annotations that contradict each other, or name no issuer.
    #[error("Could not determine issuer for ingress due to bad annotations: {0}")]
    Issuer(String),
    /// Two TLS entries that name one Secret.
    #[error("{0}")]
    SharedSecret(String),
    /// Entry that cannot be used.
    #[error("{0}")]
    Entry(Skipped),
}

/// Returns the event source of an object of this kind, in cert-manager's words.
pub fn source_of(kind: Kind) -> &'static str {
    if kind == Kind::Gateway {
        source::GATEWAYS
    } else if kind == Kind::ListenerSet {
        source::LISTENER_SETS
    } else {
        source::INGRESSES
    }
}

/// Returns whether annotations, new or old ones, ask for Certificates, whether or not an issuer can be found.
pub fn asks(of: Kind, annotations: &BTreeMap<String, String>, defaults: &Defaults) -> bool {
    !asked_by::askers(of, &modern(annotations).0, &defaults.asking).is_empty()
}

/// Returns whether the object asks for Certificates of an issuer that only a flag could name, and no flag does.
pub fn lacks_default_issuer(object: &IngressLike, defaults: &Defaults) -> bool {
    let (annotations, _) = modern(&object.metadata().annotations);
    defaults.issuer.name.is_empty() && !asked_by::names_issuer(&annotations)
}

/// Returns the changes needed for an object.
///
/// # Errors
/// Fails if the value of an annotation cannot be read; no change is made then.
pub fn plan(
    object: &IngressLike,
    observed: Observed<'_>,
    defaults: &Defaults,
) -> Result<Plan, InvalidAnnotation> {
    let (kind, metadata) = (object.kind(), object.metadata());
    if metadata.is_deleted() || metadata.finalizers.iter().any(|name| name == FOREGROUND_FINALIZER)
    {
        return Ok(Plan::default());
    }
    let Some((annotations, old)) = effective_annotations(object, observed.parent) else {
        // A ListenerSet without its Gateway.
        return Ok(Plan::default());
    };
    let mut plan = Plan::default();
    if !asks(kind, &annotations, defaults) {
        let withdrawn = select_owned(observed.certificates, metadata)
            .filter(|one| asked_by::is_withdrawn(&one.metadata.annotations, &annotations));
        plan.changes.extend(withdrawn.map(|one| CertificateChange::Delete(Box::new(one.clone()))));
        return Ok(plan);
    }
    let warning =
        |why: &BadConfig| Note::warning(source_of(kind), reason::BAD_CONFIG, why.to_string());
    if !old.is_empty() {
        let told = Note::warning(source_of(kind), reason::OLD_ANNOTATIONS, old.to_string());
        plan.warnings.push(told);
    }
    let Wanted { certificates, skipped } = match wanted_of(object, &annotations, defaults)? {
        Ok(wanted) => wanted,
        Err(why) => {
            plan.warnings.push(warning(&why));
            return Ok(plan);
        }
    };
    plan.warnings.extend(skipped.iter().map(warning));
    for mut certificate in certificates {
        let name = &certificate.metadata.name;
        let existing = observed.certificates.iter().find(|one| one.metadata.name == *name);
        match existing {
            None => plan.changes.push(CertificateChange::Create(Box::new(certificate))),
            // The Certificate belongs to another owner.
            Some(one) if !one.metadata.is_controlled_by(&metadata.uid) => {}
            Some(one) => {
                let mut known = one.clone();
                let told = &mut known.metadata.annotations;
                let wanted = &mut certificate.metadata.annotations;
                let is_asked_otherwise = asked_by::renew(told, wanted);
                if outdated::is_outdated(one, &certificate) {
                    let has_copied = has_copied(&annotations, defaults);
                    known = outdated::updated(&known, certificate, has_copied);
                } else if !is_asked_otherwise {
                    continue;
                }
                plan.changes.push(CertificateChange::Update(Box::new(known)));
            }
        }
    }
    let unrequired = select_owned(observed.certificates, metadata)
        .filter(|one| !object.names_secret(&one.spec.secret_name));
    plan.changes.extend(unrequired.map(|one| CertificateChange::Delete(Box::new(one.clone()))));
    Ok(plan)
}

/// Certificates that an object asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Certificates, in the order of the entries.
    pub certificates: Vec<Certificate>,
    /// Entries that ask for no Certificate because they are incomplete.
    pub skipped: Vec<BadConfig>,
}

/// Returns the Certificates that an object asks for, whether or not they exist.
///
/// # Errors
/// Fails if the value of an annotation cannot be read.
pub fn wanted(
    object: &IngressLike,
    parent: Option<&Gateway>,
    defaults: &Defaults,
) -> Result<Result<Wanted, BadConfig>, InvalidAnnotation> {
    let of_object = || modern(&object.metadata().annotations);
    let (annotations, _) = effective_annotations(object, parent).unwrap_or_else(of_object);
    if !asks(object.kind(), &annotations, defaults) {
        return Ok(Ok(Wanted::default()));
    }
    wanted_of(object, &annotations, defaults)
}

/// Returns the old annotations of an object; empty if there are none.
pub fn old_annotations(object: &IngressLike) -> OldAnnotations {
    modern(&object.metadata().annotations).1
}

/// Returns the annotations of an object that cert-manager would read otherwise than meant.
pub fn untidy_annotations(object: &IngressLike) -> UntidyAnnotations {
    UntidyAnnotations::among(&modern(&object.metadata().annotations).0)
}

fn wanted_of(
    object: &IngressLike,
    annotations: &BTreeMap<String, String>,
    defaults: &Defaults,
) -> Result<Result<Wanted, BadConfig>, InvalidAnnotation> {
    let issuer = match issuer(annotations, defaults) {
        Ok(issuer) => issuer,
        Err(why) => return Ok(Err(BadConfig::Issuer(why))),
    };
    if let Some(why) = entries::shared_secret(object) {
        return Ok(Err(BadConfig::SharedSecret(why)));
    }
    let (entries, skipped) = entries::of(object, annotations);
    let mut wanted = Wanted {
        skipped: skipped.into_iter().map(BadConfig::Entry).collect(),
        ..Wanted::default()
    };
    for entry in entries {
        wanted.certificates.push(certificate(object, annotations, defaults, &issuer, entry)?);
    }
    Ok(Ok(wanted))
}

fn certificate(
    object: &IngressLike,
    annotations: &BTreeMap<String, String>,
    defaults: &Defaults,
    issuer: &IssuerRef,
    entry: SecretHosts,
) -> Result<Certificate, InvalidAnnotation> {
    let SecretHosts { namespace, secret, hosts } = entry;
    let mut seen = BTreeSet::new();
    let hosts = hosts.into_iter().filter(|host| seen.insert(host.clone()));
    let (ip_addresses, dns_names) = hosts.partition(|host| host.parse::<IpAddr>().is_ok());
    let usages = ["digital signature", "key encipherment"].map(str::to_owned).to_vec();
    let mut labels = object.metadata().labels.clone();
    labels.remove(APPLYSET_LABEL);
    let mut certificate = Certificate {
        api_version: Kind::Certificate.api_version().to_owned(),
        kind: Kind::Certificate.as_str().to_owned(),
        metadata: Metadata {
            name: secret.clone(),
            namespace,
            labels,
            annotations: copy_annotations(annotations, defaults),
            owner_references: vec![object.owner_reference()],
            ..Metadata::default()
        },
        spec: CertificateSpec {
            secret_name: secret,
            issuer_ref: issuer.clone(),
            dns_names,
            ip_addresses,
            usages: Some(usages),
            ..CertificateSpec::default()
        },
        status: CertificateStatus::default(),
    };
    let told = &mut certificate.metadata.annotations;
    annotations::for_solvers(told, object, annotations);
    asked_by::note(told, &asked_by::askers(object.kind(), annotations, &defaults.asking));
    translate(&mut certificate.spec, annotations, defaults.lists)?;
    Ok(certificate)
}

/// Returns the effective and the old annotations; a ListenerSet inherits its Gateway's issuer (`None` without Gateway).
fn effective_annotations(
    object: &IngressLike,
    parent: Option<&Gateway>,
) -> Option<(BTreeMap<String, String>, OldAnnotations)> {
    let (mut own, old) = modern(&object.metadata().annotations);
    if object.kind() == Kind::ListenerSet {
        let parent = parent.filter(|gateway| !gateway.metadata.is_deleted())?;
        let (of_parent, _) = modern(&parent.metadata.annotations);
        annotations::inherit(&mut own, &of_parent);
    }
    Some((own, old))
}

fn select_owned<'a>(
    certificates: &'a [Certificate],
    owner: &'a Metadata,
) -> impl Iterator<Item = &'a Certificate> {
    certificates.iter().filter(|one| one.metadata.is_controlled_by(&owner.uid))
}

fn copy_annotations(
    annotations: &BTreeMap<String, String>,
    defaults: &Defaults,
) -> BTreeMap<String, String> {
    let given = |name: &String| Some((name.clone(), annotations.get(name)?.clone()));
    defaults.copied.iter().filter_map(given).collect()
}

fn has_copied(annotations: &BTreeMap<String, String>, defaults: &Defaults) -> bool {
    !copy_annotations(annotations, defaults).is_empty()
}

/// Returns the issuer that annotations name, or the default issuer of the flags.
fn issuer(
    annotations: &BTreeMap<String, String>,
    defaults: &Defaults,
) -> Result<IssuerRef, String> {
    use self::annotations::{CLUSTER_ISSUER, ISSUER, ISSUER_GROUP, ISSUER_KIND};
    let given = |name: &str| annotations.get(name).cloned();
    let mut issuer = defaults.issuer.clone();
    let (own, cluster) = (given(ISSUER), given(CLUSTER_ISSUER));
    let (kind, group) = (given(ISSUER_KIND), given(ISSUER_GROUP));
    for (name, kind) in [(&own, "Issuer"), (&cluster, "ClusterIssuer")] {
        if let Some(name) = name {
            (issuer.name, issuer.kind) = (name.clone(), kind.to_owned());
        }
    }
    if let Some(kind) = &kind {
        issuer.kind.clone_from(kind);
    }
    if let Some(group) = &group {
        issuer.group.clone_from(group);
    }
    let mut faults = Vec::new();
    if issuer.name.is_empty() {
        faults.push("failed to determine issuer name to be used for ingress resource".to_owned());
    }
    for (one, other, are_both) in [
        (ISSUER, CLUSTER_ISSUER, own.is_some() && cluster.is_some()),
        (CLUSTER_ISSUER, ISSUER_GROUP, cluster.is_some() && group.is_some()),
        (CLUSTER_ISSUER, ISSUER_KIND, cluster.is_some() && kind.is_some()),
    ] {
        if are_both {
            faults.push(format!("both \"{one}\" and \"{other}\" may not be set"));
        }
    }
    if faults.is_empty() { Ok(issuer) } else { Err(faults.join(", ")) }
}

/// Returns the object that manages a Certificate, if its kind can ask for Certificates.
pub fn owner_key(certificate: &Metadata) -> Option<Key> {
    let owner = certificate.controller()?;
    let kind = Kind::of_manifest(&owner.api_version, &owner.kind)?;
    let name = ObjectName::new(&certificate.namespace, &owner.name);
    Kind::ASKING.contains(&kind).then(|| Key::new(kind, name))
}

#[cfg(test)]
mod tests;
