//! Escaping of foreign texts: characters that would steer the terminal are made visible.
//!
//! Only the first line of a message begins at the margin, and in lines for a shell a text of a CA, a server
//! or an object is one word: a foreign text must neither pass for a message of this program nor be run.
//!
//! A runner of GitHub Actions takes commands from both output streams of a program: a line that
//! begins with two colons, also after blanks, and `##[` anywhere. Texts get a backslash there.

use super::colour::Colour;
use super::palette;
use crate::model::text::is_steering;

/// Indentation of the lines of a message after its first line.
const OFFSET: &str = "  ";

/// Start of a workflow command of GitHub, and the older start of such a command.
const COLONS: &str = "::";
const OLD_COMMAND: &str = "##[";

/// Makes all characters visible that would steer the terminal; line breaks and tabs stay.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|character| push(&mut out, character));
    out
}

/// Escapes a text, but keeps this program's own colours if colours are on.
pub(super) fn escape_but_colours(text: &str, colour: Colour) -> String {
    if colour == Colour::Off {
        return escape(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some(style) = palette::style_at_start(rest) {
            out.push_str(style);
            rest = &rest[style.len()..];
        } else {
            push(&mut out, character);
            rest = &rest[character.len_utf8()..];
        }
    }
    out
}

/// Indents the lines of a message after its first line, so that no line can pass for a message of its own.
pub(super) fn set_off(message: &str) -> String {
    let mut lines = message.split('\n');
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |mut all, line| {
        let is_set_off = line.is_empty() || line.starts_with('\t') || line.starts_with(OFFSET);
        all.push('\n');
        all.push_str(if is_set_off { "" } else { OFFSET });
        all + line
    })
}

/// Keeps every line of a text from being a workflow command of GitHub; most texts stay unchanged.
pub(super) fn no_command(text: String) -> String {
    let is_one = |line: &str| line.trim_start().starts_with(COLONS);
    let text = if text.contains(COLONS) && text.lines().any(is_one) {
        let lines = text.split_inclusive('\n').map(|line| match line.find(COLONS) {
            Some(at) if is_one(line) => format!("{}\\{}", &line[..at], &line[at..]),
            Some(_) | None => line.to_owned(),
        });
        lines.collect()
    } else {
        text
    };
    if text.contains(OLD_COMMAND) { text.replace(OLD_COMMAND, "##\\[") } else { text }
}

/// Appends a character: CR as kubectl writes CR, ESC and other ASCII controls as `cat -v`, other controls as Rust escapes.
fn push(out: &mut String, character: char) {
    match character {
        '\n' | '\t' => out.push(character),
        '\r' => out.push_str("\\r"),
        '\u{0}'..='\u{1f}' | '\u{7f}' => {
            out.push('^');
            // The letter that gives this control character together with Ctrl.
            out.push(char::from(character as u8 ^ 0x40));
        }
        _ if is_steering(character) => out.extend(character.escape_unicode()),
        _ => out.push(character),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_steers_becomes_visible() {
        for (text, expected) in [
            ("\u{1b}[31mred\rback", "^[[31mred\\rback"),
            ("\u{1b}]0;owned\u{7}\u{9b}31m\u{7f}\0", "^[]0;owned^G\\u{9b}31m^?^@"),
            ("\u{202e}gpj.exe\u{2069}", "\\u{202e}gpj.exe\\u{2069}"),
            ("two\nlines\tü…", "two\nlines\tü…"),
        ] {
            assert_eq!(escape(text), expected);
            assert_eq!(escape_but_colours(text, Colour::Off), expected);
        }
    }

    #[test]
    fn only_the_first_line_of_a_message_begins_at_the_margin() {
        for (message, expected) in [
            ("error: one line", "error: one line"),
            ("error: no\nhint: do it\n", "error: no\n  hint: do it\n"),
            ("error: no\n hint: do it", "error: no\n   hint: do it"),
            ("400: no; subproblems:\n\tno: [dns: a]", "400: no; subproblems:\n\tno: [dns: a]"),
            ("two\n\n    | far", "two\n\n    | far"),
        ] {
            assert_eq!(set_off(message), expected);
        }
    }

    #[test]
    fn no_line_is_a_command_of_a_workflow() {
        for (text, expected) in [
            ("::error::x", "\\::error::x"),
            ("no\n \u{a0}::stop-commands::x\nend", "no\n \u{a0}\\::stop-commands::x\nend"),
            ("no ##[add-mask]e", "no ##\\[add-mask]e"),
            ("2001:db8::1 is no command", "2001:db8::1 is no command"),
            ("## [x]\n", "## [x]\n"),
        ] {
            assert_eq!(no_command(text.to_owned()), expected);
        }
    }

    #[test]
    fn every_style_that_we_write_gets_through() {
        for ink in palette::Ink::ALL {
            for painted in [ink.word("word"), ink.label("label:")] {
                assert_eq!(escape_but_colours(&painted, Colour::On), painted);
            }
        }
    }

    #[test]
    fn nothing_but_our_colours_is_left_in_a_coloured_text() {
        let text = "\u{1b}[32mvalid\u{1b}[0m \u{1b}[2J\u{1b}[8m\u{9b}31m";
        let expected = "\u{1b}[32mvalid\u{1b}[0m ^[[2J^[[8m\\u{9b}31m";
        assert_eq!(escape_but_colours(text, Colour::On), expected);
    }
}
