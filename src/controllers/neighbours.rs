//! Neighbours of a Certificate: its Secrets, its requests, and other Certificates that name its Secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::tz::TimeZone;
use parking_lot::{Mutex, MutexGuard};

use super::facts;
use super::keystores::{self, Passwords};
use crate::model::memory::{Holder, Memory};
use crate::model::order_ledger::Ledger;
use crate::model::secret::TLS_KEY;
use crate::model::{Certificate, CertificateRequest, Key, Kind, ObjectName, Order, Record, Secret};
use crate::reconcile::certificate::options::Options;
use crate::reconcile::certificate::types::{NextKey, Observed, Rival};
use crate::reconcile::facts::{RequestFacts, SecretFacts, annotation};
use crate::reconcile::{renewal, renewal_info, request};
use crate::store::error::StoreError;
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

/// Secrets that each Certificate named when last seen, its own and those of passwords, with the reverse index. A
/// Certificate may name others by now.
#[derive(Debug, Default)]
struct Naming {
    secrets: BTreeMap<ObjectName, BTreeSet<ObjectName>>,
    sharing: BTreeMap<ObjectName, BTreeSet<String>>,
}

impl Naming {
    fn remember(&mut self, certificate: &ObjectName, secrets: BTreeSet<ObjectName>) {
        if self.secrets.get(certificate) == Some(&secrets) {
            return;
        }
        self.forget(certificate);
        for secret in &secrets {
            self.sharing.entry(secret.clone()).or_default().insert(certificate.name.clone());
        }
        self.secrets.insert(certificate.clone(), secrets);
    }

    fn forget(&mut self, certificate: &ObjectName) {
        for secret in self.secrets.remove(certificate).unwrap_or_default() {
            let Some(sharing) = self.sharing.get_mut(&secret) else { continue };
            sharing.remove(&certificate.name);
            if sharing.is_empty() {
                self.sharing.remove(&secret);
            }
        }
    }
}

/// Collects the objects around Certificates.
#[derive(Debug)]
pub struct CertificateSurroundings {
    store: Arc<dyn Store>,
    requests: Resources<CertificateRequest>,
    orders: Resources<Order>,
    secrets: Resources<Secret>,
    /// Users of each Secret, from every change seen.
    naming: Mutex<Naming>,
    options: Options,
    /// Namespaces of which every Certificate was read, for programs without a watch on Certificates.
    met: Mutex<BTreeSet<String>>,
}

impl CertificateSurroundings {
    /// Builds the index without any entry.
    pub fn new(store: &Arc<dyn Store>) -> Self {
        Self {
            store: Arc::clone(store),
            requests: Resources::new(Arc::clone(store), Kind::CertificateRequest),
            orders: Resources::new(Arc::clone(store), Kind::Order),
            secrets: Resources::new(Arc::clone(store), Kind::Secret),
            naming: Mutex::default(),
            options: Options::default(),
            met: Mutex::default(),
        }
    }

    /// Returns the index with other settings for Certificates.
    #[must_use]
    pub fn with(self, options: Options) -> Self {
        Self { options, ..self }
    }

    /// Remembers which Certificates of a namespace name which Secret; each namespace is read once.
    pub async fn meet(&self, namespace: &str) -> Result<(), StoreError> {
        if self.met().contains(namespace) {
            return Ok(());
        }
        for other in self.store.list(Kind::Certificate, &Scope::namespace(namespace)).await? {
            self.remember(&other);
        }
        self.met().insert(namespace.to_owned());
        Ok(())
    }

    fn met(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.met.lock()
    }

    /// Remembers which Secrets a Certificate names.
    pub fn remember(&self, certificate: &Record) {
        let name = &certificate.key.name;
        let own = ObjectName::new(&name.namespace, certificate.text("/spec/secretName"));
        let secrets = keystores::password_secrets(certificate).chain([own]).collect();
        self.naming().remember(name, secrets);
    }

    /// Forgets a Certificate that is gone.
    pub fn forget(&self, certificate: &ObjectName) {
        self.naming().forget(certificate);
    }

    /// Returns the names of the Certificates that named a Secret, as their own or for a password.
    pub fn sharing(&self, secret: &ObjectName) -> BTreeSet<String> {
        self.naming().sharing.get(secret).cloned().unwrap_or_default()
    }

    fn naming(&self) -> MutexGuard<'_, Naming> {
        self.naming.lock()
    }

    /// Collects the machine's observations; the Secret was read before.
    pub async fn observe(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
    ) -> Result<Observed, StoreError> {
        let metadata = &certificate.metadata;
        let owned = Scope::owned_by(&metadata.namespace, &metadata.uid);
        let temporary = self
            .secrets
            .list(&owned)
            .await?
            .into_iter()
            .filter(|secret| secret.metadata.labels.contains_key(annotation::NEXT_PRIVATE_KEY));
        let next_keys = temporary.map(|secret| NextKey {
            key: facts::of_key(secret.value(TLS_KEY).unwrap_or_default()),
            secret: secret.metadata.name,
        });
        let next_keys = next_keys.collect();
        Ok(Observed { next_keys, ..self.observe_from_outside(certificate, secret).await? })
    }

    /// Collects the observations without the keys under way, for programs that may not read all Secrets.
    pub async fn observe_from_outside(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
    ) -> Result<Observed, StoreError> {
        let metadata = &certificate.metadata;
        let owned = Scope::owned_by(&metadata.namespace, &metadata.uid);
        let mut requests = Vec::new();
        for request in self.requests.list(&owned).await? {
            requests.push(self.request_facts(request).await?);
        }
        let passwords = Passwords::read(&self.secrets, certificate).await?;
        let asked = certificate.spec.keystores.as_ref();
        let facts = |secret: &Secret| SecretFacts {
            keystores: keystores::inspect(secret, asked, &passwords),
            ..facts::of_secret(secret)
        };
        let secret = secret.map(facts);
        let memory = Memory::read(Holder::Certificate, &metadata.annotations).renewal;
        let leaf = secret.as_ref().and_then(SecretFacts::usable_leaf);
        let suggestion = leaf.and_then(|leaf| renewal_info::suggestion(leaf, memory.as_ref()));
        Ok(Observed {
            secret,
            ledger: Ledger::read(&metadata.annotations),
            suggestion,
            next_keys: Vec::new(),
            requests,
            rivals: self.rivals(certificate).await?,
            windows: renewal::windows(&certificate.spec, |name| TimeZone::get(name).ok()),
            options: self.options.clone(),
        })
    }

    async fn request_facts(&self, request: CertificateRequest) -> Result<RequestFacts, StoreError> {
        let metadata = &request.metadata;
        let has_order = if request::failed_by_order(&request) {
            let owned = Scope::owned_by(&metadata.namespace, &metadata.uid);
            !self.orders.list(&owned).await?.is_empty()
        } else {
            true
        };
        Ok(RequestFacts {
            // The signature is checked when an Order is made of the request.
            csr: facts::of_request_unverified(&request.spec.request.0),
            leaf: facts::of_issued(&request.status.certificate),
            has_order,
            request,
        })
    }

    /// Returns other existing Certificates with the same Secret.
    async fn rivals(&self, certificate: &Certificate) -> Result<Vec<Rival>, StoreError> {
        let namespace = &certificate.metadata.namespace;
        let secret = ObjectName::new(namespace, &certificate.spec.secret_name);
        let mut rivals = Vec::new();
        let mut sharing = self.sharing(&secret);
        sharing.remove(&certificate.metadata.name);
        for name in sharing {
            let key = Key::new(Kind::Certificate, ObjectName::new(namespace, &name));
            // A rival with other faults still names the Secret.
            let found = self.store.get(&key).await?;
            let still = found
                .filter(|rival| rival.text("/spec/secretName") == certificate.spec.secret_name);
            rivals.extend(
                still.map(|rival| Rival { name, created: rival.metadata().creation_timestamp }),
            );
        }
        Ok(rivals)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_shares_the_secrets_that_it_named_last_until_it_is_gone() {
        let name = |name: &str| ObjectName::new("web", name);
        let names = |all: &[&str]| all.iter().map(|one| name(one)).collect();
        let mut naming = Naming::default();
        naming.remember(&name("one"), names(&["tls", "password"]));
        naming.remember(&name("two"), names(&["tls", "password"]));
        naming.remember(&name("one"), names(&["other", "password"]));
        assert_eq!(naming.sharing[&name("tls")], BTreeSet::from(["two".to_owned()]));
        assert_eq!(naming.sharing[&name("password")].len(), 2);
        naming.forget(&name("one"));
        naming.forget(&name("two"));
        assert!(naming.secrets.is_empty() && naming.sharing.is_empty(), "{naming:?}");
    }
}
