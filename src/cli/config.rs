//! `--config`: a file with flags that a user always gives.
//!
//! A key is a flag without its dashes, with the value that would be typed; keys below the name of a
//! command are flags of that command alone. Typed flags and variables win, also over a flag of the
//! file that conflicts with them. A missing file is an error only if the user named the file.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind as IoErrorKind;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches};
use serde_json::{Map, Value};

use crate::hints::invocation::variable;
use crate::model::text::closest;

/// The flag that names the file.
const CONFIG_FLAG: &str = "config";
/// Flags that a file cannot set: the path of the file, and flags that replace the command's work.
const TYPED_ONLY_FLAGS: [&str; 3] = [CONFIG_FLAG, "help", "version"];

/// Flags of a file.
#[derive(Debug, Default)]
pub(super) struct Config {
    /// Path of the file.
    path: PathBuf,
    settings: Vec<Setting>,
}

/// A flag of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting {
    /// Words of the command that takes the flag; empty for all commands that have the flag.
    command: Vec<String>,
    flag: String,
    values: Vec<String>,
}

impl Config {
    /// Reads the file that the words or the environment name, else the user's file, if there is one.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or sets an unknown flag or a value that the flag does not take.
    pub(super) fn read(words: &[OsString], tree: &clap::Command) -> Result<Self, String> {
        let named = read_typed_path(words)
            .or_else(|| env::var_os(variable(CONFIG_FLAG)).map(PathBuf::from));
        let named = named.filter(|path| !path.as_os_str().is_empty());
        let Some(path) = named.clone().or_else(of_user) else { return Ok(Self::default()) };
        match fs::read_to_string(&path) {
            Ok(text) => Self::parse(path, &text, tree),
            Err(error) if error.kind() == IoErrorKind::NotFound && named.is_none() => {
                Ok(Self::default())
            }
            Err(error) => Err(format!("cannot read {}: {error}", path.display())),
        }
    }

    fn parse(path: PathBuf, text: &str, tree: &clap::Command) -> Result<Self, String> {
        let place = path.display().to_string();
        let said = |why: String| format!("{place}: {why}");
        let document: Value = serde_yaml::from_str(text).map_err(|why| said(why.to_string()))?;
        let mut settings = Vec::new();
        match document {
            Value::Null => {}
            Value::Object(all) => collect(&all, &mut Vec::new(), &mut settings).map_err(said)?,
            _ => return Err(said("flags and their values are expected".to_owned())),
        }
        for setting in &settings {
            setting.check(tree).map_err(said)?;
        }
        Ok(Self { path, settings })
    }

    /// Returns the command tree with the file's values as the flags' defaults.
    pub(super) fn applied(&self, tree: clap::Command) -> clap::Command {
        self.below(tree, &mut Vec::new())
    }

    fn below(&self, command: clap::Command, path: &mut Vec<String>) -> clap::Command {
        let command = command.mut_args(|arg| match self.of(&arg, path) {
            Some(setting) => arg.default_values(setting.values.clone()),
            None => arg,
        });
        command.mut_subcommands(|below| {
            path.push(below.get_name().to_owned());
            let below = self.below(below, path);
            path.pop();
            below
        })
    }

    /// Returns the setting for a flag of that command; a setting below the command's own name wins.
    fn of(&self, arg: &Arg, path: &[String]) -> Option<&Setting> {
        let flag = arg.get_long()?;
        let fits = |it: &&Setting| it.flag == flag && path.starts_with(&it.command);
        self.settings.iter().filter(fits).max_by_key(|setting| setting.command.len())
    }

    /// Returns the settings without flags that conflict with given flags; `None` if no flag conflicts.
    pub(super) fn without_overruled(
        &self,
        tree: &clap::Command,
        given: &ArgMatches,
    ) -> Option<Self> {
        let mut tree = tree.clone();
        // clap knows conflicts only after the tree is built.
        tree.build();
        let overruled = find_overruled(&tree, given);
        let is_heard = |setting: &&Setting| !overruled.contains(&setting.flag);
        let heard: Vec<Setting> = self.settings.iter().filter(is_heard).cloned().collect();
        let path = self.path.clone();
        (heard.len() < self.settings.len()).then_some(Self { path, settings: heard })
    }
}

impl Setting {
    fn name(&self) -> String {
        self.command.iter().chain([&self.flag]).map(String::as_str).collect::<Vec<_>>().join(".")
    }

    /// Checks that the command and the flag exist, and that the flag takes the value.
    fn check(&self, tree: &clap::Command) -> Result<(), String> {
        let mut command = tree;
        for word in &self.command {
            command = command
                .find_subcommand(word)
                .filter(|found| found.get_name() == word)
                .ok_or_else(|| format!("{}: there is no command {word}", self.name()))?;
        }
        let owner = find(command, &self.flag, &mut self.command.clone());
        let Some(path) = owner.filter(|_| !TYPED_ONLY_FLAGS.contains(&&*self.flag)) else {
            let mut flags = BTreeSet::new();
            all_flags(command, &mut flags);
            let nearest = closest(&self.flag, flags.iter().map(|flag| &**flag));
            let meant = nearest.map(|flag| format!(", did you mean {flag}?")).unwrap_or_default();
            return Err(format!("{}: there is no such flag{meant}", self.name()));
        };
        let words = std::iter::once(tree.get_name().to_owned()).chain(path);
        let typed = self.values.iter().map(|value| format!("--{}={value}", self.flag));
        let switch = [format!("--{}", self.flag)];
        let is_switch = self.is_switch(tree);
        if is_switch && !["true", "false"].contains(&self.values.join(" ").as_str()) {
            return Err(format!("{}: true or false is expected", self.name()));
        }
        let words: Vec<String> =
            if is_switch { words.chain(switch).collect() } else { words.chain(typed).collect() };
        match tree.clone().try_get_matches_from(words) {
            Err(error)
                if matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::ValueValidation) =>
            {
                let value = match error.get(ContextKind::InvalidValue) {
                    Some(ContextValue::String(value)) => value.clone(),
                    _ => self.values.join(", "),
                };
                Err(format!("{}: {value:?} is not what --{} takes", self.name(), self.flag))
            }
            // Other errors concern words that the user types.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    fn is_switch(&self, tree: &clap::Command) -> bool {
        let is_it = |arg: &&Arg| arg.get_long() == Some(&self.flag);
        let found = tree.get_arguments().find(is_it);
        let below = || tree.get_subcommands().any(|command| self.is_switch(command));
        found.map_or_else(below, |arg| !arg.get_action().takes_values())
    }
}

/// Returns the words of a command that has this flag itself, at or below the given command.
fn find(command: &clap::Command, flag: &str, path: &mut Vec<String>) -> Option<Vec<String>> {
    if command.get_arguments().any(|arg| arg.get_long() == Some(flag)) {
        return Some(path.clone());
    }
    for below in command.get_subcommands() {
        path.push(below.get_name().to_owned());
        if let Some(found) = find(below, flag, path) {
            return Some(found);
        }
        path.pop();
    }
    None
}

fn all_flags(command: &clap::Command, found: &mut BTreeSet<String>) {
    found.extend(command.get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)));
    command.get_subcommands().for_each(|below| all_flags(below, found));
}

/// Returns the flags that conflict with a flag that is typed or in the environment.
fn find_overruled(command: &clap::Command, matches: &ArgMatches) -> BTreeSet<String> {
    let is_given = |arg: &Arg| {
        let source = matches.value_source(arg.get_id().as_str());
        matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    };
    let mut found = BTreeSet::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            let long = |arg: &Arg| arg.get_long().map(str::to_owned);
            found.extend(is_given(arg).then(|| long(other)).flatten());
            found.extend(is_given(other).then(|| long(arg)).flatten());
        }
    }
    if let Some((name, matches)) = matches.subcommand() {
        let below = command.find_subcommand(name).map(|command| find_overruled(command, matches));
        found.extend(below.into_iter().flatten());
    }
    found
}

fn collect(
    all: &Map<String, Value>,
    command: &mut Vec<String>,
    settings: &mut Vec<Setting>,
) -> Result<(), String> {
    for (key, value) in all {
        let values = match value {
            Value::Object(below) => {
                command.push(key.clone());
                collect(below, command, settings)?;
                command.pop();
                continue;
            }
            Value::Array(values) => values.iter().map(scalar).collect::<Option<Vec<_>>>(),
            value => scalar(value).map(|value| vec![value]),
        };
        let Some(values) = values.filter(|values| !values.is_empty()) else {
            return Err(format!("{key}: a value is expected, or a list of values"));
        };
        // As in the environment, `false` counts as not set.
        if key == "local" && values == ["false"] {
            continue;
        }
        settings.push(Setting { command: command.clone(), flag: key.clone(), values });
    }
    Ok(())
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the path that is typed after `--config`.
fn read_typed_path(words: &[OsString]) -> Option<PathBuf> {
    let mut words = words.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        match word.strip_prefix("--config") {
            Some("") => return words.next().map(|path| PathBuf::from(&*path)),
            Some(rest) if rest.starts_with('=') => return Some(PathBuf::from(&rest[1..])),
            Some(_) | None if word == "--" => return None,
            Some(_) | None => {}
        }
    }
    None
}

/// `$XDG_CONFIG_HOME/kubectl-acme/config.yaml`, else `~/.config/kubectl-acme/config.yaml`.
fn of_user() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| Path::new(value).is_absolute());
    let home = variable("HOME").map(|home| Path::new(&home).join(".config"));
    let base = variable("XDG_CONFIG_HOME").map(PathBuf::from).or(home)?;
    Some(base.join("kubectl-acme/config.yaml"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn parse(text: &str) -> Result<Config, String> {
        Config::parse(PathBuf::from("c.yaml"), text, &command())
    }

    /// Checks the values of a flag of the command, after a command line is read with this file.
    #[track_caller]
    fn check(text: &str, line: &str, flag: &str, expected: &[&str]) {
        let words: Vec<&str> = std::iter::once("kubectl-acme").chain(line.split(' ')).collect();
        let config = parse(text).unwrap();
        let tree = config.applied(command());
        let mut matches = tree.clone().try_get_matches_from(&words).unwrap();
        if let Some(config) = config.without_overruled(&tree, &matches) {
            matches = config.applied(command()).try_get_matches_from(&words).unwrap();
        }
        let mut here = &matches;
        while let Some((_, below)) = here.subcommand() {
            here = below;
        }
        let id = flag.replace('-', "_");
        let found = here.get_raw(&id).into_iter().flatten();
        let found: Vec<_> = found.map(|value| value.to_string_lossy().into_owned()).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn a_flag_of_the_file_counts_until_somebody_types_another() {
        let file = "local: /srv/acme\ntimeout: 5m\nhttp01-listen: ['[::]:8080', '0.0.0.0:8080']\n";
        check(file, "order -f a", "timeout", &["5m"]);
        check(file, "order -f a --timeout 1m", "timeout", &["1m"]);
        check(file, "order create -f a", "local", &["/srv/acme"]);
        check(file, "run", "http01-listen", &["[::]:8080", "0.0.0.0:8080"]);
        check("dns01-manual: true", "order -f a", "dns01-manual", &["true"]);
        check("dns01-manual: true", "order -f a --rehearse", "dns01-manual", &["false"]);
        check("local: false", "get certs", "local", &[]);
        check("quiet: true", "get certs", "quiet", &["true"]);
        check("", "order -f a", "timeout", &["10m"]);
    }

    #[test]
    fn flags_of_a_command_are_its_own() {
        let file =
            "timeout: 5m\norder: {timeout: 2m, create: {timeout: 1m}}\ntimeline: {output: json}\n";
        check(file, "certificate renew a", "timeout", &["5m"]);
        check(file, "order -f a", "timeout", &["2m"]);
        check(file, "order retry a", "timeout", &["2m"]);
        check(file, "order create -f a", "timeout", &["1m"]);
        check(file, "timeline a", "output", &["json"]);
    }

    #[test]
    fn what_no_flag_takes_is_refused_by_its_place() {
        for (text, expected) in [
            ("timeouts: 5m", "c.yaml: timeouts: there is no such flag, did you mean timeout?"),
            ("config: x", "c.yaml: config: there is no such flag, did you mean config?"),
            (
                "order: {timeout: soon}",
                "c.yaml: order.timeout: \"soon\" is not what --timeout takes",
            ),
            ("color: maybe", "c.yaml: color: \"maybe\" is not what --color takes"),
            ("quiet: often", "c.yaml: quiet: true or false is expected"),
            ("orders: {timeout: 5m}", "c.yaml: orders.timeout: there is no command orders"),
            ("order: {create: {xyzzyx: 1}}", "c.yaml: order.create.xyzzyx: there is no such flag"),
            ("timeout:", "c.yaml: timeout: a value is expected, or a list of values"),
            ("[a]", "c.yaml: flags and their values are expected"),
        ] {
            assert_eq!(parse(text).map(|_| ()), Err(expected.to_owned()), "{text}");
        }
    }

    #[test]
    fn the_file_is_named_before_the_command_line_is_read() {
        let typed =
            |line: &str| read_typed_path(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert_eq!(typed("x order --config a.yaml -f b"), Some(PathBuf::from("a.yaml")));
        assert_eq!(typed("x --config=a.yaml"), Some(PathBuf::from("a.yaml")));
        assert_eq!(typed("x --configure a"), None);
        assert_eq!(typed("x -- --config a"), None);
    }
}
