//! The question before something that cannot be taken back.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::time::Duration;

use super::Context;
use super::blocking::{Left, aside};
use super::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;

/// The answer that stands in for a person's.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ConfirmArgs {
    /// Do not ask before it is done
    #[arg(long, short)]
    pub yes: bool,
}

/// Asks a person whether something is to be done; `what` says it, as in "deactivate the account of Issuer web/le for ever".
///
/// # Errors
/// Fails when the answer is no, when there is nobody to ask, and when interrupted.
pub async fn confirm(args: ConfirmArgs, what: &str, context: &Context) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        let why = format!("nobody is here to be asked whether to {what}; nothing was done");
        return Err(Failure::usage(why).hint("--yes says so"));
    }
    context.talk().line(&format!("{what}? yes or no:"));
    let read = || {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    };
    let answer = match aside(context.interrupted(), Duration::ZERO, read).await {
        Ok(answer) => answer.unwrap_or_default(),
        Err(Left::Signal(kind)) => return Err(Failure::silent(kind)),
        Err(Left::Panic) => String::new(),
    };
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Person, "the answer was not yes: nothing was done"))
}
