//! The Certificates of a set of manifests, their issuers, and the solvers that would be chosen.

use std::collections::BTreeSet;

use crate::diagnosis::case::chain::issuer_key;
use crate::model::issuer::asked_type;
use crate::model::{Certificate, Identifier, Issuer, Key, Record};
use crate::objects::own_request::certificate_of;
use crate::reconcile::solver_choice::{Asking, Chosen, NoSolver, would_choose};

/// Returns the issuers that the Certificates of a set refer to.
pub fn issuers(records: &[Record]) -> BTreeSet<Key> {
    certificates(records).filter_map(|certificate| issuer_key(&certificate)).collect()
}

/// Returns the Certificates of a set; for each CertificateRequest, the Certificate that would ask for the same.
pub fn certificates(records: &[Record]) -> impl Iterator<Item = Certificate> + '_ {
    let issued = records.iter().filter(|record| record.key.kind.is_issued());
    issued.filter_map(|record| certificate_of(record).ok())
}

/// Returns which solver of an issuer answers each name of a Certificate.
pub fn choices<'a>(
    certificate: &'a Certificate,
    issuer: &'a Issuer,
) -> impl Iterator<Item = (&'a str, Result<Chosen, NoSolver>)> {
    let solvers = issuer.spec.acme.as_ref().map_or(&[][..], |acme| &acme.solvers);
    let asking = Asking {
        namespace: &certificate.metadata.namespace,
        labels: &certificate.metadata.labels,
        annotations: &certificate.metadata.annotations,
        kind: asked_type(issuer).unwrap_or_default(),
    };
    names(certificate).filter_map(move |text| {
        let identifier = Identifier::parse(text).ok()?;
        Some((text, would_choose(solvers, &identifier, asking)))
    })
}

/// Every name that a Certificate asks for.
pub fn names(certificate: &Certificate) -> impl Iterator<Item = &str> {
    let spec = &certificate.spec;
    let common = Some(&spec.common_name).filter(|name| !name.is_empty());
    spec.dns_names.iter().chain(&spec.ip_addresses).chain(common).map(String::as_str)
}
