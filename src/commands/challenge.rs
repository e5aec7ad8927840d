//! `challenge`: the table of challenges, and one look at an answer now.

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::completion;
use super::context::{Context, OutputArgs};
use super::failure::{Failure, Kind as FailureKind};
use super::get::{self, ListArgs};
use super::look::LookArgs;
use super::probe_pod::ProbePodArgs;
use super::target::{self, Wanted};
use crate::model::observation::{Hop, Observation, Seen};
use crate::model::{Answer, Challenge, ChallengeType, Kind, Time};
use crate::print::table::{Colour, Headers, NONE, Table};
use crate::probes::Probe as _;
use crate::probes::http::HttpProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::visible;
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
}

/// Flags of `challenge get`.
#[derive(Debug, clap::Args)]
pub struct NamesArgs {
    /// Names; all challenges when there are none
    #[arg(value_name = "NAME", add = completion::names(Kind::Challenge))]
    pub names: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    pub list: ListArgs,
}

/// Flags of `challenge check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Name of the challenge
    #[arg(value_name = "NAME", add = completion::names(Kind::Challenge))]
    pub name: String,
    /// Show the command line that looks the same way
    #[arg(long)]
    pub show_commands: bool,
    /// How to look
    #[command(flatten)]
    pub look: LookArgs,
    /// How to look from inside the cluster
    #[command(flatten)]
    pub probe_pod: ProbePodArgs,
    /// How results are written
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs `challenge`.
///
/// # Errors
/// Fails when a challenge is not there, or its answer is not visible.
pub async fn run(args: ChallengeArgs, context: &mut Context) -> Result<(), Failure> {
    match args.command {
        ChallengeCommand::Get(args) => {
            get::show(&Wanted::of_kind(Kind::Challenge, &args.names)?, &args.list, context).await
        }
        ChallengeCommand::Check(args) => check(args, context).await,
    }
}

/// Asks nothing of the CA and writes nothing.
async fn check(args: CheckArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.store(Access::ReadOnly).await?;
    let name = &target::name_of(Kind::Challenge, &args.name)?;
    let key = target::key(Kind::Challenge, name, context.namespace());
    let challenge: Challenge = typed(target::read(&store, &key).await?)?;
    if challenge.spec.kind == ChallengeType::Dns01 {
        let what = format!("cannot look at challenge {name}: this version looks at HTTP-01 only");
        return Err(Failure::new(FailureKind::Solver, what));
    }
    let answer = Answer::of(&challenge).map_err(|why| {
        Failure::new(FailureKind::Solver, format!("cannot look at challenge {name}: {why}"))
    })?;
    let stop = CancellationToken::new();
    let inside = args.probe_pod.inside(true, &stop, context)?;
    let probe = HttpProbe { fetcher: args.look.fetcher().await? };
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
    let verdict = visible::judge(&answer, &observations);
    let look = Look {
        challenge: &challenge,
        answer: &answer,
        observations: &observations,
        verdict: &verdict,
    };
    let mut printer = context.printer(&args.output);
    let (report, commands) = (look.report(), args.show_commands);
    printer.report(&report, |colour| look.text(colour, commands))?;
    match verdict {
        Readiness::Ready => Ok(()),
        Readiness::NotYet { reason } => {
            let what = format!("the CA would not see the answer of challenge {name}: {reason}");
            let failure = Failure::new(FailureKind::Solver, what);
            Err(if challenge.status.presented {
                failure
            } else {
                failure.hint("it has not been presented yet: order -f … or run puts it up")
            })
        }
    }
}

/// One look at a challenge, and what to make of it.
struct Look<'a> {
    challenge: &'a Challenge,
    answer: &'a Answer,
    observations: &'a [Observation],
    verdict: &'a Readiness,
}

impl Look<'_> {
    fn verdict(&self) -> String {
        match self.verdict {
            Readiness::Ready => "visible, the CA would accept it".to_owned(),
            Readiness::NotYet { reason } => format!("not visible: {reason}"),
        }
    }

    fn text(&self, colour: Colour, commands: bool) -> String {
        let mut lines = vec![
            ("Challenge", self.challenge.metadata.name.clone()),
            ("Domain", self.challenge.spec.dns_name.clone()),
            ("Expected", self.answer.key_authorization.clone()),
        ];
        for observation in self.observations {
            let at = Time::new(observation.at);
            lines.push(("Seen from", format!("{} at {at}", observation.vantage)));
            lines.push(("Saw", saw(&observation.seen)));
            let difference = visible::disagreement(self.answer, observation);
            lines.extend(difference.map(|text| ("Beware", text.to_owned())));
            if commands {
                lines.push(("Command", command(observation)));
            }
        }
        lines.push(("Verdict", self.verdict()));
        let lines = lines.iter().map(|(label, text)| format!("{:13}{text}\n", format!("{label}:")));
        let tables = self.observations.iter().map(|o| hops(&o.hops).render(Headers::Shown, colour));
        lines.chain(tables.map(|table| format!("\n{table}"))).collect()
    }

    fn report(&self) -> Value {
        let looks = self.observations.iter().map(|observation| {
            let mut look = serde_json::to_value(observation).unwrap_or_default();
            look["command"] = command(observation).into();
            look["disagreement"] = visible::disagreement(self.answer, observation).into();
            look
        });
        json!({
            "apiVersion": "kubectl-acme/v1alpha1",
            "kind": "ChallengeCheck",
            "challenge": {
                "namespace": self.challenge.metadata.namespace,
                "name": self.challenge.metadata.name,
            },
            "domain": self.challenge.spec.dns_name,
            "expected": self.answer.key_authorization,
            "visible": *self.verdict == Readiness::Ready,
            "verdict": self.verdict(),
            "observations": looks.collect::<Vec<_>>(),
        })
    }
}

fn hops(hops: &[Hop]) -> Table {
    let mut table = Table::new(["HOP", "URL", "ADDRESS", "STATUS"]);
    for (number, hop) in hops.iter().enumerate() {
        table.row([
            (number + 1).to_string(),
            hop.url.clone(),
            hop.address.map_or_else(|| NONE.to_owned(), |address| address.to_string()),
            hop.status.map_or_else(|| NONE.to_owned(), |status| status.to_string()),
        ]);
    }
    table
}

fn saw(seen: &Seen) -> String {
    match seen {
        Seen::Nothing { why } => why.clone(),
        Seen::NoLook { why } => format!("no look was possible: {why}"),
        Seen::Redirect { to, why } => format!("a redirect to {to}: {why}"),
        Seen::Reply { status, body, truncated } => {
            let more = if *truncated { ", and more" } else { "" };
            format!("status {status}, {} bytes{more}: {body:?}", body.len())
        }
    }
}

/// The curl line that looks the same way: no proxy, the same address, as many redirects.
fn command(observation: &Observation) -> String {
    let url = Url::parse(&observation.url).ok();
    let address = observation.hops.first().and_then(|hop| hop.address);
    let detour = match (url.as_ref().and_then(Url::host_str), address) {
        (Some(host), Some(address)) => format!(" --connect-to {host}:80:{address}"),
        _ => String::new(),
    };
    format!("curl -i --location --max-redirs 10 --noproxy '*'{detour} '{}'", observation.url)
}
