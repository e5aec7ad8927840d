//! Objects left to cert-manager: issuers that are not ACME, and certificates of such issuers.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::failure::Failure;
use crate::diagnosis::case::chain::issuer_key;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::{Issuer, Key, Kind};
use crate::objects::own_request::certificate_of;
use crate::store::Store;
use crate::store::error::StoreError;
use crate::store::resources::typed;

/// Returns the objects that only another controller can serve, each with the failure that says so.
///
/// # Errors
/// Fails when the store does.
pub async fn to_cert_manager(
    store: &Arc<dyn Store>,
    keys: impl IntoIterator<Item = &Key>,
) -> Result<BTreeMap<Key, Failure>, StoreError> {
    let mut left = BTreeMap::new();
    for key in keys {
        if let Some(why) = reason_to_leave(store, key).await? {
            let message =
                format!("{key} is left to cert-manager: {why}, and kubectl-acme serves acme only");
            let failure = Failure::new(FailureKind::OwnedByAnother, message)
                .hint("the object is in the cluster as it was given: cert-manager serves it as soon as cert-manager runs");
            left.insert(key.clone(), failure);
        }
    }
    Ok(left)
}

async fn reason_to_leave(store: &Arc<dyn Store>, key: &Key) -> Result<Option<String>, StoreError> {
    let Some(record) = store.get(key).await? else { return Ok(None) };
    if !key.kind.is_issued() {
        return Ok(types(&typed(record)?).map(|types| format!("it is of type {types}")));
    }
    let certificate = certificate_of(&record)?;
    let group = certificate.spec.issuer_ref.effective_group();
    if group != Kind::Issuer.group() {
        return Ok(Some(format!("its issuer is of group {group}")));
    }
    let Some(key) = issuer_key(&certificate) else { return Ok(None) };
    let Some(issuer) = store.get(&key).await? else { return Ok(None) };
    Ok(types(&typed(issuer)?).map(|types| format!("{key} is of type {types}")))
}

/// Returns the types of an issuer that is not ACME.
fn types(issuer: &Issuer) -> Option<String> {
    let types = issuer.spec.types();
    (issuer.spec.acme.is_none() && !types.is_empty()).then(|| types.join(", "))
}
