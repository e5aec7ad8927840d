//! Spellings of names and texts at providers.

use std::fmt::Write as _;

use crate::model::text::is_steering;

/// Returns a name without the final dot.
pub(super) fn relative(name: &str) -> &str {
    name.trim_end_matches('.')
}

/// Returns a name with the final dot.
pub(super) fn absolute(name: &str) -> String {
    format!("{}.", relative(name))
}

/// Returns whether two names are equal, whatever their case and with or without the final dot.
pub(super) fn same_name(one: &str, other: &str) -> bool {
    relative(one).eq_ignore_ascii_case(relative(other))
}

/// Returns the part of an absolute name before the zone: `_acme-challenge.www` of
/// `_acme-challenge.www.example.com.`; `None` for the zone itself and for a name outside of the zone.
pub(super) fn below<'a>(name: &'a str, zone: &str) -> Option<&'a str> {
    let (name, zone) = (relative(name), relative(zone));
    let at = name.len().checked_sub(zone.len())?;
    let (head, tail) = (name.get(..at)?, name.get(at..)?);
    if !tail.eq_ignore_ascii_case(zone) {
        return None;
    }
    head.strip_suffix('.').filter(|head| !head.is_empty())
}

/// Returns the text of a TXT record without the quotes of some providers: `"abc" "def"`.
pub(super) fn unquoted(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) => inner.replace("\" \"", ""),
        None => text.to_owned(),
    }
}

/// Returns the text of a TXT record in quotes; a long text becomes several strings of at most 255 characters.
pub(super) fn quoted(text: &str) -> String {
    let strings = text.as_bytes().chunks(255).map(String::from_utf8_lossy);
    let strings: Vec<String> = strings.map(|string| format!("\"{string}\"")).collect();
    if strings.is_empty() { "\"\"".to_owned() } else { strings.join(" ") }
}

/// Percent-encodes a part of a URL, except unreserved characters (RFC 3986 §2.3), as AWS wants it for signatures, too.
pub(super) fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(byte.into());
            }
            // Writing to a String cannot fail.
            _ => write!(encoded, "%{byte:02X}").unwrap_or_default(),
        }
    }
    encoded
}

/// Returns a foreign text as one line, without characters that steer terminals, no longer than a status should be.
pub(super) fn one_line(text: &str) -> String {
    const MAX_CHARS: usize = 300;
    let blank = |c: char| c.is_whitespace() || is_steering(c);
    let words = text.split(blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(MAX_CHARS) {
        Some((at, _)) => format!("{}…", &words[..at]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_split_at_its_zone() {
        for (name, zone, expected) in [
            ("_acme-challenge.www.example.com.", "example.com.", Some("_acme-challenge.www")),
            ("_acme-challenge.Example.com", "example.COM.", Some("_acme-challenge")),
            ("example.com.", "example.com.", None),
            ("_acme-challenge.notexample.com.", "example.com.", None),
            ("com.", "example.com.", None),
            ("ü.example.com.", "example.com", Some("ü")),
        ] {
            assert_eq!(below(name, zone), expected, "{name} in {zone}");
        }
    }

    #[test]
    fn quotes_are_no_part_of_a_text() {
        for (text, expected) in
            [("\"abc\"", "abc"), ("abc", "abc"), ("\"ab\" \"c\"", "abc"), ("\"", "\""), ("", "")]
        {
            assert_eq!(unquoted(text), expected);
        }
        assert_eq!(unquoted(&quoted("abc")), "abc");
        assert_eq!(quoted(""), "\"\"");
        let long = "x".repeat(300);
        assert_eq!((quoted(&long).len(), unquoted(&quoted(&long))), (305, long));
    }

    #[test]
    fn only_unreserved_characters_stay() {
        assert_eq!(encoded("a-b_c.d~e f/g:ü"), "a-b_c.d~e%20f%2Fg%3A%C3%BC");
    }

    #[test]
    fn what_others_wrote_is_cut_to_a_line() {
        assert_eq!(one_line(" a\n\tb  c "), "a b c");
        assert_eq!(one_line("\u{1b}[2Ja\0b\u{9b}31m\u{7f}"), "[2Ja b 31m");
        let long = one_line(&"ü".repeat(1000));
        assert_eq!((long.chars().count(), long.ends_with('…')), (301, true));
    }
}
