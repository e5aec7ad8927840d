//! CAA identities for a rehearsal: those of the issuers' own CAs, as the directories of these CAs name them.
//!
//! CAA can be decided as the real CA would only by the names of that CA and the account stored for that CA. If the
//! directory names none, no CAA records are checked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::acme::Clients;
use crate::ca::{Caa, RecordAccount};
use crate::context::Context;
use crate::context::flags::output::OutputArgs;
use crate::controllers::accounts::tls_of;
use crate::model::{Issuer, Key, Kind, Record};
use crate::store::Store;
use crate::store::resources::typed;

/// Longest wait for the directory of a CA; a rehearsal goes on without it.
const DIRECTORY_TIMEOUT: Duration = Duration::from_secs(10);

/// Reads the CAA identities of the CAs of these Issuers, all at once; CAs that name none, or cannot be read, are left out.
/// `source` has the accounts that records may be bound to (RFC 8657 §3).
pub(super) async fn read(
    records: &[Record],
    source: &Arc<dyn Store>,
    clients: &Clients,
    context: &Context,
) -> BTreeMap<Key, Caa> {
    let issuers = records.iter().filter_map(issuer);
    let read = issuers.map(|(key, issuer)| async move {
        let acme = issuer.spec.acme?;
        let tls = tls_of(&acme);
        let asked = timeout(DIRECTORY_TIMEOUT, clients.directory(&acme.server, &tls)).await;
        let why = match asked {
            Ok(Ok(directory)) if directory.caa_identities.is_empty() => return None,
            Ok(Ok(directory)) => {
                let account = account(&key, &acme.server, source).await;
                let identities = directory.caa_identities.clone();
                return Some((key, Caa { identities, account }));
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => {
                format!("{} does not answer within {} s", acme.server, DIRECTORY_TIMEOUT.as_secs())
            }
        };
        context.printer(&OutputArgs::default()).note(&format!(
            "CAA records are not checked for {key}, as its CA's CAA identities are unknown: {why}"
        ));
        None
    });
    join_all(read).await.into_iter().flatten().collect()
}

/// Returns the account that an Issuer has at that CA. If the store cannot be read, a record bound to an account is refused
/// without an explanation: that account may be this issuer's.
async fn account(key: &Key, server: &str, source: &Arc<dyn Store>) -> RecordAccount {
    let Ok(record) = source.get(key).await else { return RecordAccount::Own };
    let Some((_, issuer)) = record.as_ref().and_then(issuer) else { return RecordAccount::Unmade };
    let is_there = issuer.spec.acme.is_some_and(|acme| acme.server == server);
    let uri = issuer.status.acme.map(|account| account.uri).unwrap_or_default();
    if is_there && !uri.is_empty() { RecordAccount::Elsewhere(uri) } else { RecordAccount::Unmade }
}

fn issuer(record: &Record) -> Option<(Key, Issuer)> {
    let is_issuer = matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer);
    let issuer = is_issuer.then(|| typed::<Issuer>(record.clone()).ok()).flatten()?;
    Some((record.key.clone(), issuer))
}
