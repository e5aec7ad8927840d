//! `challenge`: lists challenges, checks an answer once, and presents or removes an answer by hand.

pub mod answer;
pub mod check;
pub(crate) mod hints;

use self::answer::{AnswerAction, AnswerArgs};
use self::check::CheckArgs;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::completers;
use crate::input::target::{self, Targets};
use crate::listing::{self, ListArgs, waiting_orders};
use crate::model::Kind;
use crate::store::local::Access;

/// Subcommands of `challenge`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub struct ChallengeArgs {
    /// Subcommand
    #[command(subcommand)]
    pub command: ChallengeCommand,
}

/// Subcommands of `challenge`.
#[derive(Debug, clap::Subcommand)]
pub enum ChallengeCommand {
    /// List challenges
    Get(NamesArgs),
    /// Check the answer of a challenge once, as the CA would, and show all results
    ///
    /// If the account key may be read, the CA is also asked for its state of the challenge, which costs nothing there.
    Check(CheckArgs),
    /// Present the answer of a challenge with its own solver, and do nothing else
    ///
    /// An answer to HTTP-01 from this machine's own listener is served until Ctrl-C.
    Present(Box<AnswerArgs>),
    /// Remove the answer of a challenge with its own solver
    Cleanup(Box<AnswerArgs>),
}

/// Flags of `challenge get`.
#[derive(Debug, clap::Args)]
pub struct NamesArgs {
    /// Names of challenges or of their owners, or domains; without any, all challenges
    #[arg(value_name = "NAME", add = completers::names(Kind::Challenge))]
    pub names: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    pub list: ListArgs,
}

/// Runs `challenge`.
///
/// # Errors
/// Fails when a challenge is not found, or its answer is not visible.
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
        ChallengeCommand::Check(args) => Box::pin(check::run(args, context)).await,
        ChallengeCommand::Present(args) => {
            Box::pin(answer::run(*args, AnswerAction::Present, context)).await
        }
        ChallengeCommand::Cleanup(args) => {
            Box::pin(answer::run(*args, AnswerAction::CleanUp, context)).await
        }
    }
}
