//! Names that public CAs take (Boulder's `policy/pa.go`): each rule with the first byte that breaks it, without a request.

use std::fmt;

use url::Host;

use crate::diagnosis::catalogue::id::CauseId;
use crate::model::{Identifier, reserved};

/// Maximum number of labels of a name at Let's Encrypt.
const MAX_LABELS: usize = 10;
/// Maximum number of bytes of a label, and of a name (RFC 1035 §2.3.4).
const MAX_LABEL_BYTES: usize = 63;
const MAX_NAME_BYTES: usize = 253;

/// Rule that a name breaks, and the place in the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFault {
    /// Number of the first wrong byte, from 1.
    pub byte: usize,
    /// Text from the wrong byte on.
    pub rest: String,
    /// The rule.
    pub why: &'static str,
}

impl fmt::Display for NameFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {}, {:?})", self.why, self.byte, self.rest)
    }
}

/// Last labels below which names have no owner (RFC 2606, RFC 6761, RFC 6762, RFC 7686; ICANN's list of collisions).
const NEVER_PUBLIC: [&str; 13] = [
    "local",
    "localhost",
    "localdomain",
    "internal",
    "intranet",
    "lan",
    "home",
    "corp",
    "mail",
    "test",
    "example",
    "invalid",
    "onion",
];
/// Last two labels below which names have no owner.
const NEVER_PUBLIC_PAIRS: [&str; 2] = ["home.arpa", "cluster.local"];

/// Reason why no public CA certifies a name or an address for any account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotPublic {
    /// An address of this reserved block.
    Address(&'static str),
    /// A name that breaks a rule.
    Form(NameFault),
    /// A name of one label.
    OneLabel,
    /// A name below this suffix.
    Suffix(String),
    /// A name that is itself a suffix below which others have their domains, or a wildcard for all of these domains.
    PublicSuffix,
}

impl NotPublic {
    /// Returns the cause of the catalogue that explains the reason.
    pub fn cause(&self) -> CauseId {
        match self {
            Self::Form(_) => CauseId::Cfg10,
            Self::OneLabel | Self::Suffix(_) | Self::PublicSuffix => CauseId::Cfg12,
            Self::Address(_) => CauseId::Cfg21,
        }
    }
}

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(block) => write!(f, "the address is not public: {block}"),
            Self::Form(fault) => fault.fmt(f),
            Self::OneLabel => f.write_str("it has one label only"),
            Self::Suffix(suffix) => write!(f, "{suffix} is no public suffix"),
            Self::PublicSuffix => {
                f.write_str("it is a public suffix, below which others have their domains")
            }
        }
    }
}

/// Returns why no public CA certifies a name or an address; `None` if a public CA may certify it.
pub fn refusal(identifier: &Identifier) -> Option<NotPublic> {
    let name = match identifier {
        Identifier::Ip(address) => return reserved::block(*address).map(NotPublic::Address),
        Identifier::Dns(name) => name,
    };
    if let Some(fault) = fault(name.as_str()) {
        return Some(NotPublic::Form(fault));
    }
    let base = name.base();
    let last = base.rsplit('.').next().unwrap_or_default();
    let is_below = |pair: &&str| base == *pair || base.ends_with(&format!(".{pair}"));
    if let Some(pair) = NEVER_PUBLIC_PAIRS.iter().find(|pair| is_below(pair)) {
        return Some(NotPublic::Suffix((*pair).to_owned()));
    }
    if NEVER_PUBLIC.contains(&last) {
        return Some(NotPublic::Suffix(last.to_owned()));
    }
    if !base.contains('.') {
        return Some(NotPublic::OneLabel);
    }
    is_of_registry(base).then_some(NotPublic::PublicSuffix)
}

/// Reports whether a zone is a registry's, so that no domain holder changes its records: a name of the public suffix list's
/// ICANN section (a private one may be its owner's). A suffix that the list lacks may be newer than this program.
pub fn is_of_registry(zone: &str) -> bool {
    psl::suffix(zone.as_bytes())
        .is_some_and(|suffix| suffix.typ() == Some(psl::Type::Icann) && suffix == zone)
}

/// Returns the first rule that a name as ordered breaks, a wildcard with its `*.`; `None` if a public CA may take the name.
pub fn fault(name: &str) -> Option<NameFault> {
    let (at, why) = first_fault(name)?;
    let rest = name.get(at..).unwrap_or_default().chars().take(MAX_LABEL_BYTES).collect();
    Some(NameFault { byte: at + 1, rest, why })
}

fn first_fault(name: &str) -> Option<(usize, &'static str)> {
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
    if name.len() > MAX_NAME_BYTES {
        return Some((MAX_NAME_BYTES, "a name has at most 253 bytes"));
    }
    if base.ends_with('.') {
        return Some((name.len() - 1, "a name does not end with a dot"));
    }
    let mut at = before;
    for (number, label) in base.split('.').enumerate() {
        if let Some(broken) = of_label(label) {
            return Some((at + broken.0, broken.1));
        }
        if number == MAX_LABELS {
            return Some((at, "a name has at most ten labels"));
        }
        at += label.len() + 1;
    }
    if !base.contains('.') && before > 0 {
        return Some((before, "a wildcard stands below a domain, not below a public suffix"));
    }
    None
}

/// Returns the first wrong byte of a label, and the rule that the label breaks.
fn of_label(label: &str) -> Option<(usize, &'static str)> {
    if label.is_empty() {
        return Some((0, "two dots do not follow each other"));
    }
    if label.len() > MAX_LABEL_BYTES {
        return Some((MAX_LABEL_BYTES, "a label has at most 63 bytes"));
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
    fn names_of_nobody_and_addresses_inside_are_for_no_public_ca() {
        for (name, expected) in [
            ("localhost", "localhost is no public suffix"),
            ("printer", "it has one label only"),
            ("com", "it has one label only"),
            ("a.b.internal", "internal is no public suffix"),
            ("nas.local", "local is no public suffix"),
            ("co.uk", "it is a public suffix, below which others have their domains"),
            ("*.com.br", "it is a public suffix, below which others have their domains"),
            ("nas.home.arpa", "home.arpa is no public suffix"),
            ("web.shop.svc.cluster.local", "cluster.local is no public suffix"),
            ("*.acme.test", "test is no public suffix"),
            (
                "a_b.example.org",
                "letters, digits and hyphens are all that may stand in a label (byte 2, \"_b.example.org\")",
            ),
            ("10.0.0.1", "the address is not public: [RFC1918]: Private-Use"),
            ("::1", "the address is not public: [RFC4291]: Loopback Address"),
        ] {
            let found = refusal(&Identifier::parse(name).unwrap()).map(|why| why.to_string());
            assert_eq!(found.as_deref(), Some(expected), "{name}");
        }
        for name in [
            "example.com",
            "*.example.org",
            "9.9.9.9",
            "2620:fe::9",
            "xn--bcher-kva.com",
            "shop.co.uk",
            "*.shop.co.uk",
            "github.io",
            "www.newer-than-this-list",
        ] {
            assert_eq!(refusal(&Identifier::parse(name).unwrap()), None, "{name}");
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
