//! Random values of a store: UIDs and the ends of generated names.

use uuid::Builder;

use super::error::StoreError;
use crate::surroundings::Environment;

/// Characters of generated names: no vowels and nothing that looks alike, so that no words come out.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters added to a `generateName`.
const SUFFIX_CHARS: usize = 5;
/// Longest `generateName` that is used whole; a longer one is cut, so that the name stays a label (RFC 1123 §2.1).
const MAX_PREFIX_CHARS: usize = 63 - SUFFIX_CHARS;

/// Draws a UID: a version 4 UUID (RFC 9562 §5.4).
pub(super) fn uid(from: &Environment) -> Result<String, StoreError> {
    Ok(Builder::from_random_bytes(draw(from)?).into_uuid().to_string())
}

/// Makes a name from a `generateName`.
pub(super) fn name(prefix: &str, from: &Environment) -> Result<String, StoreError> {
    let mut number = u64::from_be_bytes(draw(from)?);
    let mut name: String = prefix.chars().take(MAX_PREFIX_CHARS).collect();
    for _ in 0..SUFFIX_CHARS {
        // 27^5 divides into 2^64 a million million times: the draw is even enough.
        let index = usize::try_from(number % 27).unwrap_or_default();
        name.push(char::from(ALPHABET[index]));
        number /= 27;
    }
    Ok(name)
}

/// Replaces the drawn ends of names for that `generateName` by an ellipsis, so that a text is equal at each draw.
pub(super) fn without_draws(text: &str, prefix: &str) -> String {
    let prefix: String = prefix.chars().take(MAX_PREFIX_CHARS).collect();
    let is_drawn = |rest: &str| {
        let Some((drawn, rest)) = rest.split_at_checked(SUFFIX_CHARS) else { return false };
        drawn.bytes().all(|byte| ALPHABET.contains(&byte))
            && !rest.starts_with(|next: char| next == '-' || next.is_ascii_alphanumeric())
    };
    let mut pieces = text.split(&prefix);
    let mut stable = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        stable.push_str(&prefix);
        if is_drawn(piece) {
            stable.push('…');
            stable.push_str(&piece[SUFFIX_CHARS..]);
        } else {
            stable.push_str(piece);
        }
    }
    stable
}

fn draw<const N: usize>(from: &Environment) -> Result<[u8; N], StoreError> {
    from.draw().map_err(|_| StoreError::Unusable {
        place: "this machine".into(),
        why: "its random number generator failed".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uid() -> Result<String, StoreError> {
        super::uid(&Environment::default())
    }

    fn name(prefix: &str) -> Result<String, StoreError> {
        super::name(prefix, &Environment::default())
    }

    #[test]
    fn a_uid_is_a_random_uuid() {
        let uid = uid().unwrap();
        let lengths: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&uid[14..15], "4");
        assert!(matches!(&uid[19..20], "8" | "9" | "a" | "b"));
        assert_ne!(uid, self::uid().unwrap());
    }

    #[test]
    fn a_generated_name_has_five_characters_more() {
        let name = name("web-").unwrap();
        let suffix = name.strip_prefix("web-").unwrap();
        assert_eq!(suffix.len(), 5);
        assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)), "{suffix}");
    }

    #[test]
    fn a_long_prefix_is_cut_so_that_the_name_stays_a_label() {
        assert_eq!(name(&"a".repeat(80)).unwrap().len(), 63);
    }

    #[test]
    fn a_text_about_a_generated_name_is_the_same_at_each_draw() {
        let long = "a".repeat(80);
        for prefix in ["cm-acme-http-solver-", "web-1-", &long] {
            let say = |name: &str| format!("pods \"{name}\" is forbidden: {name}, and {name}.");
            let told = || without_draws(&say(&name(prefix).unwrap()), prefix);
            let cut = &prefix[..prefix.len().min(MAX_PREFIX_CHARS)];
            assert_eq!((told(), told()), (say(&format!("{cut}…")), told()));
        }
        for other in
            ["no name", "web-", "web-bcdf", "web-other", "web-bcdfg-2", "web-bcdfgh", "web-öööb"]
        {
            assert_eq!(without_draws(other, "web-"), other);
        }
    }
}
