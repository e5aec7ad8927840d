//! `challenge`: the table of challenges, one look at an answer now, and the answer by hand.

pub mod answer;
pub mod check;
pub(crate) mod hints;

use self::answer::{AnswerAction, AnswerArgs};
use self::check::CheckArgs;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::input::completers;
use crate::input::target;
use crate::input::target::Targets;
use crate::listing;
use crate::listing::ListArgs;
use crate::listing::waiting_orders;
use crate::model::Kind;
use crate::store::local::Access;

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
    ///
    /// Where the key of the account may be read, the CA is asked what it holds of the challenge, which costs nothing there.
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
    /// Names of challenges, of what they belong to, or domains; all challenges when there are none
    #[arg(value_name = "NAME", add = completers::names(Kind::Challenge))]
    pub names: Vec<String>,
    /// Flags of every listing
    #[command(flatten)]
    pub list: ListArgs,
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
        ChallengeCommand::Check(args) => Box::pin(check::run(args, context)).await,
        ChallengeCommand::Present(args) => {
            Box::pin(answer::run(*args, AnswerAction::Present, context)).await
        }
        ChallengeCommand::Cleanup(args) => {
            Box::pin(answer::run(*args, AnswerAction::CleanUp, context)).await
        }
    }
}
