//! What `--domain` and `--csr` would make of what is in the store already.
//!
//! The Issuer is one that no other certificate loses anything by. The name of a Certificate is made of the first name, and two can be
//! alike: one of that name whose names lack the first one given is refused.

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

/// The same with the Issuer that fits what was made of names, in the store of the command.
///
/// # Errors
/// Fails when the store does.
pub async fn settled(mut input: Input, context: &Context) -> Result<Input, Failure> {
    if let Some(base) = input.issuer.clone() {
        let store = context.store(Access::ReadOnly).await?;
        settle(&mut input.records, &base, &store).await?;
    }
    Ok(input)
}

/// Gives what was made of names the Issuer that fits, and says what is different where that is another one than before.
///
/// # Errors
/// Fails when the store does.
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
            // What may not be read is not known to be the same.
            Err(error) if error.lacks_permission() => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stored = StoredObjects { issuers, wanted, secrets };
    Ok(quick_issuer::settle(records, base, &stored))
}

/// Lets no Certificate be written over that is for other names, and says which names one loses.
///
/// # Errors
/// Fails when there is one for other names, or the store does.
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
                format!("cannot use --domain {first}: {key} is there for {}", before.join(", "));
            return Err(Failure::usage(why).hint(format!(
                "write manifests, and give the Certificate another name and secretName: {} > FILE.yaml",
                invocation::current().like(&format!("order --domain {first} --dry-run=client -o yaml"))
            )));
        }
        let lost: Vec<&str> = before.into_iter().filter(|name| !after.contains(name)).collect();
        if !lost.is_empty() {
            let key = &record.key;
            printer
                .note(&format!("{key} loses {}: --domain gives all of its names", lost.join(", ")));
        }
    }
    Ok(())
}

/// The names of a Certificate.
fn names(certificate: &Record) -> Vec<&str> {
    let lists = ["/spec/dnsNames", "/spec/ipAddresses"];
    let lists = lists.into_iter().filter_map(|list| certificate.object.pointer(list)?.as_array());
    lists.flatten().filter_map(|name| name.as_str()).collect()
}
