//! Arguments that clap has read from a command line, at any depth of subcommands.

use std::collections::BTreeSet;

use clap::parser::ValueSource;
use clap::{ArgMatches, Id};

/// Arguments that choose a cluster, each with its flag.
pub const CLUSTER_ARGUMENTS: [(&str, &str); 4] =
    [("kubeconfig", "kubeconfig"), ("context", "context"), ("user", "as"), ("groups", "as-group")];
/// Arguments that choose the user or the groups to act as in a cluster.
const IDENTITY_ARGUMENTS: [&str; 2] = ["user", "groups"];

/// Arguments that change what a probe sees of an answer; a hint repeats them for commands that take them.
const PROBE_ARGUMENTS: [&str; 8] = [
    "http01_listen",
    "http01_webroot",
    "http01_resolve",
    "tls_alpn_listen",
    "tls_alpn_resolve",
    "dns",
    "dns01_recursive_nameservers",
    "dns01_recursive_nameservers_only",
];

/// Flag that says which objects are meant: by state folder, cluster, user or namespace.
#[derive(Debug)]
pub(super) struct PlaceFlag {
    pub(super) says: PlaceSubject,
    /// Whether the flag is on the command line; a variable need not be repeated, since the next command of ours reads it too.
    pub(super) is_typed: bool,
    /// The flag with its value.
    pub(super) words: Vec<String>,
}

/// Subject of a [`PlaceFlag`] flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlaceSubject {
    State,
    Cluster,
    Actor,
    Namespace,
}

/// Returns the flags that say which objects are meant, in the order and form in which they were typed; then environment forms.
pub(super) fn placing(words: &[String], matches: &ArgMatches) -> Vec<PlaceFlag> {
    let flags = std::iter::once(("local", "local", PlaceSubject::State))
        .chain(CLUSTER_ARGUMENTS.map(|(id, flag)| {
            let says = if IDENTITY_ARGUMENTS.contains(&id) {
                PlaceSubject::Actor
            } else {
                PlaceSubject::Cluster
            };
            (id, flag, says)
        }))
        .chain([("namespace", "namespace", PlaceSubject::Namespace)]);
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
            // In a group of short flags, such as -wnweb, the flag has no word of its own.
            let (at, way) = seen.unwrap_or((usize::MAX, &ways[ways.len() - 1]));
            found.push((at, PlaceFlag { says, is_typed, words: way.clone() }));
        }
    }
    found.sort_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, flag)| flag).collect()
}

/// Returns the ways to write a flag with its value; the last way is always valid.
fn ways(says: PlaceSubject, flag: &str, value: &str) -> Vec<Vec<String>> {
    let (long, value) = (format!("--{flag}"), value.to_owned());
    let joined = vec![format!("{long}={value}")];
    match says {
        // clap sets this value for a bare --local.
        PlaceSubject::State if value == "1" => vec![joined, vec![long]],
        PlaceSubject::State => vec![joined],
        PlaceSubject::Cluster | PlaceSubject::Actor => vec![joined, vec![long, value]],
        PlaceSubject::Namespace => {
            vec![joined, vec![long, value.clone()], vec!["-n".to_owned(), value]]
        }
    }
}

/// Returns the arguments of [`PROBE_ARGUMENTS`] that were typed, each with its flag and values.
pub(super) fn looks(matches: &ArgMatches) -> Vec<(&'static str, Vec<String>)> {
    PROBE_ARGUMENTS.iter().filter_map(|id| Some((*id, typed_flag(matches, id)?))).collect()
}

/// Returns whether an argument has a value, from any source.
pub(super) fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let is_below = |(_, below): (&str, &ArgMatches)| is_given(below, id);
    matches!(matches.try_contains_id(id), Ok(true)) || matches.subcommand().is_some_and(is_below)
}

/// Returns a flag with its values as it may be typed; `None` if the flag is not on the command line. A variable need not be
/// repeated, since the next command reads it too.
fn typed_flag(matches: &ArgMatches, id: &str) -> Option<Vec<String>> {
    let is_known = matches.try_contains_id(id).is_ok();
    if !is_known || matches.value_source(id) != Some(ValueSource::CommandLine) {
        return matches.subcommand().and_then(|(_, below)| typed_flag(below, id));
    }
    let flag = format!("--{}", id.replace('_', "-"));
    // A flag without a value.
    if let Ok(Some(true)) = matches.try_get_one::<bool>(id) {
        return Some(vec![flag]);
    }
    let values = matches.get_raw(id)?;
    Some(values.map(|value| format!("{flag}={}", value.to_string_lossy())).collect())
}

/// Returns the arguments whose values come from the environment.
pub(super) fn of_environment(matches: &ArgMatches) -> BTreeSet<String> {
    let is_of_environment =
        |id: &&Id| matches.value_source(id.as_str()) == Some(ValueSource::EnvVariable);
    let here = matches.ids().filter(is_of_environment).map(|id| id.as_str().to_owned());
    let below = matches.subcommand().map(|(_, below)| of_environment(below));
    here.chain(below.into_iter().flatten()).collect()
}

/// Returns the values of an argument, from any source.
pub(super) fn values(matches: &ArgMatches, id: &str) -> Vec<String> {
    let found = matches.try_get_raw(id).ok().flatten();
    let here = found.into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
    let below = matches.subcommand().map(|(_, below)| values(below, id));
    here.chain(below.into_iter().flatten()).collect()
}
