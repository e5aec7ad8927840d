//! Reasons why a CA refuses a new order, beyond the type of the problem: Boulder has one type for many rules, and a
//! sentence for each rule. Our own CA and others have taken over Boulder's wording.

use crate::model::Problem;

/// Part of an order that the CA does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedOrderPart {
    /// The form of a name.
    NameForm,
    /// The end of a name, which is no public suffix.
    Suffix,
    /// An IP address.
    Address,
    /// The number of names.
    TooMany,
    /// The dates of the certificate.
    Dates,
    /// A name, by a list of the CA.
    Policy,
}

/// Messages of CAs, each with the part of the order that is refused.
const REFUSED_WISHES: &[(&str, RefusedOrderPart)] = &[
    ("does not permit IP address", RefusedOrderPart::Address),
    ("IP address in Common Name", RefusedOrderPart::Address),
    ("IP address is in a reserved address block", RefusedOrderPart::Address),
    ("Order cannot contain more than", RefusedOrderPart::TooMany),
    ("NotBefore and NotAfter are not supported", RefusedOrderPart::Dates),
    ("does not end with a valid public suffix", RefusedOrderPart::Suffix),
    ("contains an invalid character", RefusedOrderPart::NameForm),
    ("more than one wildcard", RefusedOrderPart::NameForm),
    ("contains an invalid wildcard", RefusedOrderPart::NameForm),
    ("is a wildcard for an ICANN TLD", RefusedOrderPart::NameForm),
    ("ends in a dot", RefusedOrderPart::NameForm),
    ("two dots in a row", RefusedOrderPart::NameForm),
    ("longer than 63 bytes", RefusedOrderPart::NameForm),
    ("longer than 253 bytes", RefusedOrderPart::NameForm),
    ("contains malformed punycode", RefusedOrderPart::NameForm),
    ("has more than 10 labels", RefusedOrderPart::NameForm),
    ("needs at least one dot", RefusedOrderPart::Suffix),
];

/// Reads which part of an order a CA refuses; `None` for another problem.
pub fn refused_wish(problem: &Problem) -> Option<RefusedOrderPart> {
    let kind = problem.short_kind();
    let is_of_wish = matches!(kind, "rejectedIdentifier" | "malformed" | "badCSR");
    let said = REFUSED_WISHES.iter().find(|(words, _)| problem.detail.contains(words));
    let said = said.filter(|_| is_of_wish).map(|(_, wish)| *wish);
    let of_name =
        || (kind == "malformed" && problem.is_of_name()).then_some(RefusedOrderPart::NameForm);
    said.or_else(|| (kind == "rejectedIdentifier").then_some(RefusedOrderPart::Policy))
        .or_else(of_name)
}

/// Part of a signing request that a CA does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedRequest {
    /// The key, or the algorithm that signs with the key.
    Key,
    /// The names, or a part that the CA does not name.
    Names,
}

/// Words about the key of a signing request, in lower case.
const KEY_WORDS: [&str; 14] = [
    "algorithm",
    "public key",
    "key size",
    "key length",
    "key type",
    "keytype",
    "weak key",
    "curve",
    "rsa",
    "ecdsa",
    "ed25519",
    "modulus",
    "unsupported key",
    "key is",
];

/// Reads which part of a signing request a CA refuses with `badCSR`.
pub fn refused_request(problem: &Problem) -> RefusedRequest {
    let own = std::iter::once(&problem.detail);
    let said = own.chain(problem.subproblems.iter().map(|sub| &sub.detail));
    // Quoted names say nothing about the reason.
    let is_plain = |word: &&str| !word.trim_end_matches(['.', ',', ':']).contains('.');
    let plain = |said: &String| {
        said.split_whitespace().filter(is_plain).collect::<Vec<_>>().join(" ").to_ascii_lowercase()
    };
    let is_of_key = said.map(plain).any(|detail| {
        let is_of_names = NAMES_WORDS.iter().any(|words| detail.contains(words));
        !is_of_names && KEY_WORDS.iter().any(|words| has_words(&detail, words))
    });
    if is_of_key { RefusedRequest::Key } else { RefusedRequest::Names }
}

/// Words about the names of a signing request, in lower case: a message with these words only mentions a key, if at all.
const NAMES_WORDS: [&str; 5] =
    ["common name", "identifiers as order", "subject alternative", "dnsname", "dns name"];

/// Reports whether a text has these words, and not as a part of longer words: `rsa` is no part of `universal`.
fn has_words(text: &str, words: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase());
    text.match_indices(words).any(|(at, _)| {
        !is_letter(text[..at].chars().next_back())
            && !is_letter(text[at + words.len()..].chars().next().filter(|c| *c != 's'))
    })
}

/// Reports whether a CA says that an authorization takes no answer any more.
pub fn is_no_longer_pending(problem: &Problem) -> bool {
    problem.detail.contains("authorization must be pending")
}

/// Reports whether a CA says that the new key for an account is the key of another account (RFC 8555 §7.3.5).
pub fn is_key_of_another_account(problem: &Problem) -> bool {
    problem.status == 409 && problem.detail.contains("already in use for a different account")
}

/// Reports whether a CA's problem is about CAA records, whatever the type of the problem.
pub fn is_about_caa(problem: &Problem) -> bool {
    problem.short_kind() == "caa" || problem.detail.starts_with("While processing CAA for ")
}

/// Reports whether a CA says that a request is signed with another key than its account's (wording of Boulder and Pebble).
pub fn says_key_is_another(problem: &Problem) -> bool {
    problem.short_kind() == "malformed" && problem.detail.contains("JWS verification error")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(kind: &str, detail: &str) -> Option<RefusedOrderPart> {
        let kind = format!("urn:ietf:params:acme:error:{kind}");
        refused_wish(&Problem { kind, detail: detail.into(), status: 400, ..Problem::default() })
    }

    #[test]
    fn a_signing_request_is_refused_for_its_key_or_for_its_names() {
        use RefusedRequest as R;
        for (detail, expected) in [
            ("CSR signature algorithm 'Ed25519' is not allowed", R::Key),
            ("signature algorithm not supported", R::Key),
            ("Invalid public key in CSR", R::Key),
            ("unsupported curve P-521", R::Key),
            ("RSA keys below 2048 bits are refused", R::Key),
            ("The key is too small", R::Key),
            ("CSR does not specify same identifiers as Order", R::Names),
            ("CSR contains rsa.example.com, key.curve.example and universal.example", R::Names),
            ("CSR common name is a domain the order does not cover; public key kept", R::Names),
            ("CSR validation failed", R::Names),
            ("", R::Names),
        ] {
            let kind = "urn:ietf:params:acme:error:badCSR".to_owned();
            let problem =
                Problem { kind, detail: detail.into(), status: 400, ..Problem::default() };
            assert_eq!(refused_request(&problem), expected, "{detail}");
        }
    }

    #[test]
    fn one_type_of_problem_means_many_things() {
        use RefusedOrderPart as R;
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
