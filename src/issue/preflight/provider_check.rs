//! Providers of dns01 solvers, asked before the order whether they take our records: otherwise the order would be wasted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;
use tokio::time::timeout;
use tracing::debug;

use super::certificates::choices;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Finding, Grade, evidence_of_answer};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::fetch::Fetcher;
use crate::issue::flags::drive::DriveArgs;
use crate::known;
use crate::model::challenge::record_name;
use crate::model::provider_refusal::{EarlyRefusal, ProviderRefusal};
use crate::model::solver::Dns01Solver;
use crate::model::{Certificate, Challenge, Identifier, Issuer, IssuerRef, Key, Record};
use crate::objects::own_request::certificate_of;
use crate::print::Printer;
use crate::reconcile::solver_choice::Chosen;
use crate::solvers::SolveError;
use crate::solvers::dns01::manual::is_a_persons;
use crate::solvers::dns01::solver::{Dns01, domain_of};
use crate::store::error::StoreError;
use crate::store::resources::typed;
use crate::store::{Part, Store};

/// Longest time that all providers together may take.
const PROVIDERS_TIMEOUT: Duration = Duration::from_secs(10);

/// Most hosts of a solver that are checked for wildcards above them.
const MAX_HOSTS: usize = 16;

/// Most Certificates with which a refusal is stored.
const MAX_STORED_REFUSALS: usize = 100;

/// Solver of an issuer in its present generation, for Certificates of one namespace: worth one question.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QuestionKey {
    issuer: Key,
    /// UID of the issuer, which differs from that of an earlier issuer of that name.
    uid: String,
    /// Generation of the issuer.
    generation: Option<i64>,
    /// Position of the solver in the issuer's list, from 0.
    position: usize,
    namespace: String,
}

/// Question about a solver, with the names that need the solver.
pub(crate) struct ProviderQuestion {
    /// Solver that the question is about.
    pub(crate) subject: QuestionKey,
    solver: Dns01Solver,
    reference: IssuerRef,
    /// First Certificate and name that need the solver: `Certificate web: *.example.com`.
    whose: String,
    /// First name that needs the solver, a wildcard with its `*.`.
    domain: String,
    /// Names of records, with the final dot.
    names: BTreeSet<String>,
    /// Certificates that need the solver.
    certificates: BTreeSet<Key>,
}

/// Asks the providers of the Certificates among these keys; only warns of a provider that cannot be asked now.
///
/// # Errors
/// Fails with the first fault that only a person can correct, and when the work is interrupted.
pub(crate) async fn check(
    keys: impl Iterator<Item = &Key>,
    store: &Arc<dyn Store>,
    drive: &DriveArgs,
    fetcher: Option<&Fetcher>,
    (context, output): (&Context, &OutputArgs),
) -> Result<(), Failure> {
    let errands = errands(keys, store).await?;
    if errands.is_empty() {
        return Ok(());
    }
    let fetcher = match fetcher {
        Some(fetcher) => fetcher.clone(),
        None => drive.fetcher().await?,
    };
    let zones = drive.zones(&fetcher).await?;
    let namespace = &context.global.cluster_resource_namespace;
    let reach = drive.dns01.reach(context);
    let dns01 = reach.providers(store, zones, &fetcher.resolver, namespace);
    let asking = join_all(errands.iter().map(|errand| ask(&dns01, errand)));
    let answers = tokio::select! {
        answers = asking => answers,
        kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
    };
    for (errand, answer) in errands.iter().zip(&answers) {
        let refusal = answer.as_ref().err().filter(|error| error.needs_person);
        let refusal = refusal.and_then(|error| error.refusal.as_deref());
        if refusal.is_none() && answer.is_err() {
            continue;
        }
        // The work goes on, or shows the refusal, without the stored refusal, too.
        if let Err(error) = errand.keep(refusal, store, context.now()).await {
            debug!(%error, "the provider's refusal is not kept");
        }
    }
    let printer = context.printer(output);
    let is_well = answers.iter().all(Result::is_ok);
    for (errand, answer) in errands.iter().zip(answers) {
        let Err(error) = answer else { continue };
        let message = errand.complaint(&error);
        if error.needs_person {
            let failure = Failure::new(FailureKind::Solver, message);
            return Err(failure.helped_by(error.remedy.as_deref()));
        }
        printer.warning(&message);
    }
    if is_well {
        let hidden = errands.iter().map(|errand| hidden_hosts(&dns01, errand, context.now()));
        join_all(hidden).await.into_iter().flatten().for_each(|text| printer.warning(&text));
    }
    Ok(())
}

impl ProviderQuestion {
    /// Stores the provider's refusal with the Certificates, or removes its earlier refusal.
    async fn keep(
        &self,
        refusal: Option<&ProviderRefusal>,
        store: &Arc<dyn Store>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let QuestionKey { issuer, generation, position, .. } = &self.subject;
        let kept = refusal.map(|refusal| EarlyRefusal {
            at: now,
            issuer: issuer.clone(),
            generation: *generation,
            solver: *position,
            domain: self.domain.clone(),
            refusal: refusal.clone(),
        });
        for key in self.certificates.iter().take(MAX_STORED_REFUSALS) {
            let Some(record) = store.get(key).await? else { continue };
            let mut metadata = record.metadata();
            let before = EarlyRefusal::read(&metadata.annotations);
            let is_of_this =
                before.is_some_and(|it| it.issuer == *issuer && it.solver == *position);
            let has_news = (kept.is_some() || is_of_this)
                && EarlyRefusal::write(kept.as_ref(), &mut metadata.annotations);
            if has_news {
                let object = serde_json::json!({ "metadata": metadata });
                store.replace(Record { key: key.clone(), object }, Part::Metadata).await?;
            }
        }
        Ok(())
    }

    /// Returns the message for an error of the provider.
    pub(crate) fn complaint(&self, error: &SolveError) -> String {
        let Self { whose, subject: QuestionKey { issuer, .. }, .. } = self;
        let what = if error.needs_person { "cannot be used" } else { "cannot be asked now" };
        format!("{whose}: the dns01 solver of {issuer} {what}: {error}")
    }
}

/// Asks the provider of a Challenge whose record is not seen, and adds the provider's error to the failure.
pub(crate) async fn explain(
    challenge: &Challenge,
    dns01: &Dns01,
    printer: &Printer,
    failure: Failure,
) -> Failure {
    let spec = &challenge.spec;
    let Some(solver) = &spec.solver.dns01 else { return failure };
    if is_a_persons(challenge) {
        return failure;
    }
    let names = BTreeSet::from([spec.record_name()]);
    let namespace = &challenge.metadata.namespace;
    let asked =
        timeout(PROVIDERS_TIMEOUT, dns01.check(solver, &spec.issuer_ref, namespace, &names)).await;
    match asked.unwrap_or_else(|_| Err(timeout_error())) {
        Ok(()) => failure,
        Err(error) if error.needs_person => {
            let failure = failure.hint(format!("correct the dns01 solver: {error}"));
            failure.helped_by(error.remedy.as_deref())
        }
        Err(error) => {
            printer.warning(&format!("the dns01 solver cannot be asked now: {error}"));
            failure
        }
    }
}

/// Returns warnings of hosts for which only a wildcard answers: a host has no address while its record exists (RFC 4592).
pub(crate) async fn hidden_hosts(
    dns01: &Dns01,
    errand: &ProviderQuestion,
    now: Timestamp,
) -> Vec<String> {
    let hidden = errand.names.iter().take(MAX_HOSTS).map(async |record| {
        let asked = timeout(PROVIDERS_TIMEOUT, dns01.hidden_by(&errand.solver, record));
        let given = asked.await.ok().flatten().filter(|given| !given.is_hidden)?;
        let host = domain_of(record);
        let shown = evidence_of_answer(format!("A and AAAA of {host} and of a name that nobody has made"), now, given.records.join(", "));
        let finding = Finding::new(CauseId::D0121, Grade::Likely, host, shown)
            .with("HOST", host)
            .with("RECORD", record.trim_end_matches('.'));
        let (_, above) = host.split_once('.').unwrap_or_default();
        Some(format!(
            "{}; make a record of its own for {host} beside the wildcard, order *.{above} instead, or prove {host} by HTTP-01",
            known::format_finding(&finding)
        ))
    });
    join_all(hidden).await.into_iter().flatten().collect()
}

/// Asks a provider, with a time limit.
pub(crate) async fn ask(dns01: &Dns01, errand: &ProviderQuestion) -> Result<(), SolveError> {
    let ProviderQuestion { solver, reference, names, subject, .. } = errand;
    let asked =
        timeout(PROVIDERS_TIMEOUT, dns01.check(solver, reference, &subject.namespace, names)).await;
    asked.unwrap_or_else(|_| Err(timeout_error()))
}

/// Builds the error of a provider that does not answer in time.
fn timeout_error() -> SolveError {
    SolveError::passing(
        "cannot check its provider",
        format!("no answer within {} s", PROVIDERS_TIMEOUT.as_secs()),
    )
}

/// Returns the questions to ask of providers, one for each solver.
pub(crate) async fn errands(
    keys: impl Iterator<Item = &Key>,
    store: &Arc<dyn Store>,
) -> Result<Vec<ProviderQuestion>, Failure> {
    let mut errands: BTreeMap<QuestionKey, ProviderQuestion> = BTreeMap::new();
    for key in keys.filter(|key| key.kind.is_issued()) {
        let Some(record) = store.get(key).await? else { continue };
        // A Certificate that cannot be read is not worked on.
        let Ok(certificate) = certificate_of(&record) else { continue };
        let Some(issuer) = issuer_key(&certificate) else { continue };
        let Some(record) = store.get(&issuer).await? else { continue };
        let Ok(found) = typed::<Issuer>(record) else { continue };
        for NameToCheck { text, record_name, position, solver } in to_check(&certificate, &found) {
            let subject = QuestionKey {
                issuer: issuer.clone(),
                uid: found.metadata.uid.clone(),
                generation: found.metadata.generation,
                position,
                namespace: certificate.metadata.namespace.clone(),
            };
            let errand = errands.entry(subject.clone()).or_insert_with(|| ProviderQuestion {
                subject,
                solver,
                reference: certificate.spec.issuer_ref.clone(),
                whose: format!("{key}: {text}"),
                domain: text.clone(),
                names: BTreeSet::new(),
                certificates: BTreeSet::new(),
            });
            errand.names.insert(record_name);
            errand.certificates.insert(key.clone());
        }
    }
    Ok(errands.into_values().collect())
}

/// Name of a Certificate, and the dns01 solver that answers for the name.
struct NameToCheck {
    text: String,
    record_name: String,
    position: usize,
    solver: Dns01Solver,
}

/// Returns the names of a Certificate that a dns01 solver answers.
fn to_check(certificate: &Certificate, issuer: &Issuer) -> Vec<NameToCheck> {
    let mut wanted = Vec::new();
    for (text, chosen) in choices(certificate, issuer) {
        let Ok(Chosen { kind, solver, position, .. }) = chosen else { continue };
        let solver = solver.dns01.filter(|_| kind.is_by_record());
        if let (Ok(Identifier::Dns(name)), Some(solver)) = (Identifier::parse(text), solver) {
            // The account that a label would name may not be there yet.
            let record_name = record_name(kind, name.base(), "");
            wanted.push(NameToCheck {
                text: text.to_owned(),
                record_name,
                position,
                solver: *solver,
            });
        }
    }
    wanted
}
