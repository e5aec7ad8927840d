//! What `--domain` would make of a Certificate that is there already: its name is made of the first name, and two can
//! be alike.
//!
//! A Certificate of that name whose names lack the first one given is refused.

use std::sync::Arc;

use crate::app::failure::Failure;
use crate::app::invocation;
use crate::model::{Kind, Record};
use crate::print::Printer;
use crate::store::Store;

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
