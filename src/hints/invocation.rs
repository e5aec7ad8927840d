//! Command line of this process, and the command lines that hints print for the same state or cluster and the right
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

use super::arguments::{
    CLUSTER_ARGUMENTS, PlaceFlag, PlaceSubject, is_given, looks, of_environment, placing, values,
};
use crate::model::ObjectName;

/// The plugin's file name.
pub const PROGRAM: &str = "kubectl-acme";
/// Words that start the plugin by kubectl.
pub const PLUGIN: &str = "kubectl acme";

/// Prefix of the variables that are environment forms of flags.
const VARIABLE_PREFIX: &str = "KUBECTL_ACME_";

/// Command line of this process, as clap has read it.
#[derive(Debug, Default)]
pub struct Invocation {
    program: String,
    words: Vec<String>,
    placing: Vec<PlaceFlag>,
    /// Command tree; `None` in tests, which have no command line.
    tree: Option<fn() -> clap::Command>,
    is_given_names: bool,
    reads_stdin: bool,
    listeners: Vec<String>,
    webroot: Option<String>,
    dns: Option<String>,
    /// Typed arguments that change what a probe sees of an answer, each with its flag and values.
    looks: Vec<(&'static str, Vec<String>)>,
    /// Arguments whose values come from the environment.
    of_environment: BTreeSet<String>,
    home: OnceLock<String>,
}

static CURRENT: OnceLock<Invocation> = OnceLock::new();
/// Invocation of tests, which have no command line.
static TEST_INVOCATION: LazyLock<Invocation> =
    LazyLock::new(|| Invocation { program: PROGRAM.to_owned(), ..Invocation::default() });

/// Returns the command line of this process.
pub fn current() -> &'static Invocation {
    CURRENT.get().unwrap_or(&TEST_INVOCATION)
}

/// Stores the command line of this process.
pub fn remember(words: &[OsString], matches: &ArgMatches, tree: fn() -> clap::Command) {
    let invocation = Invocation::new(program(), words, matches).of_tree(tree);
    // The process calls this function once.
    let _first = CURRENT.set(invocation);
}

impl Invocation {
    /// Builds an invocation from the words of a command line, the program first, and what clap has read from the words.
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

    /// Adds the command tree that has read the command line.
    #[must_use]
    pub(crate) fn of_tree(self, tree: fn() -> clap::Command) -> Self {
        Self { tree: Some(tree), ..self }
    }

    /// Sets, once, the namespace of objects for which a command line names none.
    pub fn is_at_home_in(&self, namespace: &str) {
        self.home.get_or_init(|| namespace.to_owned());
    }

    /// Returns this command line, to be typed again.
    pub fn again(&self) -> String {
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        self.line_of(first, rest.iter())
    }

    /// Returns this command line without a flag, to be typed.
    pub fn again_without(&self, flag: &str) -> String {
        let is_flag = |word: &String| {
            word.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        self.line_of(first, rest.iter().filter(|word| !is_flag(word)))
    }

    /// Returns this command line with the flags that print the manifests for which it stands.
    pub fn as_manifests(&self) -> String {
        let (first, rest) = self.words.split_first().map_or(("", &[][..]), |(a, b)| (a, b));
        let added = ["--dry-run=client", "-o", "yaml"].map(str::to_owned);
        let mut words = Vec::new();
        let mut rest = rest.iter();
        while let Some(word) = rest.next() {
            match word.as_str() {
                // The value of the flag is the next word.
                "-o" | "--output" => drop(rest.next()),
                joined if joined.starts_with("-o") || joined.starts_with("--output=") => {}
                _ => words.push(word),
            }
        }
        self.line_of(first, words.into_iter().chain(&added))
    }

    fn line_of<'a>(&self, first: &str, words: impl Iterator<Item = &'a String>) -> String {
        let first = if self.program == PLUGIN { PLUGIN.to_owned() } else { quoted(first) };
        let line: Vec<_> = iter::once(first).chain(words.map(|word| quoted(word))).collect();
        self.validate(line.join(" "))
    }

    /// Returns the command line; in debug builds, panics if this program would refuse the line.
    fn validate(&self, line: String) -> String {
        if cfg!(debug_assertions)
            && let Some(tree) = self.tree
        {
            let read = tree().no_binary_name(true).try_get_matches_from(split_words(&line));
            let refused = read.err().filter(clap::Error::use_stderr);
            debug_assert!(refused.is_none(), "a hint would be refused: {line}: {refused:?}");
        }
        line
    }

    /// Returns the hint that says how to continue with this command; standard input has been read and must be given again.
    pub fn go_on(&self) -> String {
        let again = self.again();
        if self.reads_stdin {
            return format!(
                "go on by giving the same manifests on standard input again: {again} < FILE.yaml"
            );
        }
        format!("go on with: {again}")
    }

    /// Returns whether the value of a flag comes from the environment, and not from the command line.
    pub fn is_of_environment(&self, flag: &str) -> bool {
        self.of_environment.contains(&flag.replace('-', "_"))
    }

    /// Returns whether names are given in place of manifests (`--domain`, `--csr`).
    pub fn is_given_names(&self) -> bool {
        self.is_given_names
    }

    /// Returns the word that was typed after a flag; `None` if there is none.
    pub fn behind(&self, flag: &str) -> Option<&str> {
        let pair = self.words.windows(2).find(|pair| pair[0] == flag)?;
        Some(&pair[1])
    }

    /// Returns `--local=WORD` if the word was typed after a `--local` without a value.
    pub fn with_folder(&self, word: &str) -> Option<String> {
        (self.behind("--local") == Some(word)).then(|| quoted(&format!("--local={word}")))
    }

    /// Returns the addresses of the HTTP-01 listener (`--http01-listen`), if given.
    pub fn listeners(&self) -> &[String] {
        &self.listeners
    }

    /// Returns the resolver of every lookup (`--dns`), if given.
    pub fn dns(&self) -> Option<&str> {
        self.dns.as_deref()
    }

    /// Returns the folder below which files answer HTTP-01 (`--http01-webroot`), if given.
    pub fn webroot(&self) -> Option<&str> {
        self.webroot.as_deref()
    }

    /// Returns the flag's name, after its environment variable if the value came from there.
    pub fn named(&self, flag: &str) -> String {
        let id = CLUSTER_ARGUMENTS
            .iter()
            .find(|(_, name)| *name == flag)
            .map(|(id, _)| (*id).to_owned());
        let id = id.unwrap_or_else(|| flag.replace('-', "_"));
        if self.of_environment.contains(&id) {
            return format!("{} (--{flag})", variable(flag));
        }
        format!("--{flag}")
    }

    /// Returns whether a namespace was typed on the command line.
    pub fn is_given_namespace(&self) -> bool {
        self.placing.iter().any(|flag| flag.is_typed && flag.says == PlaceSubject::Namespace)
    }

    /// Returns whether this command line works on a state folder.
    pub fn is_local(&self) -> bool {
        self.placing.iter().any(|flag| flag.says == PlaceSubject::State)
    }

    /// Returns another command line on the same objects: the same program, state or cluster, and namespace.
    pub fn like(&self, command: &str) -> String {
        let (place, looks) = (self.place_flags(|_| true), self.looks_of(command));
        self.validate(format!("{} {command}{place}{looks}", self.program))
    }

    /// Returns the line of [`like`](Self::like) if this program takes it; else the bare command, which names its own place.
    pub fn like_where_taken(&self, command: &str) -> String {
        let bare = format!("{} {command}", self.program);
        let placed = format!("{bare}{}{}", self.place_flags(|_| true), self.looks_of(command));
        let is_taken = |line: &str| {
            let tree = self.tree.map(|tree| tree().no_binary_name(true));
            tree.is_some_and(|tree| tree.try_get_matches_from(split_words(line)).is_ok())
        };
        if is_taken(&placed) { placed } else { bare }
    }

    /// Returns a command line on an object of this namespace; an empty namespace means an object without a namespace.
    pub fn like_in(&self, namespace: &str, command: &str) -> String {
        let home = self.home.get().map_or("default", String::as_str);
        if namespace.is_empty() || namespace == home {
            return self.like(command);
        }
        let place = self.place_flags(|says| says != PlaceSubject::Namespace);
        let looks = self.looks_of(command);
        self.validate(format!("{} {command}{place} -n {}{looks}", self.program, quoted(namespace)))
    }

    /// Returns the command line that renews a Certificate.
    pub fn renewal(&self, certificate: &ObjectName) -> String {
        let ObjectName { namespace, name } = certificate;
        self.like_in(namespace, &format!("certificate renew {name}"))
    }

    /// Returns the line of [`like`](Self::like) for all namespaces.
    pub fn like_in_all(&self, command: &str) -> String {
        let place = self.place_flags(|says| says != PlaceSubject::Namespace);
        let looks = self.looks_of(command);
        self.validate(format!("{} {command} -A{place}{looks}", self.program))
    }

    /// Returns the line of `run` on the same state or cluster; `run` works in every namespace and takes none.
    pub fn like_run(&self) -> String {
        let place = self.place_flags(|says| says != PlaceSubject::Namespace);
        self.validate(format!("{} run{place}{}", self.program, self.looks_of("run")))
    }

    /// Returns a command line for kubectl in the same cluster, with these words, which name the namespace if there is one.
    pub fn kubectl(&self, words: &[String]) -> String {
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        format!("{} {}", self.kubectl_program(), words.join(" "))
    }

    /// Returns kubectl with the flags for the same cluster and user; kubectl does not read our environment forms.
    pub fn kubectl_program(&self) -> String {
        self.kubectl_with(|says| matches!(says, PlaceSubject::Cluster | PlaceSubject::Actor))
    }

    /// Returns kubectl with the flags for the same cluster, for another user to type.
    pub fn kubectl_of_others(&self) -> String {
        self.kubectl_with(|says| says == PlaceSubject::Cluster)
    }

    fn kubectl_with(&self, is_wanted: impl Fn(PlaceSubject) -> bool) -> String {
        let wanted = self.placing.iter().filter(|flag| is_wanted(flag.says));
        let flags = wanted.map(|flag| " ".to_owned() + &line(&flag.words));
        iter::once("kubectl".to_owned()).chain(flags).collect()
    }

    /// Returns the typed probe flags that another command takes and does not name itself, each flag with a space
    /// before it.
    fn looks_of(&self, command: &str) -> String {
        let Some(tree) = self.tree.filter(|_| !self.looks.is_empty()) else { return String::new() };
        let tree = tree();
        let mut called = &tree;
        for word in command.split(' ') {
            let Some(below) = called.find_subcommand(word) else { break };
            called = below;
        }
        let given = split_words(&format!("x {command}"));
        let is_taken = |(id, words): &&(&str, Vec<String>)| {
            let flag = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
            let is_given = words.iter().any(|it| given.iter().any(|word| flag(word) == flag(it)));
            called.get_arguments().any(|argument| argument.get_id() == *id) && !is_given
        };
        let taken = self.looks.iter().filter(is_taken);
        taken.map(|(_, words)| " ".to_owned() + &line(words)).collect()
    }

    /// Returns the wanted flags of the command line, each flag with a space before it.
    fn place_flags(&self, is_wanted: impl Fn(PlaceSubject) -> bool) -> String {
        let wanted = self.placing.iter().filter(|flag| flag.is_typed && is_wanted(flag.says));
        wanted.map(|flag| " ".to_owned() + &line(&flag.words)).collect()
    }
}

/// Returns the usual environment form of a flag.
pub fn variable(flag: &str) -> String {
    VARIABLE_PREFIX.to_owned() + &flag.replace('-', "_").to_uppercase()
}

/// Joins words to a line, each word quoted for a shell.
fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a shell, if the word needs quotes.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Splits a command line into words as a shell does; leaves out the program.
fn split_words(line: &str) -> Vec<String> {
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

/// Returns the words by which the user started this program.
pub fn program() -> &'static str {
    let program = env::args_os().next().unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    if is_plugin(Path::new(&program), &path) { PLUGIN } else { PROGRAM }
}

/// Returns whether kubectl started this program. kubectl execs the plugin and leaves no mark, but passes the full path
/// from PATH as the program's name; shells pass the name as typed.
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
            assert_eq!(split_words(&format!("{program} {}", line.join(" "))), words);
        }
    }
}
