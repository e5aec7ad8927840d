//! CAA: CAs that may issue (RFC 8659, RFC 8657). The records of the first name upwards that has any decide.

use crate::diagnosis::case::Case;
use crate::diagnosis::case::issuer::DirectoryAnswer;
use crate::diagnosis::case::name::{CaaLevel, LookUp, NameCase};
use crate::diagnosis::catalogue::id::CauseId;
use crate::diagnosis::finding::{
    Evidence, FaultRule, Finding, Grade, evidence_of_answer, evidence_of_dns_reply,
};
use crate::model::ChallengeType;
use crate::model::caa::{CaaAccount, CaaBar, CaaQuestion, CaaRecordSet};

pub(super) const RULES: &[FaultRule] =
    &[records_keep_the_ca_out, records_are_those_of_a_target, records_cannot_be_read];

/// Name of Let's Encrypt in CAA records, for a question without an issuer.
const LETS_ENCRYPT: &str = "letsencrypt.org";

fn records_keep_the_ca_out(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        let Some((cause, level, records)) = refusal_by_records(case, name) else { continue };
        let mut finding = finding(cause, name, level, records)
            .with("TYPE", name.kind.map_or("", |kind| kind.acme_name()));
        if let Some(record) = records.unknown() {
            finding = finding.with("TAG", &record.tag);
        }
        found.push(finding);
    }
}

/// Returns why the records of a name keep its CA out, with these records.
fn refusal_by_records<'a>(
    case: &Case,
    name: &'a NameCase,
) -> Option<(CauseId, &'a CaaLevel, &'a CaaRecordSet)> {
    let (level, records) = name.caa.iter().find_map(set)?;
    let identities = identities(case, name)?;
    let question = CaaQuestion {
        is_wildcard: name.wildcard,
        identities: &identities,
        // The URL of the account is not known before there is an account.
        account: account(case, name).map_or(CaaAccount::Anybody, CaaAccount::Url),
        method: name.kind.map(ChallengeType::acme_name),
    };
    let cause = match records.bar(&question)? {
        CaaBar::OtherAccount => CauseId::Caa05,
        CaaBar::OtherMethod => CauseId::Caa06,
        CaaBar::Malformed => CauseId::Caa04,
        CaaBar::OtherForWildcards => CauseId::Caa07,
        CaaBar::OtherAuthority => CauseId::Caa01,
        CaaBar::UnknownTag => CauseId::Caa02,
    };
    Some((cause, level, records))
}

/// CAA-08: the records of a CNAME's target count, whatever the owner of the target.
fn records_are_those_of_a_target(case: &Case, found: &mut Vec<Finding>) {
    for name in &case.names {
        let Some((_, level, records)) = refusal_by_records(case, name) else { continue };
        let Some(dns) = name.dns.as_ref().filter(|_| level.name == name.name) else { continue };
        let domain = format!("{}.", name.name);
        let alias = ["CAA", "A"]
            .into_iter()
            .flat_map(|kind| dns.asked(&domain, kind))
            .find_map(|reply| Some((reply, reply.heard.answer()?.aliases.last()?)));
        let Some((reply, target)) = alias else { continue };
        let shown =
            Evidence { came: format!("a CNAME of {target}"), ..evidence_of_dns_reply(reply) };
        let target = target.trim_end_matches('.');
        found.push(
            finding(CauseId::Caa08, name, level, records).with("TARGET", target).shown_by([shown]),
        );
    }
}

/// Returns the records at a name if there are any.
fn set(level: &CaaLevel) -> Option<(&CaaLevel, &CaaRecordSet)> {
    match &level.records {
        LookUp::Found(records) if !records.is_empty() => Some((level, records)),
        _ => None,
    }
}

/// Returns the names by which records may call the CA; `None` if the CA does not give them.
fn identities(case: &Case, name: &NameCase) -> Option<Vec<String>> {
    let Some(key) = &name.issuer else { return Some(vec![LETS_ENCRYPT.to_owned()]) };
    match &case.issuer(key)?.directory.as_ref()?.answer {
        DirectoryAnswer::Directory { caa_identities, .. } if !caa_identities.is_empty() => {
            Some(caa_identities.clone())
        }
        _ => None,
    }
}

/// Returns the URL of the issuer's account.
fn account<'a>(case: &'a Case, name: &NameCase) -> Option<&'a str> {
    let issuer = case.issuer(name.issuer.as_ref()?)?.issuer.as_ref()?;
    let account = issuer.status.acme.as_ref()?.uri.as_str();
    (!account.is_empty()).then_some(account)
}

fn finding(cause: CauseId, name: &NameCase, level: &CaaLevel, records: &CaaRecordSet) -> Finding {
    // Without an issuer the CA is only assumed.
    let grade = if name.is_bare() { Grade::Possible } else { Grade::Certain };
    Finding::new(cause, grade, name.shown(), evidence(level, &records.to_string()))
        .with("DOMAIN", name.shown())
        .with("OWNER", &level.name)
        .with("RECORDS", records.to_string())
}

fn evidence(level: &CaaLevel, came: &str) -> Evidence {
    evidence_of_answer(format!("CAA of {}", level.name), level.at, came)
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
        // Records at a name below this one decide, and were found.
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
