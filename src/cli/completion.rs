//! `completion`: the scripts of shells, and what shells and kubectl ask for at TAB.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::path::Path;

use clap_complete::engine::complete;
use clap_complete::env::{CompleteEnv, Shells};

use crate::app::context::Context;
use crate::app::failure::Failure;
use crate::app::flags::output::OutputArgs;
use crate::app::input::completers::ASK;
use crate::app::invocation::PROGRAM;
use crate::diagnosis::failure_kind::FailureKind;

/// The variable by which the shells' scripts ask.
pub const VARIABLE: &str = "KUBECTL_ACME_COMPLETE";
/// The name under which kubectl looks for the completion of this plugin.
const KUBECTL_COMPLETE: &str = "kubectl_complete-acme";
/// kubectl's directive "offer no file names" (cobra's `ShellCompDirectiveNoFileComp`).
const NO_FILES: &str = ":4";

/// Flags of `completion`.
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// Shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Shells with a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    /// source <(kubectl-acme completion bash)
    Bash,
    /// source <(kubectl-acme completion zsh)
    Zsh,
    /// kubectl-acme completion fish | source
    Fish,
    /// kubectl-acme completion powershell | Out-String | Invoke-Expression
    Powershell,
}

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
        }
    }
}

/// Runs `completion`.
///
/// # Errors
/// Fails when the output cannot be written.
pub fn run(args: &CompletionArgs, context: &Context) -> Result<(), Failure> {
    context.printer(&OutputArgs::default()).data(&script(args.shell)?)?;
    Ok(())
}

/// The script that has a shell ask this program at TAB.
///
/// # Errors
/// Fails when the shell is not known.
pub fn script(shell: Shell) -> Result<String, Failure> {
    let name = shell.name();
    let mut script = Vec::new();
    let shells = Shells::builtins();
    let Some(completer) = shells.completer(name) else {
        return Err(Failure::new(FailureKind::Unexpected, format!("no completion for {name}")));
    };
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    let text = String::from_utf8_lossy(&script);
    Ok(format!("{}\n", text.trim()))
}

/// Answers a shell or kubectl that asks for completions; returns whether one did. Prints nothing otherwise.
pub fn complete_words(tree: fn() -> clap::Command) -> bool {
    let mut words = env::args_os();
    let program = words.next().unwrap_or_default();
    let is_kubectl = Path::new(&program).file_name() == Some(OsStr::new(KUBECTL_COMPLETE));
    if is_kubectl || env::args_os().nth(1).is_some_and(|word| word == ASK) {
        let words = words.skip(usize::from(!is_kubectl)).collect();
        // Whoever asked has gone away, or gets no candidates.
        let _answered = std::io::stdout().write_all(for_kubectl(tree(), words).as_bytes());
        return true;
    }
    let asked = CompleteEnv::with_factory(tree).var(VARIABLE);
    asked.try_complete(env::args_os(), env::current_dir().ok().as_deref()).unwrap_or(true)
}

/// Candidates as kubectl reads them: `value<TAB>help`, and the directive at the end.
fn for_kubectl(mut tree: clap::Command, mut words: Vec<OsString>) -> String {
    words.insert(0, PROGRAM.into());
    if words.len() == 1 {
        words.push(OsString::new());
    }
    let last = words.len() - 1;
    let is_flag = words[last].to_string_lossy().starts_with('-');
    let found = complete(&mut tree, words, last, env::current_dir().ok().as_deref());
    let mut text = String::new();
    for candidate in found.unwrap_or_default() {
        let value = candidate.get_value().to_string_lossy();
        // kubectl offers flags once a dash is typed.
        if value.starts_with('-') && !is_flag {
            continue;
        }
        text.push_str(&value);
        if let Some(help) = candidate.get_help() {
            text.push('\t');
            text.push_str(help.to_string().lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    text + NO_FILES + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    #[test]
    fn kubectl_is_offered_commands_and_told_to_offer_no_files() {
        let text = for_kubectl(command(), vec!["sched".into()]);
        assert!(text.starts_with("schedule\tShow which challenges"), "{text}");
        assert!(text.ends_with("\n:4\n"), "{text}");
    }

    #[test]
    fn flags_are_offered_once_a_dash_is_typed() {
        assert!(!for_kubectl(command(), vec!["get".into(), "".into()]).contains("--"));
        assert!(for_kubectl(command(), vec!["get".into(), "--sort".into()]).contains("--sort-by"));
    }

    #[test]
    fn every_shell_has_a_script_that_asks_this_program() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Powershell] {
            let script = script(shell).unwrap();
            assert!(script.contains(VARIABLE) && script.contains("kubectl-acme"), "{script}");
        }
    }
}
