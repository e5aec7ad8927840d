//! CertificateRequests: gathers issuer and Order, creates the Order, and records the outcome.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use tracing::debug;

use super::accounts::Accounts;
use super::name_conflict::NameConflict;
use super::recorder::Recorder;
use super::{Controller, ReconcileFailure, facts};
use crate::model::common::condition;
use crate::model::event::source;
use crate::model::{Certificate, CertificateRequest, Issuer, Key, Kind, ObjectName, Order, Record};
use crate::reconcile::Wake;
use crate::reconcile::facts::{CsrFacts, SecretFacts};
use crate::reconcile::request::{self, Action, Approval, Observed, Outcome};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::events::reference;
use crate::store::resources::Resources;

/// Carries CertificateRequests from approval to the certificate.
#[derive(Debug)]
pub struct RequestController {
    requests: Resources<CertificateRequest>,
    orders: Resources<Order>,
    certificates: Resources<Certificate>,
    accounts: Arc<Accounts>,
    approval: Approval,
    recorder: Recorder,
}

impl RequestController {
    /// Builds the controller.
    pub fn new(recorder: Recorder, accounts: Arc<Accounts>, approval: Approval) -> Self {
        let store = recorder.store();
        Self {
            requests: Resources::new(Arc::clone(store), Kind::CertificateRequest)
                .written_by(source::REQUESTS_ACME),
            orders: Resources::new(Arc::clone(store), Kind::Order)
                .written_by(source::REQUESTS_ACME),
            certificates: Resources::new(Arc::clone(store), Kind::Certificate),
            accounts,
            approval,
            recorder,
        }
    }

    async fn gather(&self, request: &CertificateRequest) -> Result<Observed, StoreError> {
        let namespace = &request.metadata.namespace;
        let issuer = self.accounts.find_issuer(namespace, &request.spec.issuer_ref).await?;
        let bytes = &request.spec.request.0;
        let mut csr = facts::of_request_unverified(bytes);
        let order = self.order_of(request, issuer.as_ref(), csr.as_ref().ok()).await?;
        if order.is_none() {
            // Verified before an Order is requested.
            csr = facts::of_request(bytes);
        }
        let leaf = order.as_ref().and_then(|order| facts::of_issued(&order.status.certificate));
        let secret = if order.is_none() { self.secret_of(request).await? } else { None };
        Ok(Observed { approval: self.approval, csr, issuer, order, leaf, secret })
    }

    /// Returns the Secret of the Certificate that a request belongs to.
    async fn secret_of(
        &self,
        request: &CertificateRequest,
    ) -> Result<Option<Box<SecretFacts>>, StoreError> {
        let Some((key, uid)) = request.metadata.controller_key() else { return Ok(None) };
        if key.kind != Kind::Certificate {
            return Ok(None);
        }
        let certificate = self.certificates.get_known(&key.name).await?;
        let Some(certificate) = certificate.filter(|found| found.metadata.uid == uid) else {
            return Ok(None);
        };
        let name = ObjectName::new(&key.name.namespace, &certificate.spec.secret_name);
        let secret = self.accounts.secrets().get_known(&name).await?;
        Ok(secret.as_ref().map(facts::of_secret).map(Box::new))
    }

    /// Returns the request's own Order, of any name (a changed issuer starts no second one), else an Order of its name.
    async fn order_of(
        &self,
        request: &CertificateRequest,
        issuer: Option<&Issuer>,
        csr: Option<&CsrFacts>,
    ) -> Result<Option<Order>, StoreError> {
        let metadata = &request.metadata;
        let owned = self.orders.list(&Scope::owned_by(&metadata.namespace, &metadata.uid)).await?;
        if let Some(own) = owned.into_iter().next() {
            return Ok(Some(own));
        }
        let (Some(issuer), Some(csr)) = (issuer, csr) else { return Ok(None) };
        // If another writer made one just now, the store refuses ours, and then the other one is known.
        self.orders.get_known(&request::order_for(request, issuer, csr).name()).await
    }
}

#[async_trait]
impl Controller for RequestController {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::CertificateRequest, Kind::Order, Kind::Issuer, Kind::ClusterIssuer]
    }

    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        match changed.key.kind {
            Kind::CertificateRequest => Ok(vec![changed.key.clone()]),
            Kind::Order => {
                Ok(super::owner_of(changed, Kind::CertificateRequest).into_iter().collect())
            }
            Kind::Issuer | Kind::ClusterIssuer => {
                let requests = self.requests.list(&super::reach(&changed.key)).await?;
                let waiting = requests.into_iter().filter(|request| {
                    let ready = condition(&request.status.conditions, "Ready");
                    ready.is_none_or(|ready| ready.reason == "Pending")
                        && super::refers_to(&request.spec.issuer_ref, &changed.key)
                });
                Ok(waiting
                    .map(|request| Key::new(Kind::CertificateRequest, request.name()))
                    .collect())
            }
            Kind::Certificate
            | Kind::Challenge
            | Kind::Event
            | Kind::Gateway
            | Kind::Ingress
            | Kind::ListenerSet
            | Kind::Secret => Ok(Vec::new()),
        }
    }

    async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        let Some(request) = self.requests.get_known(&key.name).await? else {
            return Ok(Wake::OnChange);
        };
        let observed = self.gather(&request).await?;
        if observed.issuer.as_ref().is_some_and(|issuer| issuer.spec.acme.is_none()) {
            debug!(request = %request.name(), "its issuer is not ACME: it is left to cert-manager");
        }
        let action = request::next_action(&request, &observed, now);
        if !matches!(action, Action::Wait(_))
            && super::is_left_over(&**self.recorder.store(), &request.metadata).await?
        {
            return Ok(Wake::OnChange);
        }
        let outcome = match action {
            Action::Wait(wake) => return Ok(wake),
            Action::AwaitApproval => {
                let note = request::waiting_for_approval();
                self.recorder.note(&reference(&request), &note, now).await?;
                return Ok(Wake::OnChange);
            }
            Action::YieldName => {
                let ours = Key::new(Kind::CertificateRequest, request.name());
                let taken = observed.order.as_ref().and_then(|order| {
                    let key = Key::new(Kind::Order, order.name());
                    NameConflict::by(&order.metadata, key, &ours, &request.metadata.uid)
                });
                return taken.map_or(Ok(Wake::Now), |taken| Err(Box::new(taken).into()));
            }
            Action::Conclude(outcome) => outcome,
            Action::CreateOrder(order) => {
                let made = self.orders.create(&order).await?;
                Outcome::OrderCreated(made.name())
            }
            Action::DeleteOrder => {
                if let Some(order) = &observed.order {
                    self.orders.delete_exactly(order).await?;
                }
                Outcome::OrderDeleted
            }
        };
        let requests = self.requests.clone().written_by(outcome.writer());
        let recorded = request::record(&request, outcome, now);
        self.recorder.keep(&requests, &request, None, recorded, now).await?;
        Ok(Wake::Now)
    }
}
