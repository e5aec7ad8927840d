//! CAA: who may issue (RFC 8659, RFC 8657). The records that count are those of the first name upwards that has any.

use super::rule::FaultRule;
use crate::diagnosis::case::{Case, DirectoryAnswer};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{Evidence, Finding, Grade, heard, told};
use crate::diagnosis::name_case::{CaaLevel, CaaProperty, LookUp, NameCase};

pub(super) const RULES: &[FaultRule] =
    &[records_keep_the_ca_out, records_are_those_of_a_target, records_cannot_be_read];

/// By what name records call Let's Encrypt, for whom nobody named a CA.
const LETS_ENCRYPT: &str = "letsencrypt.org";
/// Tags that every CA knows (RFC 8659, RFC 9495, and that of mark certificates).
const KNOWN: [&str; 5] = ["issue", "issuewild", "iodef", "issuemail", "issuevmc"];

fn records_keep_the_ca_out(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        let Some((cause, level, records)) = refused(case, name) else { continue };
        let tag = records.iter().find(|record| is_unknown(record));
        let mut finding = finding(cause, name, level, records)
            .with("TYPE", name.kind.map_or("", |kind| kind.acme_name()));
        if let Some(record) = tag.filter(|_| cause == CauseId::Caa02) {
            finding = finding.with("TAG", &record.tag);
        }
        found.push(finding);
    }
}

/// Why the records of a name keep its CA out, and these records.
fn refused<'a>(
    case: &Case,
    name: &'a NameCase,
) -> Option<(CauseId, &'a CaaLevel, &'a [CaaProperty])> {
    let (level, records) = name.caa.iter().find_map(set)?;
    let identities = identities(case, name)?;
    let cause = if records.iter().any(is_unknown) {
        CauseId::Caa02
    } else {
        refusal(records, &identities, name, account(case, name))?
    };
    Some((cause, level, records))
}

fn is_unknown(record: &CaaProperty) -> bool {
    record.is_critical && !KNOWN.contains(&record.tag.as_str())
}

/// The records of a CNAME's target count, whoever owns that.
fn records_are_those_of_a_target(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        let Some((_, level, records)) = refused(case, name) else { continue };
        let Some(dns) = name.dns.as_ref().filter(|_| level.name == name.name) else { continue };
        let domain = format!("{}.", name.name);
        let alias = ["CAA", "A"]
            .into_iter()
            .flat_map(|kind| dns.asked(&domain, kind))
            .find_map(|reply| Some((reply, reply.heard.answer()?.aliases.last()?)));
        let Some((reply, target)) = alias else { continue };
        let shown = Evidence { came: format!("a CNAME of {target}"), ..heard(reply) };
        let target = target.trim_end_matches('.');
        found.push(
            finding(CauseId::Caa08, name, level, records).with("TARGET", target).shown_by([shown]),
        );
    }
}

/// Records at a name that has some.
fn set(level: &CaaLevel) -> Option<(&CaaLevel, &[CaaProperty])> {
    match &level.records {
        LookUp::Found(records) if !records.is_empty() => Some((level, records)),
        _ => None,
    }
}

/// The names by which records may call the CA; nothing where the CA does not tell.
fn identities(case: &Case, name: &NameCase) -> Option<Vec<String>> {
    let Some(key) = &name.issuer else { return Some(vec![LETS_ENCRYPT.to_owned()]) };
    match &case.issuer(key)?.directory.as_ref()?.answer {
        DirectoryAnswer::Directory { caa_identities, .. } if !caa_identities.is_empty() => {
            Some(caa_identities.clone())
        }
        _ => None,
    }
}

/// The account's URL.
fn account<'a>(case: &'a Case, name: &NameCase) -> Option<&'a str> {
    let issuer = case.issuer(name.issuer.as_ref()?)?.issuer.as_ref()?;
    let account = issuer.status.acme.as_ref()?.uri.as_str();
    (!account.is_empty()).then_some(account)
}

/// Which rule of the record set keeps the CA from issuing, if one does.
fn refusal(
    records: &[CaaProperty],
    identities: &[String],
    name: &NameCase,
    account: Option<&str>,
) -> Option<CauseId> {
    let of = |tag: &str| records.iter().filter(move |r| r.tag == tag).collect::<Vec<_>>();
    let (issue, wild) = (of("issue"), of("issuewild"));
    let is_wild = name.wildcard && !wild.is_empty();
    let governing = if is_wild { &wild } else { &issue };
    if governing.is_empty() {
        return None;
    }
    let parsed: Vec<Value<'_>> =
        governing.iter().map(|record| Value::parse(&record.value)).collect();
    let is_own = |value: &&Value<'_>| {
        identities.iter().any(|identity| value.domain.eq_ignore_ascii_case(identity))
    };
    let own: Vec<&Value<'_>> = parsed.iter().filter(is_own).collect();
    if own.is_empty() {
        // A record that means this CA and is written wrongly excludes it, too.
        let is_meant = governing.iter().any(|record| {
            identities.iter().any(|identity| {
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
        name.kind
            .is_none_or(|kind| methods.split(',').any(|method| method.trim() == kind.acme_name()))
    };
    let by_method: Vec<&&Value<'_>> = own.iter().filter(methods).collect();
    if by_method.is_empty() {
        return Some(CauseId::Caa06);
    }
    let fits_account = |value: &&&Value<'_>| match (value.parameter("accounturi"), account) {
        (Some(wanted), Some(account)) => wanted == account,
        // Whose account it is, is not known before there is one.
        (Some(_), None) | (None, _) => true,
    };
    (!by_method.iter().any(fits_account)).then_some(CauseId::Caa05)
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

fn finding(cause: CauseId, name: &NameCase, level: &CaaLevel, records: &[CaaProperty]) -> Finding {
    // Which CA is meant is only supposed where nobody said so.
    let grade = if name.is_bare() { Grade::Possible } else { Grade::Certain };
    Finding::new(cause, grade, name.shown(), evidence(level, &shown(records)))
        .with("DOMAIN", name.shown())
        .with("OWNER", &level.name)
        .with("RECORDS", shown(records))
}

fn shown(records: &[CaaProperty]) -> String {
    let line = |record: &CaaProperty| {
        let flags = if record.is_critical { 128 } else { 0 };
        format!("{flags} {} \"{}\"", record.tag, record.value)
    };
    records.iter().map(line).collect::<Vec<_>>().join(", ")
}

fn evidence(level: &CaaLevel, came: &str) -> Evidence {
    told(format!("CAA of {}", level.name), level.at, came)
}

fn records_cannot_be_read(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        if identities(case, name).is_none() {
            continue;
        }
        let Some(level) = name
            .caa
            .iter()
            .find(|level| matches!(level.records, LookUp::Code(_) | LookUp::Silence(_)))
        else {
            continue;
        };
        // What stands below it decides, and was found.
        let is_decided =
            name.caa.iter().take_while(|other| other.name != level.name).any(|l| set(l).is_some());
        let (LookUp::Code(came) | LookUp::Silence(came)) = &level.records else { continue };
        if is_decided {
            continue;
        }
        let grade =
            if matches!(level.records, LookUp::Code(_)) { Grade::Likely } else { Grade::Possible };
        found.push(
            Finding::new(CauseId::Caa03, grade, name.shown(), evidence(level, came))
                .with("DOMAIN", name.shown())
                .with("OWNER", &level.name)
                .with("CODE", came),
        );
    }
}
