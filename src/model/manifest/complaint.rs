//! Faults of a manifest, with the place and the line itself.

use std::fmt;

use super::tree::Position;
use crate::model::field::Remark;

/// Text of manifests, and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// File name as the user gave it, or `stdin`.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A place in a source, written `file:line:column`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// Name of the source.
    pub file: String,
    /// Line and column.
    pub at: Position,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.at.line, self.at.column)
    }
}

/// An error or a warning about a manifest, written `file:line:column: Kind name: field: what is wrong`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{location}: {}{remark}", prefix(.object))]
pub struct Complaint {
    /// Place of the fault.
    pub location: Location,
    /// Kind and name of the object, empty if they are not known.
    pub object: String,
    /// Field, its fault, and what to write instead.
    pub remark: Remark,
    /// The line with a mark below it; values of Secrets are left out.
    pub excerpt: String,
}

impl Complaint {
    /// Returns what to write instead, if known.
    pub fn hint(&self) -> Option<&str> {
        self.remark.hint.as_deref()
    }
}

fn prefix(object: &str) -> String {
    if object.is_empty() { String::new() } else { format!("{object}: ") }
}

/// Parts of a line that may be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// The whole line.
    Everything,
    /// The name of the field alone.
    NamesOnly,
}

/// Longest line of which a part is shown, in bytes.
const MAX_LINE_BYTES: usize = 100_000;

/// Cuts out the line at a place and marks the column:
///
/// ```text
///   12 |   duration: 3 months
///      |             ^
/// ```
pub(crate) fn excerpt(line: &str, at: Position, show: Show) -> String {
    const WIDTH: usize = 100;
    // Nobody reads a line of that length, and each complaint would go through all of it.
    let line = if line.len() > MAX_LINE_BYTES { "" } else { line };
    let shown = match (show, line.split_once(':')) {
        (Show::Everything, _) => line.to_owned(),
        (Show::NamesOnly, Some((name, _))) => format!("{name}: …"),
        (Show::NamesOnly, None) => "…".to_owned(),
    };
    let skipped = if at.column > WIDTH { at.column - WIDTH / 2 } else { 0 };
    let plain = |character: char| if character.is_control() { ' ' } else { character };
    let cut: String = shown.chars().skip(skipped).take(WIDTH).map(plain).collect();
    let mark = match show {
        Show::Everything => at.column - skipped,
        Show::NamesOnly => shown.chars().take_while(|c| c.is_whitespace()).count() + 1,
    };
    format!("{:>4} | {}\n     | {:>mark$}", at.line, cut.trim_end(), '^')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_shows_the_line_and_marks_the_column() {
        assert_eq!(
            excerpt("  b:\tc", Position { line: 2, column: 6 }, Show::Everything),
            "   2 |   b: c\n     |      ^"
        );
        let long = format!("{}x: 1", " ".repeat(200));
        assert_eq!(
            excerpt(&long, Position { line: 1, column: 201 }, Show::Everything),
            format!("   1 | {}x: 1\n     | {}^", " ".repeat(49), " ".repeat(49))
        );
    }

    #[test]
    fn values_of_secrets_are_not_shown() {
        for (text, line, expected) in [
            ("  tls.key: c2VjcmV0", 2, "   2 |   tls.key: …\n     |   ^"),
            ("  c2VjcmV0", 3, "   3 | …\n     | ^"),
            ("", 9, "   9 | …\n     | ^"),
        ] {
            assert_eq!(excerpt(text, Position { line, column: 12 }, Show::NamesOnly), expected);
        }
    }
}
