//! Reads the evidence of one diagnosis.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::control::ControlSubjects;
use super::investigator::{DiagnosisTarget, Investigator, MAX_CONCURRENT, MAX_NAMES, unseen};
use super::rivals::read_rivals;
use super::{names, path, wanted_names};
use crate::context::failure::Failure;
use crate::controllers::neighbours::CertificateSurroundings;
use crate::diagnosis::case::chain::{Chain, issuer_key};
use crate::diagnosis::case::name::NameCase;
use crate::diagnosis::case::{Case, CertificateCase, DueReason, Unobserved};
use crate::input::lookup;
use crate::model::common::condition;
use crate::model::{Certificate, Key, Kind, ObjectName, Secret};
use crate::objects::chain;
use crate::reconcile::{certificate, renewal};
use crate::solvers::http01::listener::Listener;
use crate::store::error::StoreError;
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

impl Investigator {
    /// Reads the evidence on these targets.
    ///
    /// # Errors
    /// Fails when an object does not exist, or the store cannot be read at all.
    pub async fn investigate(&self, targets: &[DiagnosisTarget]) -> Result<Case, Failure> {
        let in_cluster = self.store.as_ref().is_some_and(|store| store.in_cluster());
        let driver = self.driver.clone();
        let is_of_many = targets.len() > 1;
        let mut case = Case { at: self.now, in_cluster, driver, is_of_many, ..Case::default() };
        let mut issuers: BTreeSet<Key> = BTreeSet::new();
        let mut certificates: Vec<&ObjectName> = Vec::new();
        for target in targets {
            match target {
                DiagnosisTarget::Certificate(name) => certificates.push(name),
                DiagnosisTarget::Request(name) => {
                    let Some(store) = &self.store else { continue };
                    let key = Key::new(Kind::CertificateRequest, name.clone());
                    let of = chain::of(store, &key).await?.map(of_own_request);
                    case.certificates.extend(of);
                }
                DiagnosisTarget::Challenge(name) => {
                    let challenge = match self.orphan(name).await {
                        // The Challenge may have been deleted since it was listed.
                        Err(_) if is_of_many => continue,
                        challenge => challenge?,
                    };
                    issuers.extend(challenge.spec.issuer_ref.key(&name.namespace));
                    case.orphans.push(challenge);
                }
                DiagnosisTarget::Issuer(key) => drop(issuers.insert(key.clone())),
                DiagnosisTarget::Domain(name) => case.names.push(wanted_names::of_domain(name)),
            }
        }
        self.read_certificates(&certificates, &mut case).await?;
        if let Some(store) = &self.store {
            read_rivals(store, &mut case).await?;
        }
        let asked: BTreeSet<Key> = issuers.clone();
        issuers.extend(case.certificates.iter().filter_map(|of| issuer_key(&of.certificate)));
        if let Some(store) = &self.store {
            case.issuers = self.issuers(store, issuers, &mut case.unseen).await?;
        }
        case.names.extend(wanted_names::of_certificates(&case));
        let answering = self.listen(&mut case).await;
        let around = ControlSubjects::of(&case);
        let wanted = path::wanted(&case);
        let names = std::mem::take(&mut case.names);
        // Everything outside is asked concurrently: a silent server delays no other.
        let ((control, hidden), (names, left_out), path, ()) = tokio::join!(
            Box::pin(self.control(&around)),
            Box::pin(self.names(names, answering.http01.as_ref())),
            Box::pin(self.path(wanted)),
            Box::pin(self.authorities(&mut case, &asked)),
        );
        case.control = control;
        case.unseen.extend(hidden);
        if let Some(store) = &self.store {
            self.read_queue(store, &mut case).await?;
        }
        if let Some((path, unseen)) = path {
            case.cluster_path = Some(path);
            case.unseen.extend(unseen);
        }
        let is_proven = |name: &NameCase| {
            let held = case.certificates.iter().flat_map(|of| &of.held);
            let mut valid = held.filter(|held| held.status == "valid");
            !name.is_bare() && valid.any(|held| held.name == name.shown())
        };
        let names = names.into_iter().filter(|name| !is_proven(name)).collect();
        case.names = names;
        if left_out > 0 {
            let what = format!("{left_out} more names");
            let why = format!("at most {MAX_NAMES} names are probed");
            case.unseen.push(Unobserved { what, why, is_forbidden: false });
        }
        Ok(case)
    }

    /// Probes names; returns also how many were left out.
    async fn names(
        &self,
        names: Vec<NameCase>,
        listener: Option<&Listener>,
    ) -> (Vec<NameCase>, usize) {
        let left_out = names.len().saturating_sub(MAX_NAMES);
        let looked = names.into_iter().take(MAX_NAMES);
        let looked = looked.map(|name| names::probe_name(self, name, listener));
        (join_all(looked).await, left_out)
    }

    async fn read_certificates(
        &self,
        names: &[&ObjectName],
        case: &mut Case,
    ) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        if case.is_of_many && store.in_cluster() {
            // The mirror lists a whole namespace for its first Certificate: this is done once, up front.
            let places: BTreeSet<&str> = names.iter().map(|name| name.namespace.as_str()).collect();
            let kinds = [Kind::CertificateRequest, Kind::Order, Kind::Challenge];
            let all = places.into_iter().flat_map(|place| kinds.map(|kind| (place, kind)));
            let all = all.map(|(place, kind)| async move {
                // If listing is forbidden, that is reported with each Certificate.
                store.list(kind, &Scope::owned_by(place, "none")).await.is_ok()
            });
            join_all(all).await;
        }
        let is_of_many = case.is_of_many;
        let read = names.iter().map(|name| self.read_certificate(store, name, is_of_many));
        let mut read = stream::iter(read).buffered(MAX_CONCURRENT);
        while let Some(one) = read.next().await {
            let (of, unseen) = one?;
            case.certificates.extend(of);
            case.unseen.extend(unseen);
        }
        Ok(())
    }

    /// Reads a Certificate with the objects below it, and notes what may not be read; `None` if it was just deleted.
    async fn read_certificate(
        &self,
        store: &Arc<dyn Store>,
        name: &ObjectName,
        is_of_many: bool,
    ) -> Result<(Option<CertificateCase>, Vec<Unobserved>), Failure> {
        let mut missed = Vec::new();
        let chain = match chain::read(store, name).await {
            Ok(Some(chain)) => chain,
            // The Certificate may have been deleted since it was listed.
            Ok(None) if is_of_many => return Ok((None, missed)),
            Ok(None) => {
                let key = Key::new(Kind::Certificate, name.clone());
                return Err(lookup::not_found(store, &key).await?);
            }
            Err(error) if error.lacks_permission() => {
                missed.push(unseen(format!("the objects of Certificate {name}"), &error));
                self.bare(store, name).await?
            }
            Err(error) => return Err(error.into()),
        };
        let (due, next_try) = match self.read_state(store, &chain.certificate).await {
            Ok(state) => state,
            Err(error) => {
                let what = format!("the Secret and the requests of Certificate {name}");
                missed.push(unseen(what, &error));
                (DueReason::by_condition(&chain.certificate), None)
            }
        };
        Ok((Some(CertificateCase { due, next_try, ..CertificateCase::of(chain) }), missed))
    }

    /// Reads a Certificate alone, if nothing below it may be read.
    async fn bare(&self, store: &Arc<dyn Store>, name: &ObjectName) -> Result<Chain, Failure> {
        let key = Key::new(Kind::Certificate, name.clone());
        let certificate = typed(lookup::read(store, &key).await?)?;
        let (requests, orders, challenges) = Default::default();
        let in_cluster = store.in_cluster();
        Ok(Chain { certificate, requests, orders, challenges, issuer: None, in_cluster })
    }

    /// Returns why a Certificate has to be issued, and when a pause ends.
    async fn read_state(
        &self,
        store: &Arc<dyn Store>,
        certificate: &Certificate,
    ) -> Result<(Option<DueReason>, Option<Timestamp>), StoreError> {
        let namespace = &certificate.metadata.namespace;
        let secret = ObjectName::new(namespace, &certificate.spec.secret_name);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        let secret = secrets.get(&secret).await?;
        let mut observed = CertificateSurroundings::new(store)
            .observe_from_outside(certificate, secret.as_ref())
            .await?;
        observed.windows = renewal::windows(&certificate.spec, |zone| TimeZone::get(zone).ok());
        let due = certificate::due(certificate, &observed, self.now);
        let due = due.map(|due| DueReason { reason: due.reason.to_owned(), message: due.message });
        let next_try = certificate::held_until(certificate, &observed, self.now);
        Ok((due, next_try))
    }
}

/// Converts a CertificateRequest that no Certificate has made into the case of a Certificate with the same request.
fn of_own_request(chain: Chain) -> CertificateCase {
    let request = chain.requests.last();
    let due = request.filter(|it| it.status.certificate.0.is_empty()).map(|request| {
        let ready = condition(&request.status.conditions, "Ready");
        let (reason, message) =
            ready.map(|it| (it.reason.clone(), it.message.clone())).unwrap_or_default();
        DueReason { reason, message }
    });
    CertificateCase { due, ..CertificateCase::of(chain) }
}
