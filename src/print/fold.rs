//! Texts folded to a width.

use console::measure_text_width;
use textwrap::{Options, WordSplitter};

/// The narrowest column into which a text is folded.
const MIN_FOLD_WIDTH: usize = 20;

/// Folds a text at blanks into lines of at most `width` columns; a longer word is broken. Line
/// breaks in the text count as blanks.
pub fn fold(text: &str, width: usize) -> Vec<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = textwrap::wrap(&text, whole_words(width));
    lines.into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Returns options that keep names with a hyphen on one line.
fn whole_words(width: usize) -> Options<'static> {
    Options::new(width.max(MIN_FOLD_WIDTH)).word_splitter(WordSplitter::NoHyphenation)
}

/// Cuts a text to at most `width` columns, with `…` for the rest. Colours are kept.
pub fn cut(text: &str, width: usize) -> String {
    console::truncate_str(text, width, "…").into_owned()
}

/// Cuts the middle out of a text, to at most `width` columns: the end of a reason says most (`connection refused`).
pub fn cut_middle(text: &str, width: usize) -> String {
    let total = columns(text);
    if total <= width {
        return text.to_owned();
    }
    let head = width.saturating_sub(1) / 3;
    let tail = width.saturating_sub(1) - head;
    let mut end = String::new();
    for character in text.chars().rev() {
        let longer = format!("{character}{end}");
        if columns(&longer) > tail {
            break;
        }
        end = longer;
    }
    format!("{}…{end}", console::truncate_str(text, head, ""))
}

/// Returns the columns that a text takes on a terminal, without colours.
pub fn columns(text: &str) -> usize {
    measure_text_width(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_kept() {
        let reason = "Waiting for HTTP-01 challenge propagation: connection refused";
        assert_eq!(cut_middle(reason, 25), "Waiting …nnection refused");
        assert_eq!(cut_middle(reason, 61), reason);
        assert!((0..60).all(|width| columns(&cut_middle(reason, width)) <= width.max(1)));
        assert!((2..60).all(|width| columns(&cut_middle(&"東京".repeat(20), width)) <= width));
    }

    #[test]
    fn lines_end_at_blanks_and_long_words_are_broken() {
        let text = "GET\nhttp://www.example.com/.well-known/acme-challenge/x: refused";
        assert_eq!(
            fold(text, 24),
            ["GET", "http://www.example.com/.", "well-known/acme-challeng", "e/x: refused"]
        );
        assert_eq!(fold("a b", 0), ["a b"]);
        assert!(fold("", 30).concat().is_empty());
        assert!(fold(&"東京 ".repeat(30), 31).iter().all(|line| columns(line) <= 31));
    }
}
