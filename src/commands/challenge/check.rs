//! `challenge check`: one look at an answer now, and what the CA holds of the challenge.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::app::check_report::Sight;
use crate::app::context::Context;
use crate::app::engine::dns01::Reach;
use crate::app::failure::Failure;
use crate::app::flags::look::{LookArgs, NameserverArgs};
use crate::app::flags::output::ReportArgs;
use crate::app::flags::probe_pod::ProbePodArgs;
use crate::app::hints::by_hand::{by_hand, nobody_drives};
use crate::app::hints::reproduce::Instruments;
use crate::app::input::{completers, target};
use crate::app::inspect::authority;
use crate::app::preflight::provider_check;
use crate::app::{invocation, lead};
use crate::diagnosis::failure_kind::FailureKind;
use crate::diagnosis::next_step::{AnswerStep, NextStep};
use crate::model::cause::Sighting;
use crate::model::{Answer, Challenge, ChallengeType, Kind, State};
use crate::probes::Probe;
use crate::probes::dns::{DnsProbe, zones_of};
use crate::probes::http::HttpProbe;
use crate::probes::tls_alpn::TlsAlpnProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{published, shown, visible};
use crate::store::local::Access;
use crate::store::resources::typed;

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

/// Asks the CA for nothing but what it holds, and writes nothing.
///
/// # Errors
/// Fails when the challenge is not there, its answer is not visible, or the CA holds it as over.
pub async fn run(args: CheckArgs, context: &mut Context) -> Result<(), Failure> {
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
    let resolver = Arc::clone(&fetcher.resolver);
    let dns01 = reach.providers(&store, zones.clone(), &fetcher.resolver, namespace);
    let probe: Box<dyn Probe> = match kind {
        ChallengeType::Http01 => Box::new(HttpProbe { fetcher }),
        ChallengeType::TlsAlpn01 => Box::new(TlsAlpnProbe { fetcher }),
        ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
            Box::new(DnsProbe { zones: zones.clone() })
        }
    };
    let now = context.now();
    let (mut observations, held) = tokio::join!(
        probe.look(&challenge, &answer),
        authority::read(&challenge, &store, &resolver, namespace),
    );
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
        held: &held,
    };
    let mut printer = context.printer(&(&args.output).into());
    let (report, commands) = (sight.report(), args.show_commands);
    printer.report(&report, |colour| sight.text(colour, commands))?;
    if held.is_valid() {
        return Ok(());
    }
    if let Some(ended) = held.ended() {
        let problem = held.challenge(&challenge.spec.url).and_then(|said| said.error.as_ref());
        let problem = problem.map(|problem| format!(": {problem}")).unwrap_or_default();
        let what = format!("the CA holds challenge {name} as {}{problem}", ended.status);
        return Err(Failure::new(FailureKind::Validation, what).hint(fresh_order(&challenge)));
    }
    let Readiness::NotYet { reason, cause } = verdict else { return Ok(()) };
    let what = format!("the CA would not see the answer of challenge {name}: {reason}");
    let failure = Failure::new(FailureKind::Solver, what);
    let failure = provider_check::explain(&challenge, &dns01, &printer, failure).await;
    Err(unseen(failure, challenge, cause, store.in_cluster(), context).await)
}

/// What helps where the answer of a challenge is not seen.
async fn unseen(
    failure: Failure,
    challenge: Challenge,
    sighting: Option<Sighting>,
    in_cluster: bool,
    context: &mut Context,
) -> Failure {
    let is_over = challenge.has_ended();
    if is_over && challenge.status.state != Some(State::Valid) {
        return failure.hint(fresh_order(&challenge));
    }
    if !challenge.status.presented {
        return failure.hint(match by_hand(&challenge, &challenge.metadata.namespace) {
            Some(resume) => format!("it has not been presented yet: {resume} asks a person for it"),
            None => "it has not been presented yet: order -f … or run puts it up".to_owned(),
        });
    }
    // Whoever may not see who drives is told nothing of it.
    let is_left = lead::is_driven(context).await.is_ok_and(|is_driven| !is_driven) && !is_over;
    let left = is_left.then(|| nobody_drives(&challenge, in_cluster));
    let step = AnswerStep { challenge, sighting, in_cluster };
    left.into_iter().fold(failure.step(&NextStep::Answer(Box::new(step))), Failure::hint)
}

/// What is left to do once a challenge is over.
fn fresh_order(challenge: &Challenge) -> String {
    let namespace = &challenge.metadata.namespace;
    let order = challenge.metadata.controller().map_or("ORDER", |order| order.name.as_str());
    let retry = invocation::current().like_in(namespace, &format!("order retry {order}"));
    format!("it is over, and is not put up again: {retry} makes a fresh order")
}
