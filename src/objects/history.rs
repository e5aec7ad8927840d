//! Events of an object and of all objects below it.

use std::sync::Arc;

use crate::context::failure::Failure;
use crate::model::{Event, Key, Kind};
use crate::print::lineage;
use crate::print::timeline::saying::Sequence;
use crate::print::timeline::{self, Entry};
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Kinds below a Certificate, in the order of the chain.
const KINDS_BELOW: [Kind; 3] = [Kind::CertificateRequest, Kind::Order, Kind::Challenge];

/// Reads the timeline of an object: its own events and those of all objects that are or were below it.
///
/// # Errors
/// Fails if the store fails.
pub async fn entries(store: &Arc<dyn Store>, key: &Key) -> Result<Vec<Entry>, Failure> {
    let namespace = if key.kind.is_namespaced() { &key.name.namespace } else { "default" };
    let events = Resources::<Event>::new(Arc::clone(store), Kind::Event);
    let events = events.list(&Scope::namespace(namespace)).await?;
    let roots = family(store, key).await?;
    let sequence = if store.in_cluster() { Sequence::Moments } else { Sequence::Revisions };
    Ok(timeline::entries(lineage::below(&roots, &key.name.namespace, &events), sequence))
}

/// Lists the object and all existing objects below it: the events of their creation may be gone.
async fn family(store: &Arc<dyn Store>, key: &Key) -> Result<Vec<(Kind, String)>, Failure> {
    let mut family = vec![(key.kind, key.name.name.clone())];
    let mut owners: Vec<String> =
        store.get(key).await?.iter().map(|record| record.uid().to_owned()).collect();
    for kind in KINDS_BELOW {
        for owner in owners.clone() {
            let scope = Scope::owned_by(&key.name.namespace, owner);
            for record in store.list(kind, &scope).await? {
                owners.push(record.uid().to_owned());
                family.push((kind, record.key.name.name.clone()));
            }
        }
    }
    Ok(family)
}
