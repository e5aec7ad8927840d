//! By which objects of a cluster challenges are answered.

use std::collections::BTreeSet;

use crate::model::solver::Http01Solver;
use crate::model::{Certificate, Identifier, Issuer};
use crate::reconcile::solver_choice::{Asking, would_choose};

/// How a challenge is answered by objects in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// An Ingress of its own.
    Ingress,
    /// A path in an Ingress that is there.
    NamedIngress,
    /// An HTTPRoute.
    Route,
}

/// How the names of a Certificate would be answered in the cluster.
pub fn ways(certificate: &Certificate, issuer: &Issuer) -> impl Iterator<Item = Way> {
    let asking = Asking {
        namespace: &certificate.metadata.namespace,
        labels: &certificate.metadata.labels,
        annotations: &certificate.metadata.annotations,
        // Other types are for stores of our own.
        kind: None,
    };
    let spec = &certificate.spec;
    let solvers = issuer.spec.acme.as_ref().map_or(&[][..], |acme| &acme.solvers);
    let common = Some(&spec.common_name).filter(|name| !name.is_empty());
    let names = spec.dns_names.iter().chain(&spec.ip_addresses).chain(common);
    let identifiers = names.filter_map(|name| Identifier::parse(name).ok());
    let chosen = identifiers.filter_map(|name| would_choose(solvers, &name, asking).ok());
    let ways = chosen.filter_map(|chosen| way(chosen.solver.http01.as_ref()?));
    ways.collect::<BTreeSet<_>>().into_iter()
}

/// How a solver answers, if by objects in the cluster.
pub fn way(solver: &Http01Solver) -> Option<Way> {
    match (&solver.ingress, &solver.gateway_http_route) {
        (Some(ingress), _) if ingress.name.is_empty() => Some(Way::Ingress),
        (Some(_), _) => Some(Way::NamedIngress),
        (None, Some(_)) => Some(Way::Route),
        (None, None) => None,
    }
}
