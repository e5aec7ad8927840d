//! DNS providers, asked by their cheapest read request about a record: once for each solver whose Secret may be read.
//! Nothing is changed there. Webhooks are not called: the API server knows their state.

use futures_util::stream::{self, StreamExt as _};
use tokio::time::timeout;

use super::investigator::{Investigator, MAX_CONCURRENT};
use super::patience::PROBE_TIMEOUT;
use super::wanted_names::{chosen, ordered};
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::case::issuer::ProviderCase;
use crate::diagnosis::case::{Case, CertificateCase, Unobserved};
use crate::model::challenge::record_name;
use crate::model::field::FieldPath;
use crate::model::own_solver::OwnSolver;
use crate::model::provider_refusal::provider_name;
use crate::model::solver::Dns01Solver;
use crate::model::{Identifier, IssuerRef, Key};
use crate::solvers::SolveError;
use crate::solvers::dns01::manual::is_a_persons;
use crate::solvers::dns01::solver::Dns01;
use crate::solvers::remedy::Remedy;

/// Largest number of solvers whose providers are asked.
const MAX_SOLVERS: usize = 16;

/// Question to a provider, with the issuer and the name that it is for.
struct ProviderQuestion {
    issuer: Key,
    reference: IssuerRef,
    /// Namespace of the Certificate.
    namespace: String,
    solver: Dns01Solver,
    /// Name that is to be proven, with `*.` if it is a wildcard.
    domain: String,
    /// Absolute name of its record.
    record: String,
}

impl Investigator {
    /// Asks the providers about the names to be issued; the second list names the providers that could not be asked.
    pub(super) async fn ask_providers(&self, case: &Case) -> (Vec<ProviderCase>, Vec<Unobserved>) {
        let Some(dns01) = &self.dns01 else { return Default::default() };
        let mut questions = questions(case);
        let left_out = questions.len().saturating_sub(MAX_SOLVERS);
        questions.truncate(MAX_SOLVERS);
        let asked = questions.into_iter().map(|question| async move {
            let answer = ask(dns01, &question, case.in_cluster).await;
            (question, answer)
        });
        let mut asked = stream::iter(asked).buffered(MAX_CONCURRENT);
        let (mut told, mut unseen) = (Vec::new(), Vec::new());
        while let Some((question, answer)) = asked.next().await {
            let refusal = match answer {
                Ok(()) => None,
                Err(SolveError { refusal: Some(refusal), .. }) => Some(*refusal),
                Err(error) => {
                    unseen.extend(describe_unasked(&question, &error));
                    continue;
                }
            };
            let ProviderQuestion { issuer, solver, domain, .. } = question;
            told.push(ProviderCase { issuer, solver, domain, at: self.now, refusal });
        }
        if left_out > 0 {
            let what = format!("the DNS providers of {left_out} more solvers");
            let why = format!("at most {MAX_SOLVERS} are asked");
            unseen.push(Unobserved { what, why, is_forbidden: false });
        }
        (told, unseen)
    }
}

async fn ask(
    dns01: &Dns01,
    question: &ProviderQuestion,
    in_cluster: bool,
) -> Result<(), SolveError> {
    let ProviderQuestion { reference, namespace, solver, record, .. } = question;
    if in_cluster && is_ambient(solver) {
        let why = "the provider takes its credentials from the controller's environment, which is not here";
        return Err(SolveError::passing("cannot ask the provider", why));
    }
    let asked =
        timeout(PROBE_TIMEOUT, dns01.check_read_only(solver, reference, namespace, record)).await;
    asked.unwrap_or_else(|_| {
        let why = format!("no answer within {} s", PROBE_TIMEOUT.as_secs());
        Err(SolveError::passing("cannot ask the provider", why))
    })
}

/// Returns whether a solver takes its credentials from the environment of the process that uses it.
fn is_ambient(solver: &Dns01Solver) -> bool {
    let may_be =
        solver.route53.is_some() || solver.azure_dns.is_some() || solver.cloud_dns.is_some();
    may_be && solver.secrets().is_empty()
}

/// Builds the entry for a provider that could not be asked; `None` if a person has to fix it: another rule reports that.
fn describe_unasked(question: &ProviderQuestion, error: &SolveError) -> Option<Unobserved> {
    let is_forbidden = match error.remedy.as_deref() {
        Some(Remedy::Store(refusal)) => refusal.lacks_permission(),
        _ => false,
    };
    let what = format!(
        "the answer of {} about {} ({})",
        provider_name(&question.solver),
        question.domain,
        question.issuer
    );
    let is_told = error.needs_person && !is_forbidden;
    (!is_told).then(|| Unobserved { what, why: error.why.clone(), is_forbidden })
}

/// Lists every solver whose records are still to be made, once, with the first name that it is for.
fn questions(case: &Case) -> Vec<ProviderQuestion> {
    let mut all: Vec<ProviderQuestion> = Vec::new();
    for of in case.certificates.iter().filter(|of| of.is_open()) {
        let Some(issuer) = issuer_key(&of.certificate) else { continue };
        // If a person makes one record of an order by hand, the person makes all of them.
        if of.current_challenges().any(is_a_persons) {
            continue;
        }
        for domain in ordered(&of.certificate) {
            let Some((solver, record)) = record_to_make(case, of, &domain) else { continue };
            let is_known = |one: &ProviderQuestion| one.issuer == issuer && one.solver == solver;
            if all.iter().any(is_known) || !is_askable(&solver) {
                continue;
            }
            all.push(ProviderQuestion {
                issuer: issuer.clone(),
                reference: of.certificate.spec.issuer_ref.clone(),
                namespace: of.certificate.metadata.namespace.clone(),
                solver,
                domain,
                record,
            });
        }
    }
    all
}

/// Returns solver and record of a name whose record is still to be made: of its Challenge, else those to be chosen.
fn record_to_make(
    case: &Case,
    of: &CertificateCase,
    domain: &str,
) -> Option<(Dns01Solver, String)> {
    let challenge = of.current_challenges().find(|c| c.spec.shown_domain() == *domain);
    if let Some(challenge) = challenge.filter(|challenge| !challenge.has_ended()) {
        let is_up = challenge.status.presented;
        let solver = challenge.spec.solver.dns01.as_deref().filter(|_| !is_up)?;
        return Some((solver.clone(), challenge.spec.record_name()));
    }
    let chosen = chosen(case, &of.certificate, domain)?.ok()?;
    let Ok(Identifier::Dns(name)) = Identifier::parse(domain) else { return None };
    let solver = chosen.solver.dns01.filter(|_| chosen.kind.is_by_record())?;
    Some((*solver, record_name(chosen.kind, name.base(), "")))
}

/// Returns whether the provider of a solver can be asked: webhooks, programs and persons cannot.
fn is_askable(solver: &Dns01Solver) -> bool {
    let Some(webhook) = &solver.webhook else { return true };
    let own = OwnSolver::read(webhook, &FieldPath::default());
    matches!(own, Some(Ok(OwnSolver::Provider(_))))
}
