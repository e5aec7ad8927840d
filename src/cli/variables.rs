//! Refusals of values from the environment: messages name the variable, since the flag was not typed.

use std::env;
use std::ffi::OsString;

use clap::Arg;
use clap::error::{ContextKind, ContextValue};

/// Returns the refusal with each flag that only the environment gives named by its variable.
pub(super) fn named(
    mut error: clap::Error,
    command: &clap::Command,
    words: &[OsString],
) -> clap::Error {
    let mut command = command.clone();
    // Flags that are not built cannot be shown.
    command.build();
    let flags = list_environment_flags(&command, words);
    let rename = |text: &String| {
        let found = flags.iter().find(|(shown, _)| shown == text);
        found.map_or_else(|| text.clone(), |(_, variable)| variable.clone())
    };
    for kind in [ContextKind::InvalidArg, ContextKind::PriorArg] {
        let renamed = match error.get(kind) {
            Some(ContextValue::String(text)) => ContextValue::String(rename(text)),
            Some(ContextValue::Strings(texts)) => {
                ContextValue::Strings(texts.iter().map(rename).collect())
            }
            _ => continue,
        };
        error.insert(kind, renamed);
    }
    error
}

/// Lists the flags that the environment alone gives, on the way to the command of these words: the
/// flag as clap shows the flag, and its variable with the flag.
fn list_environment_flags(command: &clap::Command, words: &[OsString]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut here = command;
    let mut rest = words.iter().skip(1);
    loop {
        let of_environment = here.get_arguments().filter(|arg| is_given(arg, words));
        found.extend(of_environment.filter_map(|arg| {
            let (variable, flag) = (arg.get_env()?.to_string_lossy(), arg.get_long()?);
            Some((arg.to_string(), format!("{variable} (--{flag})")))
        }));
        let Some(below) = rest.find_map(|word| here.find_subcommand(word)) else { break };
        here = below;
    }
    // For a global flag, the entry of the command itself comes first.
    found.reverse();
    found
}

/// Returns whether the environment gives a flag and the words do not.
fn is_given(arg: &Arg, words: &[OsString]) -> bool {
    let Some(flag) = arg.get_long() else { return false };
    let is_typed = |word: &OsString| {
        let word = word.to_string_lossy();
        let long = word.strip_prefix("--").and_then(|word| word.split('=').next());
        let short = word.strip_prefix('-').and_then(|word| word.chars().next());
        long == Some(flag) || (short.is_some() && short == arg.get_short())
    };
    arg.get_env().is_some_and(|variable| env::var_os(variable).is_some())
        && !words.iter().any(is_typed)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// Checks the error of a command line; a variable that is always set stands for the environment forms of flags.
    #[track_caller]
    fn check(line: &str, flags: &[&'static str], expected: &str) {
        let hear = |arg: Arg| {
            let is_heard = arg.get_long().is_some_and(|flag| flags.contains(&flag));
            if is_heard { arg.env("PATH") } else { arg }
        };
        let command = Cli::command().mut_args(hear);
        let command = command.mut_subcommand("order", |order| order.mut_args(hear));
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = command.clone().try_get_matches_from(&words).unwrap_err();
        let said = named(error, &command, &words).to_string();
        let said = said.replace(&env::var("PATH").unwrap(), "XYZ");
        assert_eq!(said.lines().next(), Some(expected), "{line}");
    }

    #[test]
    fn a_value_of_a_variable_is_refused_by_its_name() {
        check(
            "kubectl-acme order -f a",
            &["timeout"],
            "error: invalid value 'XYZ' for 'PATH (--timeout)': \"XYZ\" is not a duration such as 90s, 10m or 1h30m",
        );
        check(
            "kubectl-acme order -f a",
            &["dry-run"],
            "error: invalid value 'XYZ' for 'PATH (--dry-run)'",
        );
        check(
            "kubectl-acme -n web order -f a",
            &["driver"],
            "error: invalid value 'XYZ' for 'PATH (--driver)'",
        );
    }

    #[test]
    fn a_typed_flag_keeps_its_name() {
        check(
            "kubectl-acme order -f a --timeout x",
            &["timeout"],
            "error: invalid value 'x' for '--timeout <DURATION>': \"x\" is not a duration such as 90s, 10m or 1h30m",
        );
        check(
            "kubectl-acme order --domain a.example",
            &["filename"],
            "error: the argument '--domain <NAME>...' cannot be used with 'PATH (--filename)'",
        );
    }
}
