//! Certificates: gathers Secrets, requests and rivals, performs one deed in the store, keeps what came of it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::task::spawn_blocking;

use super::recorder::Recorder;
use super::{Controller, ReconcileError, delivery, facts};
use crate::acme::{KeyAlgorithm, KeyError, PrivateKey, RequestError, csr};
use crate::model::common::is_true;
use crate::model::{
    Blob, Certificate, CertificateRequest, Key, Kind, ObjectName, Order, Record, Secret,
};
use crate::reconcile::certificate::{
    self, Action, Delivery, KeyOrigin, NextKey, Observed, Outcome, Rival,
};
use crate::reconcile::facts::{RequestFacts, annotation};
use crate::reconcile::{Wake, differences, renewal, request};
use crate::store::resources::Resources;
use crate::store::{Scope, StoreError};

/// Whether a Certificate has to be issued now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Its Secret is as asked for.
    No,
    /// Yes.
    Issue {
        /// Its revision now, 0 before the first.
        revision: i64,
    },
    /// Yes, and the last try failed: by itself it would wait.
    TryAgain {
        /// Its revision now, 0 before the first.
        revision: i64,
    },
    /// Its Secret belongs to another Certificate.
    Rival {
        /// Name of that one.
        name: String,
    },
}

/// Carries Certificates from the manifest to the Secret.
#[derive(Debug)]
pub struct CertificateController {
    certificates: Resources<Certificate>,
    requests: Resources<CertificateRequest>,
    orders: Resources<Order>,
    secrets: Resources<Secret>,
    recorder: Recorder,
    /// Certificates by the Secret they name, gathered from every change seen.
    sharing: Mutex<BTreeMap<ObjectName, BTreeSet<String>>>,
}

impl CertificateController {
    /// Puts the controller together.
    pub fn new(recorder: Recorder) -> Self {
        let store = recorder.store();
        Self {
            certificates: Resources::new(store.clone(), Kind::Certificate),
            requests: Resources::new(store.clone(), Kind::CertificateRequest),
            orders: Resources::new(store.clone(), Kind::Order),
            secrets: Resources::new(store.clone(), Kind::Secret),
            recorder,
            sharing: Mutex::default(),
        }
    }

    /// Says whether a Certificate has to be issued now, when a person asks.
    ///
    /// # Errors
    /// Fails when there is no such Certificate, or the store does.
    pub async fn due(&self, name: &ObjectName, now: Timestamp) -> Result<Due, StoreError> {
        for other in self.certificates.list(&Scope::namespace(&name.namespace)).await? {
            self.shares(&other.name(), &other.spec.secret_name);
        }
        let Some(certificate) = self.certificates.get(name).await? else {
            return Err(StoreError::NotFound { key: Key::new(Kind::Certificate, name.clone()) });
        };
        let secret = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
        let secret = self.secrets.get(&secret).await?;
        let observed = self.gather(&certificate, secret.as_ref()).await?;
        let status = &certificate.status;
        let revision = status.revision.unwrap_or(0);
        if is_true(&status.conditions, certificate::ISSUING) {
            return Ok(Due::Issue { revision });
        }
        if let Some(name) = certificate::rival(&certificate, &observed) {
            return Ok(Due::Rival { name });
        }
        Ok(match certificate::due(&certificate, &observed, now) {
            None => Due::No,
            Some(_) if status.last_failure_time.is_some() => Due::TryAgain { revision },
            Some(_) => Due::Issue { revision },
        })
    }

    fn shares(&self, certificate: &ObjectName, secret: &str) {
        let secret = ObjectName::new(&certificate.namespace, secret);
        let mut sharing = self.sharing.lock().unwrap_or_else(PoisonError::into_inner);
        sharing.entry(secret).or_default().insert(certificate.name.clone());
    }

    async fn gather(
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
            key: facts::of_key(secret.value(facts::TLS_KEY).unwrap_or_default()),
            secret: secret.metadata.name,
        });
        let mut requests = Vec::new();
        for request in self.requests.list(&owned).await? {
            requests.push(self.request_facts(request).await?);
        }
        Ok(Observed {
            secret: secret.map(facts::of_secret),
            next_keys: next_keys.collect(),
            requests,
            rivals: self.rivals(certificate).await?,
            windows: renewal::windows(&certificate.spec, |name| TimeZone::get(name).ok()),
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
            csr: facts::of_request(&request.spec.request.0),
            leaf: facts::of_issued(&request.status.certificate),
            has_order,
            request,
        })
    }

    /// Other Certificates with the same Secret that are still there.
    async fn rivals(&self, certificate: &Certificate) -> Result<Vec<Rival>, StoreError> {
        let namespace = &certificate.metadata.namespace;
        let secret = ObjectName::new(namespace, &certificate.spec.secret_name);
        let sharing =
            self.sharing.lock().unwrap_or_else(PoisonError::into_inner).get(&secret).cloned();
        let mut rivals = Vec::new();
        for name in sharing.into_iter().flatten().filter(|name| *name != certificate.metadata.name)
        {
            let found = self.certificates.get(&ObjectName::new(namespace, &name)).await?;
            let still =
                found.filter(|rival| rival.spec.secret_name == certificate.spec.secret_name);
            rivals.extend(
                still.map(|rival| Rival { name, created: rival.metadata.creation_timestamp }),
            );
        }
        Ok(rivals)
    }

    async fn perform(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
        action: Action,
    ) -> Result<Outcome, ReconcileError> {
        let named = |name: &str| ObjectName::new(&certificate.metadata.namespace, name);
        match action {
            Action::Conclude(outcome) => Ok(outcome),
            Action::CreateRequest(request, key) => {
                self.create_request(certificate, *request, &named(&key)).await
            }
            Action::DeleteNextKey(name, fields) => {
                self.secrets.delete(&named(&name)).await?;
                let quiet = fields.is_empty();
                Ok(if quiet { Outcome::Deleted } else { Outcome::KeyOutdated(fields) })
            }
            Action::DeleteRequest(name) => {
                self.requests.delete(&named(&name)).await?;
                Ok(Outcome::Deleted)
            }
            Action::RepairSecret(metadata) => {
                self.secrets.apply(&delivery::relabelled(certificate, metadata, secret)).await?;
                Ok(Outcome::SecretRepaired)
            }
            Action::StoreNextKey(name, origin) => {
                self.store_next_key(certificate, secret, name, origin).await
            }
            Action::StoreSecret(delivery) => {
                self.store_secret(certificate, secret, *delivery).await
            }
            Action::Wait(_) => Ok(Outcome::Deleted),
        }
    }

    async fn store_next_key(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
        name: Option<String>,
        origin: KeyOrigin,
    ) -> Result<Outcome, ReconcileError> {
        let kept = secret.filter(|_| origin == KeyOrigin::Reused);
        let key = match kept.and_then(|secret| secret.value(facts::TLS_KEY)) {
            Some(pem) => PrivateKey::from_pem(pem),
            None => make_key(certificate).await?,
        };
        let key = match key {
            Ok(key) => key,
            Err(error) => return Ok(Outcome::KeyImpossible(error.to_string())),
        };
        let secret = delivery::next_key(certificate, name, &key).map_err(unwritten)?;
        let made = self.secrets.create(&secret).await?;
        Ok(Outcome::NextKeyStored(made.metadata.name, origin))
    }

    async fn create_request(
        &self,
        certificate: &Certificate,
        mut request: CertificateRequest,
        key: &ObjectName,
    ) -> Result<Outcome, ReconcileError> {
        let key = self.read_key(key).await?;
        match csr::sign(&certificate.spec, &key) {
            Ok(signed) => request.spec.request = Blob(signed.to_pem().into_bytes()),
            Err(RequestError::Unwritable(why) | RequestError::Unreadable(why)) => {
                return Ok(Outcome::RequestImpossible(why));
            }
        }
        let made = self.requests.create(&request).await?;
        Ok(Outcome::RequestCreated(made.metadata.name))
    }

    async fn store_secret(
        &self,
        certificate: &Certificate,
        existing: Option<&Secret>,
        delivery: Delivery,
    ) -> Result<Outcome, ReconcileError> {
        let namespace = &certificate.metadata.namespace;
        let key = self.read_key(&ObjectName::new(namespace, &delivery.next_key)).await?;
        let request = ObjectName::new(namespace, &delivery.request);
        let Some(request) = self.requests.get(&request).await? else {
            return Err(ReconcileError::Missing(format!("CertificateRequest {request} is gone")));
        };
        let secret = delivery::issued(certificate, &request, &key, delivery.metadata, existing)
            .map_err(unwritten)?;
        self.secrets.apply(&secret).await?;
        Ok(Outcome::Issued(delivery.revision))
    }

    async fn read_key(&self, name: &ObjectName) -> Result<PrivateKey, ReconcileError> {
        let secret = self.secrets.get(name).await?;
        let pem = secret.as_ref().and_then(|secret| secret.value(facts::TLS_KEY));
        let missing = || ReconcileError::Missing(format!("Secret {name} holds no key"));
        PrivateKey::from_pem(pem.ok_or_else(missing)?).map_err(unwritten)
    }
}

#[async_trait]
impl Controller for CertificateController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Certificate, Kind::CertificateRequest, Kind::Secret, Kind::Order]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        let namespace = &changed.key.name.namespace;
        let certificate =
            |name: &str| Key::new(Kind::Certificate, ObjectName::new(namespace, name));
        let annotated = changed.metadata().annotations.get(annotation::CERTIFICATE_NAME).cloned();
        match changed.key.kind {
            Kind::Certificate => {
                self.shares(&changed.key.name, changed.text("/spec/secretName"));
                Ok(vec![changed.key.clone()])
            }
            Kind::CertificateRequest => {
                Ok(super::owner_of(changed, Kind::Certificate).into_iter().collect())
            }
            // A failed Order that goes is a person's wish for another try.
            Kind::Order => Ok(annotated.iter().map(|name| certificate(name)).collect()),
            Kind::Secret => {
                let sharing = self.sharing.lock().unwrap_or_else(PoisonError::into_inner);
                let named = sharing.get(&changed.key.name).into_iter().flatten();
                let owner = super::owner_of(changed, Kind::Certificate);
                Ok(named.map(|name| certificate(name)).chain(owner).collect())
            }
            Kind::Challenge | Kind::ClusterIssuer | Kind::Event | Kind::Issuer => Ok(Vec::new()),
        }
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileError> {
        let Some(certificate) = self.certificates.get(&key.name).await? else {
            return Ok(Wake::OnChange);
        };
        let secret = ObjectName::new(&key.name.namespace, &certificate.spec.secret_name);
        let secret = self.secrets.get(&secret).await?;
        let observed = self.gather(&certificate, secret.as_ref()).await?;
        let action = certificate::next_action(&certificate, &observed, now);
        if let Action::Wait(wake) = action {
            return Ok(wake);
        }
        let outcome = self.perform(&certificate, secret.as_ref(), action).await?;
        let recorded = certificate::record(&certificate, outcome, now);
        self.recorder.keep(&self.certificates, &certificate, None, recorded, now).await?;
        Ok(Wake::Now)
    }
}

/// Makes a key as the spec asks; RSA takes long enough to be made aside.
async fn make_key(
    certificate: &Certificate,
) -> Result<Result<PrivateKey, KeyError>, ReconcileError> {
    use crate::reconcile::facts::KeyAlgorithm as Wanted;
    let wanted = differences::wanted_key(certificate.spec.private_key.as_ref());
    let wanted = match wanted.map_err(ReconcileError::Missing)? {
        (Wanted::Rsa, bits) => KeyAlgorithm::Rsa(bits),
        (Wanted::Ecdsa, bits) => KeyAlgorithm::Ecdsa(bits),
        (Wanted::Ed25519, _) => KeyAlgorithm::Ed25519,
    };
    let made = spawn_blocking(move || PrivateKey::generate(wanted)).await;
    made.map_err(|error| ReconcileError::Missing(format!("cannot make private key: {error}")))
}

#[expect(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn unwritten(error: KeyError) -> ReconcileError {
    ReconcileError::Missing(error.to_string())
}
