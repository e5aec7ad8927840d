//! By which annotations an object asked for a Certificate: kept with the Certificate, so that it goes only once they have gone.
//!
//! Flags name annotations by which an Ingress asks, too. A process that was started without these flags does not know them, and
//! takes no Certificate away for that. Nor is one taken away that we have not made, such as those of cert-manager's own shim:
//! there, a Certificate stays when its annotations go.

use std::collections::BTreeMap;

use super::annotations::{self, CLUSTER_ISSUER, ISSUER};
use crate::model::Kind;

/// The annotation of Certificates with the names of these annotations.
pub(super) const ASKED_BY: &str = "kubectl-acme/asked-by";
/// The annotations that name an issuer.
const NAMING: [&str; 2] = [ISSUER, CLUSTER_ISSUER];
/// Between two names.
const COMMA: &str = ",";

type Annotations = BTreeMap<String, String>;

/// The annotations of an object by which it asks for Certificates; those of flags count for Ingresses.
pub(super) fn askers(of: Kind, annotations: &Annotations, asking: &[String]) -> Vec<String> {
    let by_default = asking.iter().filter(|_| of == Kind::Ingress);
    let all = NAMING.into_iter().chain(by_default.map(String::as_str));
    all.filter(|name| still_asks(annotations, name)).map(str::to_owned).collect()
}

/// Tells whether annotations name an issuer.
pub(super) fn names_issuer(annotations: &Annotations) -> bool {
    NAMING.iter().any(|name| annotations.contains_key(*name))
}

/// Notes at a Certificate by which annotations it is asked for.
pub(super) fn note(told: &mut Annotations, askers: &[String]) {
    told.insert(ASKED_BY.to_owned(), askers.join(COMMA));
}

/// Takes over the note of a wanted Certificate, if there is one already; tells whether it has changed.
pub(super) fn renew(told: &mut Annotations, wanted: &mut Annotations) -> bool {
    match (told.get_mut(ASKED_BY), wanted.remove(ASKED_BY)) {
        (Some(known), Some(wanted)) if *known != wanted => {
            *known = wanted;
            true
        }
        _ => false,
    }
}

/// Tells whether a Certificate is one of ours, and none of the annotations by which its object asked is left there.
pub(super) fn is_withdrawn(told: &Annotations, annotations: &Annotations) -> bool {
    let askers = told.get(ASKED_BY);
    askers.is_some_and(|askers| askers.split(COMMA).all(|name| !still_asks(annotations, name)))
}

/// An issuer is named by any value, and wherever flags say who that is, `true` asks.
fn still_asks(annotations: &Annotations, name: &str) -> bool {
    annotations.get(name).is_some_and(|value| NAMING.contains(&name) || annotations::is_true(value))
}
