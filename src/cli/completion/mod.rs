//! `completion`: the shells' completion scripts, and the answers to shells and kubectl at TAB.

mod offer;
mod scripts;
mod words;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;

use clap_complete::env::{CompleteEnv, EnvCompleter, Powershell, Shells};

use self::offer::{Offer, with_completers};
use self::words::{split, unquoted};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::hints::invocation::PROGRAM;

/// Environment variable that the shells' scripts set to ask for completions.
pub const VARIABLE: &str = "KUBECTL_ACME_COMPLETE";
/// The name under which kubectl looks for the completion of this plugin.
const KUBECTL_COMPLETE: &str = "kubectl_complete-acme";
/// Hidden first word with which `kubectl_complete-acme` asks for completions.
const COMPLETE_WORD: &str = "__complete";

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

impl EnvCompleter for Shell {
    fn name(&self) -> &'static str {
        match self {
            Self::Bash => "bash",
            Self::Zsh => "zsh",
            Self::Fish => "fish",
            Self::Powershell => "powershell",
        }
    }

    fn is(&self, name: &str) -> bool {
        match self {
            Self::Bash | Self::Zsh | Self::Fish => name == self.name(),
            Self::Powershell => Powershell.is(name),
        }
    }

    fn write_registration(
        &self,
        variable: &str,
        name: &str,
        program: &str,
        completer: &str,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        match self {
            Self::Bash => out.write_all(scripts::BASH.as_bytes()),
            Self::Zsh => out.write_all(scripts::ZSH.as_bytes()),
            Self::Fish => out.write_all(scripts::FISH.as_bytes()),
            Self::Powershell => {
                Powershell.write_registration(variable, name, program, completer, out)
            }
        }
    }

    fn write_complete(
        &self,
        tree: &mut clap::Command,
        handed: Vec<OsString>,
        _folder: Option<&Path>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let handed = handed.iter().map(|word| word.to_string_lossy().into_owned());
        let mut handed: Vec<String> = handed.collect();
        let answer = match self {
            Self::Bash => {
                let piece = if handed.len() > 1 { handed.pop() } else { None };
                let line = handed.pop().unwrap_or_default();
                let words = after_program(split(&line));
                Offer::new(tree, words).for_bash(&unquoted(&piece.unwrap_or_default()))
            }
            Self::Zsh => Offer::new(tree, after_program(handed)).for_zsh(),
            Self::Fish => {
                let word = handed.pop().unwrap_or_default();
                handed.push(unquoted(&word));
                Offer::new(tree, after_program(handed)).for_fish()
            }
            Self::Powershell => Offer::new(tree, after_program(handed)).for_powershell(),
        };
        out.write_all(answer.as_bytes())
    }
}

/// Returns the words after the program's name, without variables that are set before the name.
fn after_program(words: Vec<String>) -> Vec<String> {
    let is_variable = |word: &String| {
        let name = word.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    };
    words.into_iter().skip_while(is_variable).skip(1).collect()
}

/// Runs `completion`.
///
/// # Errors
/// Fails when the output cannot be written.
pub fn run(args: &CompletionArgs, context: &Context) -> Result<(), Failure> {
    context.printer(&OutputArgs::default()).data(&script(args.shell)?)?;
    Ok(())
}

/// Returns the script that makes a shell ask this program at TAB.
///
/// # Errors
/// Fails when the script cannot be written.
pub fn script(shell: Shell) -> Result<String, Failure> {
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    let text = String::from_utf8_lossy(&script);
    Ok(format!("{}\n", text.trim()))
}

/// Answers a shell's or kubectl's request for completions; returns whether there was a request. Prints nothing otherwise.
pub fn complete_words(tree: fn() -> clap::Command) -> bool {
    let mut words = env::args_os();
    let program = words.next().unwrap_or_default();
    let is_kubectl = Path::new(&program).file_name() == Some(OsStr::new(KUBECTL_COMPLETE));
    if is_kubectl || env::args_os().nth(1).is_some_and(|word| word == COMPLETE_WORD) {
        let words = words.skip(usize::from(!is_kubectl));
        let words = words.map(|word| word.to_string_lossy().into_owned()).collect();
        let mut tree = with_completers(tree());
        tree.build();
        let answer = Offer::new(&mut tree, words).for_kubectl();
        // A failed write changes nothing: the asker has gone away, or gets no candidates.
        let _answered = io::stdout().write_all(answer.as_bytes());
        return true;
    }
    let shells: [&dyn EnvCompleter; 4] =
        [&Shell::Bash, &Shell::Zsh, &Shell::Fish, &Shell::Powershell];
    let asked = CompleteEnv::with_factory(|| with_completers(tree())).shells(Shells(&shells));
    asked
        .var(VARIABLE)
        .try_complete(env::args_os(), env::current_dir().ok().as_deref())
        .unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_has_a_script_that_asks_this_program() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::Powershell] {
            let script = script(shell).unwrap();
            assert!(script.contains(VARIABLE) && script.contains("kubectl-acme"), "{script}");
        }
    }

    #[test]
    fn variables_before_the_program_are_no_words_of_it() {
        let words = ["A_1=b", "kubectl-acme", "get", "a=b"].map(str::to_owned);
        assert_eq!(after_program(words.to_vec()), ["get", "a=b"]);
    }
}
