//! A Certificate with all objects below it, as it is judged; or a CertificateRequest that no Certificate has made.

use jiff::Timestamp;

use crate::model::common::is_true;
use crate::model::memory::{Holder, Memory};
use crate::model::{
    Certificate, CertificateRequest, Challenge, Issuer, Key, Kind, ObjectName, Order,
};

/// A Certificate and its relatives.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The Certificate; for a CertificateRequest without one, a made-up Certificate that asks for the same.
    pub certificate: Certificate,
    /// Requests of the Certificate, oldest revision first.
    pub requests: Vec<CertificateRequest>,
    /// Orders of the requests.
    pub orders: Vec<Order>,
    /// Challenges of the Orders.
    pub challenges: Vec<Challenge>,
    /// Issuer that the Certificate refers to.
    pub issuer: Option<Issuer>,
    /// Whether the objects are in a cluster.
    pub in_cluster: bool,
}

impl Chain {
    /// Returns the request of the running issuance, or of the last one.
    pub fn request(&self) -> Option<&CertificateRequest> {
        self.requests.last()
    }

    /// Returns the Order of the newest request.
    pub fn order(&self) -> Option<&Order> {
        let uid = &self.request()?.metadata.uid;
        self.orders.iter().rev().find(|order| order.metadata.is_controlled_by(uid))
    }

    /// Returns when the CA was last sent an answer or a signing request of an Order, if this program has recorded the time.
    pub fn last_deed(&self, order: &Order) -> Option<Timestamp> {
        let memory = Memory::read(Holder::Order, &order.metadata.annotations);
        let own = |c: &&Challenge| c.metadata.is_controlled_by(&order.metadata.uid);
        let accepted = self.challenges.iter().filter(own).filter_map(|challenge| {
            Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at
        });
        accepted.chain(memory.finalized_at).max()
    }

    /// Reports whether issuance has left nothing behind: neither the key's temporary Secret nor a Challenge, except a
    /// Challenge that cannot be cleaned up for now.
    pub fn is_tidy(&self) -> bool {
        let stuck = |c: &Challenge| !c.status.processing && !c.metadata.finalizers.is_empty();
        self.certificate.status.next_private_key_secret_name.is_empty()
            && self.challenges.iter().all(stuck)
    }

    /// Reports whether issuance has failed, and some of its objects are still to be taken down or removed.
    pub fn is_clearing_up(&self) -> bool {
        let status = &self.certificate.status;
        let is_left = |c: &Challenge| c.status.processing;
        self.has_failed()
            && (!status.next_private_key_secret_name.is_empty()
                || self.challenges.iter().any(is_left))
    }

    /// Reports whether the last issuance has failed, and no other has begun.
    pub fn has_failed(&self) -> bool {
        let status = &self.certificate.status;
        status.last_failure_time.is_some() && !is_true(&status.conditions, "Issuing")
    }

    /// Returns the key of the object at the top of the chain.
    pub fn key(&self) -> Key {
        key_of(&self.certificate)
    }

    /// Returns the keys of all objects in the chain, from the Certificate down, the issuer last.
    pub fn keys(&self) -> Vec<Key> {
        let mut keys = vec![self.key()];
        let namespace = &self.certificate.metadata.namespace;
        let key = |kind, name: &str| Key::new(kind, ObjectName::new(namespace, name));
        keys.extend(self.requests.iter().map(|r| key(Kind::CertificateRequest, &r.metadata.name)));
        keys.extend(self.orders.iter().map(|o| key(Kind::Order, &o.metadata.name)));
        keys.extend(self.challenges.iter().map(|c| key(Kind::Challenge, &c.metadata.name)));
        keys.extend(issuer_key(&self.certificate));
        keys
    }

    /// Returns the name of the Secret with the issuer's account key; `None` if the issuer is gone, or not ACME.
    pub fn account_key(&self) -> Option<&str> {
        let acme = self.issuer.as_ref()?.spec.acme.as_ref()?;
        Some(&acme.private_key_secret_ref.name)
    }

    /// Returns the issuer's key for hints; the kind is Issuer if the reference names a kind that is not ours.
    pub fn named_issuer(&self) -> Key {
        let Certificate { metadata, spec, .. } = &self.certificate;
        let name = || ObjectName::new(&metadata.namespace, &spec.issuer_ref.name);
        issuer_key(&self.certificate).unwrap_or_else(|| Key::new(Kind::Issuer, name()))
    }
}

/// Returns the key of a Certificate, or of the CertificateRequest that the made-up Certificate stands for.
pub fn key_of(certificate: &Certificate) -> Key {
    let is_request = certificate.kind == Kind::CertificateRequest.as_str();
    let kind = if is_request { Kind::CertificateRequest } else { Kind::Certificate };
    Key::new(kind, certificate.name())
}

/// Returns the key of the issuer that a Certificate refers to; `None` if its kind is not ours.
pub fn issuer_key(certificate: &Certificate) -> Option<Key> {
    certificate.spec.issuer_ref.key(&certificate.metadata.namespace)
}
