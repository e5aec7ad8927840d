//! CAA (RFC 8659, RFC 8657): may this CA issue for that name, for that account, by that method?

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::accounts::account_url;
use super::config::RecordAccount;
use super::context::Ca;
use super::refusal::{Kind, Refusal, dns_problem};
use super::state::{Id, Method, Order, State, Validation};
use crate::dns::{CaaRecord, LookupError};
use crate::model::{DnsName, Identifier};

/// How long what was read at validation counts: an hour less than the Baseline Requirements allow (§4.2.2.1), as at Boulder.
const GOOD_FOR: SignedDuration = SignedDuration::from_hours(7);
/// Tags that a CA may pass over: they restrict nothing, or other sorts of certificates.
const OTHER_TAGS: [&str; 3] = ["iodef", "issuemail", "issuevmc"];

/// What is added to a refusal for want of an account.
pub const NO_ACCOUNT: &str = "it is for one account (accounturi), and this issuer has none at its CA yet, as far as its status tells";

/// Looks from the name up to its top-level domain; the first records found decide (RFC 8659 §3).
pub(super) async fn check(
    ca: &Ca,
    name: &DnsName,
    method: Method,
    account: Id,
) -> Result<(), Refusal> {
    let Some(caa) = &ca.config.caa else { return Ok(()) };
    let refuse =
        |kind, why: &str| Refusal::new(kind, format!("While processing CAA for {name}: {why}"));
    let (owner, records) = match relevant(ca, name.base()).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(()),
        Err((owner, error)) => return Err(refuse(Kind::Dns, &dns_problem("CAA", &owner, &error))),
    };
    let own = account_url(ca, account);
    let wish = |account| CaaQuestion {
        is_wildcard: name.is_wildcard(),
        identities: &caa.identities,
        account,
        method: method.word(),
    };
    let account = match &caa.account {
        RecordAccount::Own => Some(own.as_str()),
        RecordAccount::Elsewhere(url) => Some(url.as_str()),
        RecordAccount::Unmade => None,
    };
    if wish(Whose::Only(account)).is_granted(&records) {
        return Ok(());
    }
    let why = format!("CAA record for {owner} prevents issuance");
    // The CA itself would not tell: it has heard of no account.
    let lacks_account = account.is_none() && wish(Whose::Anybody).is_granted(&records);
    let why = if lacks_account { format!("{why}: {NO_ACCOUNT}") } else { why };
    Err(refuse(Kind::Caa, &why))
}

/// A name whose records were read too long ago, and how control of it was shown.
pub(super) struct Outdated {
    name: DnsName,
    method: Method,
}

/// The names of an order whose records have to be read again before it is issued.
pub(super) fn outdated(state: &State, order: &Order, now: Timestamp) -> Vec<Outdated> {
    let is_old = |validation: &&Validation| now.duration_since(validation.at) > GOOD_FOR;
    let names = state.authorizations_of(order).filter_map(|authorization| {
        let method = authorization.validation.as_ref().filter(is_old)?.method;
        match &authorization.identifier {
            Identifier::Dns(name) => Some(Outdated { name: name.clone(), method }),
            Identifier::Ip(_) => None,
        }
    });
    names.collect()
}

/// Looks again for the names of an order that is to be issued; refuses in Boulder's words.
pub(super) async fn check_again(ca: &Ca, names: &[Outdated], account: Id) -> Result<(), Refusal> {
    let checks = names.iter().map(|one| check(ca, &one.name, one.method, account));
    let refused = join_all(checks).await.into_iter().zip(names);
    let refused: Vec<(String, String)> = refused
        .filter_map(|(checked, one)| Some((checked.err()?, one)))
        .map(|(why, one)| (one.name.to_string(), format!("rechecking caa: {}", why.detail())))
        .collect();
    let refuse = |why: &str| Refusal::new(Kind::Caa, format!("Error finalizing order :: {why}"));
    match &refused[..] {
        [] => Ok(()),
        [(_, why)] => Err(refuse(why)),
        [(first, _), others @ ..] => {
            let what = format!(
                "Rechecking CAA for {first:?} and {} more identifiers failed. Refer to sub-problems for more information",
                others.len()
            );
            let whole = refuse(&what);
            Err(refused.iter().fold(whole, |whole, (name, why)| {
                whole.with_subproblem(Kind::Caa, why, ("dns", name))
            }))
        }
    }
}

/// The nearest records at or above a name, and whose they are.
async fn relevant(
    ca: &Ca,
    name: &str,
) -> Result<Option<(String, Vec<CaaRecord>)>, (String, LookupError)> {
    let mut rest = Some(name);
    while let Some(owner) = rest {
        let asked = ca.look.caa(&format!("{owner}.")).await;
        let records = asked.map_err(|error| (owner.to_owned(), error))?;
        if !records.is_empty() {
            return Ok(Some((owner.to_owned(), records)));
        }
        rest = owner.split_once('.').map(|(_, above)| above);
    }
    Ok(None)
}

/// Whom `accounturi` may name.
#[derive(Clone, Copy)]
enum Whose<'a> {
    Anybody,
    /// This account; none where there is none.
    Only(Option<&'a str>),
}

/// What is asked of a record set.
struct CaaQuestion<'a> {
    is_wildcard: bool,
    identities: &'a [String],
    account: Whose<'a>,
    method: &'a str,
}

impl CaaQuestion<'_> {
    /// Whether the records allow it (RFC 8659 §4).
    fn is_granted(&self, records: &[CaaRecord]) -> bool {
        let tagged = |tag: &'static str| records.iter().filter(move |record| record.tag == tag);
        let is_known = |record: &CaaRecord| {
            let tag = record.tag.as_str();
            tag == "issue" || tag == "issuewild" || OTHER_TAGS.contains(&tag)
        };
        if records.iter().any(|record| record.is_critical && !is_known(record)) {
            return false;
        }
        let for_wildcards = self.is_wildcard && tagged("issuewild").next().is_some();
        let tag = if for_wildcards { "issuewild" } else { "issue" };
        let mut properties = tagged(tag).peekable();
        properties.peek().is_none() || properties.any(|property| self.is_meant(&property.value))
    }

    /// Whether one property means this CA, and its parameters this account and method. What cannot be read means nobody.
    fn is_meant(&self, value: &str) -> bool {
        let Some((domain, parameters)) = read(value) else { return false };
        let is_us = self.identities.iter().any(|identity| identity.eq_ignore_ascii_case(domain));
        is_us
            && holds(&parameters, "accounturi", |account| match self.account {
                Whose::Anybody => true,
                Whose::Only(own) => own == Some(account),
            })
            && holds(&parameters, "validationmethods", |methods| {
                methods.split(',').all(is_label) && methods.split(',').any(|m| m == self.method)
            })
    }
}

/// Whether a text can be the name of a method (RFC 8657 §4).
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// Whether a parameter is absent, or there once and so.
fn holds(parameters: &[(&str, &str)], tag: &str, is_so: impl Fn(&str) -> bool) -> bool {
    let mut found = parameters.iter().filter(|(name, _)| name.eq_ignore_ascii_case(tag));
    match (found.next(), found.next()) {
        (None, _) => true,
        (Some((_, value)), None) => is_so(value),
        (Some(_), Some(_)) => false,
    }
}

/// Reads an issue property: the CA's name, and parameters (RFC 8659 §4.2).
fn read(value: &str) -> Option<(&str, Vec<(&str, &str)>)> {
    let blank = [' ', '\t'];
    let (domain, rest) = value.split_once(';').unwrap_or((value, ""));
    let domain = domain.trim_matches(blank);
    if rest.trim_matches(blank).is_empty() {
        return Some((domain, Vec::new()));
    }
    let parameters = rest.split(';').map(|parameter| {
        let (tag, value) = parameter.split_once('=')?;
        let (tag, value) = (tag.trim_matches(blank), value.trim_matches(blank));
        let is_value = value.bytes().all(|b| b.is_ascii_graphic());
        (is_label(tag) && is_value).then_some((tag, value))
    });
    Some((domain, parameters.collect::<Option<_>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Identifier;

    const ACCOUNT: &str = "https://ca.example/acct/1";

    /// Whether these records, each `FLAGS TAG VALUE`, let a name and a wildcard be issued by dns-01.
    #[track_caller]
    fn check(records: &[&str], name: bool, wildcard: bool) {
        let record = |text: &&str| {
            let mut words = text.splitn(3, ' ');
            let mut next = || words.next().unwrap_or_default();
            CaaRecord::new(next().parse().unwrap(), next(), next())
        };
        let read: Vec<CaaRecord> = records.iter().map(record).collect();
        let identities = ["ca.example".to_owned(), "ca.test".to_owned()];
        let granted = |is_wildcard| {
            let (account, method) = (Whose::Only(Some(ACCOUNT)), "dns-01");
            CaaQuestion { is_wildcard, identities: &identities, account, method }.is_granted(&read)
        };
        assert_eq!((granted(false), granted(true)), (name, wildcard), "{records:?}");
    }

    #[test]
    fn whoever_is_not_named_may_not_issue() {
        check(&["0 issue ca.example"], true, true);
        check(&["0 ISSUE CA.test"], true, true);
        check(&["0 issue other.example"], false, false);
        check(&["0 issue other.example", "0 issue ca.example"], true, true);
        check(&["0 issue ;"], false, false);
        check(&["0 issue "], false, false);
        check(&["0 iodef mailto:ops@example.com"], true, true);
        check(&["0 issuemail ;"], true, true);
    }

    #[test]
    fn wildcards_have_a_property_of_their_own() {
        check(&["0 issuewild ca.example"], true, true);
        check(&["0 issuewild other.example"], true, false);
        check(&["0 issue ca.example", "0 issuewild ;"], true, false);
        check(&["0 issue other.example", "0 issuewild ca.example"], false, true);
    }

    #[test]
    fn what_is_critical_and_unknown_forbids() {
        check(&["0 issue ca.example", "0 future x"], true, true);
        check(&["0 issue ca.example", "128 future x"], false, false);
        check(&["0 issue ca.example", "1 future x"], false, false);
        check(&["128 issue ca.example", "128 iodef mailto:a@b.c"], true, true);
    }

    #[test]
    fn parameters_name_account_and_methods() {
        check(&[&format!("0 issue ca.example; accounturi={ACCOUNT}")], true, true);
        check(&[&format!("0 issue ca.example; accounturi={ACCOUNT}2")], false, false);
        check(&["0 issue ca.example; validationmethods=http-01,dns-01"], true, true);
        check(&["0 issue ca.example; validationmethods=http-01"], false, false);
        check(&["0 issue ca.example; validationmethods="], false, false);
        let both = format!("0 issue ca.example ; validationmethods = dns-01;accounturi={ACCOUNT}");
        check(&[&both], true, true);
        check(&["0 issue ca.example; unknown=1"], true, true);
        check(&["0 issue ca.example;"], true, true);
    }

    /// The methods, of all that are offered for a name, that such records allow.
    #[track_caller]
    fn check_methods(value: &str, expected: &[&str]) {
        let record = CaaRecord::new(0, "issue", &format!("ca.example; validationmethods={value}"));
        let offered = Method::on_offer(&Identifier::parse("www.example.com").unwrap());
        let identities = ["ca.example".to_owned()];
        let granted = offered.iter().map(|method| method.word()).filter(|method| {
            let wish = CaaQuestion {
                is_wildcard: false,
                identities: &identities,
                account: Whose::Anybody,
                method,
            };
            wish.is_granted(std::slice::from_ref(&record))
        });
        assert_eq!(granted.collect::<Vec<_>>(), expected, "{value}");
    }

    #[test]
    fn a_record_for_one_method_allows_no_other_one() {
        for method in ["http-01", "tls-alpn-01", "dns-01", "dns-account-01"] {
            check_methods(method, &[method]);
        }
        check_methods("dns-persist-01", &[]);
        check_methods("ca-own,dns-persist-01,dns-account-01", &["dns-account-01"]);
        check_methods("tls-alpn-01,http-01", &["http-01", "tls-alpn-01"]);
        check_methods("DNS-01", &[]);
    }

    #[test]
    fn a_list_of_methods_with_anything_else_in_it_allows_none() {
        for value in ["", ",", "dns-01,", ",dns-01", "http-01,,dns-01", "dns-01,dns_01"] {
            check_methods(value, &[]);
        }
    }

    #[test]
    fn what_cannot_be_read_means_nobody() {
        for value in
            ["ca.example; policy", "ca.example; a=b; ", "ca.example; =b", "ca.example; a b=c"]
        {
            check(&[&format!("0 issue {value}")], false, false);
        }
        let twice = format!("0 issue ca.example; accounturi={ACCOUNT}; accounturi={ACCOUNT}");
        check(&[&twice], false, false);
        check(&["0 issue https://ca.example/"], false, false);
    }
}
