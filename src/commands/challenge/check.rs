//! `challenge check`: checks an answer once now, and reads the CA's state of the challenge.

use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::hints::{by_hand, nobody_drives};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::output::ReportArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::next_step::{AnswerStep, NextStep};
use crate::engine::dns01::ProviderMeans;
use crate::hints::invocation;
use crate::input::{completers, lookup, target};
use crate::inspect::answer::{AnswerInspector, InspectedAnswer};
use crate::inspect::check_report::CheckReport;
use crate::issue::flags::probe_pod::ProbePodArgs;
use crate::issue::preflight::provider_check;
use crate::model::cause::CheckFinding;
use crate::model::{Challenge, Kind, State};
use crate::print::{Printer, document};
use crate::reconcile::challenge::Readiness;
use crate::solvers::dns01::solver::Dns01;
use crate::store::Store;
use crate::store::local::Access;
use crate::store::resources::{Resources, typed};
use crate::{known, lead};

/// Number of challenges that are checked at once.
const CHECKS_AT_ONCE: usize = 8;

/// Flags of `challenge check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Names of challenges or of their owners, or domains; without any, all challenges that have not ended
    #[arg(value_name = "NAME", add = completers::names(Kind::Challenge))]
    pub names: Vec<String>,
    /// Show the command line that makes the same check
    #[arg(long)]
    pub show_commands: bool,
    /// Flags of lookups and connections
    #[command(flatten)]
    pub look: LookArgs,
    /// Name servers for DNS-01
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// Flags of probe Pods inside the cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// Flags of the output
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Checks the answers; only reads the CA's state, and writes nothing.
///
/// # Errors
/// Fails with the lowest exit code of all challenges: if one is not found, has no visible answer, or has ended at the CA.
pub async fn run(args: CheckArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.store(Access::ReadOnly).await?;
    let challenges = challenges(&args.names, &store, context).await?;
    let mut printer = context.printer(&(&args.output).into());
    let is_one = challenges.len() == 1 && args.names.len() == 1;
    if challenges.is_empty() && printer.format().is_for_people() {
        let namespace = context.namespace();
        printer.note(&format!("No challenge waits for its answer in namespace {namespace}."));
        return Ok(());
    }
    let stop = CancellationToken::new();
    let fetcher = args.look.fetcher().await?;
    let zones = args.nameservers.zones(&args.look, &fetcher).await?;
    let namespace = context.global.cluster_resource_namespace.clone();
    let reach = ProviderMeans::usual(context);
    let dns01 = reach.providers(&store, zones.clone(), &fetcher.resolver, &namespace);
    let inspector = AnswerInspector {
        store: Arc::clone(&store),
        cluster_resource_namespace: namespace,
        inside: args.probe_pod.inside(true, &stop, context)?,
        dns: args.look.server().await?.and_then(|addresses| addresses.first().copied()),
        fetcher,
        zones,
        stop,
        now: context.now(),
    };
    let interrupted = context.interrupted();
    let looks = challenges.into_iter().map(|challenge| inspector.look(challenge, interrupted));
    // All checks run to their end, so that no probe Pod is left behind.
    let looked: Vec<_> = stream::iter(looks).buffered(CHECKS_AT_ONCE).collect().await;
    let seen: Vec<_> = looked.iter().flatten().map(InspectedAnswer::sight).collect();
    let reports: Vec<_> = seen.iter().map(CheckReport::report).collect();
    let report = match reports.as_slice() {
        [report] if is_one => report.clone(),
        _ => document::list(reports),
    };
    if !seen.is_empty() || !is_one {
        printer.report(&report, |colour| {
            let texts = seen.iter().map(|sight| sight.text(colour, args.show_commands));
            texts.collect::<Vec<_>>().join("\n")
        })?;
    }
    let mut failures = Vec::new();
    for looked in looked {
        let failure = match looked {
            Ok(looked) => {
                let in_cluster = store.in_cluster();
                Box::pin(failure(looked, &dns01, &printer, in_cluster, context)).await
            }
            Err(failure) => Some(failure),
        };
        failures.extend(failure);
    }
    conclude(failures, &printer)
}

/// Challenges that the words lead to; all challenges that have not ended if there are no words.
async fn challenges(
    words: &[String],
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Vec<Challenge>, Failure> {
    let namespace = context.namespace();
    if words.is_empty() {
        let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
        let mut waiting = all.list(&target::scope(Kind::Challenge, Some(namespace))).await?;
        waiting.retain(|challenge| !challenge.has_ended());
        waiting.sort_by(|a, b| a.spec.dns_name.cmp(&b.spec.dns_name));
        return Ok(waiting);
    }
    let mut found: Vec<Challenge> = Vec::new();
    for word in words {
        let name = target::name_of(Kind::Challenge, word)?;
        let named = target::key(Kind::Challenge, &name, namespace);
        let keys = lookup::keys(store, &named).await?;
        if keys.is_empty() {
            return Err(lookup::not_found(store, &named).await?);
        }
        for key in &keys {
            if !found.iter().any(|known| known.name() == key.name) {
                found.push(typed(lookup::read(store, key).await?)?);
            }
        }
    }
    Ok(found)
}

/// Returns a single failure as it is; prints each of several failures, and returns the lowest exit code.
fn conclude(mut failures: Vec<Failure>, printer: &Printer) -> Result<(), Failure> {
    if failures.len() == 1 {
        return Err(failures.remove(0));
    }
    for failure in &failures {
        printer.error(&failure.message, &failure.hints);
    }
    let lowest = failures.iter().map(|failure| failure.kind).min_by_key(|kind| kind.exit_code());
    lowest.map_or(Ok(()), |kind| Err(Failure::silent(kind)))
}

/// Failure for an answer that the CA would not accept; `None` if the CA would accept the answer.
async fn failure(
    looked: InspectedAnswer,
    dns01: &Dns01,
    printer: &Printer,
    in_cluster: bool,
    context: &mut Context,
) -> Option<Failure> {
    let told = known::of_answer(&looked, in_cluster, context.now());
    let InspectedAnswer { challenge, verdict, held, .. } = looked;
    let name = &challenge.metadata.name;
    if held.is_valid() {
        return None;
    }
    if let Some(ended) = held.ended() {
        let problem = held.challenge(&challenge.spec.url).and_then(|said| said.error.as_ref());
        let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        let what = format!("the CA holds challenge {name} as {}{problem}", ended.status);
        return Some(Failure::new(FailureKind::Validation, what).hint(fresh_order(&challenge)));
    }
    let Readiness::NotYet { reason, cause } = verdict else { return None };
    let what = format!("the CA would not see the answer of challenge {name}: {reason}");
    let failure = Failure::new(FailureKind::Solver, what);
    let failure = provider_check::explain(&challenge, dns01, printer, failure).await;
    let failure = told.into_iter().fold(failure, Failure::hint);
    Some(add_hints(failure, challenge, cause, in_cluster, context).await)
}

/// Adds hints to the failure of a challenge whose answer is not visible.
async fn add_hints(
    failure: Failure,
    challenge: Challenge,
    sighting: Option<CheckFinding>,
    in_cluster: bool,
    context: &mut Context,
) -> Failure {
    let is_over = challenge.has_ended();
    if is_over && challenge.status.state != Some(State::Valid) {
        return failure.hint(fresh_order(&challenge));
    }
    if !challenge.status.presented {
        return failure.hint(match by_hand(&challenge, &challenge.metadata.namespace) {
            Some(resume) => format!("no answer is presented yet: {resume} asks a person for it"),
            None => "no answer is presented yet: order -f … or run presents it".to_owned(),
        });
    }
    // A user who may not read the Lease gets no hint about the driver.
    let is_left = lead::is_driven(context).await.is_ok_and(|is_driven| !is_driven) && !is_over;
    let left = is_left.then(|| nobody_drives(&challenge, in_cluster));
    let step = AnswerStep { challenge, sighting, in_cluster };
    left.into_iter().fold(failure.step(&NextStep::Answer(Box::new(step))), Failure::hint)
}

/// Hint for a challenge that has ended: make a new order.
fn fresh_order(challenge: &Challenge) -> String {
    let namespace = &challenge.metadata.namespace;
    let order = challenge.metadata.controller().map_or("ORDER", |order| order.name.as_str());
    let retry = invocation::current().like_in(namespace, &format!("order retry {order}"));
    format!("the challenge has ended and is not presented again; make a new order: {retry}")
}
