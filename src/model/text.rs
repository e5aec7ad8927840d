//! Texts that others wrote: removal of characters that steer a terminal, shortening, and the known word that an unknown
//! word was probably meant to be.

use strsim::osa_distance;

/// Reports whether a character steers a terminal or turns the direction of the text around it (Unicode UAX #9):
/// controls of both ranges, line breaks and tabs among them, and the embeddings, overrides and isolates.
pub fn is_steering(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Puts a blank in the place of every steering character; line breaks and tabs stay.
pub fn without_steering(text: &str) -> String {
    let steers = |c: char| is_steering(c) && !matches!(c, '\n' | '\t');
    text.replace(steers, " ")
}

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

/// Cuts a text to a number of characters; a text that was cut ends with a note of its full length.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}… (cut: {} characters)", &text[..at], text.chars().count()),
    }
}

/// Joins the first items of a list, each cut to a length, and the number of further items.
pub fn listed<S: AsRef<str>>(
    items: impl ExactSizeIterator<Item = S>,
    most: usize,
    longest: usize,
) -> String {
    let more = items.len().saturating_sub(most);
    let mut shown: Vec<String> =
        items.take(most).map(|item| shortened(item.as_ref(), longest)).collect();
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// Returns the known word that was probably meant: at most two letters wrong, missing, too many or swapped; one in short words.
pub(crate) fn closest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = if text.chars().count() <= 4 { 1 } else { 2 };
    let lower = text.to_lowercase();
    known
        .map(|word| (osa_distance(&lower, &word.to_lowercase()), word))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_has_two_digits() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }

    #[test]
    fn what_is_cut_says_so() {
        for (text, expected) in
            [("", ""), ("größe", "größe"), ("größer", "größe… (cut: 6 characters)")]
        {
            assert_eq!(shortened(text, 5), expected);
        }
        let names = ["a", "bcd", "e"];
        assert_eq!(listed(names.iter(), 3, 3), "a, bcd, e");
        assert_eq!(listed(names.iter(), 2, 2), "a, bc… (cut: 3 characters), and 1 more");
    }

    #[test]
    fn what_steers_a_terminal_becomes_blank() {
        for (text, expected) in [
            ("\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m", " ]0;owned  [2J 31m"),
            ("over\rwritten\u{8}\u{7f}", "over written  "),
            ("\u{202e}gpj.exe\u{2069}", " gpj.exe "),
            ("two\nlines\tof ünïcode \u{2026}", "two\nlines\tof ünïcode \u{2026}"),
        ] {
            assert_eq!(without_steering(text), expected, "{text:?}");
        }
    }

    #[test]
    fn what_was_probably_meant_is_close() {
        let known = ["dnsNames", "ipAddresses", "uris", "key"];
        for (text, expected) in [
            ("dnsName", Some("dnsNames")),
            ("dnsnames", Some("dnsNames")),
            ("dsnNames", Some("dnsNames")),
            ("ipAdresses", Some("ipAddresses")),
            ("url", None),
            ("uri", Some("uris")),
            ("domains", None),
        ] {
            assert_eq!(closest(text, known.into_iter()), expected, "{text}");
        }
    }
}
