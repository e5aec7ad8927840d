//! One file per verb: its flags and what it does.

pub mod ca;
pub mod certificate;
pub mod chain;
pub mod context;
pub mod drive;
pub mod due;
pub mod failure;
pub mod files;
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
pub mod verdict;

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
        Command::Certificate(args) => certificate::run(args, context).await,
        Command::Run(args) => run::run(*args, context).await,
        Command::Ca(args) => ca::run(args, context).await,
    }
}
