//! Comparison of a Certificate with its Ingress, by the fields that cert-manager compares and no others.

use crate::model::Certificate;
use crate::model::certificate::PrivateKey;

/// Returns whether a Certificate has to be updated. IP addresses, usages, subject, e-mail addresses, the issuer's group
/// and all annotations are not compared.
pub(super) fn is_outdated(existing: &Certificate, wanted: &Certificate) -> bool {
    let (has, wants) = (&existing.spec, &wanted.spec);
    let (key, wanted_key) = (key(existing), key(wanted));
    existing.metadata.labels != wanted.metadata.labels
        || has.common_name != wants.common_name
        || has.dns_names != wants.dns_names
        || has.secret_name != wants.secret_name
        || has.issuer_ref.name != wants.issuer_ref.name
        || has.issuer_ref.kind != wants.issuer_ref.kind
        || has.revision_history_limit != wants.revision_history_limit
        || key.algorithm != wanted_key.algorithm
        || key.encoding != wanted_key.encoding
        || key.rotation_policy != wanted_key.rotation_policy
        // The size of an Ed25519 key has no meaning.
        || (key.algorithm != "Ed25519"
            && key.size.unwrap_or_default() != wanted_key.size.unwrap_or_default())
        || has.duration != wants.duration
        || has.renew_before != wants.renew_before
}

/// Returns the Certificate to write: spec and labels as wanted. Annotations are added if some are copied from the
/// object: only then does cert-manager write the annotations for solvers again, too.
pub(super) fn updated(
    existing: &Certificate,
    wanted: Certificate,
    has_copied: bool,
) -> Certificate {
    let mut updated = Certificate { spec: wanted.spec, ..existing.clone() };
    updated.metadata.labels = wanted.metadata.labels;
    if has_copied {
        updated.metadata.annotations.extend(wanted.metadata.annotations);
    }
    updated
}

fn key(certificate: &Certificate) -> PrivateKey {
    certificate.spec.private_key.clone().unwrap_or_default()
}
