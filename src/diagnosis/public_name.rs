//! The names that public CAs take (Boulder's `policy/pa.go`): each rule with the first byte that breaks it, without asking anybody.

use std::fmt;

use url::Host;

/// Most labels of a name at Let's Encrypt.
const LABELS: usize = 10;
/// Most bytes of a label, and of a name (RFC 1035 §2.3.4).
const LABEL: usize = 63;
const NAME: usize = 253;

/// The rule that a name breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFault {
    /// The first byte that is wrong, from 1.
    pub byte: usize,
    /// What stands from there on.
    pub rest: String,
    /// The rule.
    pub why: &'static str,
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {}, {:?})", self.why, self.byte, self.rest)
    }
}

/// The first rule that a name breaks, as it is ordered, a wildcard as such; nothing where a public CA may take it.
pub fn fault(name: &str) -> Option<NameFault> {
    let (at, why) = broken(name)?;
    let rest = name.get(at..).unwrap_or_default().chars().take(LABEL).collect();
    Some(NameFault { byte: at + 1, rest, why })
}

fn broken(name: &str) -> Option<(usize, &'static str)> {
    let base = name.strip_prefix("*.").unwrap_or(name);
    let before = name.len() - base.len();
    if let Some(at) = base.find('*') {
        return Some((before + at, "a wildcard is one * before the first dot"));
    }
    let is_taken = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if let Some(at) = base.find(|c: char| !is_taken(c)) {
        return Some((
            before + at,
            "letters, digits and hyphens are all that may stand in a label",
        ));
    }
    if name.len() > NAME {
        return Some((NAME, "a name has at most 253 bytes"));
    }
    if base.ends_with('.') {
        return Some((name.len() - 1, "a name does not end with a dot"));
    }
    let mut at = before;
    for (number, label) in base.split('.').enumerate() {
        if let Some(broken) = of_label(label) {
            return Some((at + broken.0, broken.1));
        }
        if number == LABELS {
            return Some((at, "a name has at most ten labels"));
        }
        at += label.len() + 1;
    }
    if !base.contains('.') && before > 0 {
        return Some((before, "a wildcard stands below a domain, not below a public suffix"));
    }
    None
}

/// What is wrong with a label, and from which byte of it on.
fn of_label(label: &str) -> Option<(usize, &'static str)> {
    if label.is_empty() {
        return Some((0, "two dots do not follow each other"));
    }
    if label.len() > LABEL {
        return Some((LABEL, "a label has at most 63 bytes"));
    }
    if label.starts_with('-') {
        return Some((0, "a label does not begin with a hyphen"));
    }
    if label.ends_with('-') {
        return Some((label.len() - 1, "a label does not end with a hyphen"));
    }
    let is_encoded = label.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("xn--"));
    (is_encoded && Host::parse(&format!("{label}.com")).is_err())
        .then_some((0, "the punycode of a label has to decode"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_boulder_refuses_is_refused_at_the_byte_that_is_wrong() {
        let (long, name) = ("x".repeat(64), format!("{}example.com", "abcdefgh.".repeat(28)));
        for (name, byte, rest) in [
            ("a_b.example.com", 2, "_b.example.com"),
            ("-a.example.com", 1, "-a.example.com"),
            ("a-.example.com", 2, "-.example.com"),
            ("*.*.example.com", 3, "*.example.com"),
            ("a.*.example.com", 3, "*.example.com"),
            ("example.com.", 12, "."),
            ("a..example.com", 3, ".example.com"),
            (&format!("{long}.example.com"), 64, "x.example.com"),
            ("xn--0.example.com", 1, "xn--0.example.com"),
            ("bücher.com", 2, "ücher.com"),
            ("example.com:80", 12, ":80"),
            ("a.b.c.d.e.f.g.h.i.example.com", 27, "com"),
            ("*.com", 3, "com"),
            (&name, 254, "xample.com"),
        ] {
            let found = fault(name).unwrap_or_else(|| panic!("{name} is refused by Boulder"));
            let start = name.get(found.byte - 1..).unwrap();
            assert_eq!((found.byte, found.rest.as_str()), (byte, rest), "{name}: {found}");
            assert!(start.starts_with(&found.rest), "{name}");
        }
    }

    #[test]
    fn what_boulder_takes_is_taken() {
        for name in [
            "www.example.com",
            "*.example.com",
            "1.example.com",
            "a--b.example.com",
            "xn--bcher-kva.com",
            "a.b.c.d.e.f.g.h.example.com",
            // It has one label, which is no matter of its form.
            "localhost",
        ] {
            assert_eq!(fault(name), None, "{name}");
        }
    }
}
