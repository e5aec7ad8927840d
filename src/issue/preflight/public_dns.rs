//! DNS checks of names before their order is made: for CAA records that exclude the CA, which would cost a failed order,
//! and for addresses that the CA uses first and to which this machine has no route.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::certificates::{choices, names};
use crate::acme::Clients;
use crate::context::failure::Failure;
use crate::controllers::accounts::tls_of;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::next_step::{CaaStep, NextStep};
use crate::diagnosis::verdict::replacement::CaaResult;
use crate::fetch::Fetcher;
use crate::inspect::caa_records::CaaRecords;
use crate::model::{Certificate, ChallengeType, Identifier, Issuer, Key};
use crate::objects::own_request::certificate_of;
use crate::print::Printer;
use crate::store::Store;
use crate::store::resources::typed;

/// Longest time of all checks: an order is made without these checks, too.
const CHECK_TIMEOUT: Duration = Duration::from_secs(3);
/// Most Certificates that are checked.
const MAX_CERTIFICATES: usize = 100;
/// Most names whose addresses are looked up.
const MAX_ADDRESSED: usize = 50;
/// Most Certificates, and most names, that are checked at once.
const CONCURRENCY: usize = 8;
/// Most names of which warnings are printed.
const MAX_NAMED: usize = 3;

/// Clients and deadline of the checks.
pub(crate) struct CheckClients<'a> {
    /// Clients of the CAs.
    pub(crate) clients: &'a Clients,
    /// Fetcher of the self-check.
    pub(crate) fetcher: &'a Fetcher,
    /// Deadline of the whole command; at least half of the time until then is left to the order.
    pub(crate) deadline: Timestamp,
}

/// Checks the names of the Certificates among these keys. Returns the Certificates that their CA may not issue, each with
/// the records that forbid it; warns of names that cannot be looked up, or not be reached from here.
///
/// # Errors
/// Fails when the store does.
pub(crate) async fn check(
    keys: &[Key],
    store: &Arc<dyn Store>,
    means: CheckClients<'_>,
    printer: &Printer,
) -> Result<BTreeMap<Key, Failure>, Failure> {
    let mut subjects = Vec::new();
    for key in keys.iter().filter(|key| key.kind.is_issued()).take(MAX_CERTIFICATES) {
        let Some(record) = store.get(key).await? else { continue };
        // A Certificate that cannot be read is not worked on.
        let Ok(certificate) = certificate_of(&record) else { continue };
        let Some(issuer_key) = issuer_key(&certificate) else { continue };
        let Some(record) = store.get(&issuer_key).await? else { continue };
        let Ok(issuer) = typed::<Issuer>(record) else { continue };
        subjects.push(DueCertificate { key: key.clone(), certificate, issuer_key, issuer });
    }
    let records = CaaRecords::new(&means.fetcher.resolver);
    let looks = subjects.iter().map(|subject| check_caa(subject, &records, &means));
    let looks = stream::iter(looks).buffered(CONCURRENCY).collect::<Vec<_>>();
    let unreachable = unreachable_first(&subjects, means.fetcher);
    let left = means.deadline.duration_since(Timestamp::now());
    let left = Duration::try_from(left).unwrap_or_default();
    // A silent resolver does not delay the order: the CA asks a resolver of its own.
    let Ok((looks, unreachable)) =
        timeout(CHECK_TIMEOUT.min(left / 2), async { tokio::join!(looks, unreachable) }).await
    else {
        return Ok(BTreeMap::new());
    };
    for (name, address) in unreachable.iter().take(MAX_NAMED) {
        printer.warning(&format!(
            "{name}: a CA connects to {address} first, and this machine has no route to it (IPv6), so the self-check cannot see \
             whether the answer is there"
        ));
    }
    let mut refused = BTreeMap::new();
    for (key, refusal, unknown) in looks {
        for (name, why) in unknown.iter().take(MAX_NAMED) {
            printer.warning(&format!(
                "{key}: CAA records of {name}: {why}; a CA with the same problem refuses"
            ));
        }
        if let Some(refusal) = refusal {
            refused.insert(key, refusal);
        }
    }
    Ok(refused)
}

/// A Certificate, and the Issuer that it names.
struct DueCertificate {
    key: Key,
    certificate: Certificate,
    issuer_key: Key,
    issuer: Issuer,
}

/// Returns the failure if the CA of a Certificate may not issue it, and the names whose CAA records are not known.
async fn check_caa(
    DueCertificate { key, certificate, issuer_key, issuer }: &DueCertificate,
    records: &CaaRecords,
    CheckClients { clients, fetcher, .. }: &CheckClients<'_>,
) -> (Key, Option<Failure>, Vec<(String, String)>) {
    let nothing = || (key.clone(), None, Vec::new());
    let Some(acme) = &issuer.spec.acme else { return nothing() };
    // A CA that names no CAA identities, or does not answer, judges the records itself.
    let Ok(directory) = clients.directory(&acme.server, &tls_of(acme)).await else {
        return nothing();
    };
    let identities = &directory.caa_identities;
    if identities.is_empty() {
        return nothing();
    }
    let account = issuer.status.acme.as_ref().map(|account| account.uri.as_str());
    let account = account.filter(|uri| !uri.is_empty());
    let asked: BTreeSet<String> = dns_names(certificate)
        .filter(|name| is_looked_up(name.trim_start_matches("*."), fetcher))
        .collect();
    let asked: Vec<String> = asked.into_iter().collect();
    let (mut refusal, mut unknown) = (None, Vec::new());
    for look in records.judge(&asked, (&identities[..], account)).await {
        match look {
            CaaResult::Unknown { name, why } => unknown.push((name, why)),
            CaaResult::Forbids { name, owner, records } => {
                refusal.get_or_insert_with(|| {
                    let message = format!(
                        "{key}: the CA of {issuer_key} may not issue for {name}: CAA of {owner} is {records}"
                    );
                    let identity = identities.first().cloned();
                    let step = NextStep::Caa(CaaStep::NameAuthority { name, owner, identity });
                    Failure::new(FailureKind::Validation, message).step(&step).about(key)
                });
            }
        }
    }
    (key.clone(), refusal, unknown)
}

fn dns_names(certificate: &Certificate) -> impl Iterator<Item = String> + '_ {
    names(certificate).filter_map(|text| match Identifier::parse(text) {
        Ok(Identifier::Dns(name)) => Some(name.to_string()),
        Ok(Identifier::Ip(_)) | Err(_) => None,
    })
}

/// Returns whether the address of a name is looked up in DNS, rather than given by a flag.
fn is_looked_up(name: &str, fetcher: &Fetcher) -> bool {
    fetcher.overrides.address(name, 80).is_none()
}

/// Returns names that are proven at an address and that have IPv4 addresses, but first an IPv6 address without a route.
async fn unreachable_first(
    subjects: &[DueCertificate],
    fetcher: &Fetcher,
) -> Vec<(String, IpAddr)> {
    let mut asked = BTreeSet::new();
    for DueCertificate { certificate, issuer, .. } in subjects {
        for (text, chosen) in choices(certificate, issuer) {
            let is_connected = chosen.is_ok_and(|chosen| match chosen.kind {
                ChallengeType::Http01 | ChallengeType::TlsAlpn01 => true,
                ChallengeType::Dns01
                | ChallengeType::DnsAccount01
                | ChallengeType::DnsPersist01 => false,
            });
            if is_connected
                && let Ok(Identifier::Dns(name)) = Identifier::parse(text)
                && is_looked_up(name.base(), fetcher)
            {
                asked.insert(name.base().to_owned());
            }
        }
    }
    let looks = asked.into_iter().take(MAX_ADDRESSED).map(|name| async move {
        let found = fetcher.resolver.addresses(&name).await.ok()?;
        let first = *found.first()?;
        let has_other = found.iter().any(IpAddr::is_ipv4);
        (first.is_ipv6() && has_other && !has_route(first).await).then_some((name, first))
    });
    stream::iter(looks).buffered(CONCURRENCY).filter_map(async |found| found).collect().await
}

/// Returns whether this machine has a route to an address; nothing is sent.
async fn has_route(address: IpAddr) -> bool {
    let any = SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), 0);
    match UdpSocket::bind(any).await {
        Ok(socket) => socket.connect(SocketAddr::new(address, 80)).await.is_ok(),
        Err(_) => false,
    }
}
