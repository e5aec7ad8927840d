//! Obstacle that an object waits for right now, in one line that names the object with the reason.

use std::sync::Arc;

use super::chain;
use crate::diagnosis::verdict::awaited;
use crate::model::Key;
use crate::store::Store;
use crate::store::error::StoreError;

/// Describes what an object of a Certificate's issuance waits for; `None` if the object has ended, or is of no Certificate.
///
/// # Errors
/// Fails if the store fails.
pub(crate) async fn awaited(
    store: &Arc<dyn Store>,
    key: &Key,
) -> Result<Option<String>, StoreError> {
    let Some(record) = store.get(key).await? else { return Ok(None) };
    let Some(certificate) = chain::certificate_above(store, record).await? else { return Ok(None) };
    let Some(mut chain) = chain::read(store, &certificate).await? else { return Ok(None) };
    if !awaited::narrow(&mut chain, key) {
        return Ok(None);
    }
    Ok(awaited::of_chain(&chain))
}
