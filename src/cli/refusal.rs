//! Document for a command line that cannot be read: the same fields that `-o json` writes for every other error.
//!
//! The text is clap's, because clap's errors give their parts only as text.

use std::env;
use std::ffi::OsString;
use std::io::Write as _;

use serde_json::json;

use crate::context::failure::Failure;
use crate::hints::invocation::variable;
use crate::print::format::Format;

/// Writes the document to stdout if the words or the environment ask for a document; clap prints the error on stderr.
pub(super) fn print_document(error: &clap::Error, words: &[OsString]) {
    // Help and version are no errors.
    if !error.use_stderr() {
        return;
    }
    let asked = format_in(words).or_else(|| env::var(variable("output")).ok());
    let Some(format @ (Format::Json | Format::Jsonl | Format::Yaml)) =
        asked.and_then(|asked| asked.parse().ok())
    else {
        return;
    };
    let document = failure(&error.to_string()).document();
    if let Some(text) = document.and_then(|document| format.document(&json!(document))) {
        // A failed write is ignored: the reader is gone, and the exit code still reports the error.
        let _unread = std::io::stdout().write_all(text.as_bytes());
    }
}

/// Builds the failure from clap's text: the reason is the first paragraph, tips follow.
fn failure(rendered: &str) -> Failure {
    let (first, rest) = rendered.split_once("\n\n").unwrap_or((rendered, ""));
    let first = first.trim().strip_prefix("error: ").unwrap_or(first);
    let why = first.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let tips = rest.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    tips.fold(Failure::usage(why), Failure::hint)
}

/// Returns the format that the words name last.
fn format_in(words: &[OsString]) -> Option<String> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let words = words.iter().skip(1).take_while(|word| *word != "--").collect::<Vec<_>>();
    let named = |(at, word): (usize, &&std::borrow::Cow<'_, str>)| match &***word {
        "-o" | "--output" => words.get(at + 1).map(ToString::to_string),
        word => {
            let joined = word.strip_prefix("--output=");
            let short =
                || word.strip_prefix("-o").map(|rest| rest.strip_prefix('=').unwrap_or(rest));
            joined.or_else(short).map(str::to_owned)
        }
    };
    words.iter().enumerate().filter_map(named).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_found_as_it_may_be_typed() {
        let check = |line: &str, expected: Option<&str>| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(format_in(&words).as_deref(), expected, "{line}");
        };
        check("kubectl-acme get certs -o json", Some("json"));
        check("kubectl-acme get certs -ojson", Some("json"));
        check("kubectl-acme get certs -o=yaml", Some("yaml"));
        check("kubectl-acme get certs --output=json", Some("json"));
        check("kubectl-acme get certs --output jsonl", Some("jsonl"));
        check("kubectl-acme get certs -o", None);
        check("kubectl-acme get certs", None);
        check("kubectl-acme get -- -o json", None);
    }

    #[test]
    fn why_and_tips_are_told_apart() {
        let said = "error: unexpected argument '--forces' found\n\n  tip: a similar argument exists: '--force'\n\nUsage: x\n";
        let failure = failure(said);
        assert_eq!(failure.message, "unexpected argument '--forces' found");
        assert_eq!(failure.hints, ["a similar argument exists: '--force'"]);
        let missing = super::failure(
            "error: the following required arguments were not provided:\n  <KIND>\n\nUsage: x\n",
        );
        assert_eq!(missing.message, "the following required arguments were not provided: <KIND>");
    }
}
