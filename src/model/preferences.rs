//! Lists in fields that cert-manager reads as one text, such as `profile: shortlived,classic`: the first offered one counts.

/// Returns the choices in a text, the most wanted first: the whole text, for a name may hold a comma, then its parts.
pub fn choices(text: &str) -> impl Iterator<Item = &str> {
    let parts = text.split(',').map(str::trim).filter(move |part| *part != text);
    std::iter::once(text).chain(parts).filter(|choice| !choice.is_empty())
}

/// Returns the first choice that is offered.
pub fn first_offered(text: &str, is_offered: impl Fn(&str) -> bool) -> Option<&str> {
    choices(text).find(|choice| is_offered(choice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_its_own_first_choice_and_its_parts_are_the_next() {
        for (text, expected) in [
            ("", vec![]),
            ("classic", vec!["classic"]),
            ("shortlived,classic", vec!["shortlived,classic", "shortlived", "classic"]),
            (" a , ,b", vec![" a , ,b", "a", "b"]),
            (",", vec![","]),
        ] {
            assert_eq!(choices(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_that_is_offered_counts() {
        for (text, expected) in [
            ("shortlived,classic", Some("classic")),
            ("classic, tls", Some("classic")),
            ("tls,classic", Some("tls")),
            ("Root, Inc.", Some("Root, Inc.")),
            ("none", None),
            ("", None),
        ] {
            let offered = ["tls", "classic", "Root, Inc."];
            assert_eq!(first_offered(text, |name| offered.contains(&name)), expected, "{text}");
        }
    }
}
