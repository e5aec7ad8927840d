//! A Certificate with everything that hangs below it, as the store holds it right now; without the bulk that no judgement
//! needs.

use std::sync::Arc;

use crate::app::failure::Failure;
use crate::model::common::is_true;
use crate::model::{
    Certificate, CertificateRequest, Challenge, Issuer, Key, Kind, ObjectName, Order,
};
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// A Certificate and its relatives.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The Certificate.
    pub certificate: Certificate,
    /// Its requests, oldest revision first.
    pub requests: Vec<CertificateRequest>,
    /// The Orders of those requests.
    pub orders: Vec<Order>,
    /// The Challenges of those Orders.
    pub challenges: Vec<Challenge>,
    /// The Issuer it refers to.
    pub issuer: Option<Issuer>,
    /// Whether all of it is in a cluster.
    pub in_cluster: bool,
}

impl Chain {
    /// Reads a Certificate and its relatives; nothing when there is no such Certificate.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn read(
        store: &Arc<dyn Store>,
        name: &ObjectName,
    ) -> Result<Option<Self>, StoreError> {
        let certificates = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
        let Some(certificate) = certificates.get(name).await? else { return Ok(None) };
        let below = |uid: &str| Scope::owned_by(&name.namespace, uid).brief();
        let kind = Kind::CertificateRequest;
        let mut requests = Resources::<CertificateRequest>::new(Arc::clone(store), kind)
            .list(&below(&certificate.metadata.uid))
            .await?;
        requests.sort_by_key(CertificateRequest::revision);
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
            Some(key) => {
                Resources::<Issuer>::new(Arc::clone(store), key.kind).get(&key.name).await?
            }
            None => None,
        };
        let in_cluster = store.in_cluster();
        Ok(Some(Self { certificate, requests, orders, challenges, issuer, in_cluster }))
    }

    /// The same past whatever is kept in memory of it. Each kind has a watch of its own: that a Certificate has failed may be heard
    /// before that of its Order, or before its Order at all. What may only be watched is as its watch tells it.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn read_anew(
        store: &Arc<dyn Store>,
        name: &ObjectName,
    ) -> Result<Option<Self>, StoreError> {
        let Some(known) = Self::read(store, name).await? else { return Ok(None) };
        for key in known.keys() {
            match store.get_anew(&key).await {
                Err(error) if error.lacks_permission() => {}
                read => drop(read?),
            }
        }
        if known.has_failed() && known.order().is_none() {
            for kind in [Kind::CertificateRequest, Kind::Order, Kind::Challenge] {
                store.list_anew(kind, &Scope::namespace(&name.namespace)).await?;
            }
        }
        Self::read(store, name).await
    }

    /// The request of the running issuance, or of the last one.
    pub fn request(&self) -> Option<&CertificateRequest> {
        self.requests.last()
    }

    /// The Order of that request.
    pub fn order(&self) -> Option<&Order> {
        let uid = &self.request()?.metadata.uid;
        self.orders.iter().rev().find(|order| order.metadata.is_controlled_by(uid))
    }

    /// Tells whether nothing is left of the way to the certificate: neither its key's temporary Secret nor a Challenge, save
    /// one that cannot be cleaned up for now.
    pub fn is_tidy(&self) -> bool {
        let stuck = |c: &Challenge| !c.status.processing && !c.metadata.finalizers.is_empty();
        self.certificate.status.next_private_key_secret_name.is_empty()
            && self.challenges.iter().all(stuck)
    }

    /// Tells whether issuance has failed, and something of it is still to be taken down or removed.
    pub fn is_clearing_up(&self) -> bool {
        let status = &self.certificate.status;
        let is_left = |c: &Challenge| c.status.processing;
        self.has_failed()
            && (!status.next_private_key_secret_name.is_empty()
                || self.challenges.iter().any(is_left))
    }

    /// Tells whether the last issuance has failed, and no other has begun.
    fn has_failed(&self) -> bool {
        let status = &self.certificate.status;
        status.last_failure_time.is_some() && !is_true(&status.conditions, "Issuing")
    }

    /// Keys of every object in the chain, from the Certificate down, the Issuer last.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = vec![Key::new(Kind::Certificate, self.certificate.name())];
        let namespace = &self.certificate.metadata.namespace;
        let key = |kind, name: &str| Key::new(kind, ObjectName::new(namespace, name));
        keys.extend(self.requests.iter().map(|r| key(Kind::CertificateRequest, &r.metadata.name)));
        keys.extend(self.orders.iter().map(|o| key(Kind::Order, &o.metadata.name)));
        keys.extend(self.challenges.iter().map(|c| key(Kind::Challenge, &c.metadata.name)));
        keys.extend(issuer_key(&self.certificate));
        keys
    }

    /// The issuer as hints name it: called an Issuer where its kind is none of ours, and nothing is asked of it.
    pub fn named_issuer(&self) -> Key {
        let Certificate { metadata, spec, .. } = &self.certificate;
        let name = || ObjectName::new(&metadata.namespace, &spec.issuer_ref.name);
        issuer_key(&self.certificate).unwrap_or_else(|| Key::new(Kind::Issuer, name()))
    }
}

/// The key of the issuer that a Certificate refers to; none where its kind is none of ours.
pub fn issuer_key(certificate: &Certificate) -> Option<Key> {
    certificate.spec.issuer_ref.key(&certificate.metadata.namespace)
}

/// The failure where the kind of a Certificate's issuer is none of ours.
pub fn foreign_issuer(certificate: &Certificate) -> Failure {
    let (name, kind) = (certificate.name(), certificate.spec.issuer_ref.effective_kind());
    Failure::usage(format!("Certificate {name}: issuerRef.kind is {kind}, which is not ours"))
        .hint("issuerRef.kind must be Issuer, ClusterIssuer or absent")
}
