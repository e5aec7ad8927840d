//! Identifiers that an order may name (RFC 8555 §7.4), in the words of Boulder's policy.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde::Deserialize;

use super::refusal::{Kind, Refusal};
use crate::model::{DnsName, Identifier};

/// Most identifiers in one order, as at Let's Encrypt.
const MAX_IDENTIFIERS: usize = 100;

const FORBIDDEN: &str = "The ACME server refuses to issue a certificate for this domain name, \
                         because it is forbidden by policy";

/// Identifier as the client requested it.
#[derive(Debug, Deserialize)]
pub(super) struct RequestedIdentifier {
    #[serde(rename = "type")]
    kind: String,
    value: String,
}

/// Checks the requested identifiers: shape first, policy only if every shape is right. The result is sorted and unique.
pub(super) fn check(
    wanted: &[RequestedIdentifier],
    blocked: &[DnsName],
) -> Result<Vec<Identifier>, Refusal> {
    if wanted.is_empty() {
        return Err(Refusal::malformed("NewOrder request did not specify any identifiers"));
    }
    let mut identifiers = BTreeSet::new();
    let mut misshapen = Vec::new();
    for wanted in wanted {
        match parse(wanted)? {
            Ok(identifier) => {
                identifiers.insert(identifier);
            }
            Err(why) => misshapen.push((wanted, why)),
        }
    }
    refuse("Invalid identifiers requested", Kind::Malformed, &misshapen)?;
    if identifiers.len() > MAX_IDENTIFIERS {
        let detail = format!(
            "Error creating new order :: Order cannot contain more than {MAX_IDENTIFIERS} identifiers"
        );
        return Err(Refusal::malformed(detail));
    }
    let unwelcome: Vec<_> = wanted
        .iter()
        .filter_map(|wanted| {
            Some((wanted, objection(&DnsName::parse(&wanted.value).ok()?, blocked)?))
        })
        .collect();
    refuse("Error creating new order", Kind::RejectedIdentifier, &unwelcome)?;
    if let Some(name) = redundant(&identifiers) {
        let detail = format!(
            "Error creating new order :: Domain name \"{name}\" is redundant with a wildcard domain in the same \
             request. Remove one or the other from the certificate request."
        );
        return Err(Refusal::malformed(detail));
    }
    Ok(identifiers.into_iter().collect())
}

/// Returns a name that a wildcard of the same order covers.
fn redundant(identifiers: &BTreeSet<Identifier>) -> Option<&DnsName> {
    let names = || {
        identifiers.iter().filter_map(|identifier| match identifier {
            Identifier::Dns(name) => Some(name),
            Identifier::Ip(_) => None,
        })
    };
    let covers = |wildcard: &DnsName, name: &DnsName| {
        let parent = name.as_str().split_once('.').map(|(_, parent)| parent);
        wildcard.is_wildcard() && !name.is_wildcard() && parent == Some(wildcard.base())
    };
    names().find(|name| names().any(|wildcard| covers(wildcard, name)))
}

/// Reads one identifier; the inner error is the fault of its shape.
fn parse(wanted: &RequestedIdentifier) -> Result<Result<Identifier, &'static str>, Refusal> {
    match wanted.kind.as_str() {
        "dns" => Ok(parse_name(&wanted.value).map(Identifier::Dns)),
        "ip" => Ok(wanted.value.parse().map(Identifier::Ip).map_err(|_| "IP address is invalid")),
        kind => {
            let detail = format!(
                "NewOrder request included unsupported identifier: type \"{kind}\", value \"{}\"",
                wanted.value
            );
            Err(Refusal::new(Kind::UnsupportedIdentifier, detail))
        }
    }
}

/// Reads a name strictly: the client normalises names of a manifest, not the CA.
fn parse_name(value: &str) -> Result<DnsName, &'static str> {
    const CHARACTER: &str = "Domain name contains an invalid character";
    const WILDCARD: &str = "Domain name contains an invalid wildcard. \
                            A wildcard is only permitted before the first dot in a domain name";
    if value.is_empty() {
        return Err("Identifier value (name) is empty");
    }
    let base = value.strip_prefix("*.").unwrap_or(value);
    if value.matches('*').count() > 1 {
        return Err("Domain name has more than one wildcard");
    }
    if base.contains('*') {
        return Err(WILDCARD);
    }
    if !value.chars().all(|c| c.is_ascii_alphanumeric() || "-.*".contains(c)) {
        return Err(CHARACTER);
    }
    if value.len() > 253 {
        return Err("Domain name is longer than 253 bytes");
    }
    if value.ends_with('.') {
        return Err("Domain name ends in a dot");
    }
    if value.parse::<IpAddr>().is_ok() {
        return Err("Identifier type is DNS but value is an IP address");
    }
    if !base.contains('.') {
        return Err("Domain name needs at least one dot");
    }
    if base.split('.').any(str::is_empty) {
        return Err("Domain name can not have two dots in a row");
    }
    if base.split('.').any(|label| label.len() > 63) {
        return Err("Domain has a label (component between dots) longer than 63 bytes");
    }
    if base.contains("xn--") && url::Host::parse(base).is_err() {
        return Err("Domain name contains malformed punycode");
    }
    DnsName::parse(value).map_err(|_| CHARACTER)
}

fn objection(name: &DnsName, blocked: &[DnsName]) -> Option<&'static str> {
    let is_below = |blocked: &DnsName| {
        name.base()
            .strip_suffix(blocked.base())
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    blocked.iter().any(is_below).then_some(FORBIDDEN)
}

/// Refuses if there are problems: a single problem alone, several problems with a subproblem each (§6.7.1).
fn refuse(
    deed: &str,
    kind_of_parts: Kind,
    problems: &[(&RequestedIdentifier, &'static str)],
) -> Result<(), Refusal> {
    let Some((wanted, why)) = problems.first() else {
        return Ok(());
    };
    let detail = format!("{deed} :: Cannot issue for \"{}\": {why}", wanted.value);
    if problems.len() == 1 {
        return Err(Refusal::new(Kind::RejectedIdentifier, detail));
    }
    let detail = format!(
        "{detail} (and {} more problems. Refer to sub-problems for more information.)",
        problems.len() - 1
    );
    let whole = Refusal::new(Kind::RejectedIdentifier, detail);
    Err(problems.iter().fold(whole, |whole, (wanted, why)| {
        let identifier = (wanted.kind.as_str(), wanted.value.as_str());
        whole.with_subproblem(kind_of_parts, &format!("{deed} :: {why}"), identifier)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[(&str, &str)], expected: Result<&[&str], &str>) {
        let wanted: Vec<_> = values
            .iter()
            .map(|(kind, value)| RequestedIdentifier {
                kind: (*kind).to_owned(),
                value: (*value).to_owned(),
            })
            .collect();
        let blocked = [DnsName::parse("blocked.test").unwrap()];
        let seen = super::check(&wanted, &blocked)
            .map(|identifiers| identifiers.iter().map(ToString::to_string).collect::<Vec<_>>())
            .map_err(|refusal| refusal.document()["detail"].as_str().unwrap().to_owned());
        match (&seen, expected) {
            (Ok(seen), Ok(expected)) => assert_eq!(seen, expected),
            (Err(seen), Err(expected)) => assert!(seen.contains(expected), "{seen}"),
            _ => panic!("{values:?}: {seen:?}"),
        }
    }

    #[test]
    fn identifiers_come_back_in_lower_case_sorted_and_once() {
        check(
            &[
                ("ip", "::1"),
                ("dns", "WWW.bed.test"),
                ("dns", "a.bed.test"),
                ("dns", "www.bed.test"),
            ],
            Ok(&["a.bed.test", "www.bed.test", "::1"]),
        );
    }

    #[test]
    fn a_misshapen_name_is_refused_with_the_reason() {
        for (value, why) in [
            ("localhost", "needs at least one dot"),
            ("bed.test.", "ends in a dot"),
            ("a_b.bed.test", "invalid character"),
            ("-a.bed.test", "invalid character"),
            ("bed.test:80", "invalid character"),
            ("bücher.test", "invalid character"),
            ("a..bed.test", "two dots in a row"),
            ("*.*.bed.test", "more than one wildcard"),
            ("a.*.bed.test", "invalid wildcard"),
            ("*", "invalid wildcard"),
            ("xn--0.bed.test", "malformed punycode"),
            ("192.0.2.1", "value is an IP address"),
            ("", "is empty"),
        ] {
            check(&[("dns", value)], Err(why));
        }
        check(&[("ip", "bed.test")], Err("IP address is invalid"));
        check(&[("email", "a@bed.test")], Err("unsupported identifier: type \"email\""));
        check(&[], Err("did not specify any identifiers"));
    }

    #[test]
    fn policy_comes_after_shape_and_covers_what_is_below_a_blocked_name() {
        check(&[("dns", "blocked.test")], Err("\"blocked.test\": The ACME server refuses"));
        check(&[("dns", "a.blocked.test")], Err("forbidden by policy"));
        check(&[("dns", "unblocked.test")], Ok(&["unblocked.test"]));
        check(&[("dns", "blocked.test"), ("dns", "a_b.test")], Err("\"a_b.test\": Domain name"));
    }

    #[test]
    fn a_wildcard_goes_with_its_base_but_not_with_a_name_that_it_covers() {
        let deep = ("dns", "a.b.bed.test");
        check(
            &[("dns", "*.bed.test"), ("dns", "bed.test"), deep],
            Ok(&["*.bed.test", "a.b.bed.test", "bed.test"]),
        );
        check(
            &[("dns", "*.bed.test"), ("dns", "a.bed.test")],
            Err(
                "Domain name \"a.bed.test\" is redundant with a wildcard domain in the same request",
            ),
        );
        check(&[("dns", "*.blocked.test")], Err("forbidden by policy"));
        check(&[("dns", "*.test")], Err("needs at least one dot"));
    }

    #[test]
    fn several_problems_are_listed_by_identifier() {
        check(
            &[("dns", "a_b.test"), ("dns", "good.test"), ("dns", "c_d.test")],
            Err("(and 1 more problems. Refer to sub-problems for more information.)"),
        );
    }
}
