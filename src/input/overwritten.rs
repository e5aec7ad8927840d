//! Changes by `--domain` and `--csr` to objects that are in the store already.
//!
//! The Issuer is chosen so that no other certificate loses anything. The name of a Certificate is made of the first domain, and
//! two can be alike: a stored Certificate of that name without the first domain given is not overwritten.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Input;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::hints::invocation;
use crate::model::quick_issuer::{self, Move, StoredObjects};
use crate::model::{Key, Kind, ObjectName, Record};
use crate::print::Printer;
use crate::store::local::Access;
use crate::store::{Scope, Store};

/// Gives input that was made of names the Issuer that fits, in the store of the command.
///
/// # Errors
/// Fails if the store fails.
pub async fn settled(mut input: Input, context: &Context) -> Result<Input, Failure> {
    if let Some(base) = input.issuer.clone() {
        let store = context.store(Access::ReadOnly).await?;
        settle(&mut input.records, &base, &store).await?;
    }
    Ok(input)
}

/// Gives objects that were made of names the Issuer that fits; prints the differences if the Issuer is another one than before.
///
/// # Errors
/// Fails if the store fails.
pub async fn settle_and_tell(
    records: &mut [Record],
    base: &str,
    store: &Arc<dyn Store>,
    printer: &Printer,
) -> Result<(), Failure> {
    if let Some(Move { from, to, fields }) = settle(records, base, store).await?
        && let Some(record) = records.iter().find(|record| record.key.kind.is_issued())
    {
        let namespace = &record.key.name.namespace;
        printer.note(&format!(
            "{} is issued by Issuer {namespace}/{to}: Issuer {namespace}/{from}, which it was ordered from, has another {}",
            record.key,
            fields.join(", another ")
        ));
    }
    Ok(())
}

async fn settle(
    records: &mut [Record],
    base: &str,
    store: &Arc<dyn Store>,
) -> Result<Option<Move>, Failure> {
    let of_kind = |record: &&Record| record.key.kind == Kind::Issuer;
    let Some(issuer) = records.iter().find(of_kind) else { return Ok(None) };
    let namespace = issuer.key.name.namespace.clone();
    let scope = Scope::namespace(&namespace);
    let issuers = store.list(Kind::Issuer, &scope).await?;
    if issuers.is_empty() {
        return Ok(None);
    }
    let mut wanted = store.list(Kind::Certificate, &scope).await?;
    wanted.extend(store.list(Kind::CertificateRequest, &scope).await?);
    let mut secrets = BTreeMap::new();
    for name in quick_issuer::secrets_of_interest(records, base, &issuers) {
        match store.get(&Key::new(Kind::Secret, ObjectName::new(&namespace, &name))).await {
            Ok(found) => {
                secrets.insert(name, found);
            }
            // A Secret that may not be read counts as different.
            Err(error) if error.lacks_permission() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stored = StoredObjects { issuers, wanted, secrets };
    Ok(quick_issuer::settle(records, base, &stored))
}

/// Checks that no Certificate for other names is overwritten, and prints the names that a Certificate loses.
///
/// # Errors
/// Fails if a stored Certificate is for other names, or the store fails.
pub async fn check(
    records: &[Record],
    store: &Arc<dyn Store>,
    printer: &Printer,
) -> Result<(), Failure> {
    for record in records.iter().filter(|record| record.key.kind == Kind::Certificate) {
        let Some(there) = store.get(&record.key).await? else { continue };
        let (before, after) = (names(&there), names(record));
        let Some(first) = after.first().filter(|_| !before.is_empty()) else { continue };
        if !before.contains(first) {
            let key = &record.key;
            let why =
                format!("cannot use --domain {first}: {key} exists for {}", before.join(", "));
            return Err(Failure::usage(why).hint(format!(
                "write manifests, and give the Certificate another name and secretName: {} > FILE.yaml",
                invocation::current().like(&format!("order --domain {first} --dry-run=client -o yaml"))
            )));
        }
        let lost: Vec<&str> = before.into_iter().filter(|name| !after.contains(name)).collect();
        if !lost.is_empty() {
            let key = &record.key;
            printer
                .note(&format!("{key} loses {}: --domain sets all of its names", lost.join(", ")));
        }
    }
    Ok(())
}

/// Returns the names of a Certificate.
fn names(certificate: &Record) -> Vec<&str> {
    let lists = ["/spec/dnsNames", "/spec/ipAddresses"];
    let lists = lists.into_iter().filter_map(|list| certificate.object.pointer(list)?.as_array());
    lists.flatten().filter_map(|name| name.as_str()).collect()
}
