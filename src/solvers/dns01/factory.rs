//! Construction of the provider that a solver names, from its fields, its Secrets and its surroundings.
//!
//! A provider is built anew for every step, so that a changed Secret counts at the next step.

use std::sync::Arc;

use super::acme_dns::AcmeDns;
use super::rfc2136::Rfc2136;
use super::site::{Site, unusable};
use super::webhook::Webhook;
use super::{Provider, hosted, own};
use crate::model::field::FieldPath;
use crate::model::own_solver::OwnSolver;
use crate::model::solver::Dns01Solver;
use crate::solvers::SolveError;

/// Builds the provider that a solver names.
///
/// # Errors
/// Fails if the solver names no provider, or if a Secret or a field is missing or cannot be used.
pub async fn provider(
    solver: &Dns01Solver,
    site: &Site<'_>,
) -> Result<Arc<dyn Provider>, SolveError> {
    if let Some(fields) = &solver.rfc2136 {
        return Ok(Arc::new(Rfc2136::of(fields, site).await?));
    }
    if let Some(fields) = &solver.acme_dns {
        return Ok(Arc::new(AcmeDns::of(fields, site).await?));
    }
    if let Some(fields) = &solver.webhook {
        if let Some(own) = OwnSolver::read(fields, &FieldPath::of("webhook")) {
            return own::provider(own, site).await;
        }
        return Ok(Arc::new(Webhook::of(fields, site)));
    }
    let hosted = hosted::provider(solver, site).await?;
    hosted.ok_or_else(|| unusable("no dns provider config specified for challenge".to_owned()))
}
