//! `challenge`: the table of challenges, one look at an answer now, and the answer by hand.

pub mod answer;

use tokio_util::sync::CancellationToken;

use self::answer::{AnswerAction, AnswerArgs};
use crate::app::check_report::Sight;
use crate::app::context::Context;
use crate::app::engine::dns01::Reach;
use crate::app::failure::Failure;
use crate::app::flags::look::{LookArgs, NameserverArgs};
use crate::app::flags::output::ReportArgs;
use crate::app::flags::probe_pod::ProbePodArgs;
use crate::app::hints::by_hand::{by_hand, nobody_drives};
use crate::app::hints::reproduce::Instruments;
use crate::app::input::completers;
use crate::app::input::target::{self, Targets};
use crate::app::invocation;
use crate::app::listing::{self, ListArgs};
use crate::app::preflight::provider_check;
use crate::app::{lead, waiting_orders};
use crate::diagnosis::failure_kind::FailureKind;
use crate::diagnosis::next_step::{AnswerStep, NextStep};
use crate::model::{Answer, Challenge, ChallengeType, Kind, State};
use crate::probes::Probe;
use crate::probes::dns::{DnsProbe, zones_of};
use crate::probes::http::HttpProbe;
use crate::probes::tls_alpn::TlsAlpnProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{published, shown, visible};
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
            listing::show(&Targets::of_kind(Kind::Challenge, &args.names)?, &args.list, context)
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
            Box::pin(answer::run(*args, AnswerAction::Present, context)).await
        }
        ChallengeCommand::Cleanup(args) => {
            Box::pin(answer::run(*args, AnswerAction::CleanUp, context)).await
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
    let reach = Reach::usual(context);
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
    let is_over = challenge.has_ended();
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
    let is_in_cluster = store.in_cluster();
    let unseen = AnswerStep { challenge: challenge.clone(), sighting, in_cluster: is_in_cluster };
    let failure = failure.step(&NextStep::Answer(Box::new(unseen)));
    // Whoever may not see who drives is told nothing of it.
    let is_left = lead::is_driven(context).await.is_ok_and(|is_driven| !is_driven) && !is_over;
    Err(if is_left { failure.hint(nobody_drives(&challenge, is_in_cluster)) } else { failure })
}
