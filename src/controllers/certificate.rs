//! Certificates: gathers Secrets, requests and rivals, performs one action in the store, and records the outcome.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::blocking::KeysAside;
use super::neighbours::CertificateSurroundings;
use super::recorder::Recorder;
use super::renewal_inquiry::RenewalInquiry;
use super::secret_builder::Builder;
use super::secret_writer::SecretWriter;
use super::{Controller, ReconcileError, ReconcileFailure, facts, name_conflict, secret_builder};
use crate::acme::{KeyError, KeyMaker, PrivateKey, RequestError, csr};
use crate::model::common::is_true;
use crate::model::event::source;
use crate::model::memory::Holder;
use crate::model::secret::TLS_KEY;
use crate::model::{
    self, Blob, Certificate, CertificateRequest, Key, Kind, Metadata, ObjectName, Record, Secret,
};
use crate::reconcile::certificate::options::Options;
use crate::reconcile::certificate::types::{Action, Delivery, KeyOrigin, Observed, Outcome};
use crate::reconcile::facts::annotation;
use crate::reconcile::{Wake, certificate, differences};
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Largest number of steps that put a Certificate right at once; a controller takes further ones.
const PUT_RIGHT_STEPS_MAX: usize = 100;

/// Whether a Certificate has to be issued now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// No: the Secret is as asked for.
    No,
    /// Yes.
    Issue {
        /// Present revision, 0 before the first.
        revision: i64,
    },
    /// Yes, but after a failed try, so that a controller would wait.
    TryAgain {
        /// Present revision, 0 before the first.
        revision: i64,
    },
    /// No: the Secret belongs to another Certificate.
    Rival {
        /// Name of the other Certificate.
        name: String,
    },
}

/// Carries Certificates from the manifest to the Secret.
#[derive(Debug)]
pub struct CertificateController {
    pub(super) certificates: Resources<Certificate>,
    requests: Resources<CertificateRequest>,
    next_keys: Resources<Secret>,
    pub(super) secrets: Resources<Secret>,
    writer: SecretWriter,
    pub(super) neighbours: CertificateSurroundings,
    /// Inquiry that asks CAs when to renew; without one no CA is asked.
    pub(super) inquiry: Option<RenewalInquiry>,
    pub(super) recorder: Recorder,
    keys: Arc<dyn KeyMaker>,
}

impl CertificateController {
    /// Builds the controller.
    pub fn new(recorder: Recorder) -> Self {
        let store = recorder.store();
        Self {
            certificates: Resources::new(store.clone(), Kind::Certificate)
                .written_by(source::ISSUING),
            requests: Resources::new(store.clone(), Kind::CertificateRequest)
                .written_by(source::REQUEST_MANAGER),
            next_keys: Resources::new(store.clone(), Kind::Secret).written_by(source::KEY_MANAGER),
            secrets: Resources::new(store.clone(), Kind::Secret).written_by(source::ISSUING),
            writer: SecretWriter::new(&recorder),
            neighbours: CertificateSurroundings::new(store),
            inquiry: None,
            recorder,
            keys: Arc::new(KeysAside),
        }
    }

    /// Returns the controller with another key maker.
    #[must_use]
    pub fn making(self, keys: Arc<dyn KeyMaker>) -> Self {
        Self { keys, ..self }
    }

    /// Returns the controller with an inquiry that asks CAs when to renew.
    #[must_use]
    pub fn asking(self, inquiry: RenewalInquiry) -> Self {
        Self { inquiry: Some(inquiry), ..self }
    }

    /// Returns the controller with other settings for Certificates.
    #[must_use]
    pub fn with(self, options: Options) -> Self {
        let writer = self.writer.owned(options.owns_secret);
        Self { writer, neighbours: self.neighbours.with(options), ..self }
    }

    /// Returns whether a Certificate has to be issued now, for a person. Certificates are read once per namespace.
    ///
    /// # Errors
    /// Fails if the Certificate does not exist, or the store fails.
    pub async fn due(&self, name: &ObjectName, now: Timestamp) -> Result<Due, StoreError> {
        self.neighbours.meet(&name.namespace).await?;
        let Some(certificate) = self.certificates.get(name).await? else {
            return Err(StoreError::NotFound { key: Key::new(Kind::Certificate, name.clone()) });
        };
        let secret = ObjectName::new(&name.namespace, &certificate.spec.secret_name);
        let secret = self.secrets.get(&secret).await?;
        let observed = self.neighbours.observe_from_outside(&certificate, secret.as_ref()).await?;
        let status = &certificate.status;
        let revision = status.revision.unwrap_or(0);
        if is_true(&status.conditions, model::certificate::ISSUING) {
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

    /// Puts right what needs no issuance: the status, labels and annotations of the Secret, and leftovers of an earlier
    /// issuance. A Certificate that has to be issued is left as it is.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn put_right(&self, name: &ObjectName, now: Timestamp) -> Result<(), ReconcileError> {
        self.neighbours.meet(&name.namespace).await?;
        for _ in 0..PUT_RIGHT_STEPS_MAX {
            let Some(certificate) = self.certificates.get_anew(name).await? else { return Ok(()) };
            if is_true(&certificate.status.conditions, model::certificate::ISSUING) {
                return Ok(());
            }
            let (secret, _, action) = self.next(&certificate, now).await?;
            if let Action::Wait(_) | Action::Conclude(Outcome::Due { .. }) = action {
                return Ok(());
            }
            match self.carry_out(&certificate, secret.as_ref(), action, now).await {
                Err(ReconcileError::Store(StoreError::Conflict { .. })) => {}
                carried_out => carried_out?,
            }
        }
        Ok(())
    }

    /// Returns the next action, with the present Secret and all observations.
    async fn next(
        &self,
        certificate: &Certificate,
        now: Timestamp,
    ) -> Result<(Option<Secret>, Observed, Action), StoreError> {
        let namespace = &certificate.metadata.namespace;
        let secret = ObjectName::new(namespace, &certificate.spec.secret_name);
        let secret = self.secrets.get_known(&secret).await?;
        let observed = self.neighbours.observe(certificate, secret.as_ref()).await?;
        let action = certificate::next_action(certificate, &observed, now);
        Ok((secret, observed, action))
    }

    /// Checks that the Secret is unchanged since it was read. After a restore the Certificate's event may arrive before
    /// the Secret's; acting on it would make a needless key and order.
    async fn is_still(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
    ) -> Result<bool, StoreError> {
        let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
        let now = self.secrets.get_anew(&name).await?;
        let version = |secret: &Secret| {
            let Metadata { uid, resource_version, .. } = &secret.metadata;
            (uid.clone(), resource_version.clone())
        };
        Ok(now.as_ref().map(version) == secret.map(version))
    }

    /// Performs one action, and records the outcome.
    pub(super) async fn carry_out(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
        action: Action,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let outcome = self.perform(certificate, secret, action, now).await?;
        let certificates = self.certificates.clone().written_by(outcome.writer());
        let recorded = certificate::record(certificate, outcome, now);
        let holder = Some(Holder::Certificate);
        Ok(self.recorder.keep(&certificates, certificate, holder, recorded, now).await?)
    }

    async fn perform(
        &self,
        certificate: &Certificate,
        secret: Option<&Secret>,
        action: Action,
        now: Timestamp,
    ) -> Result<Outcome, ReconcileError> {
        let named = |name: &str| ObjectName::new(&certificate.metadata.namespace, name);
        match action {
            Action::Conclude(outcome) => Ok(outcome),
            Action::CreateRequest(request, key) => {
                self.create_request(certificate, *request, &named(&key)).await
            }
            Action::DeleteNextKey(name, fields) => {
                self.next_keys.delete(&named(&name)).await?;
                let quiet = fields.is_empty();
                Ok(if quiet { Outcome::Deleted } else { Outcome::KeyOutdated(fields) })
            }
            Action::DeleteRequest(request) => {
                self.requests.delete_exactly(&request).await?;
                Ok(Outcome::Deleted)
            }
            Action::RepairSecret(metadata) => {
                let repair = |builder: Builder<'_>| builder.repaired(metadata);
                self.writer.apply(certificate, secret, now, repair).await?;
                Ok(Outcome::SecretRepaired)
            }
            Action::StoreNextKey(name, origin) => {
                self.store_next_key(certificate, secret, name, origin).await
            }
            Action::StoreSecret(delivery) => {
                self.store_secret(certificate, secret, *delivery, now).await
            }
            Action::StoreTemporary(key) => {
                let key = self.read_key(&named(&key)).await?;
                self.writer.temporary(certificate, secret, &key, now).await
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
        if let Some(name) = &name {
            name_conflict::expect_free(&self.next_keys, name, certificate).await??;
        }
        let kept = secret.filter(|_| origin == KeyOrigin::Reused);
        let key = match kept.and_then(|secret| secret.value(TLS_KEY)) {
            Some(pem) => PrivateKey::from_pem(pem),
            None => self.make_key(certificate).await?,
        };
        let key = match key {
            Ok(key) => key,
            Err(error) => return Ok(Outcome::KeyImpossible(error.to_string())),
        };
        let secret = secret_builder::next_key(certificate, name, &key)?;
        let made = self.next_keys.create(&secret).await?;
        Ok(Outcome::NextKeyStored(made.metadata.name, origin))
    }

    async fn create_request(
        &self,
        certificate: &Certificate,
        mut request: CertificateRequest,
        key: &ObjectName,
    ) -> Result<Outcome, ReconcileError> {
        name_conflict::expect_free(&self.requests, &request.metadata.name, certificate).await??;
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
        now: Timestamp,
    ) -> Result<Outcome, ReconcileError> {
        let namespace = &certificate.metadata.namespace;
        let key = self.read_key(&ObjectName::new(namespace, &delivery.next_key)).await?;
        let request = ObjectName::new(namespace, &delivery.request);
        let Some(request) = self.requests.get(&request).await? else {
            return Err(ReconcileError::Missing(format!("CertificateRequest {request} is gone")));
        };
        let leaf = facts::of_issued(&request.status.certificate);
        if !leaf.is_some_and(|leaf| leaf.is_ok_and(|leaf| leaf.public_key.0 == key.public_key())) {
            // Another request has taken the name.
            let key = self.requests.key(&request.name());
            return Err(StoreError::Conflict { key }.into());
        }
        let status = &request.status;
        let build = |builder: Builder<'_>| {
            builder.of_pair(&key, &status.certificate, &status.ca, delivery.metadata)
        };
        self.writer.apply(certificate, existing, now, build).await?;
        Ok(Outcome::Issued(delivery.revision))
    }

    async fn read_key(&self, name: &ObjectName) -> Result<PrivateKey, ReconcileError> {
        let secret = self.secrets.get(name).await?;
        let pem = secret.as_ref().and_then(|secret| secret.value(TLS_KEY));
        let missing = || ReconcileError::Missing(format!("Secret {name} holds no key"));
        Ok(PrivateKey::from_pem(pem.ok_or_else(missing)?)?)
    }

    /// Makes a key as the spec asks.
    async fn make_key(
        &self,
        certificate: &Certificate,
    ) -> Result<Result<PrivateKey, KeyError>, ReconcileError> {
        let wanted = differences::wanted_key(certificate.spec.private_key.as_ref());
        Ok(self.keys.make(wanted.map_err(ReconcileError::Missing)?).await)
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
                self.neighbours.remember(changed);
                Ok(vec![changed.key.clone()])
            }
            Kind::CertificateRequest => {
                let owner = super::owner_of(changed, Kind::Certificate);
                // A request without an owner may stand in the way of the next one.
                Ok(owner.or_else(|| annotated.map(|name| certificate(&name))).into_iter().collect())
            }
            // The deletion of a failed Order is a person's wish for another try.
            Kind::Order => Ok(annotated.iter().map(|name| certificate(name)).collect()),
            Kind::Secret => {
                let sharing = self.neighbours.sharing(&changed.key.name);
                let owner = super::owner_of(changed, Kind::Certificate);
                Ok(sharing.iter().map(|name| certificate(name)).chain(owner).collect())
            }
            Kind::Challenge
            | Kind::ClusterIssuer
            | Kind::Event
            | Kind::Gateway
            | Kind::Ingress
            | Kind::Issuer
            | Kind::ListenerSet => Ok(Vec::new()),
        }
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        let Some(certificate) = self.certificates.get_known(&key.name).await? else {
            self.neighbours.forget(&key.name);
            // A new Certificate of this name may have been reported in between.
            if let Some(another) = self.recorder.store().get_known(key).await? {
                self.neighbours.remember(&another);
            }
            return Ok(Wake::OnChange);
        };
        let (secret, observed, action) = self.next(&certificate, now).await?;
        if let Action::Wait(wake) = action {
            return Ok(self.ask(&certificate, (secret.as_ref(), &observed), wake, now).await?);
        }
        if let Action::Conclude(Outcome::Due { is_hastened, .. }) = action {
            if !self.is_still(&certificate, secret.as_ref()).await? {
                return Ok(Wake::Now);
            }
            if is_hastened {
                return Ok(self.renew_early(&certificate, secret.as_ref(), action, now).await?);
            }
        }
        self.carry_out(&certificate, secret.as_ref(), action, now).await?;
        Ok(Wake::Now)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use jiff::SignedDuration;
    use serde_json::{Value, json};

    use super::*;
    use crate::acme::error::Retry;
    use crate::controllers::request::RequestController;
    use crate::controllers::testing::Desk;
    use crate::model::common::{condition, is_true};
    use crate::model::{Condition, State};
    use crate::store::mirror::Mirror;
    use crate::store::{Scope, Store};

    /// Certificates are checked against the real clock of their making.
    fn now() -> Timestamp {
        "2026-11-21T04:30:25Z".parse().unwrap()
    }

    struct Bench {
        desk: Desk,
        certificates: CertificateController,
        requests: RequestController,
    }

    /// A Ready issuer and a Certificate `web`, whose spec was changed like that.
    async fn bench(change: Value) -> Bench {
        let desk = Desk::new();
        desk.create(json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme", "namespace": "web"},
            "spec": {"acme": {"server": "https://ca.example/dir", "privateKeySecretRef": {"name": "k"}}},
        }))
        .await;
        let issuers = Resources::<model::Issuer>::new(Arc::clone(&desk.store), Kind::Issuer);
        let issuer = issuers.get(&ObjectName::new("web", "acme")).await.unwrap().unwrap();
        let mut status = issuer.status.clone();
        let ready = json!({"type": "Ready", "status": "True"});
        status.conditions.push(serde_json::from_value::<Condition>(ready).unwrap());
        issuers.replace_status(&issuer, &status).await.unwrap();
        let mut spec = json!({
            "secretName": "web-tls", "issuerRef": {"name": "acme"}, "dnsNames": ["www.example.com"],
            "privateKey": {"algorithm": "ECDSA"},
        });
        for (key, value) in change.as_object().unwrap() {
            spec[key] = value.clone();
        }
        desk.create(json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "web"}, "spec": spec,
        }))
        .await;
        let certificates = CertificateController::new(desk.recorder());
        let requests = RequestController::new(
            desk.recorder(),
            Arc::clone(&desk.accounts),
            crate::reconcile::request::Approval::Ours,
        );
        Bench { desk, certificates, requests }
    }

    impl Bench {
        async fn settle(&self, request: &str) -> Wake {
            let (certificate, requests) = (Kind::Certificate, Kind::CertificateRequest);
            self.desk.settle(&self.certificates, certificate, "web", now()).await.unwrap();
            self.desk.settle(&self.requests, requests, request, now()).await.unwrap();
            self.desk.settle(&self.certificates, certificate, "web", now()).await.unwrap()
        }

        async fn certificate(&self) -> Certificate {
            self.desk.get(Kind::Certificate, "web").await.unwrap()
        }

        async fn orders(&self) -> Vec<model::Order> {
            Resources::new(Arc::clone(&self.desk.store), Kind::Order)
                .list(&Scope::all())
                .await
                .unwrap()
        }

        /// The only Order ends: well, with a certificate for 90 days, or badly.
        async fn end_order(&self, state: State) {
            let orders = Resources::<model::Order>::new(Arc::clone(&self.desk.store), Kind::Order);
            let order = self.orders().await.remove(0);
            let mut status = order.status.clone();
            status.state = Some(state);
            if state == State::Valid {
                status.certificate = Blob(self.signed().await.into_bytes());
            }
            orders.replace_status(&order, &status).await.unwrap();
        }

        /// A certificate for the stored key; who signs it is of no matter here.
        async fn signed(&self) -> String {
            let name = self.certificate().await.status.next_private_key_secret_name;
            let secret: Secret = self.desk.get(Kind::Secret, &name).await.unwrap();
            let pem = std::str::from_utf8(secret.value(TLS_KEY).unwrap()).unwrap();
            let key = rcgen::KeyPair::from_pem(pem).unwrap();
            let mut params = rcgen::CertificateParams::new(["www.example.com".to_owned()]).unwrap();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.not_before = rcgen::date_time_ymd(2026, 11, 21);
            params.not_after = rcgen::date_time_ymd(2027, 2, 19);
            params.self_signed(&key).unwrap().pem()
        }
    }

    #[tokio::test]
    async fn a_secret_of_which_the_watch_has_not_told_yet_is_not_issued_again() {
        let bench = bench(json!({})).await;
        bench.settle("web-1").await;
        bench.end_order(State::Valid).await;
        bench.settle("web-1").await;
        let key = Key::new(Kind::Secret, ObjectName::new("web", "web-tls"));
        let secret = bench.desk.store.get(&key).await.unwrap().unwrap();
        bench.desk.store.delete(&key).await.unwrap();
        let mirror: Arc<dyn Store> = Arc::new(Mirror::new(Arc::clone(&bench.desk.store)));
        for kind in [Kind::Certificate, Kind::Secret] {
            mirror.watch(kind, Scope::all()).next().await.unwrap().unwrap();
        }
        // Nobody waits in between, so that the mirror cannot hear of it.
        bench.desk.store.create(secret).await.unwrap();
        assert_eq!(mirror.get_known(&key).await.unwrap(), None);
        let certificates = CertificateController::new(Recorder::new(mirror));
        bench.desk.settle(&certificates, Kind::Certificate, "web", now()).await.unwrap();
        let conditions = bench.certificate().await.status.conditions;
        assert!(is_true(&conditions, "Ready") && condition(&conditions, "Issuing").is_none());
        assert_eq!(bench.orders().await.len(), 1);
    }

    #[tokio::test]
    async fn what_a_deleted_certificate_has_left_is_not_worked_on() {
        let bench = bench(json!({})).await;
        let store = &bench.desk.store;
        let certificate = Key::new(Kind::Certificate, ObjectName::new("web", "web"));
        let mut held = store.get(&certificate).await.unwrap().unwrap();
        held.object["metadata"]["finalizers"] = json!(["example.com/hold"]);
        store.replace(held, crate::store::Part::Metadata).await.unwrap();
        bench.settle("web-1").await;
        store.delete(&certificate).await.unwrap();
        let order = bench.orders().await.remove(0).name();
        store.delete(&Key::new(Kind::Order, order)).await.unwrap();
        let request = Kind::CertificateRequest;
        let settled = bench.desk.settle(&bench.requests, request, "web-1", now()).await;
        assert_eq!((settled.unwrap(), bench.orders().await.len()), (Wake::OnChange, 0));
    }

    /// Checks the obstacle if objects without an owner have the names of ours.
    async fn check_taken(objects: &[Value], taken: &str) {
        let bench = bench(json!({})).await;
        for object in objects {
            bench.desk.create(object.clone()).await;
            if object["kind"] == "Secret" {
                let certificate = bench.certificate().await;
                let mut status = certificate.status.clone();
                status.next_private_key_secret_name =
                    object["metadata"]["name"].as_str().unwrap().to_owned();
                let issuing = json!({"type": "Issuing", "status": "True"});
                status.conditions.push(serde_json::from_value::<Condition>(issuing).unwrap());
                bench
                    .certificates
                    .certificates
                    .replace_status(&certificate, &status)
                    .await
                    .unwrap();
            }
        }
        let settled = bench.desk.settle(&bench.certificates, Kind::Certificate, "web", now()).await;
        let error = settled.unwrap_err();
        let expected = format!(
            "cannot create {taken} for Certificate web/web: there is one already, which nobody owns"
        );
        assert_eq!((error.to_string(), error.retry()), (expected, Retry::Never));
    }

    #[tokio::test]
    async fn a_certificate_that_is_gone_shares_no_secret() {
        let bench = bench(json!({})).await;
        let (key, secret) = (
            Key::new(Kind::Certificate, ObjectName::new("web", "web")),
            ObjectName::new("web", "web-tls"),
        );
        let told = bench.desk.store.get(&key).await.unwrap().unwrap();
        bench.certificates.wakes(&told).await.unwrap();
        assert_eq!(bench.certificates.neighbours.sharing(&secret).len(), 1);
        bench.desk.store.delete(&key).await.unwrap();
        bench.certificates.reconcile(&key, now()).await.unwrap();
        assert!(bench.certificates.neighbours.sharing(&secret).is_empty());
    }

    #[tokio::test]
    async fn a_name_that_somebody_else_has_is_told_and_nothing_is_made() {
        let request = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "CertificateRequest",
            "metadata": {
                "name": "web-1", "namespace": "web", "annotations": {"cert-manager.io/certificate-name": "web"},
            },
            "spec": {"issuerRef": {"name": "acme"}, "request": ""},
        });
        check_taken(std::slice::from_ref(&request), "CertificateRequest web/web-1").await;
        let key = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "web-key", "namespace": "web"}});
        check_taken(&[key], "Secret web/web-key").await;
        let woken = bench(json!({})).await.certificates.wakes(&Record::new(request).unwrap()).await;
        let certificate = Key::new(Kind::Certificate, ObjectName::new("web", "web"));
        assert_eq!(woken.unwrap(), [certificate], "when it goes, the name is free");
    }

    #[tokio::test]
    async fn a_keystore_without_a_password_keeps_its_secret_from_being_written() {
        let reference = json!({"name": "pw", "key": "word"});
        let keystores = json!({"jks": {"create": true, "passwordSecretRef": reference}});
        let bench = bench(json!({"keystores": keystores})).await;
        bench.settle("web-1").await;
        bench.end_order(State::Valid).await;
        let requests = Kind::CertificateRequest;
        bench.desk.settle(&bench.requests, requests, "web-1", now()).await.unwrap();
        let settle = || bench.desk.settle(&bench.certificates, Kind::Certificate, "web", now());
        let error = settle().await.unwrap_err();
        let expected = "JKS keystore password Secret \"pw\" not found";
        assert_eq!((error.to_string().as_str(), error.retry()), (expected, Retry::Never));
        assert!(bench.desk.events().await.contains(&"KeystorePasswordSecretNotFound".to_owned()));
        assert!(is_true(&bench.certificate().await.status.conditions, "Issuing"));
        let password = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pw", "namespace": "web"},
            "stringData": {"word": "changeit"},
        });
        bench.desk.create(password.clone()).await;
        bench.certificates.neighbours.meet("web").await.unwrap();
        let woken = bench.certificates.wakes(&Record::new(password).unwrap()).await.unwrap();
        assert_eq!(woken, [Key::new(Kind::Certificate, ObjectName::new("web", "web"))]);
        settle().await.unwrap();
        let secret: Secret = bench.desk.get(Kind::Secret, "web-tls").await.unwrap();
        assert!(secret.value("keystore.jks").unwrap().starts_with(&[0xfe, 0xed, 0xfe, 0xed]));
    }

    #[tokio::test]
    async fn a_certificate_becomes_a_secret_by_way_of_a_request_and_an_order() {
        let bench =
            bench(json!({"additionalOutputFormats": [{"type": "DER"}, {"type": "CombinedPEM"}]}))
                .await;
        assert_eq!(bench.settle("web-1").await, Wake::OnChange);
        let order = bench.orders().await.remove(0);
        assert_eq!(order.spec.dns_names, ["www.example.com"]);
        bench.end_order(State::Valid).await;
        let renewal: Timestamp = "2027-01-20T00:00:00Z".parse().unwrap();
        assert_eq!(bench.settle("web-1").await, Wake::At(renewal));

        let certificate = bench.certificate().await;
        assert!(is_true(&certificate.status.conditions, "Ready"));
        assert_eq!(
            (certificate.status.revision, certificate.status.conditions.len()),
            (Some(1), 1)
        );
        let secret: Secret = bench.desk.get(Kind::Secret, "web-tls").await.unwrap();
        assert_eq!(secret.secret_type, "kubernetes.io/tls");
        assert_eq!(secret.metadata.annotations["cert-manager.io/alt-names"], "www.example.com");
        let keys: Vec<&str> = secret.data.keys().map(String::as_str).collect();
        assert_eq!(keys, ["key.der", "tls-combined.pem", "tls.crt", "tls.key"]);
        assert!(secret.value("tls.key").unwrap().starts_with(b"-----BEGIN EC PRIVATE KEY-----"));
        assert_eq!(secret.value("key.der").unwrap()[0], 0x30);
        let (key, leaf) = (facts::of_secret(&secret).key, facts::of_secret(&secret).leaf);
        assert_eq!(key.unwrap().unwrap().public_key, leaf.unwrap().unwrap().public_key);
        assert_eq!(
            bench.desk.events().await,
            [
                "CertificateIssued",
                "Generated",
                "Issuing",
                "Issuing",
                "OrderCreated",
                "Requested",
                "WaitingForApproval",
                "cert-manager.io",
            ]
        );
    }

    #[tokio::test]
    async fn a_failed_order_leaves_no_temporary_secret_and_its_deletion_is_another_try() {
        let bench = bench(json!({})).await;
        bench.settle("web-1").await;
        bench.end_order(State::Invalid).await;
        assert_eq!(bench.settle("web-1").await, Wake::At(now() + SignedDuration::from_hours(1)));
        let status = bench.certificate().await.status;
        assert_eq!(
            condition(&status.conditions, "Issuing").map(|c| c.reason.as_str()),
            Some("Failed")
        );
        assert_eq!(
            (status.failed_issuance_attempts, status.next_private_key_secret_name.as_str()),
            (Some(1), "")
        );
        let secrets = bench.desk.store.list(Kind::Secret, &Scope::all()).await.unwrap();
        assert_eq!(secrets, []);

        let orders = Resources::<model::Order>::new(Arc::clone(&bench.desk.store), Kind::Order);
        let failed = bench.orders().await.remove(0);
        let changed =
            bench.desk.store.get(&Key::new(Kind::Order, failed.name())).await.unwrap().unwrap();
        let woken = bench.certificates.wakes(&changed).await.unwrap();
        assert_eq!(woken, [Key::new(Kind::Certificate, ObjectName::new("web", "web"))]);
        orders.delete(&failed.name()).await.unwrap();
        bench.settle("web-1").await;
        let again = bench.orders().await.remove(0);
        assert_ne!(again.metadata.uid, failed.metadata.uid);
    }

    #[tokio::test]
    async fn what_cannot_be_made_is_said_and_waits_for_another_spec() {
        for (spec, expected) in [
            (
                json!({"privateKey": {"algorithm": "RSA", "size": 1000}}),
                "User intervention required: no new key: cannot make RSA 1000 key: only 2048, 3072, 4096 and 8192 bits can be made",
            ),
            (
                json!({"ipAddresses": ["nowhere"]}),
                "Failed to generate CSR: \"nowhere\" is no IP address - will not retry",
            ),
        ] {
            let bench = bench(spec).await;
            let wake =
                bench.desk.settle(&bench.certificates, Kind::Certificate, "web", now()).await;
            assert_eq!(wake.unwrap(), Wake::OnChange);
            let status = bench.certificate().await.status;
            let issuing = condition(&status.conditions, "Issuing").unwrap();
            assert_eq!(issuing.message, expected);
        }
    }

    #[tokio::test]
    async fn certificates_that_share_a_secret_know_of_each_other() {
        let bench = bench(json!({})).await;
        let twin = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "twin", "namespace": "web"},
            "spec": {"secretName": "web-tls", "issuerRef": {"name": "acme"}, "dnsNames": ["www.example.com"]},
        });
        bench.desk.create(twin).await;
        for record in bench.desk.store.list(Kind::Certificate, &Scope::all()).await.unwrap() {
            bench.certificates.wakes(&record).await.unwrap();
        }
        let web = bench.desk.settle(&bench.certificates, Kind::Certificate, "web", now()).await;
        assert_eq!(web.unwrap(), Wake::At(now() + SignedDuration::from_mins(3)));
        let twin = bench.desk.settle(&bench.certificates, Kind::Certificate, "twin", now()).await;
        assert_eq!(twin.unwrap(), Wake::OnChange);
    }
}
