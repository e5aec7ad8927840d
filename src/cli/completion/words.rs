//! Splits a command line into words as a shell does, and reads the words as the command tree does.

use std::env;
use std::ffi::OsString;

use clap::Arg;

use crate::input::completers::typed::{Typed, TypedFlag};

/// Splits a line as a shell does; the last word is the word at the cursor, empty after a blank.
pub(super) fn split(line: &str) -> Vec<String> {
    let (mut words, mut begun) = (Vec::new(), 0);
    let mut open = Quote::None;
    for (at, character) in line.char_indices() {
        let is_blank = character.is_whitespace() && open == Quote::None;
        open = open.after(character);
        if is_blank {
            if begun < at {
                words.push(unquoted(&line[begun..at]));
            }
            begun = at + character.len_utf8();
        }
    }
    words.push(unquoted(&line[begun..]));
    words
}

/// Removes a shell's quotes from a word; the last quote may still be open.
pub(super) fn unquoted(word: &str) -> String {
    let mut text = String::new();
    let mut open = Quote::None;
    for character in word.chars() {
        let next = open.after(character);
        // A quote that opens or closes, or the backslash that quotes the next character.
        let is_sign = next != open && !open.is_escape();
        // Between double quotes a backslash stands for itself before most characters.
        if open == Quote::DoubleEscape && !['"', '\\', '$', '`'].contains(&character) {
            text.push('\\');
        }
        if !is_sign {
            text.push(character);
        }
        open = next;
    }
    text
}

/// Quoting around a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quote {
    None,
    Single,
    Double,
    /// After a backslash.
    Escape,
    /// After a backslash between double quotes.
    DoubleEscape,
}

impl Quote {
    fn is_escape(self) -> bool {
        matches!(self, Self::Escape | Self::DoubleEscape)
    }

    fn after(self, character: char) -> Self {
        match (self, character) {
            (Self::None, '\'') => Self::Single,
            (Self::None, '"') | (Self::DoubleEscape, _) => Self::Double,
            (Self::None, '\\') => Self::Escape,
            (Self::Double, '\\') => Self::DoubleEscape,
            (Self::Single, '\'') | (Self::Double, '"') | (Self::Escape, _) => Self::None,
            (open, _) => open,
        }
    }
}

/// Words as the command tree reads them.
#[derive(Debug, Default)]
pub(super) struct ReadWords {
    /// Words and flags for the completers.
    pub typed: Typed,
    /// Words with each flag and its value in one word: clap's engine takes a separate value named like a
    /// command for the command, and the word after a flag with an optional value for the value.
    pub plain: Vec<OsString>,
    /// Whether no command may follow, because a typed flag excludes commands.
    pub is_past_commands: bool,
}

/// Reads the words before the word to complete, without the program; the tree has been built.
pub(super) fn read(tree: &clap::Command, words: &[String]) -> ReadWords {
    let mut read = ReadWords::default();
    let mut command = tree;
    // Flag that takes further values.
    let mut open: Option<&Arg> = None;
    let mut is_escaped = false;
    let mut words = words.iter().map(String::as_str).peekable();
    while let Some(word) = words.next() {
        let flag = if is_escaped { None } else { flag(command, word) };
        if let Some((arg, value)) = flag {
            open = None;
            read.is_past_commands |=
                command.is_args_conflicts_with_subcommands_set() && !arg.is_global_set();
            let next = words.next_if(|next| value.is_none() && takes_next(arg, next));
            match next {
                Some(next) if takes_several(arg) => {
                    read.plain.extend([word.into(), next.into()]);
                    open = Some(arg);
                }
                Some(next) => read.plain.push(join_value(arg, word, next)),
                None if arg.is_require_equals_set() && value.is_none() => {
                    read.plain.push(join_value(arg, word, ""));
                }
                None => read.plain.push(word.into()),
            }
            let is_without = !is_with_value(arg) || arg.is_require_equals_set();
            if let Some(value) = next.or(value).or(if is_without { Some("") } else { None }) {
                read.add(arg, value, true);
            }
            continue;
        }
        read.plain.push(word.into());
        if word == "--" {
            is_escaped = true;
        } else if word.starts_with('-') && word != "-" && !is_escaped {
            open = None;
        } else if let Some(arg) = open.filter(|_| !is_escaped) {
            read.add(arg, word, true);
        } else if let Some(below) = command.find_subcommand(word).filter(|_| !is_escaped) {
            command = below;
        } else {
            read.typed.words.push(word.to_owned());
        }
    }
    for arg in tree.get_arguments().filter(|arg| is_with_value(arg)) {
        if let Some(value) = arg.get_env().and_then(|name| env::var(name).ok()) {
            read.add(arg, &value, false);
        }
    }
    read
}

impl ReadWords {
    fn add(&mut self, arg: &Arg, value: &str, is_typed: bool) {
        let name = arg.get_long().unwrap_or_default().to_owned();
        self.typed.flags.push(TypedFlag { name, value: value.to_owned(), is_typed });
    }
}

/// Returns the flag that a word is or, of several short flags, ends with; and the value in the same word.
fn flag<'c, 'w>(command: &'c clap::Command, word: &'w str) -> Option<(&'c Arg, Option<&'w str>)> {
    if let Some(long) = word.strip_prefix("--") {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        let called = |arg: &&Arg| arg.get_long() == Some(name);
        return command.get_arguments().find(called).map(|arg| (arg, value));
    }
    let short = word.strip_prefix('-')?;
    let mut last = None;
    for (at, letter) in short.char_indices() {
        let called = |arg: &&Arg| arg.get_short() == Some(letter);
        let arg = command.get_arguments().find(called)?;
        let rest = &short[at + letter.len_utf8()..];
        if is_with_value(arg) {
            let value = rest.strip_prefix('=').unwrap_or(rest);
            return Some((arg, (!rest.is_empty()).then_some(value)));
        }
        last = Some((arg, None));
    }
    last
}

fn is_with_value(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|number| number.takes_values())
}

fn takes_several(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|number| number.max_values() > 1)
}

/// Returns whether the word after a flag is the flag's value.
fn takes_next(arg: &Arg, next: &str) -> bool {
    let is_value = !next.starts_with('-') || next == "-" || arg.is_allow_hyphen_values_set();
    is_with_value(arg) && !arg.is_require_equals_set() && is_value
}

fn join_value(arg: &Arg, word: &str, value: &str) -> OsString {
    match arg.get_long() {
        Some(long) => format!("--{long}={value}").into(),
        None => format!("{word}{value}").into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command;

    fn check_split(line: &str, expected: &[&str]) {
        assert_eq!(split(line), expected, "{line}");
    }

    #[test]
    fn a_line_is_cut_at_blanks_alone() {
        check_split(
            "acme get certs --local=ci2 www",
            &["acme", "get", "certs", "--local=ci2", "www"],
        );
        check_split(" acme  get ", &["acme", "get", ""]);
        check_split("acme --server=https://a:1/d", &["acme", "--server=https://a:1/d"]);
        check_split("", &[""]);
    }

    #[test]
    fn quotes_are_taken_off() {
        check_split(r#"a 'b c' "d \"e\"" f\ g"#, &["a", "b c", "d \"e\"", "f g"]);
        check_split("a --out='my fol", &["a", "--out=my fol"]);
        check_split(r#"a "b\c" '\d' \\"#, &["a", "b\\c", "\\d", "\\"]);
    }

    /// Words without flags, flags that are typed, and what the engine reads.
    fn check(line: &str, words: &str, flags: &str, plain: &str) {
        let mut tree = command();
        tree.build();
        let typed: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let read = read(&tree, &typed);
        assert_eq!(read.typed.words.join(" "), words, "{line}");
        let given = read.typed.flags.iter().filter(|flag| flag.is_typed);
        let given: Vec<_> = given.map(|flag| format!("{}={}", flag.name, flag.value)).collect();
        assert_eq!(given.join(" "), flags, "{line}");
        let engine: Vec<_> = read.plain.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(engine.join(" "), plain, "{line}");
    }

    #[test]
    fn names_are_told_from_commands_and_values() {
        check(
            "order get -n order a b",
            "a b",
            "namespace=order",
            "order get --namespace=order a b",
        );
        check("-n get get certs", "certs", "namespace=get", "--namespace=get get certs");
        check("get certs -Aojson web", "certs web", "output=json", "get certs -Aojson web");
        check("get -- -a", "-a", "", "get -- -a");
    }

    #[test]
    fn a_flag_whose_value_needs_a_sign_takes_no_word() {
        check("get --local certs", "certs", "local=", "get --local= certs");
        check("--local=ci2 get certs", "certs", "local=ci2", "--local=ci2 get certs");
        check("get certs -n", "certs", "", "get certs -n");
    }

    #[test]
    fn a_flag_with_many_values_takes_words_up_to_the_next_flag() {
        let files = "filename=a filename=b timeout=5m";
        check("order -f a b --timeout 5m", "", files, "order -f a b --timeout=5m");
        check("order -f -", "", "filename=-", "order -f -");
    }
}
