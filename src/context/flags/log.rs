//! Flags of every command for the amount and the form of output on stderr.

use std::str::FromStr as _;

use clap::ArgAction;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use crate::context::failure::Failure;
use crate::hints::invocation;
use crate::print::log::LogFormat;
use crate::print::talk::{MessageForm, OURS};

/// Levels of logs, the most verbose last.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// Crates that a filter may name beside this program: its libraries for networks and files.
const LOGGED_CRATES: [&str; 12] = [
    "axum",
    "h2",
    "hickory_proto",
    "hickory_resolver",
    "hyper",
    "hyper_util",
    "kube_client",
    "kube_runtime",
    "notify",
    "reqwest",
    "rustls",
    "tower",
];

/// Flags of every command for the amount and the form of output on stderr.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct LogArgs {
    /// Show each step; -vv: requests and answers
    ///
    /// Shows on stderr the requests to the CA and to DNS providers, the results of self-checks, and what is written. Given
    /// twice, requests and answers are shown with their bodies, without keys, credentials and the tokens of challenges.
    /// KUBECTL_ACME_VERBOSE=2 stands for -vv.
    #[arg(long, short, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Print only warnings and errors
    ///
    /// Stderr gets warnings and errors alone: no notes, no progress. Results on stdout stay.
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Filter of logs on stderr, such as debug or debug,hyper=info
    ///
    /// A level (off, error, warn, info, debug, trace) is for this program's own lines; CRATE=LEVEL is for lines of a library,
    /// kubectl_acme::PART=LEVEL for lines of a part of this program. -v is info, -vv is debug.
    #[arg(long, global = true, value_name = "FILTER", hide_short_help = true)]
    pub log: Option<String>,
    /// Format of output on stderr
    ///
    /// With json every line is one document with time, level, target, message and fields, for collectors of logs.
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        default_value = "text",
        value_enum,
        hide_short_help = true
    )]
    pub log_format: LogFormat,
}

impl LogArgs {
    /// Returns the tone of messages: quiet or not, text or JSON.
    pub fn tone(&self) -> MessageForm {
        MessageForm { quiet: self.quiet, json: self.log_format == LogFormat::Json }
    }

    /// Returns the filter of logs; without flags, warnings and errors of this program.
    ///
    /// # Errors
    /// Fails if the filter has an unknown word.
    pub fn filter(&self) -> Result<EnvFilter, Failure> {
        let directives = match (&self.log, self.verbose) {
            (Some(filter), _) => directives(filter).map_err(|why| {
                let flag = invocation::current().named("log");
                let levels = LEVELS.join(", ");
                Failure::usage(format!("cannot use {flag} {filter}: {why}"))
                    .hint(format!("levels: {levels}; for this program's own lines, or NAME=LEVEL"))
                    .hint(format!("names: {OURS}, {OURS}::PART, {}", LOGGED_CRATES.join(", ")))
            })?,
            (None, 0) => format!("{OURS}=warn"),
            (None, 1) => format!("{OURS}=info"),
            (None, 2..) => format!("{OURS}=debug"),
        };
        EnvFilter::try_new(&directives)
            .map_err(|why| Failure::usage(format!("cannot use the filter {directives}: {why}")))
    }
}

/// Translates a filter for the library: a level alone is for this program's own lines.
fn directives(filter: &str) -> Result<String, String> {
    let words = filter.split(',').map(str::trim).filter(|word| !word.is_empty());
    let directives = words.map(|word| match word.split_once('=') {
        // The library judges a word that asks for spans.
        _ if word.contains('[') => Ok(word.to_owned()),
        None if is_level(word) => Ok(format!("{OURS}={word}")),
        None if is_known(word) => Ok(word.to_owned()),
        None => Err(format!("\"{word}\" is neither a level nor a name")),
        Some((name, level)) if !is_level(level) => {
            Err(format!("\"{level}\" is not a level for {name}"))
        }
        Some((name, _)) if !is_known(name) => Err(format!("there is no crate or part {name}")),
        Some(_) => Ok(word.to_owned()),
    });
    let directives: Vec<String> = directives.collect::<Result<_, _>>()?;
    if directives.is_empty() { Err("it is empty".to_owned()) } else { Ok(directives.join(",")) }
}

fn is_level(word: &str) -> bool {
    LevelFilter::from_str(word).is_ok()
}

/// Returns whether a name is that of this program, a part of it, or a crate that it uses.
fn is_known(name: &str) -> bool {
    let first = name.split("::").next().unwrap_or_default();
    first == OURS || LOGGED_CRATES.contains(&first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(filter: &str, expected: Result<&str, &str>) {
        let read = directives(filter);
        assert_eq!(read.as_deref().map_err(String::as_str), expected, "{filter}");
        if let Ok(read) = read {
            EnvFilter::try_new(read).unwrap();
        }
    }

    #[test]
    fn a_level_alone_is_for_our_own_lines() {
        check("debug", Ok("kubectl_acme=debug"));
        check("off", Ok("kubectl_acme=off"));
        check("info, hyper=debug", Ok("kubectl_acme=info,hyper=debug"));
        check("kubectl_acme::acme=trace", Ok("kubectl_acme::acme=trace"));
        check("reqwest", Ok("reqwest"));
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        check("loud", Err("\"loud\" is neither a level nor a name"));
        check("hyper=loud", Err("\"loud\" is not a level for hyper"));
        check("hiper=debug", Err("there is no crate or part hiper"));
        check(" ,", Err("it is empty"));
    }

    #[test]
    fn more_words_on_the_command_line_are_more_lines() {
        for (verbose, log, expected) in [
            (0, None, "kubectl_acme=warn"),
            (1, None, "kubectl_acme=info"),
            (3, None, "kubectl_acme=debug"),
            (0, Some("trace"), "kubectl_acme=trace"),
        ] {
            let args = LogArgs { verbose, log: log.map(str::to_owned), ..LogArgs::default() };
            assert_eq!(args.filter().unwrap().to_string(), expected);
        }
    }
}
