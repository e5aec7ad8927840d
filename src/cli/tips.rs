//! Tips of refusals: no tip leads to a hidden command, and a folder that stands apart from its
//! `--local` is noticed.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};

use crate::hints::invocation::quoted;
use crate::input::files::EXTENSIONS;

/// Returns the refusal with tips that help.
pub(super) fn mended(
    mut error: clap::Error,
    command: &clap::Command,
    words: &[OsString],
) -> clap::Error {
    let is_shown =
        |name: &String| command.find_subcommand(name).is_none_or(|command| !command.is_hide_set());
    match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) if is_shown(&name) => {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::String(name));
        }
        Some(ContextValue::Strings(names)) => {
            let names: Vec<String> = names.into_iter().filter(is_shown).collect();
            if !names.is_empty() {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
            }
        }
        _ => {}
    }
    if let Some(folder) = folder_apart(command, words) {
        let tip = if is_manifest(folder) {
            format!("write a manifest after -f: -f {}", quoted(folder))
        } else {
            format!("write the folder after =: {}", quoted(&format!("--local={folder}")))
        };
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    if is_output_of_describe(&error, words) {
        let tip = "describe has one form, as kubectl's; `get KIND NAME -o json` and -o yaml print the object";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Returns whether `describe` refuses `-o` or `--output`.
fn is_output_of_describe(error: &clap::Error, words: &[OsString]) -> bool {
    let Some(ContextValue::String(refused)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    words.iter().any(|word| word == "describe")
        && (refused.starts_with("-o") || refused.starts_with("--output"))
}

/// Returns the word after a `--local` without a value, if the word is neither a flag nor a command.
fn folder_apart<'a>(command: &clap::Command, words: &'a [OsString]) -> Option<&'a str> {
    let pair = words.windows(2).find(|pair| pair[0] == "--local")?;
    let word = pair[1].to_str()?;
    (!word.starts_with('-') && !is_command(command, word)).then_some(word)
}

/// Returns whether a word is a file of manifests, by its extension.
fn is_manifest(word: &str) -> bool {
    let extension = Path::new(word).extension().and_then(|extension| extension.to_str());
    extension.is_some_and(|extension| EXTENSIONS.contains(&extension))
}

fn is_command(command: &clap::Command, word: &str) -> bool {
    command.find_subcommand(word).is_some()
        || command.get_subcommands().any(|below| is_command(below, word))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    /// The tips to a command line that is refused.
    #[track_caller]
    fn check(line: &str, expected: &[&str]) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut command = Cli::command();
        let error = command.try_get_matches_from_mut(&words).unwrap_err();
        let said = mended(error, &command, &words).to_string();
        let tips: Vec<_> =
            said.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect();
        assert_eq!(tips, expected, "{said}");
    }

    #[test]
    fn no_tip_leads_to_a_command_that_is_not_for_people() {
        check("kubectl-acme prob", &[]);
        check("kubectl-acme timelin", &["a similar subcommand exists: 'timeline'"]);
    }

    #[test]
    fn describe_has_no_format() {
        let tip = "describe has one form, as kubectl's; `get KIND NAME -o json` and -o yaml print the object";
        for flag in ["-o json", "-ojson", "--output=json", "--output json"] {
            check(&format!("kubectl-acme describe certificate/www {flag}"), &[tip]);
            check(&format!("kubectl-acme describe certificate www {flag}"), &[tip]);
        }
    }

    #[test]
    fn a_folder_apart_from_its_flag_is_seen() {
        let tip = "write the folder after =: --local=ci";
        check("kubectl-acme order -f a --local ci", &[tip]);
        check("kubectl-acme version --local ci", &[tip]);
        check("kubectl-acme version --local order", &[]);
        for file in ["web.yaml", "web.yml", "./a/web.json"] {
            let tip = format!("write a manifest after -f: -f {file}");
            check(&format!("kubectl-acme order --local {file}"), &[&tip]);
        }
    }
}
