//! What an object waits for right now, in one line that names whose reason it is.

use std::sync::Arc;

use super::chain;
use crate::diagnosis::awaited;
use crate::model::{Key, Kind, ObjectName, Record};
use crate::store::Store;
use crate::store::error::StoreError;

/// What an object of a Certificate's issuance waits for; nothing when it has ended, or is of no Certificate.
///
/// # Errors
/// Fails when the store does.
pub(crate) async fn awaited(
    store: &Arc<dyn Store>,
    key: &Key,
) -> Result<Option<String>, StoreError> {
    let Some(record) = store.get(key).await? else { return Ok(None) };
    let Some(certificate) = certificate_above(store, record).await? else { return Ok(None) };
    let Some(mut chain) = chain::read(store, &certificate).await? else { return Ok(None) };
    if !awaited::narrow(&mut chain, key) {
        return Ok(None);
    }
    Ok(awaited::of_chain(&chain))
}

/// The Certificate that an object hangs below, or is.
async fn certificate_above(
    store: &Arc<dyn Store>,
    mut record: Record,
) -> Result<Option<ObjectName>, StoreError> {
    while record.key.kind != Kind::Certificate {
        let metadata = record.metadata();
        let Some(owner) = metadata.controller() else { return Ok(None) };
        let kind = Kind::SIX.into_iter().find(|kind| kind.as_str() == owner.kind);
        let Some(kind) = kind.filter(|kind| kind.is_namespaced()) else { return Ok(None) };
        let key = Key::new(kind, ObjectName::new(&metadata.namespace, &owner.name));
        let Some(above) = store.get(&key).await?.filter(|above| above.uid() == owner.uid) else {
            return Ok(None);
        };
        record = above;
    }
    Ok(Some(record.key.name))
}
