//! Question to the user before an action that cannot be undone.

use std::io::{self, BufRead as _, IsTerminal as _};
use std::time::Duration;

use super::Context;
use super::blocking::{Unfinished, aside};
use super::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;

/// Flag that answers in place of a person.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct ConfirmArgs {
    /// Do not ask for confirmation
    #[arg(long, short)]
    pub yes: bool,
}

/// Asks a person whether to do `what`, as in "deactivate the account of Issuer web/le for ever".
///
/// # Errors
/// Fails if the answer is no, if standard input is not a terminal, and when interrupted.
pub async fn confirm(args: ConfirmArgs, what: &str, context: &Context) -> Result<(), Failure> {
    if args.yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        let why = format!(
            "cannot ask whether to {what}: standard input is not a terminal; nothing was done"
        );
        return Err(Failure::usage(why).hint("--yes confirms it"));
    }
    context.talk().line(&format!("{what}? yes or no:"));
    let read = || {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line).map(|_| line)
    };
    let answer = match aside(context.interrupted(), Duration::ZERO, read).await {
        Ok(answer) => answer.unwrap_or_default(),
        Err(Unfinished::Signal(kind)) => return Err(Failure::silent(kind)),
        Err(Unfinished::Panic) => String::new(),
    };
    if matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
        return Ok(());
    }
    Err(Failure::new(FailureKind::Person, "the answer was not yes: nothing was done"))
}
