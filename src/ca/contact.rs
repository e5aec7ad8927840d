//! Contacts (RFC 8555 §7.3): one plain mail address per `mailto:` URL, and no address of the example domains.

use super::refusal::{Kind, Refusal};
use crate::model::DnsName;

/// Domains without mail (RFC 2606 §3); Let's Encrypt refuses them.
const FORBIDDEN: [&str; 3] = ["example.com", "example.net", "example.org"];

/// Checks all contacts of an account.
pub(super) fn check(contacts: &[String]) -> Result<(), Refusal> {
    contacts.iter().try_for_each(|contact| check_one(contact))
}

fn check_one(contact: &str) -> Result<(), Refusal> {
    let Some(address) = contact.strip_prefix("mailto:") else {
        let detail = "Error validating contact(s) :: only contact scheme 'mailto:' is supported";
        return Err(Refusal::new(Kind::UnsupportedContact, detail));
    };
    let Some(domain) = domain(address) else {
        return Err(invalid("unable to parse email address"));
    };
    if FORBIDDEN.contains(&domain.as_str()) {
        return Err(invalid(&format!("contact email has forbidden domain \"{domain}\"")));
    }
    Ok(())
}

/// Returns the domain of a plain address: no list, no display name, no header fields.
fn domain(address: &str) -> Option<DnsName> {
    let (local, domain) = address.rsplit_once('@')?;
    let is_plain = |c: char| c.is_ascii_graphic() && !"()<>[]:;@\\,\"?".contains(c);
    if local.is_empty() || !local.chars().all(is_plain) || !domain.contains('.') {
        return None;
    }
    DnsName::parse(domain).ok().filter(|domain| !domain.is_wildcard())
}

fn invalid(why: &str) -> Refusal {
    Refusal::new(Kind::InvalidContact, format!("Error validating contact(s) :: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(contact: &str, expected: Option<Kind>) {
        assert_eq!(check_one(contact).err().map(|refusal| refusal.kind), expected, "{contact}");
    }

    #[test]
    fn a_plain_address_is_taken() {
        check("mailto:first.last+tag@mail.bed-ca.com", None);
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for contact in [
            "mailto:not an address",
            "mailto:a@bed-ca.com,b@bed-ca.com",
            "mailto:a@bed-ca.com?subject=x",
            "mailto:@bed-ca.com",
            "mailto:a@localhost",
            "mailto:",
            "mailto:A <a@bed-ca.com>",
        ] {
            check(contact, Some(Kind::InvalidContact));
        }
    }

    #[test]
    fn the_example_domains_and_other_schemes_are_refused() {
        check("mailto:me@example.com", Some(Kind::InvalidContact));
        check("tel:+123", Some(Kind::UnsupportedContact));
    }
}
