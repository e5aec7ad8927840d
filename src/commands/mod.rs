//! One file per verb, or one room: its flags and what it does. Rooms that verbs share: what is given (`intake`), what has to
//! be permitted (`permissions`), whose turn it is (`claim`), how the work is done (`drive`, `dns01`), how far it has come
//! (`verdict`), and what helps (`advice`).

pub mod advice;
pub mod announce;
pub mod applying;
pub mod aside;
pub mod ca;
pub mod certificate;
pub mod challenge;
pub mod claim;
pub mod completion;
pub mod connection;
pub mod context;
pub mod crds;
pub mod delete;
pub mod describe;
pub mod dns01;
pub mod drive;
pub mod dry_run;
pub mod failure;
pub mod get;
pub mod intake;
pub mod invocation;
pub mod order;
pub mod out;
pub mod output;
pub mod permissions;
pub mod precheck;
pub mod probe;
pub mod rehearsal;
pub mod renewal;
pub mod run;
pub mod schedule;
pub mod signals;
pub mod solve;
mod stopping;
pub mod sweep;
pub mod timeline;
pub mod verdict;
pub mod version;
pub mod watch;

use self::context::Context;
use self::failure::Failure;
use crate::cli::Command;

/// Runs a command.
///
/// # Errors
/// Fails with what `main` shows, and with the exit code.
pub async fn run(command: Command, context: &mut Context) -> Result<(), Failure> {
    if needs_store(&command) {
        context.connect().await?;
        invocation::current().is_at_home_in(context.namespace());
    }
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
        Command::Probe(args) => probe::run(args, context).await,
        Command::Version(args) => version::run(&args, context),
    }
}

/// Tells whether a command works until something has ended, so that the same command goes on after an interruption.
fn goes_on(command: &Command) -> bool {
    match command {
        Command::Order(args) => args.goes_on(),
        Command::Run(_) => true,
        _ => false,
    }
}

/// Tells whether a command works with what is in a store, and so needs a cluster where no `--local` is given.
fn needs_store(command: &Command) -> bool {
    match command {
        Command::Order(args) => args.needs_store(),
        Command::Challenge(_)
        | Command::Certificate(_)
        | Command::Describe(_)
        | Command::Timeline(_)
        | Command::Schedule(_)
        | Command::Watch(_)
        | Command::Get(_)
        | Command::Delete(_)
        | Command::Run(_) => true,
        Command::Ca(_)
        | Command::Crds(_)
        | Command::Completion(_)
        | Command::Version(_)
        | Command::Probe(_)
        | Command::Solve(_) => false,
    }
}
