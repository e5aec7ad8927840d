//! The command tree and the environment forms of its flags; each command's own flags stand beside its behaviour.
//!
//! With `--local` a typed flag about a cluster, known by its heading in the help, is refused: the user may have meant
//! the flag, so ignoring the flag would be wrong. Variables are never refused: the environment holds for many commands.

pub mod completion;
mod config;
mod loudness;
pub mod pages;
mod refusal;
#[cfg(test)]
mod tests;
mod tips;
mod variables;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;

use clap::builder::{BoolishValueParser, Resettable};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{
    Arg, ArgAction, ArgMatches, CommandFactory as _, FromArgMatches as _, Id, Parser, Subcommand,
};

use self::config::Config;
use crate::commands::diagnose::findings_flags::FindingsFormat;
use crate::commands::tree as tree_command;
use crate::commands::{
    account, ca, certificate, challenge, crds, delete, describe, diagnose, explain, get, order,
    probe, run, schedule, solve, status, timeline, version, wait, watch,
};
use crate::context::flags::global::GlobalArgs;
use crate::context::flags::report::{ReportChoice, ReportPlace};
use crate::context::flags::{connection, lease};
use crate::hints::arguments::CLUSTER_ARGUMENTS;
use crate::hints::invocation::{self, PLUGIN, variable};
use crate::input::MANIFEST_FLAGS;
use crate::input::quick::{KEY_FLAGS, NAME_FLAGS};
use crate::issue::flags::solver_pods;
use crate::print::format::Format;

/// ACME certificates from manifest to Secret, with nothing hidden
///
/// Reads cert-manager manifests (Issuer, ClusterIssuer, Certificate), works on Orders and Challenges in a cluster or on
/// this machine, shows what every challenge waits for, and explains why a challenge is stuck.
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

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Issue certificates from manifests, and manage their orders
    // The short help of `order` has no line left; the short help of `order create` shows the flag.
    #[command(alias = "orders", mut_arg("report", |report| report.hide_short_help(true)))]
    Order(Box<order::OrderArgs>),
    /// Show and check challenges, put up and take down their answers
    #[command(alias = "challenges")]
    Challenge(challenge::ChallengeArgs),
    /// Manage issued certificates
    #[command(aliases = ["cert", "certs", "certificates"])]
    Certificate(certificate::CertificateArgs),
    /// Manage the accounts at CAs, each named by its Issuer
    #[command(alias = "accounts")]
    Account(account::AccountArgs),
    /// Show one object in full, with its events
    Describe(describe::DescribeArgs),
    /// Find out why a certificate is not issued, and how to fix it
    Diagnose(Box<diagnose::DiagnoseArgs>),
    /// Show every event of a Certificate, its Orders and Challenges, in order
    Timeline(timeline::TimelineArgs),
    /// Show the objects below a Certificate, and what each of them waits for
    Tree(tree_command::TreeArgs),
    /// Wait until objects reach a state, or can no longer reach it
    Wait(wait::WaitArgs),
    /// Show all objects in brief, the running controller, and what is stuck
    Status(Box<status::StatusArgs>),
    /// Show which challenges run, which wait, and for what
    Schedule(schedule::ScheduleArgs),
    /// Show changes as they happen
    Watch(watch::WatchArgs),
    /// Explain why issuance does not go on: causes by id, or by symptom
    Explain(explain::ExplainArgs),
    /// List objects
    Get(get::GetArgs),
    /// Delete objects on this machine; in a cluster, use kubectl
    Delete(delete::DeleteArgs),
    /// Run the controllers until interrupted
    Run(Box<run::RunArgs>),
    /// Run a small ACME server that no client trusts, for rehearsals and tests
    Ca(Box<ca::CaArgs>),
    /// Print small definitions of the six kinds, for a cluster without them
    Crds(crds::CrdsArgs),
    /// Print the completion script of a shell
    Completion(completion::CompletionArgs),
    /// Answer one HTTP-01 challenge, as a solver Pod does
    #[command(hide = true)]
    Solve(solve::SolveArgs),
    /// Request a URL once as the CA would, as a probe Pod does
    #[command(hide = true)]
    Probe(probe::ProbeArgs),
    /// Print the version
    Version(version::VersionArgs),
}

/// Gives each flag an environment form named after the flag; a flag whose name has several meanings sets its own variable.
fn with_environment(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        // A switch takes no value, so its variable may say 1 or yes as well as true.
        let arg = match arg.get_action() {
            ArgAction::SetTrue => arg.value_parser(BoolishValueParser::new()),
            _ => arg,
        };
        let name = arg.get_long().filter(|long| !["help", "version"].contains(long));
        let variable = name.map(variable);
        match variable {
            Some(variable) if is_off(&variable) => arg,
            Some(variable) if arg.get_env().is_none() => arg.env(variable).hide_env(true),
            Some(_) | None => arg.hide_env_values(true),
        }
    });
    command.mut_subcommands(with_environment)
}

/// Returns whether a variable counts as not set: empty, or `KUBECTL_ACME_LOCAL` with a word for no.
fn is_off(variable: &str) -> bool {
    let Ok(value) = env::var(variable) else { return false };
    let says_no = ["0", "false", "no", "off"].contains(&value.to_ascii_lowercase().as_str());
    value.is_empty() || (variable == LOCAL_VARIABLE && says_no)
}

/// The environment form of `--local`.
const LOCAL_VARIABLE: &str = "KUBECTL_ACME_LOCAL";

/// Builds the command tree; usage says `kubectl acme` if kubectl started this program.
pub fn command() -> clap::Command {
    let command = pages::with_examples(with_environment(Cli::command()), "", invocation::program());
    if invocation::program() == PLUGIN { command.bin_name(PLUGIN) } else { command }
}

/// Reads this process's command line; on an error or a request for help, prints the text and ends the process.
pub fn parse() -> Cli {
    let words: Vec<_> = env::args_os().collect();
    read(&words).unwrap_or_else(|error| {
        refusal::print_document(&error, &words);
        error.exit()
    })
}

/// Reads a command line with the environment and the configuration file.
///
/// # Errors
/// Fails with usage if the line is wrong, and with help or version if the line asks for either.
fn read(words: &[OsString]) -> Result<Cli, clap::Error> {
    let refused = |kind, why: String| command().error(kind, why);
    let config = Config::read(words, &command());
    let config = config.map_err(|why| refused(ErrorKind::InvalidValue, why))?;
    let configured = config.applied(command());
    let mut matches = matches(configured.clone(), words)
        .map_err(|error| tips::mended(error, &configured, words))?;
    if let Some(config) = config.without_overruled(&configured, &matches) {
        matches = self::matches(config.applied(command()), words)?;
    }
    invocation::remember(words, &matches, command);
    let mut cli = Cli::from_arg_matches(&matches)?;
    let conflict = |message| refused(ErrorKind::ArgumentConflict, message);
    loudness::settle(&mut cli.global.log, &matches).map_err(conflict)?;
    cli.global.format = format_asked_for(&matches);
    cli.global.reports = reports_asked_for(&matches);
    match chosen(&matches) {
        ChosenPlace::Local => {
            if let Some(flag) = idle(&command(), &matches) {
                return Err(conflict(idle_message(&flag, matches.value_source("local"))));
            }
            cli.global.cluster = cli.global.cluster.without_place();
        }
        ChosenPlace::Cluster => cli.global.local = None,
        ChosenPlace::Both(flag) => {
            let current = invocation::current();
            let (local, flag) = (current.named("local"), current.named(flag));
            return Err(conflict(format!(
                "{local} cannot be used with {flag}: one names this machine, the other a cluster"
            )));
        }
        ChosenPlace::Either => {}
    }
    describe_misplaced(&matches).map_or(Ok(cli), |message| Err(conflict(message)))
}

/// Returns the format that the command is to write.
fn format_asked_for(matches: &ArgMatches) -> Option<Format> {
    match matches.subcommand() {
        Some((_, below)) => format_asked_for(below),
        None => match findings_format(matches) {
            Some(FindingsFormat::Document(format)) => Some(format),
            Some(FindingsFormat::Report(_)) => None,
            None => matches.try_get_one::<Format>("output").ok().flatten().cloned(),
        },
    }
}

/// Returns the format of a command that writes findings.
fn findings_format(matches: &ArgMatches) -> Option<FindingsFormat> {
    matches.try_get_one::<FindingsFormat>("output").ok().flatten().cloned()
}

/// Returns the reports that the command is to make; `None` if the command has no `--report`.
fn reports_asked_for(matches: &ArgMatches) -> Option<Vec<ReportChoice>> {
    if let Some((_, below)) = matches.subcommand() {
        return reports_asked_for(below);
    }
    let asked = matches.try_get_many::<ReportChoice>("report").ok()?;
    // `-o` with the format of a report asks for that report on standard output.
    let format = match findings_format(matches) {
        Some(FindingsFormat::Report(form)) => Some(ReportChoice::Wanted(form, ReportPlace::Stdout)),
        Some(FindingsFormat::Document(_)) | None => None,
    };
    Some(asked.into_iter().flatten().cloned().chain(format).collect())
}

/// Place of the resources, as far as the command line names a place.
#[derive(Debug, PartialEq, Eq)]
enum ChosenPlace {
    /// On this machine.
    Local,
    /// In a cluster.
    Cluster,
    /// Both places, by `--local` and this flag.
    Both(&'static str),
    /// Neither place is named.
    Either,
}

/// Returns the place that the flags name; a typed flag beats an environment form.
fn chosen(matches: &ArgMatches) -> ChosenPlace {
    let given = |id: &str| matches.value_source(id);
    let strongest =
        CLUSTER_ARGUMENTS.into_iter().filter_map(|(id, flag)| Some((given(id)?, flag))).max();
    match (given("local"), strongest) {
        (None, None) => ChosenPlace::Either,
        (Some(_), None) => ChosenPlace::Local,
        (None, Some(_)) => ChosenPlace::Cluster,
        (Some(local), Some((cluster, _))) if local > cluster => ChosenPlace::Local,
        (Some(local), Some((cluster, _))) if local < cluster => ChosenPlace::Cluster,
        (Some(_), Some((_, flag))) => ChosenPlace::Both(flag),
    }
}

/// Returns a typed flag that means nothing on this machine, if there is one; variables do not
/// count, since they may be meant for other commands.
fn idle(command: &clap::Command, matches: &ArgMatches) -> Option<String> {
    let is_typed = |arg: &&Arg| {
        let heading = arg.get_help_heading();
        let of_cluster = [connection::HEADING, solver_pods::HEADING, lease::HEADING];
        heading.is_some_and(|heading| of_cluster.contains(&heading))
            && matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let here = command.get_arguments().find(is_typed).and_then(Arg::get_long).map(str::to_owned);
    let below = || {
        let (name, matches) = matches.subcommand()?;
        idle(command.find_subcommand(name)?, matches)
    };
    here.or_else(below)
}

/// Describes a typed flag about names beside manifests, or the other way round; `None` if there is no such flag.
fn describe_misplaced(matches: &ArgMatches) -> Option<String> {
    if let Some((_, below)) = matches.subcommand() {
        return describe_misplaced(below);
    }
    let is_given = |id: &str| matches!(matches.try_contains_id(id), Ok(true));
    let is_typed =
        |id: &str| is_given(id) && matches.value_source(id) == Some(ValueSource::CommandLine);
    let rules: &[_] = match (is_given("files"), is_given("domain"), is_given("csr")) {
        (true, false, false) => &[("-f", "--domain", &NAME_FLAGS[..])],
        (false, true, false) => &[("--domain", "-f", &MANIFEST_FLAGS[..])],
        (false, false, true) => {
            &[("--csr", "-f", &MANIFEST_FLAGS[..]), ("--csr", "--domain", &KEY_FLAGS[..])]
        }
        _ => return None,
    };
    rules.iter().find_map(|(given, lacking, flags)| {
        let (flag, why) = flags.iter().find(|(flag, _)| is_typed(&flag.replace('-', "_")))?;
        Some(format!("--{flag} cannot be used with {given}, only with {lacking}: {why}"))
    })
}

fn idle_message(flag: &str, local: Option<ValueSource>) -> String {
    let why = format!("cannot be used with --{flag}, which is about a cluster: leave --{flag} out");
    match local {
        Some(ValueSource::EnvVariable) => {
            format!("{LOCAL_VARIABLE} {why}, or set {LOCAL_VARIABLE}=0")
        }
        _ => format!("--local {why}"),
    }
}

/// Reads words and environment. clap takes variables for typed flags, so a refused line is read again without variables.
fn matches(command: clap::Command, words: &[OsString]) -> Result<ArgMatches, clap::Error> {
    let refused = match command.clone().try_get_matches_from(words) {
        Ok(matches) => return Ok(matches),
        Err(error) => error,
    };
    let mut typed = without_environment(command.clone(), &|_| true);
    match typed.try_get_matches_from_mut(words) {
        Ok(matches) if refused.kind() == ErrorKind::ArgumentConflict => {
            let overruled = find_overruled(&typed, &matches);
            let heard = without_environment(command, &|arg| overruled.contains(arg.get_id()));
            let read = heard.clone().try_get_matches_from(words);
            read.map_err(|error| variables::named(error, &heard, words))
        }
        // The usage in this error shows only typed flags.
        Err(error)
            if error.kind() == refused.kind()
                || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand =>
        {
            Err(error)
        }
        Ok(_) | Err(_) => Err(variables::named(refused, &command, words)),
    }
}

/// Removes the environment forms of the flags that `of` selects.
fn without_environment(command: clap::Command, of: &impl Fn(&Arg) -> bool) -> clap::Command {
    let deaf = |arg: Arg| if of(&arg) { arg.env(Resettable::Reset) } else { arg };
    command.mut_args(deaf).mut_subcommands(|command| without_environment(command, of))
}

/// Returns the flags that conflict with a typed flag.
fn find_overruled(command: &clap::Command, typed: &ArgMatches) -> BTreeSet<Id> {
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
        let below = command.find_subcommand(name).map(|command| find_overruled(command, typed));
        overruled.extend(below.into_iter().flatten());
    }
    overruled
}

#[cfg(test)]
mod tree {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn flags_about_a_cluster_are_found_where_they_are_typed() {
        for (line, expected) in [
            ("order -f a --local", None),
            ("order -f a --local --driver=cert-manager", Some("driver")),
            ("--request-timeout 5s get certs --local", Some("request-timeout")),
            ("run --local --leader-election-namespace=web", Some("leader-election-namespace")),
            (
                "order create -f a --local --acme-http01-solver-image=b",
                Some("acme-http01-solver-image"),
            ),
            (
                "run --local --leader-election-lease-duration=30s",
                Some("leader-election-lease-duration"),
            ),
            ("order -f a --local --cluster-resource-namespace=web", None),
        ] {
            let words = std::iter::once("kubectl-acme").chain(line.split(' '));
            let matches = command().try_get_matches_from(words).unwrap();
            assert_eq!(idle(&command(), &matches).as_deref(), expected, "{line}");
        }
        // Any variable that is there stands for its environment form.
        let heard = command().mut_arg("kubeconfig", |flag| flag.env("PATH"));
        let matches = heard.clone().try_get_matches_from(["kubectl-acme", "version"]).unwrap();
        assert_eq!(idle(&heard, &matches), None);
    }

    #[test]
    fn a_flag_that_would_mean_nothing_beside_manifests_is_told() {
        let contact = "--email cannot be used with -f, only with --domain: an Issuer's manifest names its contact, spec.acme.email";
        let ca = "--server cannot be used with -f, only with --domain: an Issuer's manifest names its CA, spec.acme.server";
        let folders =
            "--recursive cannot be used with --domain, only with -f: there is no folder to be read";
        for (line, expected) in [
            ("order -f a", None),
            ("order -f a -R", None),
            ("order --domain a.example --server letsencrypt --email a@b.example", None),
            ("order -f a --server letsencrypt", Some(ca)),
            ("order create -f a --email=a@b.example", Some(contact)),
            ("order --domain a.example -R", Some(folders)),
            ("get certs", None),
        ] {
            let words = std::iter::once("kubectl-acme").chain(line.split(' '));
            let matches = command().try_get_matches_from(words).unwrap();
            assert_eq!(describe_misplaced(&matches).as_deref(), expected, "{line}");
        }
        // Any variable that is there stands for its environment form.
        let deaf = |order: clap::Command| order.mut_arg("server", |server| server.env("PATH"));
        let heard = command().mut_subcommand("order", deaf);
        let matches = heard.try_get_matches_from(["kubectl-acme", "order", "-f", "a"]).unwrap();
        assert_eq!(describe_misplaced(&matches), None);
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
            (&[][..], "local", LOCAL_VARIABLE),
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
    fn a_command_that_looks_is_given_the_flags_that_change_what_is_seen() {
        let line = |typed: &str, line: &str| {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let matches = command().try_get_matches_from(&words).unwrap();
            let called = invocation::Invocation::new(invocation::PROGRAM, &words, &matches);
            called.of_tree(command).like(line)
        };
        let order = "kubectl-acme order --local=s1 --domain www.example.com --http01-listen 127.0.0.1:8089,[::1]:8089 \
                     --http01-resolve *=127.0.0.1:80 --dns 127.0.0.1:53 --dns01-recursive-nameservers-only --timeout 5s";
        let seen = "--http01-listen=127.0.0.1:8089 '--http01-listen=[::1]:8089' '--http01-resolve=*=127.0.0.1:80' \
                    --dns=127.0.0.1:53 --dns01-recursive-nameservers-only";
        assert_eq!(
            line(order, "diagnose certificate/www"),
            format!("kubectl-acme diagnose certificate/www --local=s1 {seen}")
        );
        // A command that does not look is not given them, nor one that names them itself.
        assert_eq!(line(order, "get orders"), "kubectl-acme get orders --local=s1");
        let own = line(order, "diagnose www --dns=192.0.2.53:53");
        assert!(!own.contains("127.0.0.1:53"), "{own}");
        let files = "kubectl-acme order --local=s1 -f x --http01-webroot /srv/www";
        assert_eq!(
            line(files, "diagnose certificate/www"),
            "kubectl-acme diagnose certificate/www --local=s1 --http01-webroot=/srv/www"
        );
    }
}
