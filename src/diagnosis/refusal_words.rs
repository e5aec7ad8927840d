//! What a CA refuses a new order for, beyond the type of its problem: Boulder has one type for many rules, and a sentence for each.
//! Our own CA and others have taken its words over.

use crate::model::Problem;

/// What an order asks for that the CA does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedWish {
    /// The form of a name.
    NameForm,
    /// The end of a name, which is no public suffix.
    Suffix,
    /// An IP address.
    Address,
    /// So many names.
    TooMany,
    /// The dates of the certificate.
    Dates,
    /// A name, by a list of the CA's.
    Policy,
}

/// What a CA says, each with what it means.
const WORDS: &[(&str, RefusedWish)] = &[
    ("does not permit IP address", RefusedWish::Address),
    ("IP address in Common Name", RefusedWish::Address),
    ("IP address is in a reserved address block", RefusedWish::Address),
    ("Order cannot contain more than", RefusedWish::TooMany),
    ("NotBefore and NotAfter are not supported", RefusedWish::Dates),
    ("does not end with a valid public suffix", RefusedWish::Suffix),
    ("contains an invalid character", RefusedWish::NameForm),
    ("more than one wildcard", RefusedWish::NameForm),
    ("contains an invalid wildcard", RefusedWish::NameForm),
    ("is a wildcard for an ICANN TLD", RefusedWish::NameForm),
    ("ends in a dot", RefusedWish::NameForm),
    ("two dots in a row", RefusedWish::NameForm),
    ("longer than 63 bytes", RefusedWish::NameForm),
    ("longer than 253 bytes", RefusedWish::NameForm),
    ("contains malformed punycode", RefusedWish::NameForm),
    ("has more than 10 labels", RefusedWish::NameForm),
    ("needs at least one dot", RefusedWish::Suffix),
];

/// Reads why a CA refuses what an order asks for; nothing of another problem.
pub fn refused_wish(problem: &Problem) -> Option<RefusedWish> {
    let kind = problem.short_kind();
    let is_of_wish = matches!(kind, "rejectedIdentifier" | "malformed" | "badCSR");
    let said = WORDS.iter().find(|(words, _)| problem.detail.contains(words));
    let said = said.filter(|_| is_of_wish).map(|(_, wish)| *wish);
    said.or_else(|| (kind == "rejectedIdentifier").then_some(RefusedWish::Policy))
}

/// Tells whether a CA says that an authorization takes no answer any more.
pub fn is_no_longer_pending(problem: &Problem) -> bool {
    problem.detail.contains("authorization must be pending")
}

/// Tells whether a CA says that a key, which was to be the new one of an account, is that of another account (RFC 8555 §7.3.5).
pub fn is_key_of_another_account(problem: &Problem) -> bool {
    problem.status == 409 && problem.detail.contains("already in use for a different account")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(kind: &str, detail: &str) -> Option<RefusedWish> {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        refused_wish(&Problem { kind, detail: detail.into(), status: 400, ..Problem::default() })
    }

    #[test]
    fn one_type_of_problem_means_many_things() {
        use RefusedWish as R;
        let rejected =
            |why: &str| format!("Invalid identifiers requested :: Cannot issue for \"a\": {why}");
        for (kind, detail, expected) in [
            (
                "rejectedIdentifier",
                "Error creating new order :: Default profile does not permit IP address identifiers. See available profiles at https://letsencrypt.org/docs/profiles/.",
                Some(R::Address),
            ),
            (
                "rejectedIdentifier",
                &rejected("IP address is in a reserved address block: [RFC1918]: Private-Use"),
                Some(R::Address),
            ),
            (
                "malformed",
                "Error creating new order :: Order cannot contain more than 25 identifiers",
                Some(R::TooMany),
            ),
            ("malformed", "NotBefore and NotAfter are not supported", Some(R::Dates)),
            (
                "rejectedIdentifier",
                &rejected("Domain name contains an invalid character"),
                Some(R::NameForm),
            ),
            (
                "rejectedIdentifier",
                &rejected("Domain name does not end with a valid public suffix (TLD)"),
                Some(R::Suffix),
            ),
            ("rejectedIdentifier", &rejected("because it is forbidden by policy"), Some(R::Policy)),
            ("malformed", "Method not allowed", None),
            ("unauthorized", "contains an invalid character", None),
        ] {
            assert_eq!(wish(kind, detail), expected, "{detail}");
        }
    }
}
