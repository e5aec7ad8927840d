//! `challenge`: the table of challenges, one look at an answer now, and the answer by hand.

pub mod answer;

use tokio_util::sync::CancellationToken;

use self::answer::{AnswerArgs, Deed};
use crate::app::context::Context;
use crate::app::engine::dns01::Reach;
use crate::app::failure::Failure;
use crate::app::flags::look::{LookArgs, NameserverArgs};
use crate::app::flags::output::ReportArgs;
use crate::app::flags::probe_pod::ProbePodArgs;
use crate::app::hints::reproduce::Instruments;
use crate::app::input::completers;
use crate::app::input::target::{self, Wanted};
use crate::app::invocation::{self, quoted};
use crate::app::listing::{self, ListArgs};
use crate::app::preflight::provider_check;
use crate::app::sight::Sight;
use crate::app::{lead, waiting_orders};
use crate::diagnosis::failure_kind::FailureKind;
use crate::diagnosis::next_step::{AnswerStep, NextStep};
use crate::model::memory::{Holder, Memory};
use crate::model::solver::Webhook;
use crate::model::{Answer, Challenge, ChallengeType, Kind, State, own_solver};
use crate::probes::Probe;
use crate::probes::dns::{DnsProbe, zones_of};
use crate::probes::http::HttpProbe;
use crate::probes::tls_alpn::TlsAlpnProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{published, shown, visible};
use crate::solvers::dns01::manual::is_a_persons;
use crate::store::local::Access;
use crate::store::resources::typed;

/// Commands below `challenge`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct ChallengeArgs {
    /// Command
    #[command(subcommand)]
    pub command: ChallengeCommand,
}

/// Commands below `challenge`.
#[derive(Debug, clap::Subcommand)]
pub enum ChallengeCommand {
    /// List challenges
    Get(NamesArgs),
    /// Look at the answer of a challenge once, as the CA would, and show everything seen
    Check(CheckArgs),
    /// Put up the answer of a challenge by its own solver; nothing else is driven
    ///
    /// An answer to HTTP-01 from this machine's own listener is served until Ctrl-C.
    Present(Box<AnswerArgs>),
    /// Take down the answer of a challenge by its own solver
    Cleanup(Box<AnswerArgs>),
}

/// Flags of `challenge get`.
#[derive(Debug, clap::Args)]
pub struct NamesArgs {
    /// Names; all challenges when there are none
    #[arg(value_name = "NAME", add = completers::names(Kind::Challenge))]
    pub names: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    pub list: ListArgs,
}

/// Flags of `challenge check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Name of the challenge
    #[arg(value_name = "NAME", add = completers::names(Kind::Challenge))]
    pub name: String,
    /// Show the command line that looks the same way
    #[arg(long)]
    pub show_commands: bool,
    /// How to look
    #[command(flatten)]
    pub look: LookArgs,
    /// Whom to ask about DNS-01
    #[command(flatten)]
    pub nameservers: NameserverArgs,
    /// How to look from inside the cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// How results are written
    #[command(flatten)]
    pub output: ReportArgs,
}

/// Runs `challenge`.
///
/// # Errors
/// Fails when a challenge is not there, or its answer is not visible.
pub async fn run(args: ChallengeArgs, context: &mut Context) -> Result<(), Failure> {
    match args.command {
        ChallengeCommand::Get(args) => {
            listing::show(&Wanted::of_kind(Kind::Challenge, &args.names)?, &args.list, context)
                .await?;
            let printer = context.printer(&args.list.output);
            if !args.names.is_empty() || !printer.format().is_for_people() {
                return Ok(());
            }
            let namespace = (!args.list.all_namespaces).then(|| context.namespace());
            let store = context.store(Access::ReadOnly).await?;
            waiting_orders::tell(&store, target::scope(Kind::Order, namespace), &printer).await
        }
        ChallengeCommand::Check(args) => check(args, context).await,
        ChallengeCommand::Present(args) => {
            Box::pin(answer::run(*args, Deed::Present, context)).await
        }
        ChallengeCommand::Cleanup(args) => {
            Box::pin(answer::run(*args, Deed::CleanUp, context)).await
        }
    }
}

/// Asks nothing of the CA and writes nothing.
async fn check(args: CheckArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.store(Access::ReadOnly).await?;
    let name = &target::name_of(Kind::Challenge, &args.name)?;
    let key = target::key(Kind::Challenge, name, context.namespace());
    let challenge: Challenge = typed(target::read(&store, &key).await?)?;
    let kind = challenge.spec.kind;
    let is_http = kind == ChallengeType::Http01;
    let answer = Answer::of(&challenge).map_err(|why| {
        Failure::new(FailureKind::Solver, format!("cannot look at challenge {name}: {why}"))
    })?;
    let stop = CancellationToken::new();
    let inside = args.probe_pod.inside(true, &stop, context)?.filter(|_| is_http);
    let look_inside = inside
        .as_ref()
        .map(|probe| invocation::current().kubectl(&probe.words(&challenge, &answer)));
    let fetcher = args.look.fetcher().await?;
    let zones = args.nameservers.zones(&args.look, &fetcher).await?;
    let namespace = &context.global.cluster_resource_namespace;
    let reach = Reach::usual(context.cluster());
    let dns01 = reach.providers(&store, zones.clone(), &fetcher.resolver, namespace);
    let probe: Box<dyn Probe> = match kind {
        ChallengeType::Http01 => Box::new(HttpProbe { fetcher }),
        ChallengeType::TlsAlpn01 => Box::new(TlsAlpnProbe { fetcher }),
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
            Box::new(DnsProbe { zones: zones.clone() })
        }
    };
    let now = context.now();
    let mut observations = probe.look(&challenge, &answer).await;
    if let Some(inside) = inside {
        let mut look = inside.look(&challenge, &answer);
        tokio::select! {
            seen = &mut look => observations.extend(seen),
            kind = context.interrupted().wait() => {
                stop.cancel();
                // Its Pod is removed first.
                look.await;
                return Err(Failure::new(kind, "interrupted"));
            }
        }
    }
    for observation in &mut observations {
        observation.at = now;
    }
    let verdict = match kind {
        ChallengeType::Http01 => visible::judge(&answer, &observations),
        ChallengeType::TlsAlpn01 => shown::judge(&answer, &observations),
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
            published::judge(&challenge, &answer, &observations)
        }
    };
    let named = zones_of(&challenge, &zones).unwrap_or(zones);
    let hosts = args.look.server().await?.and_then(|addresses| addresses.first().copied());
    let means = Instruments { hosts, zones: named.resolvers().to_vec(), inside: look_inside };
    let sight = Sight {
        challenge: &challenge,
        answer: &answer,
        observations: &observations,
        verdict: &verdict,
        means: &means,
    };
    let mut printer = context.printer(&(&args.output).into());
    let (report, commands) = (sight.report(), args.show_commands);
    printer.report(&report, |colour| sight.text(colour, commands))?;
    let Readiness::NotYet { reason, cause: sighting } = verdict else { return Ok(()) };
    let what = format!("the CA would not see the answer of challenge {name}: {reason}");
    let failure = Failure::new(FailureKind::Solver, what);
    let failure = provider_check::explain(&challenge, &dns01, &printer, failure).await;
    let is_over = challenge.status.state.is_some_and(State::is_final);
    if is_over && challenge.status.state != Some(State::Valid) {
        let order = challenge.metadata.controller().map_or("ORDER", |order| order.name.as_str());
        let retry =
            invocation::current().like_in(&key.name.namespace, &format!("order retry {order}"));
        return Err(failure
            .hint(format!("it is over, and is not put up again: {retry} makes a fresh order")));
    }
    if !challenge.status.presented {
        let hint = match by_hand(&challenge, &key.name.namespace) {
            Some(resume) => format!("it has not been presented yet: {resume} asks a person for it"),
            None => "it has not been presented yet: order -f … or run puts it up".to_owned(),
        };
        return Err(failure.hint(hint));
    }
    let is_in_cluster = context.cluster().is_some();
    let unseen = AnswerStep { challenge: challenge.clone(), sighting, in_cluster: is_in_cluster };
    let failure = failure.step(&NextStep::Answer(Box::new(unseen)));
    // Whoever may not see who drives is told nothing of it.
    let is_left = lead::is_driven(context).await.is_ok_and(|is_driven| !is_driven) && !is_over;
    Err(if is_left { failure.hint(nobody_drives(&challenge, is_in_cluster)) } else { failure })
}

/// What to run where nobody works on a challenge: whatever answers it as before.
fn nobody_drives(challenge: &Challenge, is_in_cluster: bool) -> String {
    let untold = "nobody drives, so that the CA is not told when it is seen";
    let run = invocation::current().like_run();
    let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
    if let Some(resume) = by_hand(challenge, &challenge.metadata.namespace) {
        return format!("{untold}: {resume} goes on with it");
    }
    if challenge.spec.kind.is_by_record() || is_in_cluster {
        return format!("{untold}: {run}, or order -f …, goes on with it");
    }
    match memory.webroot {
        Some(folder) => {
            let webroot = format!("--http01-webroot={}", quoted(&folder));
            format!("{untold}: {run} {webroot}, or order -f … {webroot}, goes on with it")
        }
        None => format!(
            "nobody drives, so that this machine answers nothing now: {run}, or order -f …, serves it again"
        ),
    }
}

/// The command that goes on with a challenge whose record a person makes; none where somebody else answers.
fn by_hand(challenge: &Challenge, namespace: &str) -> Option<String> {
    let is_manual = |webhook: &Webhook| {
        webhook.group_name == own_solver::names::GROUP
            && webhook.solver_name == own_solver::names::MANUAL
    };
    let solver = challenge.spec.solver.dns01.as_ref();
    let is_theirs = is_a_persons(challenge)
        || solver.and_then(|solver| solver.webhook.as_ref()).is_some_and(is_manual);
    let flag = match challenge.spec.kind {
        // This record needs no flag.
        ChallengeType::DnsPersist01 if solver.is_none() => "",
        _ if is_theirs => " --dns01-manual",
        _ => return None,
    };
    let order = &challenge.metadata.controller()?.name;
    let command = format!("order resume {order}{flag}");
    Some(invocation::current().like_in(namespace, &command))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// What to run for a local challenge of that type that nobody drives, with this solver and memory.
    fn check(kind: &str, solver: &Value, memory: &Memory, expected: &str) {
        let owner = json!({"apiVersion": "v1", "kind": "Order", "name": "web-1-5", "uid": "o", "controller": true});
        let mut challenge: Challenge = serde_json::from_value(json!({
            "metadata": {"name": "c", "namespace": "web", "ownerReferences": [owner]},
            "spec": {
                "url": "", "authorizationURL": "", "dnsName": "www.example.com", "type": kind, "token": "",
                "key": "", "solver": solver, "issuerRef": {"name": "acme"},
            },
        }))
        .unwrap();
        memory.write(Holder::Challenge, &mut challenge.metadata.annotations);
        let hint = nobody_drives(&challenge, false);
        assert!(hint.contains(expected), "{hint}");
    }

    #[test]
    fn what_nobody_drives_goes_on_by_whatever_answered_it() {
        let (nothing, http) = (Memory::default(), json!({"http01": {}}));
        check("HTTP-01", &http, &nothing, "this machine answers nothing now: kubectl-acme run, or");
        let webroot = Some("/srv/my site".to_owned());
        let in_webroot = Memory { webroot, ..Memory::default() };
        let run = "the CA is not told when it is seen: kubectl-acme run --http01-webroot='/srv/my site', or order";
        check("HTTP-01", &http, &in_webroot, run);
        let provider = json!({"dns01": {"rfc2136": {"nameserver": "192.0.2.1"}}});
        check("DNS-01", &provider, &nothing, ": kubectl-acme run, or order -f …, goes on with it");
        let by_hand = Memory { by_hand: true, ..Memory::default() };
        let resume = ": kubectl-acme order resume web-1-5 --dns01-manual -n web goes on with it";
        check("DNS-01", &provider, &by_hand, resume);
        let manual =
            json!({"dns01": {"webhook": {"groupName": "kubectl-acme", "solverName": "manual"}}});
        check("DNS-01", &manual, &nothing, resume);
    }
}
