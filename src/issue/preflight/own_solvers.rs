//! Solvers that only this program has: checks, before anything is applied, that the driver can serve them.

use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::lead::venue::Venue;
use crate::model::Key;
use crate::model::field::FieldPath;
use crate::model::own_solver::{GROUP, OwnSolver};
use crate::model::solver::Dns01Solver;
use crate::solvers::dns01::own::obstacle;
use crate::solvers::dns01::site::Hooks;

/// Checks the solver of an issuer; `whose` is the Certificate and the name that need the solver.
///
/// # Errors
/// Fails when only this program can serve the solver and cert-manager drives, or when this process cannot serve it.
pub(crate) fn check(
    solver: &Dns01Solver,
    issuer: &Key,
    whose: &str,
    venue: Venue,
) -> Result<(), Failure> {
    let Some(webhook) = &solver.webhook else { return Ok(()) };
    let Some(read) = OwnSolver::read(webhook, &FieldPath::of("webhook")) else { return Ok(()) };
    let name = &webhook.solver_name;
    if venue == Venue::CertManager {
        let message = format!(
            "{whose}: the dns01 solver of {issuer} is \"{name}\" of {GROUP}, which only kubectl-acme can serve, and \
             cert-manager drives here: nothing was applied"
        );
        let failure = Failure::new(FailureKind::OwnedByAnother, message)
            .hint("issue on this machine: --local")
            .hint("in the cluster, name a solver of cert-manager's own, or stop cert-manager and let kubectl-acme drive");
        return Err(failure);
    }
    let hooks = match venue {
        Venue::Cluster | Venue::Rehearsal | Venue::Elsewhere => Hooks::Never,
        // Whether the flag permits programs is checked when the provider is asked.
        Venue::Local | Venue::ByHand | Venue::CertManager => Hooks::Allowed,
    };
    let obstacle = read.ok().and_then(|own| obstacle(&own, hooks));
    let Some(obstacle) = obstacle else { return Ok(()) };
    let message = format!("{whose}: the dns01 solver of {issuer} cannot be used: {}", obstacle.why);
    Err(Failure::new(FailureKind::Solver, message).helped_by(obstacle.remedy.as_deref()))
}
