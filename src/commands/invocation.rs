//! How this process was called, and command lines that hints print: on the same state or cluster, and on the right namespace.

use std::env;
use std::ffi::{OsStr, OsString};
use std::iter;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use clap::ArgMatches;
use clap::parser::ValueSource;

use crate::model::ObjectName;

/// The plugin's file name.
pub const PROGRAM: &str = "kubectl-acme";
/// What people type who start it by kubectl.
pub const PLUGIN: &str = "kubectl acme";

/// Arguments that mean a cluster, and their flags.
pub const PLACES: [(&str, &str); 4] =
    [("kubeconfig", "kubeconfig"), ("context", "context"), ("user", "as"), ("groups", "as-group")];
/// Those of them that say as whom one works there.
const ACTORS: [&str; 2] = ["user", "groups"];

/// How this process was called.
#[derive(Debug, Default)]
pub struct Invocation {
    program: String,
    words: Vec<String>,
    placing: Vec<Placing>,
    is_given_names: bool,
    reads_stdin: bool,
    listeners: Vec<String>,
    webroot: Option<String>,
    home: OnceLock<String>,
}

/// A flag that says which objects are meant.
#[derive(Debug)]
struct Placing {
    says: Says,
    /// Whether it is on the command line; what is in the environment is there for the next command of ours, too.
    is_typed: bool,
    /// The flag with its value, as a shell reads it.
    text: String,
}

/// What such a flag names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Says {
    State,
    Cluster,
    Actor,
    Namespace,
}

static CURRENT: OnceLock<Invocation> = OnceLock::new();
/// Of tests, which nobody has called.
static NONE: LazyLock<Invocation> =
    LazyLock::new(|| Invocation { program: PROGRAM.to_owned(), ..Invocation::default() });

/// How this process was called.
pub fn current() -> &'static Invocation {
    CURRENT.get().unwrap_or(&NONE)
}

/// Keeps how this process was called.
pub fn remember(words: &[OsString], matches: &ArgMatches) {
    let invocation = Invocation::new(program(), words, matches);
    // It is called once.
    let _first = CURRENT.set(invocation);
}

impl Invocation {
    /// What clap has read from these words, of which the first one is the program.
    fn new(program: &str, words: &[OsString], matches: &ArgMatches) -> Self {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self {
            program: program.to_owned(),
            placing: placing(&words, matches),
            words,
            is_given_names: is_given(matches, "domain"),
            reads_stdin: values(matches, "files").iter().any(|path| path == "-"),
            listeners: values(matches, "http01_listen"),
            webroot: values(matches, "http01_webroot").pop(),
            home: OnceLock::new(),
        }
    }

    /// Learns the namespace of objects for which a command line like this one names none.
    pub fn is_at_home_in(&self, namespace: &str) {
        self.home.get_or_init(|| namespace.to_owned());
    }

    /// This command line, to be typed again.
    pub fn again(&self) -> String {
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        let first = if self.program == PLUGIN { PLUGIN.to_owned() } else { quoted(first) };
        let words = rest.iter().map(|word| quoted(word));
        iter::once(first).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// How to go on with this command, as a hint says it. Standard input is gone.
    pub fn go_on(&self) -> String {
        let again = self.again();
        if self.reads_stdin {
            return format!(
                "go on by giving the same manifests on standard input again: {again} < FILE.yaml"
            );
        }
        format!("go on with: {again}")
    }

    /// Tells whether names are given in place of manifests (`--domain`).
    pub fn is_given_names(&self) -> bool {
        self.is_given_names
    }

    /// Where HTTP-01 is answered (`--http01-listen`), if that is said.
    pub fn listeners(&self) -> &[String] {
        &self.listeners
    }

    /// Below which folder HTTP-01 is answered by files (`--http01-webroot`), if it is.
    pub fn webroot(&self) -> Option<&str> {
        self.webroot.as_deref()
    }

    /// Tells whether the command line itself names a namespace.
    pub fn is_given_namespace(&self) -> bool {
        self.placing.iter().any(|flag| flag.is_typed && flag.says == Says::Namespace)
    }

    /// Another command line on the same objects: the same program, state or cluster, and namespace.
    pub fn like(&self, command: &str) -> String {
        format!("{} {command}{}", self.program, self.placed(|_| true))
    }

    /// The same, on an object of this namespace; of none, where that is empty.
    pub fn like_in(&self, namespace: &str, command: &str) -> String {
        let home = self.home.get().map_or("default", String::as_str);
        if namespace.is_empty() || namespace == home {
            return self.like(command);
        }
        let place = self.placed(|says| says != Says::Namespace);
        format!("{} {command}{place} -n {}", self.program, quoted(namespace))
    }

    /// What makes a fresh certificate.
    pub fn renewal(&self, certificate: &ObjectName) -> String {
        let ObjectName { namespace, name } = certificate;
        self.like_in(namespace, &format!("certificate renew {name}"))
    }

    /// The same as `like` in all namespaces.
    pub fn like_in_all(&self, command: &str) -> String {
        format!("{} {command} -A{}", self.program, self.placed(|says| says != Says::Namespace))
    }

    /// `run` on the same state or cluster; it works in every namespace and takes none.
    pub fn like_run(&self) -> String {
        format!("{} run{}", self.program, self.placed(|says| says != Says::Namespace))
    }

    /// A command line for kubectl in the same cluster, with these words. They name the namespace where there is one.
    pub fn kubectl(&self, words: &[String]) -> String {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("{} {}", self.kubectl_program(), words.join(" "))
    }

    /// How kubectl is called for the same cluster, as the same user; it knows nothing of our environment forms.
    pub fn kubectl_program(&self) -> String {
        self.kubectl_with(|says| matches!(says, Says::Cluster | Says::Actor))
    }

    /// How somebody else calls kubectl for the same cluster.
    pub fn kubectl_of_others(&self) -> String {
        self.kubectl_with(|says| says == Says::Cluster)
    }

    fn kubectl_with(&self, is_wanted: impl Fn(Says) -> bool) -> String {
        let wanted = self.placing.iter().filter(|flag| is_wanted(flag.says));
        ["kubectl"].into_iter().chain(wanted.flat_map(|flag| [" ", &flag.text])).collect()
    }

    /// Those flags on the command line that are wanted, each with a space before it.
    fn placed(&self, is_wanted: impl Fn(Says) -> bool) -> String {
        let wanted = self.placing.iter().filter(|flag| flag.is_typed && is_wanted(flag.says));
        wanted.flat_map(|flag| [" ", &flag.text]).collect()
    }
}

/// Tells whether there is a value of this argument, wherever it comes from.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let is_below = |(_, below): (&str, &ArgMatches)| is_given(below, id);
    matches!(matches.try_contains_id(id), Ok(true)) || matches.subcommand().is_some_and(is_below)
}

/// The values of this argument, wherever they come from.
fn values(matches: &ArgMatches, id: &str) -> Vec<String> {
    let found = matches.try_get_raw(id).ok().flatten();
    let here = found.into_iter().flatten().map(|value| value.to_string_lossy().into_owned());
    let below = matches.subcommand().map(|(_, below)| values(below, id));
    here.chain(below.into_iter().flatten()).collect()
}

/// The flags that say which objects are meant, in the order and the form in which they were typed; then environment forms.
fn placing(words: &[String], matches: &ArgMatches) -> Vec<Placing> {
    let flags = iter::once(("local", "local", Says::State))
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
            let text = way.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
            found.push((at, Placing { says, is_typed, text }));
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

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// How people start this program.
pub fn program() -> &'static str {
    let program = env::args_os().next().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    if is_plugin(Path::new(&program), &path) { PLUGIN } else { PROGRAM }
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
    use crate::cli;

    /// How a process was called with this line.
    fn called(line: &str) -> Invocation {
        read(cli::command(), line)
    }

    fn read(command: clap::Command, line: &str) -> Invocation {
        let words: Vec<_> = iter::once(PROGRAM).chain(line.split(' ')).map(Into::into).collect();
        let matches = command.try_get_matches_from(&words).unwrap();
        Invocation::new(PROGRAM, &words, &matches)
    }

    #[test]
    fn names_in_place_of_manifests_are_seen_wherever_they_come_from() {
        for (line, expected) in [
            ("order --domain www.example.com", true),
            ("order create --domain=www.example.com", true),
            ("order -f web.yaml", false),
            ("get -- --domain", false),
            ("get certs", false),
        ] {
            assert_eq!(called(line).is_given_names(), expected, "{line}");
        }
        // Any variable that is there stands for its environment form.
        let of_order = |order: clap::Command| order.mut_arg("domain", |domain| domain.env("PATH"));
        let command = cli::command().mut_subcommand("order", of_order);
        assert!(read(command, "order --local").is_given_names());
    }

    #[test]
    fn hints_name_the_same_state_and_namespace() {
        for (typed, expected) in [
            ("order -f x.yaml", "kubectl-acme get certs"),
            ("order --local -f x", "kubectl-acme get certs --local"),
            ("order --local=st -n web -f x", "kubectl-acme get certs --local=st -n web"),
            ("order -n web --local=st -f x", "kubectl-acme get certs -n web --local=st"),
            ("order --namespace=web -f x", "kubectl-acme get certs --namespace=web"),
            ("order --namespace web -f x", "kubectl-acme get certs --namespace web"),
            ("order -n=web -f x", "kubectl-acme get certs -n web"),
            ("order -nweb -f x", "kubectl-acme get certs -n web"),
            ("get -wn web certs", "kubectl-acme get certs -n web"),
            ("get -wnweb certs --local", "kubectl-acme get certs --local -n web"),
            ("order --context a --as=b -f x", "kubectl-acme get certs --context a --as=b"),
            ("get --as-group a --as-group=b x", "kubectl-acme get certs --as-group a --as-group=b"),
            ("get -- -n web", "kubectl-acme get certs"),
        ] {
            assert_eq!(called(typed).like("get certs"), expected, "{typed}");
        }
    }

    #[test]
    fn hints_about_an_object_name_its_namespace_where_it_is_not_the_usual_one() {
        for (typed, home, namespace, expected) in [
            ("get x --local", "default", "default", "kubectl-acme describe x --local"),
            ("get x --local", "default", "web", "kubectl-acme describe x --local -n web"),
            ("get x -nweb", "web", "web", "kubectl-acme describe x -n web"),
            ("get x -nweb --local", "web", "shop", "kubectl-acme describe x --local -n shop"),
            ("get x", "team", "default", "kubectl-acme describe x -n default"),
            ("get x -n web", "web", "", "kubectl-acme describe x -n web"),
        ] {
            let invocation = called(typed);
            invocation.is_at_home_in(home);
            assert_eq!(invocation.like_in(namespace, "describe x"), expected, "{typed}");
        }
    }

    #[test]
    fn commands_for_all_namespaces_name_none() {
        let invocation = called("get -wnweb certs --local=st");
        assert_eq!(invocation.like_in_all("get certs"), "kubectl-acme get certs -A --local=st");
        assert_eq!(invocation.like_run(), "kubectl-acme run --local=st");
    }

    #[test]
    fn a_namespace_is_given_in_each_of_its_forms() {
        for (typed, expected) in [
            ("run -n web", true),
            ("run -nweb", true),
            ("get -Anweb certs", true),
            ("run --namespace web", true),
            ("run --namespace=web", true),
            ("run --local=st", false),
            ("get -- -n web", false),
        ] {
            assert_eq!(called(typed).is_given_namespace(), expected, "{typed}");
        }
    }

    #[test]
    fn lines_for_kubectl_name_the_same_cluster() {
        let line = ["run", "look", "--namespace=web", "--overrides={\"a\": \"it's\"}"];
        for (typed, expected) in [
            ("challenge check a --local=st -n web", "kubectl run look"),
            ("challenge check a --context a -n x --as=b", "kubectl --context a --as=b run look"),
        ] {
            let expected =
                format!("{expected} --namespace=web '--overrides={{\"a\": \"it'\\''s\"}}'");
            assert_eq!(called(typed).kubectl(&line.map(str::to_owned)), expected, "{typed}");
        }
    }

    #[test]
    fn a_command_line_is_typed_again_as_it_was() {
        let again = called("order -nweb --domain *.example.com").again();
        assert_eq!(again, "kubectl-acme order -nweb --domain '*.example.com'");
    }

    #[test]
    fn nobody_is_told_to_type_a_command_that_waits_for_standard_input() {
        for (line, expected) in [
            ("order -f a.yaml", "go on with: kubectl-acme order -f a.yaml"),
            (
                "order -f a.yaml,- --local",
                "go on by giving the same manifests on standard input again: kubectl-acme order -f a.yaml,- --local < FILE.yaml",
            ),
            (
                "order create -f -",
                "go on by giving the same manifests on standard input again: kubectl-acme order create -f - < FILE.yaml",
            ),
        ] {
            assert_eq!(called(line).go_on(), expected);
        }
    }

    #[test]
    fn whoever_gives_permissions_is_somebody_else_in_the_same_cluster() {
        for (line, own, others) in [
            ("order -f x", "kubectl", "kubectl"),
            (
                "get x --context a --as=b --as-group c --kubeconfig k",
                "kubectl --context a --as=b --as-group c --kubeconfig k",
                "kubectl --context a --kubeconfig k",
            ),
        ] {
            let invocation = called(line);
            assert_eq!(invocation.kubectl_program(), own);
            assert_eq!(invocation.kubectl_of_others(), others);
        }
    }

    #[test]
    fn kubectl_does_not_read_our_environment_forms() {
        // Any variable that is there stands for its environment form.
        let command = cli::command().mut_arg("context", |context| context.env("PATH"));
        let invocation = read(command, "get certs --as b");
        let context = quoted(&env::var("PATH").unwrap());
        assert_eq!(invocation.kubectl_program(), format!("kubectl --as b --context {context}"));
        assert_eq!(invocation.like("get certs"), "kubectl-acme get certs --as b");
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
