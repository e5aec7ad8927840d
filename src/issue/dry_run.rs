//! `--dry-run`: prints the objects that would be applied, and how the store would take them.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::asking;
use super::follow::work::WorkArgs;
use super::plan::opening::opening;
use super::preflight::certificates::certificates;
use super::preflight::{self, provider_check};
use super::results::files;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::controllers::ingress_shim::Foreseen;
use crate::diagnosis::case::chain::{issuer_key, key_of};
use crate::input::{Input, applying};
use crate::lead::venue::Venue;
use crate::lead::{self, Claim};
use crate::model::memory::is_ours;
use crate::model::{Kind, Record};
use crate::print::format::Format;
use crate::print::{Group, Shape, columns, document};
use crate::reconcile::certificate::options::Options;
use crate::store::local::Access;
use crate::store::memory::MemoryStore;
use crate::store::{Scope, Store};

/// Kinds that decide if a Certificate is due, that its providers need, or whose objects own others (which would go without).
const COPIED_KINDS: [Kind; 10] = [
    Kind::Certificate,
    Kind::CertificateRequest,
    Kind::Challenge,
    Kind::ClusterIssuer,
    Kind::Gateway,
    Kind::Ingress,
    Kind::Issuer,
    Kind::ListenerSet,
    Kind::Order,
    Kind::Secret,
];

/// Object as it would become, with the kind of change.
#[derive(Debug)]
struct DryRunResult {
    object: Value,
    kind: Kind,
    /// Change in kubectl's words, such as `created`.
    word: &'static str,
}

/// Prints the manifests as they are. Output for people also names the Certificates for which the manifests ask;
/// documents omit these Certificates, because they are made when the documents are applied.
///
/// # Errors
/// Fails when annotations cannot be read, or stdout cannot be written.
pub async fn client(input: &Input, work: &WorkArgs, context: &Context) -> Result<(), Failure> {
    let mut records = input.records().to_vec();
    let asked = asking::asked_for(input, work, context)?;
    let printer = context.printer(&work.output);
    if printer.format().is_for_people() {
        records.extend(asked);
    }
    // Only the store of this machine is read: no cluster is asked.
    let store = context.store(Access::ReadOnly).await.ok();
    for certificate in certificates(&records) {
        let Some(issuer) = issuer_key(&certificate) else { continue };
        let is_given = records.iter().any(|record| record.key == issuer);
        let is_stored = match &store {
            Some(store) if !is_given => store.get(&issuer).await?.is_some(),
            _ => false,
        };
        if !is_given && !is_stored {
            let place = if store.is_some() { " nor in the store" } else { "" };
            let neither = if store.is_some() { "neither" } else { "not" };
            let name = key_of(&certificate);
            printer.warning(&format!(
                "{name} refers to {issuer}, which is {neither} in these manifests{place}"
            ));
        }
    }
    let outcomes: Vec<_> = records.into_iter().map(|record| outcome(record, "created")).collect();
    print(&outcomes, "dry run", context, &work.output)
}

/// Asks the store about all manifests, and prints how each object would change; nothing is written, not even below
/// `out`. With `--dns01-manual`, a person stands in for every provider.
///
/// # Errors
/// Fails as applying would, with a local store also as the work before its first request to a CA; or if stdout fails.
pub async fn server(input: &Input, args: &WorkArgs, context: &Context) -> Result<(), Failure> {
    let (manual, output, out) = (&args.manual, &args.output, &args.out);
    let printer = context.printer(output);
    let given = input.records();
    let asked = asking::asked_for(input, args, context)?;
    let records = &[given, &asked].concat()[..];
    let store = context.store(Access::ReadOnly).await?;
    let cluster = applying::behind(&store, context);
    if let Some(cluster) = cluster {
        cluster.check_definitions().await?;
    }
    let claim = lead::foreseen(context).await?;
    manual.check_turn(&claim)?;
    let venue = Venue::of(context, &claim).by_hand(manual.dns01_manual);
    let namespace = &context.global.cluster_resource_namespace;
    preflight::check(records, &store, venue, out.as_deref(), namespace).await?;
    if let Some(folder) = context.out(out.as_deref())? {
        files::expect_writable(&folder, context.interrupted()).await?;
    }
    if cluster.is_none() && venue.has_providers() {
        check_providers(records, &store, args, context).await?;
    }
    let after = match cluster {
        None => given.to_vec(),
        Some(cluster) => applying::try_out(input, given, cluster, &printer).await?,
    };
    let (mut outcomes, mut certificates) = (Vec::new(), Vec::new());
    for record in after {
        if Kind::ASKING.contains(&record.key.kind) {
            for (certificate, what) in asking::would_become(&record, &store, args).await? {
                // A Certificate that is in the manifests has a line of its own.
                if given.iter().all(|given| given.key != certificate.key) {
                    certificates.push(outcome(certificate, foreseen_word(what)));
                }
            }
        }
        let word = change_word(&store, &record).await?;
        outcomes.push(outcome(record, word));
    }
    outcomes.extend(certificates);
    print(&outcomes, "server dry run", context, output)
}

/// Asks the providers of the Certificates that would be due, as the work does before newOrder: in a copy of the store,
/// in which the manifests are applied.
async fn check_providers(
    records: &[Record],
    store: &Arc<dyn Store>,
    work: &WorkArgs,
    context: &Context,
) -> Result<(), Failure> {
    let mut held = Vec::new();
    for kind in COPIED_KINDS {
        held.extend(store.list(kind, &Scope::all()).await?);
    }
    let copy: Arc<dyn Store> = Arc::new(MemoryStore::of(held));
    for record in records {
        copy.apply(record.clone()).await?;
    }
    let opening =
        opening(records, &copy, &Claim::Alone, (Options::default(), None), Timestamp::now())
            .await?;
    let due = opening.open.iter().filter(|(_, tracked)| tracked.is_due());
    let due = due.map(|(key, _)| key);
    provider_check::check(due, &copy, &work.drive, None, (context, &work.output)).await
}

fn foreseen_word(what: Foreseen) -> &'static str {
    match what {
        Foreseen::Created => "created",
        Foreseen::Deleted => "deleted",
        Foreseen::Unchanged => "unchanged",
        Foreseen::Updated => "configured",
    }
}

fn outcome(record: Record, word: &'static str) -> DryRunResult {
    DryRunResult { kind: record.key.kind, object: record.object, word }
}

async fn change_word(store: &Arc<dyn Store>, after: &Record) -> Result<&'static str, Failure> {
    Ok(match store.get(&after.key).await? {
        None => "created",
        Some(before) if user_part(&before) == user_part(after) => "unchanged",
        Some(_) => "configured",
    })
}

/// Returns the part of an object that people decide: all but its status and the metadata that only the store sets.
fn user_part(record: &Record) -> Value {
    let mut wish = record.object.clone();
    let metadata = record.metadata();
    let mut annotations = metadata.annotations;
    annotations.retain(|name, _| !is_ours(name));
    if let Some(fields) = wish.as_object_mut() {
        fields.remove("status");
        fields.insert("metadata".into(), serde_json::json!([metadata.labels, annotations]));
    }
    wish
}

/// Prints documents if the output format asks for them, else names as kubectl does.
fn print(
    outcomes: &[DryRunResult],
    how: &str,
    context: &Context,
    output: &OutputArgs,
) -> Result<(), Failure> {
    let mut printer = context.printer(output);
    if printer.format().is_for_people() {
        let line = |outcome: &DryRunResult| {
            format!("{} {} ({how})\n", columns::qualified_name(&outcome.object), outcome.word)
        };
        return Ok(printer.text(&outcomes.iter().map(line).collect::<String>())?);
    }
    if *printer.format() == Format::Yaml {
        let documents: Vec<String> = outcomes.iter().map(|o| document::yaml(&o.object)).collect();
        return Ok(printer.data(&documents.join("---\n"))?);
    }
    let groups: Vec<Group<'_>> =
        outcomes.iter().map(|o| Group { kind: o.kind, objects: vec![&o.object] }).collect();
    let shape = if outcomes.len() == 1 { Shape::One } else { Shape::Many };
    Ok(printer.resources(&groups, shape, columns::Namespaces::Hidden, context.now())?)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(object: &Value) -> Record {
        let mut whole = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "b"}});
        for (name, value) in object.as_object().unwrap() {
            whole[name] = value.clone();
        }
        Record::new(whole).unwrap()
    }

    #[test]
    fn what_only_the_store_says_is_no_change() {
        let metadata = json!({"name": "a", "namespace": "b", "uid": "1", "annotations": {"kubectl-acme/x": "y"}});
        let stored = record(&json!({"metadata": metadata, "status": {"x": 1}, "data": {"k": ""}}));
        assert_eq!(user_part(&stored), user_part(&record(&json!({"data": {"k": ""}}))));
        assert_ne!(user_part(&stored), user_part(&record(&json!({"data": {"l": ""}}))));
    }
}
