//! CAA record sets (RFC 8659, RFC 8657): may this CA issue for a name, for that account, by that method, and if not, why?

use std::fmt;

use serde::{Deserialize, Serialize};

/// Flag bits that make a property critical: the bit of RFC 8659 §4.1, and the lowest, which many write instead.
const CRITICAL_BITS: [u8; 2] = [0x80, 0x01];
/// Tags of the properties that say who may issue at all, and who may issue wildcards.
const ISSUE: &str = "issue";
const ISSUE_WILD: &str = "issuewild";
/// Tags that a CA may ignore: they restrict nothing, or only other sorts of certificates (RFC 9495, mark certificates).
const OTHER_TAGS: [&str; 3] = ["iodef", "issuemail", "issuevmc"];
const BLANK: [char; 2] = [' ', '\t'];

/// Most labels of a name that are followed upwards.
const MAX_LABELS: usize = 16;

/// Returns the names whose records may decide for a name: itself and its parents; the first with any decides (RFC 8659 §3).
pub fn upwards(name: &str) -> impl Iterator<Item = &str> {
    let first = Some(name.trim_end_matches('.')).filter(|name| !name.is_empty());
    std::iter::successors(first, |at| at.split_once('.').map(|(_, above)| above)).take(MAX_LABELS)
}

/// One property of a CAA record set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CaaProperty {
    /// Whether a CA that does not know the tag must not issue.
    pub is_critical: bool,
    /// Tag in lower case: `issue`, `issuewild`, `iodef` and others.
    pub tag: String,
    /// Value, unchanged from the record.
    pub value: String,
}

/// The CAA records at one name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CaaRecordSet(Vec<CaaProperty>);

/// Question that a CA asks a record set.
#[derive(Clone, Copy, Debug)]
pub struct CaaQuestion<'a> {
    /// Whether a wildcard is requested.
    pub is_wildcard: bool,
    /// Names by which records may call the CA.
    pub identities: &'a [String],
    /// Account that asks.
    pub account: CaaAccount<'a>,
    /// Method by which control of the name is shown, if known.
    pub method: Option<&'a str>,
}

/// Account that `accounturi` may name (RFC 8657 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaaAccount<'a> {
    /// Any account: the asking account is not known.
    Anybody,
    /// An account that is yet to be created, so that no record can name the account.
    Unmade,
    /// The account of the given URL.
    Url(&'a str),
}

/// Reasons why a record set keeps a CA from issuing; the nearest to a permission comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CaaBar {
    /// The CA is named for another account only.
    OtherAccount,
    /// The CA is named for other methods only.
    OtherMethod,
    /// The CA is meant by a value that cannot be read, which names nobody (RFC 8659 §4.2).
    Malformed,
    /// The CA is not among those that may issue wildcards (`issuewild`).
    OtherForWildcards,
    /// The CA is not among those that may issue.
    OtherAuthority,
    /// A critical property has a tag that no CA knows (RFC 8659 §4.1).
    UnknownTag,
}

impl CaaProperty {
    /// Makes a property from the flags, the tag and the value of a record.
    pub fn new(flags: u8, tag: &str, value: &str) -> Self {
        let is_critical = CRITICAL_BITS.iter().any(|bit| flags & bit != 0);
        Self { is_critical, tag: tag.to_ascii_lowercase(), value: value.to_owned() }
    }

    fn is_known(&self) -> bool {
        [ISSUE, ISSUE_WILD].iter().chain(&OTHER_TAGS).any(|tag| *tag == self.tag)
    }

    /// Returns why the property does not let the CA issue; `None` if it does.
    fn bar(&self, question: &CaaQuestion<'_>, other: CaaBar) -> Option<CaaBar> {
        let Some(value) = IssueValue::parse(&self.value) else {
            return Some(if question.is_mentioned(&self.value) {
                CaaBar::Malformed
            } else {
                other
            });
        };
        if !question.identities.iter().any(|own| own.eq_ignore_ascii_case(value.domain)) {
            let is_meant = question.is_mentioned(value.domain);
            return Some(if is_meant { CaaBar::Malformed } else { other });
        }
        let (Ok(account), Ok(methods)) =
            (value.parameter("accounturi"), value.parameter("validationmethods"))
        else {
            return Some(CaaBar::Malformed);
        };
        if let Some(methods) = methods {
            if !methods.split(',').all(is_label) {
                return Some(CaaBar::Malformed);
            }
            if question.method.is_some_and(|own| methods.split(',').all(|method| method != own)) {
                return Some(CaaBar::OtherMethod);
            }
        }
        let is_own = match (account, question.account) {
            (None, _) | (Some(_), CaaAccount::Anybody) => true,
            (Some(_), CaaAccount::Unmade) => false,
            (Some(account), CaaAccount::Url(own)) => account == own,
        };
        (!is_own).then_some(CaaBar::OtherAccount)
    }
}

impl fmt::Display for CaaProperty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flags = if self.is_critical { CRITICAL_BITS[0] } else { 0 };
        write!(formatter, "{flags} {} \"{}\"", self.tag, self.value)
    }
}

impl CaaRecordSet {
    /// Reports whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the critical property whose tag no CA knows, if there is one.
    pub fn unknown(&self) -> Option<&CaaProperty> {
        self.0.iter().find(|property| property.is_critical && !property.is_known())
    }

    /// Returns why the records keep the CA from issuing; `None` if they do not (RFC 8659 §4).
    pub fn bar(&self, question: &CaaQuestion<'_>) -> Option<CaaBar> {
        if self.unknown().is_some() {
            return Some(CaaBar::UnknownTag);
        }
        let tagged = |tag: &'static str| self.0.iter().filter(move |property| property.tag == tag);
        let for_wildcards = question.is_wildcard && tagged(ISSUE_WILD).next().is_some();
        let (tag, other) = if for_wildcards {
            (ISSUE_WILD, CaaBar::OtherForWildcards)
        } else {
            (ISSUE, CaaBar::OtherAuthority)
        };
        // One property that lets the CA issue is enough: `None` is less than any bar.
        tagged(tag).map(|property| property.bar(question, other)).min().flatten()
    }
}

impl FromIterator<CaaProperty> for CaaRecordSet {
    fn from_iter<T: IntoIterator<Item = CaaProperty>>(properties: T) -> Self {
        Self(properties.into_iter().collect())
    }
}

impl fmt::Display for CaaRecordSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        formatter.write_str(&all.join(", "))
    }
}

impl CaaQuestion<'_> {
    /// Reports whether a text that does not name the CA correctly has one of the CA's names in it: in a URL, or in a list.
    fn is_mentioned(&self, text: &str) -> bool {
        let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
        text.split(|c| !is_of_name(c))
            .map(|word| word.trim_matches('.'))
            .any(|word| self.identities.iter().any(|identity| identity.eq_ignore_ascii_case(word)))
    }
}

/// Value of an issue property: the CA's name, and parameters (RFC 8659 §4.2).
struct IssueValue<'a> {
    domain: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> IssueValue<'a> {
    fn parse(value: &'a str) -> Option<Self> {
        let (domain, rest) = value.split_once(';').unwrap_or((value, ""));
        let domain = domain.trim_matches(BLANK);
        if rest.trim_matches(BLANK).is_empty() {
            return Some(Self { domain, parameters: Vec::new() });
        }
        let parameters = rest.split(';').map(|parameter| {
            let (tag, value) = parameter.split_once('=')?;
            let (tag, value) = (tag.trim_matches(BLANK), value.trim_matches(BLANK));
            let is_value = value.bytes().all(|b| b.is_ascii_graphic());
            (is_label(tag) && is_value).then_some((tag, value))
        });
        Some(Self { domain, parameters: parameters.collect::<Option<_>>()? })
    }

    /// Returns the value of a parameter, if it is there; a parameter that is there twice cannot be read.
    fn parameter(&self, tag: &str) -> Result<Option<&'a str>, Twice> {
        let mut found = self.parameters.iter().filter(|(name, _)| name.eq_ignore_ascii_case(tag));
        match (found.next(), found.next()) {
            (first, None) => Ok(first.map(|(_, value)| *value)),
            (_, Some(_)) => Err(Twice),
        }
    }
}

/// Error of a parameter that is there twice.
struct Twice;

/// Reports whether a text can be the tag of a parameter (RFC 8659 §4.2), or the name of a method (RFC 8657 §4).
fn is_label(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::CaaBar::{
        Malformed, OtherAccount, OtherAuthority, OtherForWildcards, OtherMethod, UnknownTag,
    };
    use super::*;

    const ACCOUNT: &str = "https://ca.example/acct/1";

    /// Records, each `FLAGS TAG VALUE`.
    fn set(records: &[&str]) -> CaaRecordSet {
        let record = |text: &&str| {
            let mut words = text.splitn(3, ' ');
            let mut next = || words.next().unwrap_or_default();
            CaaProperty::new(next().parse().unwrap(), next(), next())
        };
        records.iter().map(record).collect()
    }

    fn bar(records: &[&str], is_wildcard: bool, account: CaaAccount<'_>) -> Option<CaaBar> {
        let identities = &["ca.example".to_owned(), "ca.test".to_owned()];
        let method = Some("dns-01");
        set(records).bar(&CaaQuestion { is_wildcard, identities, account, method })
    }

    /// Why these records keep a name and a wildcard from being issued by dns-01.
    #[track_caller]
    fn check(records: &[&str], name: Option<CaaBar>, wildcard: Option<CaaBar>) {
        let account = CaaAccount::Url(ACCOUNT);
        let bars = (bar(records, false, account), bar(records, true, account));
        assert_eq!(bars, (name, wildcard), "{records:?}");
    }

    /// Checks that a name and a wildcard have the same bar.
    #[track_caller]
    fn both(records: &[&str], expected: Option<CaaBar>) {
        check(records, expected, expected);
    }

    #[test]
    fn whoever_is_not_named_may_not_issue() {
        both(&["0 issue ca.example"], None);
        both(&["0 ISSUE CA.test"], None);
        both(&["0 issue other.example"], Some(OtherAuthority));
        both(&["0 issue ca.example.net"], Some(OtherAuthority));
        both(&["0 issue other.example; for=ca.example"], Some(OtherAuthority));
        both(&["0 issue other.example", "0 issue ca.example"], None);
        both(&["0 issue ;"], Some(OtherAuthority));
        both(&["0 issue "], Some(OtherAuthority));
        both(&["0 iodef mailto:ops@example.com"], None);
        both(&["0 issuemail ;"], None);
    }

    #[test]
    fn wildcards_have_a_property_of_their_own() {
        both(&["0 issuewild ca.example"], None);
        check(&["0 issuewild other.example"], None, Some(OtherForWildcards));
        check(&["0 issue ca.example", "0 issuewild ;"], None, Some(OtherForWildcards));
        let other = ["0 issue other.example", "0 issuewild ca.example"];
        check(&other, Some(OtherAuthority), None);
    }

    #[test]
    fn what_is_critical_and_unknown_forbids() {
        both(&["0 issue ca.example", "0 future x"], None);
        both(&["0 issue ca.example", "128 future x"], Some(UnknownTag));
        both(&["0 issue ca.example", "1 future x"], Some(UnknownTag));
        both(&["128 issue ca.example", "128 iodef mailto:a@b.c"], None);
        assert_eq!(set(&["128 future x"]).unknown().unwrap().tag, "future");
    }

    #[test]
    fn parameters_name_account_and_methods() {
        both(&[&format!("0 issue ca.example; accounturi={ACCOUNT}")], None);
        both(&[&format!("0 issue ca.example; accounturi={ACCOUNT}2")], Some(OtherAccount));
        both(&["0 issue ca.example; validationmethods=http-01,dns-01"], None);
        both(&["0 issue ca.example; validationmethods=http-01"], Some(OtherMethod));
        let good = format!("0 issue ca.example ; validationmethods = dns-01;accounturi={ACCOUNT}");
        both(&[&good], None);
        both(&["0 issue ca.example; unknown=1"], None);
        both(&["0 issue ca.example;"], None);
        // Of two records the one that is nearer to a permission is what has to be changed.
        let two = ["0 issue other.example", "0 issue ca.example; validationmethods=http-01"];
        both(&two, Some(OtherMethod));
    }

    #[test]
    fn a_record_for_an_account_is_for_none_that_is_yet_to_be_made() {
        let bound = [&*format!("0 issue ca.example; accounturi={ACCOUNT}")];
        assert_eq!(bar(&bound, false, CaaAccount::Unmade), Some(OtherAccount));
        assert_eq!(bar(&bound, false, CaaAccount::Anybody), None);
        assert_eq!(bar(&["0 issue ca.example"], false, CaaAccount::Unmade), None);
    }

    /// The methods that such a record allows.
    #[track_caller]
    fn check_methods(value: &str, expected: &[&str]) {
        let set = set(&[&format!("0 issue ca.example; validationmethods={value}")]);
        let identities = &["ca.example".to_owned()];
        let account = CaaAccount::Anybody;
        let granted = ["http-01", "tls-alpn-01", "dns-01", "dns-account-01", "dns-persist-01"]
            .into_iter()
            .filter(|method| {
                let method = Some(*method);
                let question = CaaQuestion { is_wildcard: false, identities, account, method };
                set.bar(&question).is_none()
            });
        assert_eq!(granted.collect::<Vec<_>>(), expected, "{value}");
    }

    #[test]
    fn a_record_for_one_method_allows_no_other_one() {
        for method in ["http-01", "tls-alpn-01", "dns-01", "dns-account-01", "dns-persist-01"] {
            check_methods(method, &[method]);
        }
        check_methods("ca-own,dns-account-01", &["dns-account-01"]);
        check_methods("tls-alpn-01,http-01", &["http-01", "tls-alpn-01"]);
        check_methods("DNS-01", &[]);
    }

    #[test]
    fn a_list_of_methods_with_anything_else_in_it_allows_none() {
        for value in ["", ",", "dns-01,", ",dns-01", "http-01,,dns-01", "dns-01,dns_01"] {
            check_methods(value, &[]);
            let record = format!("0 issue ca.example; validationmethods={value}");
            both(&[&record], Some(Malformed));
        }
        both(&["0 issue ca.example; validationmethods=http-01, dns-01"], Some(Malformed));
    }

    #[test]
    fn what_cannot_be_read_means_nobody() {
        for value in
            ["ca.example; policy", "ca.example; a=b; ", "ca.example; =b", "ca.example; a b=c"]
        {
            both(&[&format!("0 issue {value}")], Some(Malformed));
        }
        both(&["0 issue other.example; policy"], Some(OtherAuthority));
        let twice = format!("0 issue ca.example; accounturi={ACCOUNT}; accounturi={ACCOUNT}");
        both(&[&twice], Some(Malformed));
        for value in ["https://ca.example/", "ca.example,ca.test", "\"ca.example\"", "ca.example."]
        {
            both(&[&format!("0 issue {value}")], Some(Malformed));
        }
    }
}
