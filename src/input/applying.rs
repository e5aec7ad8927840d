//! Application of manifests: in a cluster, all are tried out on the server, side by side, before the first is applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::{Input, place};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::manifest::Location;
use crate::model::order_report::InputFault;
use crate::model::{Key, Record};
use crate::print::Printer;
use crate::store::cluster::ClusterStore;
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;
use crate::store::{Store, under};

/// Most requests of one command that are under way at once.
const MAX_REQUESTS_AT_ONCE: usize = 16;

/// Returns the cluster behind a store, to try manifests out; `None` for any other store, that of a rehearsal included.
pub fn behind<'a>(store: &Arc<dyn Store>, context: &'a Context) -> Option<&'a ClusterStore> {
    context.cluster().filter(|_| store.in_cluster())
}

/// Applies the manifests; if a cluster refuses one of several, none is applied.
///
/// # Errors
/// Fails with the lowest exit code of all refusals; each refusal has been printed with its place.
pub async fn apply(
    input: &Input,
    records: &[Record],
    store: &Arc<dyn Store>,
    context: &Context,
    printer: &Printer,
) -> Result<(), Failure> {
    if let Some(cluster) = behind(store, context) {
        // With half of the definitions, manifests would be accepted that no controller can issue.
        cluster.check_definitions().await?;
        // A single object is accepted or refused as a whole.
        if records.len() > 1 {
            try_out(input, records, cluster, printer).await?;
        }
    }
    let store = under(store, input.manager());
    for (index, record) in records.iter().enumerate() {
        if let Err(error) = store.apply(record.clone()).await {
            let written: Vec<String> = records[..index].iter().map(|r| r.key.to_string()).collect();
            let failure = refusal_of(&error, &record.key, input.location(index));
            return Err(match &written[..] {
                [] => failure,
                all => failure.hint(format!("applied before that: {}", all.join(", "))),
            });
        }
    }
    Ok(())
}

/// Returns each object as the cluster would store it; nothing is written.
///
/// # Errors
/// Fails with the lowest exit code of all refusals; each refusal has been printed with its place.
pub async fn try_out(
    input: &Input,
    records: &[Record],
    cluster: &ClusterStore,
    printer: &Printer,
) -> Result<Vec<Record>, Failure> {
    let cluster = cluster.managed_by(input.manager());
    let tried = records.iter().map(|record| cluster.try_out(record.clone()));
    let tried: Vec<_> = stream::iter(tried).buffered(MAX_REQUESTS_AT_ONCE).collect().await;
    let (mut taken, mut refusals) = (Vec::new(), Vec::new());
    for (index, (result, record)) in tried.into_iter().zip(records).enumerate() {
        match result {
            Ok(record) => taken.push(record),
            Err(error) => refusals.push(refusal_of(&error, &record.key, input.location(index))),
        }
    }
    match lowest(&refusals) {
        None => Ok(taken),
        Some(kind) => {
            let faults = refusals.iter().map(fault).collect();
            print_refusals(refusals, printer);
            Err(Failure::of_faults(kind, faults))
        }
    }
}

fn lowest(refusals: &[Failure]) -> Option<FailureKind> {
    refusals.iter().map(|refusal| refusal.kind).min_by_key(|kind| kind.exit_code())
}

/// Prints each refusal once, and each hint once, after the last refusal that it helps against.
fn print_refusals(refusals: Vec<Failure>, printer: &Printer) {
    let mut told = BTreeSet::new();
    let mut refusals = refusals.into_iter().peekable();
    while let Some(refusal) = refusals.next() {
        let helps_next = refusals.peek().is_some_and(|next| next.hints == refusal.hints);
        let hints = if helps_next { &[][..] } else { &refusal.hints[..] };
        if told.insert(refusal.message.clone()) || !hints.is_empty() {
            printer.error(&refusal.message, hints);
        }
    }
    printer.note("nothing was applied");
}

/// Returns a refusal as a fault of the input, for programs.
fn fault(refusal: &Failure) -> InputFault {
    let told = refusal.facts.faults.first().cloned();
    told.unwrap_or_else(|| InputFault {
        message: refusal.message.clone(),
        hints: refusal.hints.clone(),
        object: String::new(),
        place: None,
    })
}

/// Makes the failure for a refusal; names the place of the manifest, unless the refusal is not about the manifest.
fn refusal_of(error: &StoreError, key: &Key, location: Option<&Location>) -> Failure {
    let is_about_manifest = match error {
        StoreError::Cluster(fault) => matches!(**fault, ClusterFault::NoNamespace { .. }),
        StoreError::Unusable { .. } | StoreError::Exposed { .. } => false,
        StoreError::Conflict { .. }
        | StoreError::AlreadyExists { .. }
        | StoreError::NotFound { .. }
        | StoreError::Invalid { .. }
        | StoreError::Unreadable { .. }
        | StoreError::Held { .. }
        | StoreError::Denied { .. } => true,
    };
    let mut failure = Failure::of(error);
    if let Some(location) = location.filter(|_| is_about_manifest) {
        let (object, place) = (key.to_string(), Some(place(location)));
        failure.facts.faults = vec![InputFault { object, place, ..fault(&failure) }];
        failure.message = format!("{location}: {}", failure.message);
    }
    failure
}
