//! Amount of output by `-v`, `-q` and `--log`: contradictions are refused, and typed flags beat the environment.

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::context::flags::log::LogArgs;
use crate::hints::invocation::variable;

/// Settles the amount of output; refuses two flags that contradict each other and were given in the same way.
///
/// # Errors
/// Fails with the two flags and the reason.
pub(super) fn settle(args: &mut LogArgs, matches: &ArgMatches) -> Result<(), String> {
    let source = |id| matches.value_source(id).filter(|s| *s != ValueSource::DefaultValue);
    let verbose = source("verbose").filter(|_| args.verbose > 0);
    let quiet = source("quiet").filter(|_| args.quiet);
    let log = source("log").filter(|_| args.log.is_some());
    match (verbose, quiet) {
        (Some(verbose), Some(quiet)) if verbose > quiet => args.quiet = false,
        (Some(verbose), Some(quiet)) if verbose < quiet => args.verbose = 0,
        (Some(both), Some(_)) => {
            return Err(contradiction(
                "quiet",
                "one asks for more output, the other for less",
                both,
            ));
        }
        _ => {}
    }
    match (verbose.filter(|_| args.verbose > 0), log) {
        (Some(verbose), Some(log)) if verbose > log => args.log = None,
        (Some(verbose), Some(log)) if verbose < log => args.verbose = 0,
        (Some(both), Some(_)) => {
            return Err(contradiction("log", "both choose what is logged", both));
        }
        _ => {}
    }
    Ok(())
}

/// Describes the conflict between `-v` and another flag.
fn contradiction(other: &str, why: &str, source: ValueSource) -> String {
    let name = |flag: &str| match source {
        ValueSource::EnvVariable => variable(flag),
        _ => format!("--{flag}"),
    };
    format!("{} cannot be used with {}: {why}", name("verbose"), name(other))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};

    use super::*;

    /// Checks the settled flags of a command line; a variable that is always set stands for one flag's variable.
    #[track_caller]
    fn check(line: &str, heard: &str, expected: Result<(u8, bool, Option<&str>), &str>) {
        let command = LogArgs::augment_args(clap::Command::new("test"));
        // It has to be a number.
        let command = command.mut_args(|arg| match arg.get_long() {
            Some(flag) if flag == heard => arg.env("CARGO_PKG_VERSION_MINOR"),
            _ => arg,
        });
        let matches = command.try_get_matches_from(line.split(' ')).unwrap();
        let mut args = LogArgs::from_arg_matches(&matches).unwrap();
        let settled = settle(&mut args, &matches);
        let read = settled.as_ref().map(|()| (args.verbose, args.quiet, args.log.as_deref()));
        assert_eq!(read.map_err(String::as_str), expected, "{line}");
    }

    #[test]
    fn contradictions_are_refused() {
        check("x", "", Ok((0, false, None)));
        check("x -vv", "", Ok((2, false, None)));
        check("x -q --log info", "", Ok((0, true, Some("info"))));
        check(
            "x -v -q",
            "",
            Err(
                "--verbose cannot be used with --quiet: one asks for more output, the other for less",
            ),
        );
        check(
            "x -v --log info",
            "",
            Err("--verbose cannot be used with --log: both choose what is logged"),
        );
    }

    #[test]
    fn what_is_typed_beats_the_environment() {
        check("x -v", "log", Ok((1, false, None)));
    }
}
