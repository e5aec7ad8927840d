//! One file per verb: its flags and what it does.

pub mod advice;
pub mod announce;
pub mod ca;
pub mod certificate;
pub mod chain;
pub mod challenge;
pub mod completion;
pub mod context;
pub mod crds;
pub mod delete;
pub mod describe;
pub mod drive;
pub mod due;
pub mod failure;
pub mod files;
pub mod following;
pub mod get;
pub mod history;
pub mod intake;
pub mod local;
pub mod look;
pub mod order;
pub mod out;
pub mod precheck;
pub mod rehearsal;
pub mod renewal;
pub mod run;
pub mod schedule;
pub mod selector;
pub mod solve;
pub mod solver_pod;
pub mod target;
pub mod timeline;
pub mod verdict;
pub mod version;
pub mod waits;
pub mod watch;

use self::context::Context;
use self::failure::Failure;
use crate::cli::Command;

/// Runs a command.
///
/// # Errors
/// Fails with what `main` shows, and with the exit code.
pub async fn run(command: Command, context: &mut Context) -> Result<(), Failure> {
    match command {
        Command::Order(args) => order::run(*args, context).await,
        Command::Challenge(args) => challenge::run(args, context).await,
        Command::Certificate(args) => certificate::run(args, context).await,
        Command::Describe(args) => describe::run(args, context).await,
        Command::Timeline(args) => timeline::run(args, context).await,
        Command::Schedule(args) => schedule::run(args, context).await,
        Command::Watch(args) => watch::run(args, context).await,
        Command::Get(args) => get::run(args, context).await,
        Command::Delete(args) => delete::run(args, context).await,
        Command::Run(args) => run::run(*args, context).await,
        Command::Ca(args) => ca::run(args, context).await,
        Command::Crds(args) => crds::run(args, context),
        Command::Completion(args) => completion::run(&args, context),
        Command::Solve(args) => solve::run(args, context).await,
        Command::Version(args) => version::run(&args, context),
    }
}
