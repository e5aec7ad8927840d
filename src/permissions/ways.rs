//! Objects of a cluster by which challenges are answered.

use std::collections::BTreeSet;

use crate::model::solver::Http01Solver;
use crate::model::{Certificate, Identifier, Issuer};
use crate::reconcile::solver_choice::{Asking, would_choose};

/// Sort of object by which a challenge is answered in the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// Ingress for the challenge alone.
    Ingress,
    /// Path in an Ingress that exists.
    NamedIngress,
    /// An HTTPRoute.
    Route,
}

/// Returns the ways in which the names of a Certificate would be answered in the cluster.
pub fn ways(certificate: &Certificate, issuer: &Issuer) -> impl Iterator<Item = Way> {
    let asking = Asking {
        namespace: &certificate.metadata.namespace,
        labels: &certificate.metadata.labels,
        annotations: &certificate.metadata.annotations,
        // Other challenge types exist in local stores only.
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

/// Returns the way of a solver that answers by objects in the cluster; `None` for other solvers.
pub fn way(solver: &Http01Solver) -> Option<Way> {
    match (&solver.ingress, &solver.gateway_http_route) {
        (Some(ingress), _) if ingress.name.is_empty() => Some(Way::Ingress),
        (Some(_), _) => Some(Way::NamedIngress),
        (None, Some(_)) => Some(Way::Route),
        (None, None) => None,
    }
}
