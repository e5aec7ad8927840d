//! Candidates for a word, and the answers in the formats of the shells and kubectl.

use std::env;
use std::ffi::OsString;

use clap::Arg;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate, complete};

use super::words::read;
use crate::hints::invocation::PROGRAM;
use crate::input::completers::paths::{OfferedPath, Paths, path_offered};
use crate::input::completers::{self, typed};

/// Directives of kubectl's completion, as cobra numbers them: without a directive the shell offers files.
const NO_SPACE: u8 = 2;
const NO_FILES: u8 = 4;
const FOLDERS_ONLY: u8 = 16;

/// Adds completers for the flags that several commands have.
pub(super) fn with_completers(tree: clap::Command) -> clap::Command {
    let tree = tree.mut_args(|arg| match completer(&arg) {
        Some(completer) => arg.add(completer),
        None => arg,
    });
    tree.mut_subcommands(with_completers)
}

/// Returns the completer of a flag, chosen by the flag or by the name of its value.
fn completer(arg: &Arg) -> Option<ArgValueCompleter> {
    let long = arg.get_long()?;
    let named =
        arg.get_value_names().and_then(|names| names.first()).map(clap::builder::Str::as_str);
    match (long, named.unwrap_or_default()) {
        ("namespace", _) | (_, "NAMESPACE") => Some(completers::namespaces()),
        ("context", _) => Some(completers::contexts()),
        ("server", _) => Some(completers::servers()),
        (_, "DIR") => Some(Paths::Folders.completer()),
        (_, named) if named.split('|').any(|of| ["FILE", "PATH"].contains(&of)) => {
            Some(Paths::Files.completer())
        }
        _ => None,
    }
}

/// Candidates for one word.
#[derive(Debug)]
pub(super) struct Offer {
    /// Word as typed so far.
    word: String,
    candidates: Vec<CompletionCandidate>,
    /// Kind of paths to complete, and the part of the word before the path, if a path is due.
    paths: Option<(Paths, String)>,
}

/// Answer to one shell or kubectl.
#[derive(Debug, PartialEq, Eq)]
enum ShellReply {
    /// Words, each with a line of help.
    Words(Vec<(String, String)>),
    /// Paths, which the asker's own completion finds.
    Own(Paths),
}

impl Offer {
    /// Builds the candidates for the last word, the program left out; the tree has been built and has its completers.
    pub(super) fn new(tree: &mut clap::Command, mut words: Vec<String>) -> Self {
        let word = words.pop().unwrap_or_default();
        let read = read(tree, &words);
        typed::remember(read.typed);
        let mut plain = vec![OsString::from(PROGRAM)];
        plain.extend(read.plain);
        plain.push((&word).into());
        let last = plain.len() - 1;
        let folder = env::current_dir().ok();
        let mut candidates = complete(tree, plain, last, folder.as_deref()).unwrap_or_default();
        let is_command = |id: &String| id.starts_with("command::");
        candidates.retain(|c| !read.is_past_commands || !c.get_id().is_some_and(is_command));
        Self::of(word, candidates)
    }

    fn of(word: String, candidates: Vec<CompletionCandidate>) -> Self {
        let is_flag = word.starts_with('-');
        let mut paths = Vec::<(OfferedPath, CompletionCandidate)>::new();
        let mut others = Vec::new();
        for candidate in candidates {
            match path_offered(&candidate, &word) {
                Some(path) => paths.push((path, candidate)),
                None => others.push(candidate),
            }
        }
        // As in kubectl, flags are offered once a dash is typed, and then no path that may stand in the same place.
        let is_due = |path: &OfferedPath| !is_flag || !path.before.is_empty();
        let due = paths.first().filter(|(path, _)| is_due(path));
        if let Some((path, _)) = due {
            let due = Some((path.paths, path.before.clone()));
            let there = paths.into_iter().filter(|(path, _)| path.is_there);
            let candidates = there.map(|(_, candidate)| candidate).collect();
            return Self { word, candidates, paths: due };
        }
        others.retain(|c| is_flag || !c.get_value().to_string_lossy().starts_with('-'));
        Self { word, candidates: others, paths: None }
    }

    /// Returns the answer for an asker that completes paths by itself in the part of the word after
    /// `before`; candidates lose the prefix `cut`.
    fn reply(&self, before: &str, cut: &str) -> ShellReply {
        match &self.paths {
            Some((paths, at)) if at == before => ShellReply::Own(*paths),
            Some(_) | None => ShellReply::Words(self.words(cut)),
        }
    }

    fn words(&self, cut: &str) -> Vec<(String, String)> {
        let told = |candidate: &CompletionCandidate| {
            let value = candidate.get_value().to_string_lossy();
            let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
            let value = value.strip_prefix(cut).unwrap_or(&value).to_owned();
            (value, help.lines().next().unwrap_or_default().to_owned())
        };
        self.candidates.iter().map(told).collect()
    }

    /// Returns the flag at the start of the word, with its `=`; empty if the word has none.
    fn flag(&self) -> &str {
        let sign = if self.word.starts_with('-') { self.word.find('=') } else { None };
        sign.map_or("", |at| &self.word[..=at])
    }

    /// Formats the answer for kubectl: `value<TAB>help`, values without the flag in the word, and the directive at the end.
    pub(super) fn for_kubectl(&self) -> String {
        let words = match self.reply(self.flag(), self.flag()) {
            ShellReply::Own(Paths::Files) => return ":0\n".to_owned(),
            ShellReply::Own(Paths::Folders) => return format!(":{FOLDERS_ONLY}\n"),
            ShellReply::Words(words) => words,
        };
        let is_open = !words.is_empty() && words.iter().all(|(value, _)| goes_on(value));
        let directive = if is_open { NO_FILES | NO_SPACE } else { NO_FILES };
        format!("{}:{directive}\n", with_help(&words))
    }

    /// Formats the answer for bash, which completes a piece of the word cut at signs such as `=`: the kind, then values.
    pub(super) fn for_bash(&self, piece: &str) -> String {
        let before = self.word.strip_suffix(piece).unwrap_or_default();
        let words = match self.reply(before, before) {
            ShellReply::Own(paths) => return paths_line(paths),
            ShellReply::Words(words) => words,
        };
        words.into_iter().fold("words\n".to_owned(), |text, (value, _)| text + &value + "\n")
    }

    /// Formats the answer for zsh: the kind, and `value:help`, values without the flag in the word.
    pub(super) fn for_zsh(&self) -> String {
        let words = match self.reply(self.flag(), self.flag()) {
            ShellReply::Own(paths) => return paths_line(paths),
            ShellReply::Words(words) => words,
        };
        let escaped = |text: &str| text.replace('\\', "\\\\").replace(':', "\\:");
        words.iter().fold("words\n".to_owned(), |text, (value, help)| {
            let colon = if help.is_empty() { "" } else { ":" };
            text + &escaped(value) + colon + &help.replace('\\', "\\\\") + "\n"
        })
    }

    /// Formats the answer for fish: the kind (words, files or folders), and `value<TAB>help`.
    pub(super) fn for_fish(&self) -> String {
        match self.reply(self.flag(), "") {
            ShellReply::Own(paths) => paths_line(paths),
            ShellReply::Words(words) => format!("words\n{}", with_help(&words)),
        }
    }

    /// Formats the answer for PowerShell, which gets paths as well: `value<TAB>help`.
    pub(super) fn for_powershell(&self) -> String {
        with_help(&self.words(""))
    }
}

fn paths_line(paths: Paths) -> String {
    let due = match paths {
        Paths::Files => "files\n",
        Paths::Folders => "folders\n",
    };
    due.to_owned()
}

/// Returns whether a value has to be continued.
fn goes_on(value: &str) -> bool {
    value.ends_with(['=', '/'])
}

fn with_help(words: &[(String, String)]) -> String {
    words.iter().fold(String::new(), |text, (value, help)| {
        let tab = if help.is_empty() { "" } else { "\t" };
        text + value + tab + help + "\n"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;
    use crate::cli::completion::words::split;

    fn offer(line: &str) -> Offer {
        let mut tree = with_completers(command());
        tree.build();
        Offer::new(&mut tree, split(line))
    }

    /// Candidates for kubectl, without the help.
    #[track_caller]
    fn check(line: &str, expected: &str) {
        let told = offer(line).for_kubectl();
        let values: Vec<_> = told.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!(values.join(" "), expected, "{line}");
    }

    #[test]
    fn commands_are_offered_with_their_help() {
        let told = offer("sched").for_kubectl();
        assert!(told.starts_with("schedule\tShow which challenges"), "{told}");
        assert!(told.ends_with("\n:4\n"), "{told}");
        check("order ", "create get retry resume delete :4");
        check("order --local ", "create get retry resume delete :4");
        check("order --domain a.example ", ":4");
    }

    #[test]
    fn ids_of_causes_are_offered_in_the_case_that_is_typed() {
        check("explain GW", "GW GW-01 GW-02 GW-03 GW-04 GW-05 :4");
        check("explain gw-01 gw-0", "gw-02 gw-03 gw-04 gw-05 :4");
        check("explain ", "CFG ACC LIM ORD CTL HTTP GW TLS DNS D01 PRV CAA PER ENV HYG INT :4");
    }

    #[test]
    fn flags_are_offered_once_a_dash_is_typed() {
        check("run ", ":4");
        check("get certs --sort", "--sort-by :4");
        check("order -f a.yaml --dns01-z", "--dns01-zone-file :4");
    }

    #[test]
    fn files_and_folders_are_left_to_the_shell() {
        for line in [
            "order -f ",
            "order create -f wi",
            "order -f a.yaml b",
            "order --filename=",
            "order --dns01-manual --dns01-zone-file ",
            "get certs --kubeconfig ",
            "--kubeconfig=k",
            "ca --root ",
        ] {
            check(line, ":0");
        }
        for line in [
            "get certs --local=",
            "--local=st",
            "order --out ",
            "run --out=o",
            "order --http01-webroot ",
            "order delete a --http01-webroot=",
            "challenge present a --http01-webroot ",
        ] {
            check(line, ":16");
        }
        check("challenge check --local ", ":4");
    }

    #[test]
    fn every_flag_whose_value_is_a_path_says_so() {
        fn look(command: &clap::Command, found: &mut Vec<String>) {
            for arg in command.get_arguments() {
                let is_path = arg.get_value_parser().type_id()
                    == std::any::TypeId::of::<std::path::PathBuf>();
                if is_path && completer(arg).is_none() {
                    found.push(format!("{} {}", command.get_name(), arg.get_id()));
                }
            }
            command.get_subcommands().for_each(|below| look(below, found));
        }
        let mut found = Vec::new();
        let mut tree = command();
        tree.build();
        look(&tree, &mut found);
        assert_eq!(found.join(", "), "");
    }

    #[test]
    fn values_of_flags_are_offered() {
        for (line, expected) in [
            ("order --server letsencrypt", "letsencrypt letsencrypt-staging :4"),
            ("order --server=letsencrypt-", "letsencrypt-staging :4"),
            ("order --rehearse=", "loopback real :4"),
            ("--color ", "auto always never :4"),
            ("run --driver ", "auto cert-manager self :4"),
            ("order --dry-run ", "none client server :4"),
            ("order --report ", "github junit= sarif= markdown= none :4"),
            ("certificate renew web --report=s", "sarif= :6"),
            ("order --challenge-type tls", "tls-alpn-01 :4"),
            ("run --approve=", "true false :4"),
            ("describe cert --show-events=", "true false :4"),
            ("completion ", "bash zsh fish powershell :4"),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn every_command_offers_its_own_formats() {
        let documents = "json yaml jsonl jsonpath= jsonpath-as-json= :4";
        let resources = format!("wide name custom-columns= {documents}");
        for (line, expected) in [
            ("get certs -o ", resources.as_str()),
            ("order get --output ", &resources),
            ("timeline web -o ", documents),
            ("crds -o ", documents),
            ("watch -o ", "jsonl :4"),
            ("delete cert web -o ", "name :4"),
            ("get certs -o cus", "custom-columns= :6"),
            ("get certs --output=y", "yaml :4"),
            ("get certs -ow", "-owide :4"),
        ] {
            check(line, expected);
        }
    }

    #[test]
    fn lists_of_kinds_are_completed() {
        check("get certificates,or", "certificates,order :4");
        check("get cert/web or", "order/ :6");
        check("describe clu", "clusterissuer :4");
    }

    fn check_shells(line: &str, piece: &str, bash: &str, zsh: &str, fish: &str) {
        let offer = offer(line);
        let told = |told: String| told.trim_end().replace('\n', " ");
        assert_eq!(told(offer.for_bash(piece)), bash, "{line}");
        assert_eq!(told(offer.for_zsh()), zsh, "{line}");
        assert_eq!(told(offer.for_fish()), fish, "{line}");
    }

    #[test]
    fn each_shell_is_told_in_its_own_words() {
        let (value, whole) = ("words letsencrypt-staging", "words --server=letsencrypt-staging");
        let line = "order --server=letsencrypt-";
        check_shells(line, "letsencrypt-", value, value, whole);
        // A person may have told bash to cut at blanks alone.
        check_shells(line, "--server=letsencrypt-", whole, value, whole);
        check_shells("order --out=none", "--out=none", "words", "folders", "folders");
        check_shells("order --out=a", "a", "folders", "folders", "folders");
        check_shells("order -f ", "", "files", "files", "files");
    }

    #[test]
    fn a_colon_ends_no_value_for_zsh() {
        let contexts = ["arn:aws:a", "b"].map(CompletionCandidate::new).into();
        let offer = Offer::of(String::new(), contexts);
        assert_eq!(offer.for_zsh(), "words\narn\\:aws\\:a\nb\n");
    }

    #[test]
    fn a_path_behind_a_comma_is_ours_to_list() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("web.yaml"), "").unwrap();
        let place = folder.path().display();
        check(&format!("order -f a.yaml,{place}/w"), &format!("a.yaml,{place}/web.yaml :4"));
        check(
            &format!("order --filename=a.yaml,{place}/w"),
            &format!("a.yaml,{place}/web.yaml :4"),
        );
        check(&format!("order --report junit={place}/w"), &format!("junit={place}/web.yaml :4"));
        let offer = offer(&format!("order -f {place}/w"));
        assert_eq!(offer.for_powershell(), format!("{place}/web.yaml\n"));
    }
}
