//! Reads a Certificate with all objects below it, as the store holds them right now, without the bulk that no judgement
//! needs; reads a CertificateRequest that no Certificate has made in the same way.
//!
//! While another controller drives, a failure is judged after a fresh read, because several watches have no common order.

use std::sync::Arc;

use super::own_request::as_certificate;
use crate::diagnosis::case::chain::{Chain, issuer_key};
use crate::model::{
    Certificate, CertificateRequest, Challenge, Issuer, Key, Kind, ObjectName, Order, Record,
};
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Reads a Certificate and its relatives; `None` if there is no such Certificate.
///
/// # Errors
/// Fails if the store fails.
pub async fn read(store: &Arc<dyn Store>, name: &ObjectName) -> Result<Option<Chain>, StoreError> {
    let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
    let Some(certificate) = certificates.get(name).await? else { return Ok(None) };
    let scope = Scope::owned_by(&name.namespace, &certificate.metadata.uid).brief();
    let requests =
        Resources::<CertificateRequest>::new(Arc::clone(store), Kind::CertificateRequest);
    let mut requests = requests.list(&scope).await?;
    requests.sort_by_key(CertificateRequest::revision);
    below(store, certificate, requests).await.map(Some)
}

/// Reads the Certificate or CertificateRequest of a key, and its relatives; `None` if there is no such object.
///
/// # Errors
/// Fails if the store fails.
pub async fn of(store: &Arc<dyn Store>, key: &Key) -> Result<Option<Chain>, StoreError> {
    if key.kind != Kind::CertificateRequest {
        return read(store, &key.name).await;
    }
    let requests = Resources::<CertificateRequest>::new(Arc::clone(store), key.kind);
    let Some(request) = requests.get(&key.name).await? else { return Ok(None) };
    below(store, as_certificate(&request), vec![request]).await.map(Some)
}

/// Reads the orders and challenges below requests, and the issuer.
async fn below(
    store: &Arc<dyn Store>,
    certificate: Certificate,
    requests: Vec<CertificateRequest>,
) -> Result<Chain, StoreError> {
    let below = |uid: &str| Scope::owned_by(&certificate.metadata.namespace, uid).brief();
    let (mut orders, mut challenges) = (Vec::new(), Vec::new());
    for request in &requests {
        let all = Resources::<Order>::new(Arc::clone(store), Kind::Order);
        orders.extend(all.list(&below(&request.metadata.uid)).await?);
    }
    for order in &orders {
        let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
        challenges.extend(all.list(&below(&order.metadata.uid)).await?);
    }
    let issuer = match issuer_key(&certificate) {
        Some(key) => Resources::<Issuer>::new(Arc::clone(store), key.kind).get(&key.name).await?,
        None => None,
    };
    let in_cluster = store.in_cluster();
    Ok(Chain { certificate, requests, orders, challenges, issuer, in_cluster })
}

/// Reads what [`of`] reads, past the copies in memory. Each kind has its own watch: the failure of a Certificate may arrive
/// before that of its Order, or before the Order itself. Objects that may only be watched stay as their watch shows them.
///
/// # Errors
/// Fails if the store fails.
pub async fn read_anew(store: &Arc<dyn Store>, root: &Key) -> Result<Option<Chain>, StoreError> {
    let Some(known) = of(store, root).await? else { return Ok(None) };
    for key in known.keys() {
        match store.get_anew(&key).await {
            Err(error) if error.lacks_permission() => {}
            read => drop(read?),
        }
    }
    if known.has_failed() && known.order().is_none() {
        for kind in [Kind::CertificateRequest, Kind::Order, Kind::Challenge] {
            store.list_anew(kind, &Scope::namespace(&root.name.namespace)).await?;
        }
    }
    of(store, root).await
}

/// Returns the Certificate above an object, or the object itself; `None` if an owner is gone, or of a kind that is not ours.
///
/// # Errors
/// Fails if the store fails.
pub async fn certificate_above(
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
