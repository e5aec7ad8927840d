//! Texts that others wrote: what in them steers a terminal instead of saying something.

/// Tells whether a character steers a terminal or turns the direction of the text around it (Unicode UAX #9): controls of
/// both ranges, line breaks and tabs among them, and the embeddings, overrides and isolates.
pub fn is_steering(character: char) -> bool {
    character.is_control() || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Puts a blank in the place of everything that steers; line breaks and tabs stay.
pub fn without_steering(text: &str) -> String {
    let steers = |c: char| is_steering(c) && !matches!(c, '\n' | '\t');
    text.replace(steers, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
