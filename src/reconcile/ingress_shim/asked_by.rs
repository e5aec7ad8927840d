//! Annotations by which an object asked for a Certificate: kept with the Certificate, which goes once all have gone.
//!
//! Flags can name further annotations by which an Ingress asks. A process started without these flags does not know the
//! annotations, and deletes no Certificate for lack of them. Nor does it delete a Certificate that this program has not
//! made, such as those of cert-manager's own shim: there, a Certificate stays when its annotations go.

use std::collections::BTreeMap;

use super::annotations::{self, CLUSTER_ISSUER, ISSUER};
use crate::model::Kind;

/// Annotation of a Certificate that lists the names of these annotations.
pub(super) const ASKED_BY: &str = "kubectl-acme/asked-by";
/// Annotations that name an issuer.
const ISSUER_ANNOTATIONS: [&str; 2] = [ISSUER, CLUSTER_ISSUER];
/// Separator between two names.
const SEPARATOR: &str = ",";

type Annotations = BTreeMap<String, String>;

/// Returns the annotations by which an object asks for Certificates; annotations named by flags count for Ingresses.
pub(super) fn askers(of: Kind, annotations: &Annotations, asking: &[String]) -> Vec<String> {
    let by_default = asking.iter().filter(|_| of == Kind::Ingress);
    let all = ISSUER_ANNOTATIONS.into_iter().chain(by_default.map(String::as_str));
    all.filter(|name| still_asks(annotations, name)).map(str::to_owned).collect()
}

/// Returns whether annotations name an issuer.
pub(super) fn names_issuer(annotations: &Annotations) -> bool {
    ISSUER_ANNOTATIONS.iter().any(|name| annotations.contains_key(*name))
}

/// Records on a Certificate the annotations by which it is asked for.
pub(super) fn note(told: &mut Annotations, askers: &[String]) {
    told.insert(ASKED_BY.to_owned(), askers.join(SEPARATOR));
}

/// Copies the record of a wanted Certificate, if there is one already; returns whether the record has changed.
pub(super) fn renew(told: &mut Annotations, wanted: &mut Annotations) -> bool {
    match (told.get_mut(ASKED_BY), wanted.remove(ASKED_BY)) {
        (Some(known), Some(wanted)) if *known != wanted => {
            *known = wanted;
            true
        }
        _ => false,
    }
}

/// Returns whether this program made a Certificate, and its object has none of the recorded annotations any more.
pub(super) fn is_withdrawn(told: &Annotations, annotations: &Annotations) -> bool {
    let askers = told.get(ASKED_BY);
    askers.is_some_and(|askers| askers.split(SEPARATOR).all(|name| !still_asks(annotations, name)))
}

/// Returns whether an annotation still asks: any value names an issuer, an annotation named by flags asks with `true`.
fn still_asks(annotations: &Annotations, name: &str) -> bool {
    annotations
        .get(name)
        .is_some_and(|value| ISSUER_ANNOTATIONS.contains(&name) || annotations::is_true(value))
}
