//! Translation of kubectl's paths to queries of RFC 9535.

use std::fmt;

/// Longest path, in bytes: the cost of reading a path grows with the square of its length.
const MAX_PATH_BYTES: usize = 4096;
/// Most queries that the unions of one path come to.
const MOST_QUERIES: usize = 1000;

/// Start of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// The element of the innermost range, or the whole document outside of ranges.
    Current,
    /// The whole document (`$`).
    Document,
}

/// Turns a path of kubectl's into RFC 9535 queries, whose results follow one another.
///
/// Two differences matter: a backslash makes a dot part of a name; and a quoted name in brackets is a path of
/// its own (`['metadata.name']`), so that a union of quoted names needs one query for each name.
pub(super) fn standard(path: &str) -> Result<(Root, Vec<String>), JsonPathError> {
    if path.len() > MAX_PATH_BYTES {
        return Err(JsonPathError(format!("a path is longer than {MAX_PATH_BYTES} bytes")));
    }
    let (root, steps) = match path.chars().next() {
        Some('$') => (Root::Document, &path[1..]),
        Some('@') => (Root::Current, &path[1..]),
        _ => (Root::Current, path),
    };
    // `{.}` and `{@}` are the element itself.
    let steps = if steps == "." { "" } else { steps };
    let mut queries = vec!["$".to_owned()];
    for choices in walk(steps, path)? {
        if choices.len() * queries.len() > MOST_QUERIES {
            let why = "its unions give too many paths";
            return Err(JsonPathError(format!("cannot read the path \"{path}\": {why}")));
        }
        queries = choices
            .iter()
            .flat_map(|choice| queries.iter().map(move |query| format!("{query}{choice}")))
            .collect();
    }
    Ok((root, queries))
}

/// Reads the steps of a path; each step is a list of choices, with more than one choice for a union.
fn walk(steps: &str, path: &str) -> Result<Vec<Vec<String>>, JsonPathError> {
    let fault = |why: &str| JsonPathError(format!("cannot read the path \"{path}\": {why}"));
    let mut found = Vec::new();
    let mut rest = steps;
    while !rest.is_empty() {
        let descend = rest.starts_with("..");
        rest = rest.strip_prefix('.').unwrap_or(rest);
        rest = rest.strip_prefix('.').unwrap_or(rest);
        let mut choices = if let Some(inside) = rest.strip_prefix('[') {
            let end = end_of(inside, |c| c == ']').ok_or_else(|| fault("missing ]"))?;
            rest = &inside[end + 1..];
            bracket(inside[..end].trim(), path)?
        } else {
            let (name, after) = name(rest);
            rest = after;
            if name.is_empty() {
                return Err(fault("a name is missing"));
            }
            vec![if name == "*" { "[*]".to_owned() } else { quote_name(&name) }]
        };
        if descend {
            for choice in &mut choices {
                choice.insert_str(0, "..");
            }
        }
        found.push(choices);
    }
    Ok(found)
}

/// Reads a name up to the next dot or bracket that no backslash protects.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.extend(letters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, &text[at..]),
            other => name.push(other),
        }
    }
    (name, "")
}

fn bracket(inside: &str, path: &str) -> Result<Vec<String>, JsonPathError> {
    if let Some(filter) = inside.strip_prefix('?') {
        return Ok(vec![format!("[?{}]", condition(filter, path)?)]);
    }
    let mut choices = Vec::new();
    let mut rest = inside;
    loop {
        let end = end_of(rest, |c| c == ',').unwrap_or(rest.len());
        let part = rest[..end].trim();
        if part.starts_with(['\'', '"']) {
            if part.len() < 2 || literal_length(part) != part.len() {
                return Err(JsonPathError(format!(
                    "cannot read the path \"{path}\": missing quote"
                )));
            }
            let steps = walk(&format!(".{}", &part[1..part.len() - 1]), path)?;
            choices.push(steps.concat().concat());
        } else {
            choices.push(format!("[{part}]"));
        }
        if end == rest.len() {
            return Ok(choices);
        }
        rest = &rest[end + 1..];
    }
}

/// Rewrites the paths inside a filter; operators and literals stay.
fn condition(filter: &str, path: &str) -> Result<String, JsonPathError> {
    let mut out = String::new();
    let mut rest = filter;
    while let Some(letter) = rest.chars().next() {
        let length = match letter {
            '@' | '$' => {
                let end = end_of(rest, |c| " \t=!<>&|)".contains(c)).unwrap_or(rest.len());
                let steps = walk(&rest[1..end], path)?;
                out.push(letter);
                out.push_str(&steps.concat().concat());
                rest = &rest[end..];
                continue;
            }
            '\'' | '"' => literal_length(rest),
            other => other.len_utf8(),
        };
        out.push_str(&rest[..length]);
        rest = &rest[length..];
    }
    Ok(out)
}

fn quote_name(name: &str) -> String {
    format!("['{}']", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// Returns the length in bytes of the quoted text at the start of `text`, both quotes included.
fn literal_length(text: &str) -> usize {
    let mut letters = text.char_indices();
    let quote = letters.next().map(|(_, quote)| quote);
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if Some(letter) == quote {
            return at + letter.len_utf8();
        }
    }
    text.len()
}

/// Finds the first letter that `is_end` accepts, outside of quotes and inner brackets.
pub(super) fn end_of(text: &str, is_end: impl Fn(char) -> bool) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(letter) = text[at..].chars().next() {
        if depth == 0 && is_end(letter) {
            return Some(at);
        }
        match letter {
            '\'' | '"' => {
                at += literal_length(&text[at..]);
                continue;
            }
            '\\' => at += 1,
            '[' | '(' => depth += 1,
            ']' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += text[at..].chars().next().map_or(0, char::len_utf8);
    }
    None
}

/// Reads a quoted text with the escapes `\n`, `\t`, `\r`, `\"`, `\'` and `\\`.
pub(super) fn unquote(word: &str) -> Result<String, JsonPathError> {
    if word.len() < 2 || literal_length(word) != word.len() || !word.ends_with(['"', '\'']) {
        return Err(JsonPathError(format!("missing quote after {word}")));
    }
    let mut text = String::new();
    let mut letters = word[1..word.len() - 1].chars();
    while let Some(letter) = letters.next() {
        if letter != '\\' {
            text.push(letter);
            continue;
        }
        match letters.next() {
            Some('n') => text.push('\n'),
            Some('t') => text.push('\t'),
            Some('r') => text.push('\r'),
            Some(other) => text.push(other),
            None => {}
        }
    }
    Ok(text)
}

/// Error of a path that cannot be read, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonPathError(pub(super) String);

impl fmt::Display for JsonPathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for JsonPathError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, expected: &[&str]) {
        assert_eq!(standard(path).unwrap().1, expected, "{path}");
    }

    #[test]
    fn paths_become_standard_ones() {
        check(".a.b", &["$['a']['b']"]);
        check(r".a.b\.c/d", &["$['a']['b.c/d']"]);
        check("..name", &["$..['name']"]);
        check(".a[*].b", &["$['a'][*]['b']"]);
        check(".a.*", &["$['a'][*]"]);
        check("@", &["$"]);
        check(".", &["$"]);
        check(".a['b.c', 'd']", &["$['a']['b']['c']", "$['a']['d']"]);
        check(".a[?(@.b-c == 'x y')]", &["$['a'][?(@['b-c'] == 'x y')]"]);
        check(".a[1:3]", &["$['a'][1:3]"]);
    }

    #[test]
    fn a_dollar_starts_at_the_document() {
        assert_eq!(standard("$.a").unwrap().0, Root::Document);
        assert_eq!(standard("@.a").unwrap().0, Root::Current);
        assert_eq!(standard(".a").unwrap().0, Root::Current);
    }

    #[test]
    fn quoted_text_knows_its_escapes() {
        assert_eq!(unquote(r#""a\tb\n""#).unwrap(), "a\tb\n");
        assert_eq!(unquote(r"'it\'s'").unwrap(), "it's");
        assert_eq!(unquote("\"open").unwrap_err().to_string(), "missing quote after \"open");
    }
}
