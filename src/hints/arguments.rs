//! What clap has read of a command line, at whatever depth of commands it stands.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, Id};

/// Arguments that mean a cluster, and their flags.
pub const PLACES: [(&str, &str); 4] =
    [("kubeconfig", "kubeconfig"), ("context", "context"), ("user", "as"), ("groups", "as-group")];
/// Those of them that say as whom one works there.
const ACTORS: [&str; 2] = ["user", "groups"];

/// Arguments that change what is seen of an answer. A command that takes them has to be given them, too, so that it sees the same.
const LOOKS: [&str; 8] = [
    "http01_listen",
    "http01_webroot",
    "http01_resolve",
    "tls_alpn_listen",
    "tls_alpn_resolve",
    "dns",
    "dns01_recursive_nameservers",
    "dns01_recursive_nameservers_only",
];

/// A flag that says which objects are meant.
#[derive(Debug)]
pub(super) struct Placing {
    pub(super) says: Says,
    /// Whether it is on the command line; what is in the environment is there for the next command of ours, too.
    pub(super) is_typed: bool,
    /// The flag with its value.
    pub(super) words: Vec<String>,
}

/// What such a flag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    State,
    Cluster,
    Actor,
    Namespace,
}

/// The flags that say which objects are meant, in the order and the form in which they were typed; then environment forms.
pub(super) fn placing(words: &[String], matches: &ArgMatches) -> Vec<Placing> {
    let flags = std::iter::once(("local", "local", Says::State))
        .chain(PLACES.map(|(id, flag)| {
            let says = if ACTORS.contains(&id) { Says::Actor } else { Says::Cluster };
            (id, flag, says)
        }))
        .chain([("namespace", "namespace", Says::Namespace)]);
    let mut found = Vec::new();
    for (id, flag, says) in flags {
        let is_typed = match matches.value_source(id) {
            Some(ValueSource::CommandLine) => true,
            Some(ValueSource::EnvVariable) => false,
            _ => continue,
        };
        for value in matches.get_raw(id).into_iter().flatten() {
            let ways = ways(says, flag, &value.to_string_lossy());
            let at = |way: &Vec<String>| words.windows(way.len()).position(|words| words == way);
            let seen = ways.iter().filter(|_| is_typed).find_map(|way| Some((at(way)?, way)));
            // In a cluster of short flags, such as -wnweb, it has no word of its own.
            let (at, way) = seen.unwrap_or((usize::MAX, &ways[ways.len() - 1]));
            found.push((at, Placing { says, is_typed, words: way.clone() }));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, flag)| flag).collect()
}

/// The ways to write a flag with its value; the last one always does.
fn ways(says: Says, flag: &str, value: &str) -> Vec<Vec<String>> {
    let (long, value) = (format!("--{flag}"), value.to_owned());
    let joined = vec![format!("{long}={value}")];
    match says {
        // Its value, where there is none.
        Says::State if value == "1" => vec![joined, vec![long]],
        Says::State => vec![joined],
        Says::Cluster | Says::Actor => vec![joined, vec![long, value]],
        Says::Namespace => {
            vec![joined, vec![long, value.clone()], vec!["-n".to_owned(), value]]
        }
    }
}

/// The arguments of [`LOOKS`] that were typed, each with its flag and values.
pub(super) fn looks(matches: &ArgMatches) -> Vec<(&'static str, Vec<String>)> {
    LOOKS.iter().filter_map(|id| Some((*id, typed(matches, id)?))).collect()
}

/// Tells whether there is a value of this argument, wherever it comes from.
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let is_below = |(_, below): (&str, &ArgMatches)| is_given(below, id);
    matches!(matches.try_contains_id(id), Ok(true)) || matches.subcommand().is_some_and(is_below)
}

/// A flag with its values as it may be typed, if it is on the command line. What is in the environment is there for the next
/// command, too.
fn typed(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
    let is_known = matches.try_contains_id(id).is_ok();
    if !is_known || matches.value_source(id) != Some(ValueSource::CommandLine) {
        return matches.subcommand().and_then(|(_, below)| typed(below, id));
    }
    let flag = format!("--{}", id.replace('_', "-"));
    // A flag without a value.
    if let Ok(Some(true)) = matches.try_get_one::<bool>(id) {
        return Some(vec![flag]);
    }
    let values = matches.get_raw(id)?;
    Some(values.map(|value| format!("{flag}={}", value.to_string_lossy())).collect())
}

/// The arguments that the environment gives.
pub(super) fn of_environment(matches: &ArgMatches) -> BTreeSet<String> {
    let is_of_environment =
        |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::EnvVariable);
    let here = matches.ids().filter(is_of_environment).map(|id| id.as_str().to_owned());
    let below = matches.subcommand().map(|(_, below)| of_environment(below));
    here.chain(below.into_iter().flatten()).collect()
}

/// The values of this argument, wherever they come from.
pub(super) fn values(matches: &ArgMatches, id: &str) -> Vec<String> {
    let found = matches.try_get_raw(id).ok().flatten();
    let here = found.into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
    let below = matches.subcommand().map(|(_, below)| values(below, id));
    here.chain(below.into_iter().flatten()).collect()
}
