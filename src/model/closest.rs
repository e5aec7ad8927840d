//! Known word that an unknown word was probably meant to be.

use strsim::osa_distance;

/// Returns the word that was probably meant: at most two letters wrong, missing, too many or swapped; one in short words.
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
