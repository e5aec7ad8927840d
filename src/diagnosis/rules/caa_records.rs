//! Whether a set of CAA records lets a CA issue (RFC 8659 §4, RFC 8657), and which of their rules keeps it out if not.

use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::name_case::CaaProperty;

/// Tags that every CA knows (RFC 8659, RFC 9495, and that of mark certificates).
const KNOWN: [&str; 5] = ["issue", "issuewild", "iodef", "issuemail", "issuevmc"];

/// What a CA would issue.
#[derive(Clone, Copy, Debug)]
pub struct CaaWish<'a> {
    /// Names by which records may call the CA.
    pub identities: &'a [String],
    /// Whether it is a wildcard.
    pub is_wildcard: bool,
    /// How control of the name is shown, where that is known.
    pub method: Option<&'a str>,
    /// URL of the account, where there is one.
    pub account: Option<&'a str>,
}

impl CaaWish<'_> {
    /// Which rule of a set keeps the CA from issuing, if one does.
    pub fn refusal(&self, records: &[CaaProperty]) -> Option<CauseId> {
        if records.iter().any(is_unknown) {
            return Some(CauseId::Caa02);
        }
        let of = |tag: &str| records.iter().filter(move |r| r.tag == tag).collect::<Vec<_>>();
        let (issue, wild) = (of("issue"), of("issuewild"));
        let is_wild = self.is_wildcard && !wild.is_empty();
        let governing = if is_wild { &wild } else { &issue };
        if governing.is_empty() {
            return None;
        }
        let parsed: Vec<Value<'_>> =
            governing.iter().map(|record| Value::parse(&record.value)).collect();
        let is_own = |value: &&Value<'_>| {
            self.identities.iter().any(|identity| value.domain.eq_ignore_ascii_case(identity))
        };
        let own: Vec<&Value<'_>> = parsed.iter().filter(is_own).collect();
        if own.is_empty() {
            // A record that means this CA and is written wrongly excludes it, too.
            let is_meant = governing.iter().any(|record| {
                self.identities.iter().any(|identity| {
                    record.value.to_ascii_lowercase().contains(&identity.to_ascii_lowercase())
                })
            });
            return Some(match (is_meant, is_wild) {
                (true, _) => CauseId::Caa04,
                (false, true) => CauseId::Caa07,
                (false, false) => CauseId::Caa01,
            });
        }
        let methods = |value: &&&Value<'_>| {
            let Some(methods) = value.parameter("validationmethods") else { return true };
            self.method.is_none_or(|own| methods.split(',').any(|method| method.trim() == own))
        };
        let by_method: Vec<&&Value<'_>> = own.iter().filter(methods).collect();
        if by_method.is_empty() {
            return Some(CauseId::Caa06);
        }
        let fits_account = |value: &&&Value<'_>| match (value.parameter("accounturi"), self.account)
        {
            (Some(wanted), Some(account)) => wanted == account,
            // Whose account it is, is not known before there is one.
            (Some(_), None) | (None, _) => true,
        };
        (!by_method.iter().any(fits_account)).then_some(CauseId::Caa05)
    }
}

/// Tells whether a record keeps every CA out that does not know its tag.
pub fn is_unknown(record: &CaaProperty) -> bool {
    record.is_critical && !KNOWN.contains(&record.tag.as_str())
}

/// Records as they are written in zones.
pub fn shown(records: &[CaaProperty]) -> String {
    let line = |record: &CaaProperty| {
        let flags = if record.is_critical { 128 } else { 0 };
        format!("{flags} {} \"{}\"", record.tag, record.value)
    };
    records.iter().map(line).collect::<Vec<_>>().join(", ")
}

/// The value of an `issue` property: a domain and parameters (RFC 8659 §4.2).
struct Value<'a> {
    domain: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Value<'a> {
    fn parse(text: &'a str) -> Self {
        let mut parts = text.split(';');
        let domain = parts.next().unwrap_or_default().trim();
        let parameters = parts.filter_map(|part| part.split_once('='));
        let parameters = parameters.map(|(name, value)| (name.trim(), value.trim()));
        Self { domain, parameters: parameters.collect() }
    }

    fn parameter(&self, wanted: &str) -> Option<&'a str> {
        self.parameters
            .iter()
            .find(|(name, _)| name.eq_ignore_ascii_case(wanted))
            .map(|(_, value)| *value)
    }
}
