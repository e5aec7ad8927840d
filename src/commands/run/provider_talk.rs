//! `run` reports early if providers of dns01 solvers would refuse: once for each change of an issuer, not for each order.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::select_all;
use jiff::Timestamp;
use tracing::debug;

use crate::context::failure::Failure;
use crate::diagnosis::case::chain::issuer_key;
use crate::issue::preflight::provider_check::{QuestionKey, ask, errands, hidden_hosts};
use crate::model::{Certificate, Key, Kind, Record};
use crate::print::Printer;
use crate::solvers::dns01::solver::Dns01;
use crate::store::resources::typed;
use crate::store::{Change, Scope, Store};

/// Kinds whose changes determine which provider to ask for which names.
const KINDS: [Kind; 3] = [Kind::Certificate, Kind::Issuer, Kind::ClusterIssuer];

/// Asks providers without end. A failure here blocks nothing: the challenges themselves show the fault later.
pub async fn talk(store: Arc<dyn Store>, dns01: Dns01, printer: Printer) {
    let mut asked = BTreeSet::new();
    let mut changes = select_all(KINDS.map(|kind| store.watch(kind, Scope::all())));
    while let Some(change) = changes.next().await {
        let records = match change {
            Ok(Change::Applied(record)) => vec![record],
            Ok(Change::Resynced(records)) => records,
            Ok(Change::Deleted(_)) | Err(_) => continue,
        };
        match complaints(&records, &store, &dns01, &mut asked).await {
            Ok(complaints) => complaints.iter().for_each(|text| printer.warning(text)),
            Err(failure) => debug!(%failure, "providers are not asked"),
        }
    }
    pending::<()>().await;
}

/// Complaints of the providers that were not asked since their issuers changed.
async fn complaints(
    changed: &[Record],
    store: &Arc<dyn Store>,
    dns01: &Dns01,
    asked: &mut BTreeSet<QuestionKey>,
) -> Result<Vec<String>, Failure> {
    let mut keys: BTreeSet<Key> = changed.iter().map(|record| record.key.clone()).collect();
    if keys.iter().any(|key| key.kind != Kind::Certificate) {
        for record in store.list(Kind::Certificate, &Scope::all()).await? {
            let key = record.key.clone();
            let certificate = typed::<Certificate>(record).ok();
            if certificate.and_then(|it| issuer_key(&it)).is_some_and(|it| keys.contains(&it)) {
                keys.insert(key);
            }
        }
    }
    let errands = errands(keys.iter(), store).await?.into_iter();
    let errands: Vec<_> = errands.filter(|errand| asked.insert(errand.subject.clone())).collect();
    let answers = join_all(errands.iter().map(|errand| ask(dns01, errand))).await;
    let said = errands.iter().zip(answers);
    let mut all: Vec<String> =
        said.filter_map(|(errand, answer)| Some(errand.complaint(&answer.err()?))).collect();
    let now = Timestamp::now();
    let hidden = join_all(errands.iter().map(|errand| hidden_hosts(dns01, errand, now))).await;
    all.extend(hidden.into_iter().flatten());
    Ok(all)
}
