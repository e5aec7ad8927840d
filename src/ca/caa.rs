//! CAA (RFC 8659, RFC 8657): may this CA issue for that name, for that account, by that method?

use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};

use super::accounts::given_url;
use super::config::RecordAccount;
use super::context::Ca;
use super::refusal::{Kind, Refusal, dns_problem};
use super::state::{Id, Method, Order, State, Validation};
use crate::dns::LookupError;
use crate::model::caa::{CaaAccount, CaaBar, CaaQuestion, CaaRecordSet};
use crate::model::{DnsName, Identifier};

/// Longest use of a validation's records: an hour less than the Baseline Requirements allow (§4.2.2.1), as at Boulder.
const CAA_VALIDITY: SignedDuration = SignedDuration::from_hours(7);

/// Addition to a refusal because there is no account.
pub const NO_ACCOUNT: &str = "it is for one account (accounturi), and this issuer has none at its CA yet, as far as its status tells";

/// Checks the records from the name up to its top-level domain; the first records found decide (RFC 8659 §3).
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
    let own = given_url(ca, account);
    let account = match &caa.account {
        RecordAccount::Own => CaaAccount::Url(&own),
        RecordAccount::Elsewhere(url) => CaaAccount::Url(url),
        RecordAccount::Unmade => CaaAccount::Unmade,
    };
    let question = CaaQuestion {
        is_wildcard: name.is_wildcard(),
        identities: &caa.identities,
        account,
        method: Some(method.word()),
    };
    let Some(bar) = records.bar(&question) else { return Ok(()) };
    let why = format!("CAA record for {owner} prevents issuance");
    // The CA itself could not say so: the CA does not know of any account.
    let lacks_account = account == CaaAccount::Unmade && bar == CaaBar::OtherAccount;
    let why = if lacks_account { format!("{why}: {NO_ACCOUNT}") } else { why };
    Err(refuse(Kind::Caa, &why))
}

/// Name whose records were read too long ago, and the challenge type that proved control of the name.
pub(super) struct Outdated {
    name: DnsName,
    method: Method,
}

/// Returns the names of an order whose records have to be read again before the certificate is issued.
pub(super) fn outdated(state: &State, order: &Order, now: Timestamp) -> Vec<Outdated> {
    let is_old = |validation: &&Validation| now.duration_since(validation.at) > CAA_VALIDITY;
    let names = state.authorizations_of(order).filter_map(|authorization| {
        let method = authorization.validation.as_ref().filter(is_old)?.method;
        match &authorization.identifier {
            Identifier::Dns(name) => Some(Outdated { name: name.clone(), method }),
            Identifier::Ip(_) => None,
        }
    });
    names.collect()
}

/// Checks the records of an order's names again before the issue; refuses in Boulder's words.
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

/// Returns the nearest records at or above a name, and the name that has these records.
async fn relevant(
    ca: &Ca,
    name: &str,
) -> Result<Option<(String, CaaRecordSet)>, (String, LookupError)> {
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
