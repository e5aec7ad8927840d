//! Solvers of this program's own API group: a program, a person, or one of the many providers.

use std::sync::Arc;

use super::Provider;
use super::exec::Exec;
#[cfg(feature = "many-providers")]
use super::many;
use super::site::{Hooks, Site};
use crate::model::field::Remark;
use crate::model::own_solver::OwnSolver;
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;

/// Builds the provider of a solver of this group.
pub(super) async fn provider(
    read: Result<OwnSolver, Vec<Remark>>,
    site: &Site<'_>,
) -> Result<Arc<dyn Provider>, SolveError> {
    let own = read.map_err(|remarks| unreadable(&remarks))?;
    if let Some(obstacle) = obstacle(&own, site.hooks) {
        return Err(obstacle);
    }
    match own {
        OwnSolver::Exec(hook) => Ok(Arc::new(Exec::of(hook, site).await?)),
        OwnSolver::Manual => Err(left_to_a_person()),
        #[cfg(feature = "many-providers")]
        OwnSolver::Provider(settings) => many::provider(settings, site).await,
        #[cfg(not(feature = "many-providers"))]
        OwnSolver::Provider(settings) => Err(not_built_in(settings.provider.name)),
    }
}

/// Returns the reason why this process cannot serve a solver of this group, whatever its Secrets hold; `None` if it can.
pub fn obstacle(own: &OwnSolver, hooks: Hooks) -> Option<SolveError> {
    match (own, hooks) {
        (OwnSolver::Exec(hook), Hooks::NotAllowed) => {
            let program = hook.command.first().map_or("", String::as_str);
            let why = format!("{program} is run only where that is allowed");
            Some(lasting_error(why, Remedy::AllowPrograms))
        }
        (OwnSolver::Exec(_), Hooks::Never) => {
            let why = "in a cluster no program is run that an Issuer names: whoever may write one would run programs here";
            Some(lasting_error(why.to_owned(), Remedy::ProgramsOnThisMachine))
        }
        (OwnSolver::Provider(settings), _) if !cfg!(feature = "many-providers") => {
            Some(not_built_in(settings.provider.name))
        }
        (OwnSolver::Exec(_), Hooks::Allowed) | (OwnSolver::Provider(_) | OwnSolver::Manual, _) => {
            None
        }
    }
}

fn left_to_a_person() -> SolveError {
    let why = "the solver \"manual\" leaves it to a person".to_owned();
    lasting_error(why, Remedy::RecordByHand)
}

fn not_built_in(name: &str) -> SolveError {
    let why =
        format!("{name} is one of the many providers, and this program was built without them");
    lasting_error(why, Remedy::BuildWithProviders)
}

fn unreadable(remarks: &[Remark]) -> SolveError {
    let hint = remarks.iter().find_map(|remark| remark.hint.clone());
    let words: Vec<String> = remarks.iter().map(ToString::to_string).collect();
    let hint = hint.unwrap_or_else(|| "mend it in the solver of the issuer".to_owned());
    lasting_error(words.join("; "), hint)
}

fn lasting_error(why: String, remedy: impl Into<Remedy>) -> SolveError {
    SolveError::lasting("cannot publish the record", why).advised(remedy)
}
