//! How this process was called, and command lines that hints print: on the same state or cluster, and on the right
//! namespace.
//!
//! The command line is read once, by clap; every command line in a hint is made here from that reading.

use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::iter;
use std::path::Path;
use std::sync::{LazyLock, OnceLock};

use clap::ArgMatches;

use super::arguments::{PLACES, Placing, Says, is_given, looks, of_environment, placing, values};
use crate::model::ObjectName;

/// The plugin's file name.
pub const PROGRAM: &str = "kubectl-acme";
/// What people type who start it by kubectl.
pub const PLUGIN: &str = "kubectl acme";

/// What the names of environment forms begin with.
const VARIABLES: &str = "KUBECTL_ACME_";

/// How this process was called.
#[derive(Debug, Default)]
pub struct Invocation {
    program: String,
    words: Vec<String>,
    placing: Vec<Placing>,
    /// The command tree; none in tests, which nobody has called.
    tree: Option<fn() -> clap::Command>,
    is_given_names: bool,
    reads_stdin: bool,
    listeners: Vec<String>,
    webroot: Option<String>,
    dns: Option<String>,
    /// Arguments on the command line that change what is seen of an answer, each with its flag and values.
    looks: Vec<(&'static str, Vec<String>)>,
    /// Arguments that the environment gives.
    of_environment: BTreeSet<String>,
    home: OnceLock<String>,
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
pub fn remember(words: &[OsString], matches: &ArgMatches, tree: fn() -> clap::Command) {
    let invocation = Invocation::new(program(), words, matches).of_tree(tree);
    // It is called once.
    let _first = CURRENT.set(invocation);
}

impl Invocation {
    /// What clap has read from these words, of which the first one is the program.
    pub(crate) fn new(program: &str, words: &[OsString], matches: &ArgMatches) -> Self {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Self {
            program: program.to_owned(),
            placing: placing(&words, matches),
            words,
            tree: None,
            is_given_names: is_given(matches, "domain") || is_given(matches, "csr"),
            reads_stdin: ["files", "csr"]
                .iter()
                .any(|it| values(matches, it).contains(&"-".to_owned())),
            listeners: values(matches, "http01_listen"),
            webroot: values(matches, "http01_webroot").pop(),
            dns: values(matches, "dns").pop(),
            looks: looks(matches),
            of_environment: of_environment(matches),
            home: OnceLock::new(),
        }
    }

    /// The same with the command tree that has read it.
    #[must_use]
    pub(crate) fn of_tree(self, tree: fn() -> clap::Command) -> Self {
        Self { tree: Some(tree), ..self }
    }

    /// Learns the namespace of objects for which a command line like this one names none.
    pub fn is_at_home_in(&self, namespace: &str) {
        self.home.get_or_init(|| namespace.to_owned());
    }

    /// This command line, to be typed again.
    pub fn again(&self) -> String {
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        self.typed(first, rest.iter())
    }

    /// This command line without a flag, to be typed.
    pub fn again_without(&self, flag: &str) -> String {
        let is_flag = |word: &String| {
            word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        self.typed(first, rest.iter().filter(|word| !is_flag(word)))
    }

    /// This command line, to be typed to see the manifests that it stands for.
    pub fn as_manifests(&self) -> String {
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        let added = ["--dry-run=client", "-o", "yaml"].map(str::to_owned);
        let mut words = Vec::new();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                // Its value is the next word.
                "-o" | "--output" => drop(rest.next()),
                joined if joined.starts_with("-o") || joined.starts_with("--output=") => {}
                _ => words.push(word),
            }
        }
        self.typed(first, words.into_iter().chain(&added))
    }

    fn typed<'a>(&self, first: &str, words: impl Iterator<Item = &'a String>) -> String {
        let first = if self.program == PLUGIN { PLUGIN.to_owned() } else { quoted(first) };
        let line: Vec<_> = iter::once(first).chain(words.map(|word| quoted(word))).collect();
        self.checked(line.join(" "))
    }

    /// A command line that this program takes: where tests run, one that it would refuse is a fault of whoever made it.
    fn checked(&self, line: String) -> String {
        if cfg!(debug_assertions)
            && let Some(tree) = self.tree
        {
            let read = tree().no_binary_name(true).try_get_matches_from(unquoted(&line));
            let refused = read.err().filter(clap::Error::use_stderr);
            debug_assert!(refused.is_none(), "a hint would be refused: {line}: {refused:?}");
        }
        line
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

    /// Tells whether the environment gives a flag, and not the words of the command.
    pub fn is_of_environment(&self, flag: &str) -> bool {
        self.of_environment.contains(&flag.replace('-', "_"))
    }

    /// Tells whether names are given in place of manifests (`--domain`, `--csr`).
    pub fn is_given_names(&self) -> bool {
        self.is_given_names
    }

    /// The word behind a flag as it was typed.
    pub fn behind(&self, flag: &str) -> Option<&str> {
        let pair = self.words.windows(2).find(|pair| pair[0] == flag)?;
        Some(&pair[1])
    }

    /// The flag as it was meant, where this word follows a `--local` without a value.
    pub fn with_folder(&self, word: &str) -> Option<String> {
        (self.behind("--local") == Some(word)).then(|| quoted(&format!("--local={word}")))
    }

    /// Where HTTP-01 is answered (`--http01-listen`), if that is said.
    pub fn listeners(&self) -> &[String] {
        &self.listeners
    }

    /// The resolver of every look-up (`--dns`), if one is named.
    pub fn dns(&self) -> Option<&str> {
        self.dns.as_deref()
    }

    /// Below which folder HTTP-01 is answered by files (`--http01-webroot`), if it is.
    pub fn webroot(&self) -> Option<&str> {
        self.webroot.as_deref()
    }

    /// A flag as whoever gave it finds it: by its variable, where that gives it.
    pub fn named(&self, flag: &str) -> String {
        let id = PLACES.iter().find(|(_, name)| *name == flag).map(|(id, _)| (*id).to_owned());
        let id = id.unwrap_or_else(|| flag.replace('-', "_"));
        if self.of_environment.contains(&id) {
            return format!("{} (--{flag})", variable(flag));
        }
        format!("--{flag}")
    }

    /// Tells whether the command line itself names a namespace.
    pub fn is_given_namespace(&self) -> bool {
        self.placing.iter().any(|flag| flag.is_typed && flag.says == Says::Namespace)
    }

    /// Tells whether this command line works on a state folder.
    pub fn is_local(&self) -> bool {
        self.placing.iter().any(|flag| flag.says == Says::State)
    }

    /// Another command line on the same objects: the same program, state or cluster, and namespace.
    pub fn like(&self, command: &str) -> String {
        let (place, looks) = (self.placed(|_| true), self.looks_of(command));
        self.checked(format!("{} {command}{place}{looks}", self.program))
    }

    /// The same where the whole is a line that this program takes; else as it stands, for one that names its place itself.
    pub fn like_where_taken(&self, command: &str) -> String {
        let bare = format!("{} {command}", self.program);
        let placed = format!("{bare}{}{}", self.placed(|_| true), self.looks_of(command));
        let is_taken = |line: &str| {
            let tree = self.tree.map(|tree| tree().no_binary_name(true));
            tree.is_some_and(|tree| tree.try_get_matches_from(unquoted(line)).is_ok())
        };
        if is_taken(&placed) { placed } else { bare }
    }

    /// The same, on an object of this namespace; of none, where that is empty.
    pub fn like_in(&self, namespace: &str, command: &str) -> String {
        let home = self.home.get().map_or("default", String::as_str);
        if namespace.is_empty() || namespace == home {
            return self.like(command);
        }
        let place = self.placed(|says| says != Says::Namespace);
        let looks = self.looks_of(command);
        self.checked(format!("{} {command}{place} -n {}{looks}", self.program, quoted(namespace)))
    }

    /// What makes a fresh certificate.
    pub fn renewal(&self, certificate: &ObjectName) -> String {
        let ObjectName { namespace, name } = certificate;
        self.like_in(namespace, &format!("certificate renew {name}"))
    }

    /// The same as `like` in all namespaces.
    pub fn like_in_all(&self, command: &str) -> String {
        let place = self.placed(|says| says != Says::Namespace);
        let looks = self.looks_of(command);
        self.checked(format!("{} {command} -A{place}{looks}", self.program))
    }

    /// `run` on the same state or cluster; it works in every namespace and takes none.
    pub fn like_run(&self) -> String {
        let place = self.placed(|says| says != Says::Namespace);
        self.checked(format!("{} run{place}{}", self.program, self.looks_of("run")))
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
        let flags = wanted.map(|flag| " ".to_owned() + &line(&flag.words));
        iter::once("kubectl".to_owned()).chain(flags).collect()
    }

    /// The flags of this command line that change what another command sees, as far as that one takes them and does not name them
    /// itself; each with a space before it.
    fn looks_of(&self, command: &str) -> String {
        let Some(tree) = self.tree.filter(|_| !self.looks.is_empty()) else { return String::new() };
        let tree = tree();
        let mut called = &tree;
        for word in command.split(' ') {
            let Some(below) = called.find_subcommand(word) else { break };
            called = below;
        }
        let given = unquoted(&format!("x {command}"));
        let is_taken = |(id, words): &&(&str, Vec<String>)| {
            let flag = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
            let is_given = words.iter().any(|it| given.iter().any(|word| flag(word) == flag(it)));
            called.get_arguments().any(|argument| argument.get_id() == *id) && !is_given
        };
        let taken = self.looks.iter().filter(is_taken);
        taken.map(|(_, words)| " ".to_owned() + &line(words)).collect()
    }

    /// Those flags on the command line that are wanted, each with a space before it.
    fn placed(&self, is_wanted: impl Fn(Says) -> bool) -> String {
        let wanted = self.placing.iter().filter(|flag| flag.is_typed && is_wanted(flag.says));
        wanted.map(|flag| " ".to_owned() + &line(&flag.words)).collect()
    }
}

/// The usual environment form of a flag.
pub fn variable(flag: &str) -> String {
    VARIABLES.to_owned() + &flag.replace('-', "_").to_uppercase()
}

/// Words as a shell reads them back.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell reads it back.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// The words of a command line behind its program, as a shell reads them.
fn unquoted(line: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        let Some(word) = words.last_mut() else { break };
        match letter {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => word.extend(letters.next()),
            ' ' if !is_quoted => words.push(String::new()),
            _ => word.push(letter),
        }
    }
    let is_plugin = words.iter().map(String::as_str).take(2).eq(PLUGIN.split(' '));
    words.split_off(if is_plugin { 2 } else { 1 }.min(words.len()))
}

/// How people start this program.
pub fn program() -> &'static str {
    let program = env::args_os().next().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    if is_plugin(Path::new(&program), &path) { PLUGIN } else { PROGRAM }
}

/// kubectl replaces itself by the plugin and leaves no mark, but it names the plugin by the full path at which it found it
/// in PATH, and shells name a program as it was typed.
pub(crate) fn is_plugin(program: &Path, path: &OsStr) -> bool {
    let mut folders = env::split_paths(path).map(|folder| folder.join(PROGRAM));
    program.is_absolute()
        && program.file_name() == Some(OsStr::new(PROGRAM))
        && folders.any(|candidate| candidate == program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_quoted_is_read_back() {
        let words = ["order", "--domain", "*.example.com", "it's", "a b", "", "--local=st/ate"];
        let line: Vec<_> = words.iter().map(|word| quoted(word)).collect();
        for program in [PROGRAM, PLUGIN] {
            assert_eq!(unquoted(&format!("{program} {}", line.join(" "))), words);
        }
    }
}
