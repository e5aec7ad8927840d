//! Global flags and the command tree; each command's own flags stand beside its behaviour.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::builder::{BoolishValueParser, Resettable};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    Arg, ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _, Id, Parser, Subcommand,
};

use crate::commands::connection::ClusterArgs;
use crate::commands::{
    ca, certificate, challenge, completion, crds, delete, describe, get, order, probe, run,
    schedule, solve, timeline, version, watch,
};

/// ACME certificates from manifest to Secret, with nothing hidden
///
/// Reads cert-manager manifests (Issuer, ClusterIssuer, Certificate), drives Orders and Challenges in a cluster or on this
/// machine, shows what every challenge waits for, and says why one is stuck.
#[derive(Debug, Parser)]
#[command(
    name = "kubectl-acme",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true,
    infer_long_args = false,
    max_term_width = 110
)]
pub struct Cli {
    /// Flags of every command
    #[command(flatten)]
    pub global: GlobalArgs,
    /// Command
    #[command(subcommand)]
    pub command: Command,
}

/// Flags of every command.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Global flags")]
pub struct GlobalArgs {
    /// Keep resources on this machine, in DIR or in $XDG_STATE_HOME/kubectl-acme
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1"
    )]
    pub local: Option<String>,
    /// Namespace of the objects
    #[arg(long, short, global = true)]
    pub namespace: Option<String>,
    /// Namespace of the Secrets that ClusterIssuers refer to
    #[arg(long, global = true, value_name = "NAMESPACE", default_value = "cert-manager")]
    pub cluster_resource_namespace: String,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: crate::print::colour::ColourChoice,
    /// What to log on stderr, such as debug or kubectl_acme=trace
    #[arg(long, global = true, value_name = "FILTER")]
    pub log: Option<String>,
    /// Which cluster, and as whom
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Issue certificates from manifests, and look after their orders
    ///
    /// Examples:
    ///   order -f issuer.yaml -f certificate.yaml            issue in the cluster what is due, and wait
    ///   order -f issuer.yaml -f certificate.yaml --local    the same on this machine
    ///   order -f manifests/ --local --rehearse=loopback     try it out: no DNS, no root, nothing spent
    ///   order --domain www.example.com --local              without manifests
    ///   order get --local -w                                what becomes of orders
    #[command(verbatim_doc_comment)]
    Order(Box<order::OrderArgs>),
    /// Show and check challenges, put up and take down their answers
    Challenge(challenge::ChallengeArgs),
    /// Look after issued certificates
    Certificate(certificate::CertificateArgs),
    /// Show one object in full, with its events
    Describe(describe::DescribeArgs),
    /// Show every event of a Certificate, its Orders and Challenges, in order
    Timeline(timeline::TimelineArgs),
    /// Show which challenges run, which wait, and for what
    Schedule(schedule::ScheduleArgs),
    /// Show changes as they happen
    Watch(watch::WatchArgs),
    /// List objects
    ///
    /// Examples:
    ///   get certs,orders,challenges -n web          tables of several kinds, in the cluster
    ///   get cert/web order/web-1-123 --local -o yaml
    ///   get challenges --local -l team=web -w       one label, and every change
    #[command(verbatim_doc_comment)]
    Get(get::GetArgs),
    /// Delete objects on this machine; those of a cluster are kubectl's
    Delete(delete::DeleteArgs),
    /// Run the controllers until interrupted
    Run(Box<run::RunArgs>),
    /// Run a small ACME server that nobody trusts, for rehearsals and tests
    Ca(ca::CaArgs),
    /// Print lean definitions of the six kinds, for a cluster that has none
    Crds(crds::CrdsArgs),
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
    /// Answer one HTTP-01 challenge: what a solver Pod runs
    #[command(hide = true)]
    Solve(solve::SolveArgs),
    /// Look once at a URL as the CA would: what a probe Pod runs
    #[command(hide = true)]
    Probe(probe::ProbeArgs),
    /// Print the version
    Version(version::VersionArgs),
}

/// Every flag has an environment form by its name; one that would mean several things names its own.
fn with_environment(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        // As a flag has no value, its variable may say 1 or yes as well as true.
        let arg = match arg.get_action() {
            ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
            _ => arg,
        };
        let name = arg.get_long().filter(|long| !["help", "version"].contains(long));
        let variable =
            name.map(|long| VARIABLES.to_owned() + &long.replace('-', "_").to_uppercase());
        match variable {
            Some(variable) if arg.get_env().is_none() => arg.env(variable).hide_env(true),
            Some(_) | None => arg.hide_env_values(true),
        }
    });
    command.after_help(ENVIRONMENT).mut_subcommands(with_environment)
}

/// What the names of environment forms begin with.
const VARIABLES: &str = "KUBECTL_ACME_";
/// Where environment forms are explained.
const ENVIRONMENT: &str = "Every flag has an environment form, such as KUBECTL_ACME_HTTP01_LISTEN for --http01-listen; the flag wins.";

/// Arguments that mean a cluster, and their flags.
const PLACES: [(&str, &str); 4] =
    [("kubeconfig", "kubeconfig"), ("context", "context"), ("user", "as"), ("groups", "as-group")];

/// The plugin's file name.
pub const PROGRAM: &str = "kubectl-acme";
/// What people type who start it by kubectl.
const PLUGIN: &str = "kubectl acme";

/// The command line of this process, to be typed again.
pub fn again() -> String {
    let first = env::args_os().next().unwrap_or_default();
    let first =
        if program() == PLUGIN { PLUGIN.to_owned() } else { quoted(&first.to_string_lossy()) };
    let words = env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy()));
    [first].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Tells whether the command line gives names in place of manifests (`--domain`).
pub fn is_given_names() -> bool {
    gives_names(env::args())
}

fn gives_names(words: impl Iterator<Item = String>) -> bool {
    let mut words = words.take_while(|word| word != "--");
    words.any(|word| word == "--domain" || word.starts_with("--domain="))
}

/// Tells whether the command line names a namespace.
pub fn is_given_namespace() -> bool {
    names_namespace(env::args().skip(1))
}

fn names_namespace(words: impl Iterator<Item = String>) -> bool {
    let mut words = words.take_while(|word| word != "--");
    words.any(|word| {
        let is_long = word == "--namespace" || word.starts_with("--namespace=");
        is_long || word.starts_with("-n")
    })
}

/// Flags with a value that say which objects are meant.
const PLACING: [&str; 6] = ["-n", "--namespace", "--kubeconfig", "--context", "--as", "--as-group"];
/// Those of them that name the namespace.
const NAMESPACE: [&str; 2] = ["-n", "--namespace"];

/// Another command line on the same objects: the same program, state or cluster, and namespace.
pub fn like(command: &str) -> String {
    like_words(program(), command, env::args().skip(1))
}

/// The same in all namespaces.
pub fn like_in_all(command: &str) -> String {
    let is_wanted = |flag: &str| flag == "--local" || is_of_cluster(flag);
    format!("{} {command} -A{}", program(), placing(env::args().skip(1), is_wanted))
}

fn like_words(program: &str, command: &str, words: impl Iterator<Item = String>) -> String {
    let placing = placing(words, |flag| flag == "--local" || PLACING.contains(&flag));
    format!("{program} {command}{placing}")
}

/// A command line for kubectl in the same cluster, with these words. They name the namespace where there is one.
pub fn kubectl(words: &[String]) -> String {
    kubectl_words(words, env::args().skip(1))
}

fn kubectl_words(words: &[String], given: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("kubectl{} {}", placing(given, is_of_cluster), words.join(" "))
}

fn is_of_cluster(flag: &str) -> bool {
    PLACING.contains(&flag) && !NAMESPACE.contains(&flag)
}

/// Those flags of a command line that are wanted, each with its value and a space before it.
fn placing(words: impl Iterator<Item = String>, is_wanted: impl Fn(&str) -> bool) -> String {
    let mut line = String::new();
    let mut words = words.take_while(|word| word != "--");
    while let Some(word) = words.next() {
        let (flag, given) =
            word.split_once('=').map_or((word.as_str(), false), |(flag, _)| (flag, true));
        let has_value = PLACING.contains(&flag) && !given;
        let is_wanted = is_wanted(flag);
        let value = if has_value { words.next() } else { None };
        for word in [Some(word), value].into_iter().flatten().filter(|_| is_wanted) {
            line.push(' ');
            line.push_str(&quoted(&word));
        }
    }
    line
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// How people start this program.
fn program() -> &'static str {
    let program = env::args_os().next().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    if is_plugin(Path::new(&program), &path) { PLUGIN } else { PROGRAM }
}

/// The command tree; usage says `kubectl acme` when kubectl started us.
pub fn command() -> clap::Command {
    let command = with_environment(Cli::command());
    if program() == PLUGIN { command.bin_name(PLUGIN) } else { command }
}

/// Reads this process's command line; ends the process with usage or help where that is due.
pub fn parse() -> Cli {
    let matches = matches(command(), &env::args_os().collect::<Vec<_>>())
        .unwrap_or_else(|error| error.exit());
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match chosen(&matches) {
        Chosen::Local => cli.global.cluster = cli.global.cluster.without_place(),
        Chosen::Cluster => cli.global.local = None,
        Chosen::Both(flag) => {
            let message = format!(
                "--local cannot be used with --{flag}: one names this machine, the other a cluster"
            );
            command().error(ErrorKind::ArgumentConflict, message).exit()
        }
        Chosen::Either => {}
    }
    cli
}

/// What the command line says about where resources are.
#[derive(Debug, PartialEq, Eq)]
enum Chosen {
    /// On this machine.
    Local,
    /// In a cluster.
    Cluster,
    /// Both, by `--local` and this flag.
    Both(&'static str),
    /// Whatever there is.
    Either,
}

/// A flag beats an environment form.
fn chosen(matches: &ArgMatches) -> Chosen {
    let given = |id: &str| matches.value_source(id);
    let strongest = PLACES.into_iter().filter_map(|(id, flag)| Some((given(id)?, flag))).max();
    match (given("local"), strongest) {
        (None, None) => Chosen::Either,
        (Some(_), None) => Chosen::Local,
        (None, Some(_)) => Chosen::Cluster,
        (Some(local), Some((cluster, _))) if local > cluster => Chosen::Local,
        (Some(local), Some((cluster, _))) if local < cluster => Chosen::Cluster,
        (Some(_), Some((_, flag))) => Chosen::Both(flag),
    }
}

/// Reads words and environment; clap holds what comes from either for typed, so what it refuses is read again as it was typed.
fn matches(command: clap::Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let refused = match command.clone().try_get_matches_from(words) {
        Ok(matches) => return Ok(matches),
        Err(error) => error,
    };
    let mut typed = without_environment(command.clone(), &|_| true);
    match typed.try_get_matches_from_mut(words) {
        Ok(matches) if refused.kind() == ErrorKind::ArgumentConflict => {
            let overruled = overruled(&typed, &matches);
            let command = without_environment(command, &|arg| overruled.contains(arg.get_id()));
            command.try_get_matches_from(words)
        }
        // Its usage shows no flag that was not typed.
        Err(error)
            if error.kind() == refused.kind()
                || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            Err(error)
        }
        Ok(_) | Err(_) => Err(refused),
    }
}

/// The same command, deaf to the environment forms of some flags.
fn without_environment(command: clap::Command, of: &impl Fn(&Arg) -> bool) -> clap::Command {
    let deaf = |arg: Arg| if of(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(deaf).mut_subcommands(|command| without_environment(command, of))
}

/// Flags that cannot stand beside one that was typed.
fn overruled(command: &clap::Command, typed: &ArgMatches) -> BTreeSet<Id> {
    let is_typed =
        |arg: &Arg| typed.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine);
    let mut overruled = BTreeSet::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            overruled.extend(is_typed(arg).then(|| other.get_id().clone()));
            overruled.extend(is_typed(other).then(|| arg.get_id().clone()));
        }
    }
    if let Some((name, typed)) = typed.subcommand() {
        let below = command.find_subcommand(name).map(|command| self::overruled(command, typed));
        overruled.extend(below.into_iter().flatten());
    }
    overruled
}

/// kubectl replaces itself by the plugin and leaves no mark, but it names the plugin by the full path at which it found it
/// in PATH, and shells name a program as it was typed.
fn is_plugin(program: &Path, path: &OsStr) -> bool {
    let mut folders = env::split_paths(path).map(|folder| folder.join(PROGRAM));
    program.is_absolute()
        && program.file_name() == Some(OsStr::new(PROGRAM))
        && folders.any(|candidate| candidate == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn names_in_place_of_manifests_are_seen_on_the_command_line() {
        for (line, expected) in [
            ("order --domain www.example.com", true),
            ("order --domain=www.example.com", true),
            ("order -f web.yaml", false),
            ("order -f -- --domain", false),
        ] {
            assert_eq!(gives_names(line.split(' ').map(str::to_owned)), expected, "{line}");
        }
    }

    /// The environment form of a flag of a command, named by the way to it.
    fn variable(way: &[&str], flag: &str) -> String {
        let mut command = command();
        command.build();
        let mut found = &command;
        for word in way {
            found = found.find_subcommand(word).unwrap();
        }
        let arg = found.get_arguments().find(|arg| arg.get_long() == Some(flag)).unwrap();
        arg.get_env().unwrap().to_string_lossy().into_owned()
    }

    #[test]
    fn every_flag_has_an_environment_form() {
        for (way, flag, expected) in [
            (&[][..], "local", "KUBECTL_ACME_LOCAL"),
            (&["order", "create"], "http01-listen", "KUBECTL_ACME_HTTP01_LISTEN"),
            (&["order", "retry"], "timeout", "KUBECTL_ACME_TIMEOUT"),
            (&["get"], "no-headers", "KUBECTL_ACME_NO_HEADERS"),
            (&["ca"], "listen", "KUBECTL_ACME_CA_LISTEN"),
            // It takes fewer formats than the others.
            (&["delete"], "output", "KUBECTL_ACME_DELETE_OUTPUT"),
        ] {
            assert_eq!(variable(way, flag), expected, "{way:?} --{flag}");
        }
    }

    #[test]
    fn hints_name_the_same_state_and_namespace() {
        for (typed, expected) in [
            ("order -f x.yaml", "kubectl-acme get certs"),
            ("order --local -f x", "kubectl-acme get certs --local"),
            ("order --local=st -n web -f x", "kubectl-acme get certs --local=st -n web"),
            ("order --namespace=web -- -n x", "kubectl-acme get certs --namespace=web"),
            ("order --context a --as=b -f x", "kubectl-acme get certs --context a --as=b"),
        ] {
            let words = typed.split(' ').map(str::to_owned);
            assert_eq!(like_words(PROGRAM, "get certs", words), expected, "{typed}");
        }
    }

    #[test]
    fn a_namespace_is_given_in_each_of_its_forms() {
        for (typed, expected) in [
            ("run -n web", true),
            ("run -nweb", true),
            ("run --namespace web", true),
            ("run --namespace=web", true),
            ("run --local=st --no-headers", false),
            ("run -- -n web", false),
        ] {
            let words = typed.split(' ').map(str::to_owned);
            assert_eq!(names_namespace(words), expected, "{typed}");
        }
    }

    #[test]
    fn lines_for_kubectl_name_the_same_cluster() {
        let line = ["run", "look", "--namespace=web", "--overrides={\"a\": \"it's\"}"];
        for (typed, expected) in [
            ("challenge check a --local=st -n web", "kubectl run look"),
            ("check --context a -n --as --as=b", "kubectl --context a --as=b run look"),
        ] {
            let words = typed.split(' ').map(str::to_owned);
            let expected =
                format!("{expected} --namespace=web '--overrides={{\"a\": \"it'\\''s\"}}'");
            assert_eq!(kubectl_words(&line.map(str::to_owned), words), expected, "{typed}");
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_change_them() {
        for (word, expected) in [
            ("--local=st", "--local=st"),
            ("*=[::1]:80", "'*=[::1]:80'"),
            ("", "''"),
            ("it's", "'it'\\''s'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }

    #[test]
    fn kubectl_starts_plugins_by_the_path_at_which_it_found_them() {
        let path = OsStr::new("/usr/bin:/opt/krew/bin");
        for (program, expected) in [
            ("/opt/krew/bin/kubectl-acme", true),
            ("kubectl-acme", false),
            ("./kubectl-acme", false),
            ("/home/me/target/debug/kubectl-acme", false),
            ("/usr/bin/acme", false),
        ] {
            assert_eq!(is_plugin(Path::new(program), path), expected, "{program}");
        }
    }
}
