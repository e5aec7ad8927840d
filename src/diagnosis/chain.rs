//! A Certificate with everything that hangs below it, as it is judged; or a CertificateRequest that no Certificate has made.

use jiff::Timestamp;

use crate::model::common::is_true;
use crate::model::memory::{Holder, Memory};
use crate::model::{
    Certificate, CertificateRequest, Challenge, Issuer, Key, Kind, ObjectName, Order,
};

/// A Certificate and its relatives.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The Certificate; of a CertificateRequest that none has made, what one would say that asks for the same.
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
    /// The request of the running issuance, or of the last one.
    pub fn request(&self) -> Option<&CertificateRequest> {
        self.requests.last()
    }

    /// The Order of that request.
    pub fn order(&self) -> Option<&Order> {
        let uid = &self.request()?.metadata.uid;
        self.orders.iter().rev().find(|order| order.metadata.is_controlled_by(uid))
    }

    /// When the CA was last given an answer or a signing request of an Order, as far as this program has written it down.
    pub fn last_deed(&self, order: &Order) -> Option<Timestamp> {
        let memory = Memory::read(Holder::Order, &order.metadata.annotations);
        let own = |c: &&Challenge| c.metadata.is_controlled_by(&order.metadata.uid);
        let accepted = self.challenges.iter().filter(own).filter_map(|challenge| {
            Memory::read(Holder::Challenge, &challenge.metadata.annotations).accepted_at
        });
        accepted.chain(memory.finalized_at).max()
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
    pub fn has_failed(&self) -> bool {
        let status = &self.certificate.status;
        status.last_failure_time.is_some() && !is_true(&status.conditions, "Issuing")
    }

    /// The key of what it hangs from.
    pub fn key(&self) -> Key {
        key_of(&self.certificate)
    }

    /// Keys of every object in the chain, from the Certificate down, the Issuer last.
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

    /// The name of the Secret that the Issuer keeps its account key in; `None` if the Issuer is gone, or not ACME.
    pub fn account_key(&self) -> Option<&str> {
        let acme = self.issuer.as_ref()?.spec.acme.as_ref()?;
        Some(&acme.private_key_secret_ref.name)
    }

    /// The issuer as hints name it: called an Issuer where its kind is none of ours, and nothing is asked of it.
    pub fn named_issuer(&self) -> Key {
        let Certificate { metadata, spec, .. } = &self.certificate;
        let name = || ObjectName::new(&metadata.namespace, &spec.issuer_ref.name);
        issuer_key(&self.certificate).unwrap_or_else(|| Key::new(Kind::Issuer, name()))
    }
}

/// The key of a Certificate, or of the CertificateRequest of which it says what that asks for.
pub fn key_of(certificate: &Certificate) -> Key {
    let is_request = certificate.kind == Kind::CertificateRequest.as_str();
    let kind = if is_request { Kind::CertificateRequest } else { Kind::Certificate };
    Key::new(kind, certificate.name())
}

/// The key of the issuer that a Certificate refers to; none where its kind is none of ours.
pub fn issuer_key(certificate: &Certificate) -> Option<Key> {
    certificate.spec.issuer_ref.key(&certificate.metadata.namespace)
}
