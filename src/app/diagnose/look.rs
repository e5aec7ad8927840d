//! One look at everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use futures_util::stream::{self, StreamExt as _};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio::time::timeout;

use super::control::Around;
use super::investigator::{
    AT_ONCE, DiagnosisTarget, Investigator, MOST_NAMES, PROBE_TIMEOUT, unseen,
};
use super::orders::{answers, authorizations};
use super::rivals::read_rivals;
use super::{names, path, wanted_names};
use crate::acme::error::AcmeError;
use crate::app::chain;
use crate::app::failure::Failure;
use crate::app::flags::drive::listener;
use crate::app::input::lookup;
use crate::app::inspect::authority;
use crate::controllers::ReconcileError;
use crate::controllers::neighbours::Neighbours;
use crate::diagnosis::case::{
    Case, CertificateCase, DriverCase, DueReason, HeldCase, QueuedCase, Unseen,
};
use crate::diagnosis::chain::{Chain, issuer_key};
use crate::diagnosis::name_case::NameCase;
use crate::model::common::{ConditionStatus, condition};
use crate::model::{Certificate, Challenge, ChallengeType, Key, Kind, ObjectName, Secret};
use crate::reconcile::schedule::{Plan, Waits, plan};
use crate::reconcile::{certificate, renewal};
use crate::solvers::http01::listener::Listener;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::{Resources, typed};
use crate::store::{Scope, Store};

impl Investigator {
    /// Looks at all that these targets are about.
    ///
    /// # Errors
    /// Fails when an object is not there, or the store cannot be read at all.
    pub async fn look(&self, targets: &[DiagnosisTarget]) -> Result<Case, Failure> {
        let in_cluster = self.store.as_ref().is_some_and(|store| store.in_cluster());
        let driver = self.driver.clone();
        let is_of_many = targets.len() > 1;
        let mut case = Case { at: self.now, in_cluster, driver, is_of_many, ..Case::default() };
        let mut issuers: BTreeSet<Key> = BTreeSet::new();
        let mut certificates: Vec<&ObjectName> = Vec::new();
        for target in targets {
            match target {
                DiagnosisTarget::Certificate(name) => certificates.push(name),
                DiagnosisTarget::Issuer(key) => drop(issuers.insert(key.clone())),
                DiagnosisTarget::Domain(name) => case.names.push(wanted_names::of_domain(name)),
            }
        }
        self.read_certificates(&certificates, &mut case).await?;
        if let Some(store) = &self.store {
            read_rivals(store, &mut case).await?;
        }
        issuers.extend(case.certificates.iter().filter_map(|of| issuer_key(&of.certificate)));
        if let Some(store) = &self.store {
            case.issuers = self.issuers(store, issuers, &mut case.unseen).await?;
            self.read_queue(store, &mut case).await?;
        }
        let around = Around::of(&case);
        let (control, ()) =
            tokio::join!(Box::pin(self.control(&around)), self.ask_authority(&mut case));
        let (control, hidden) = control;
        case.control = control;
        case.unseen.extend(hidden);
        let (orders, kept, providers) = tokio::join!(
            self.held_orders(&case),
            self.kept_certificates(&case),
            Box::pin(self.ask_providers(&case))
        );
        let (providers, unasked) = providers;
        case.providers = providers;
        case.unseen.extend(unasked);
        for (index, order) in orders {
            match order {
                Ok(held) => case.certificates[index].held_order = Some(held),
                Err(missed) => case.unseen.push(missed),
            }
        }
        for (of, kept) in case.certificates.iter_mut().zip(kept) {
            of.kept = kept;
        }
        case.names.extend(wanted_names::of_certificates(&case));
        let listener = self.listen(&mut case).await;
        let is_listening = listener.is_some();
        let left_out = case.names.len().saturating_sub(MOST_NAMES);
        let wanted = path::wanted(&case);
        let looked = join_all(case.names.drain(..).enumerate().map(|(index, name)| async move {
            if index < MOST_NAMES { names::look(self, name, is_listening).await } else { name }
        }));
        let (mut names, path) = tokio::join!(looked, self.path(wanted));
        if let Some((path, unseen)) = path {
            case.cluster_path = Some(path);
            case.unseen.extend(unseen);
        }
        names.truncate(MOST_NAMES);
        case.names = names;
        if left_out > 0 {
            let what = format!("{left_out} more names");
            let why = format!("at most {MOST_NAMES} are looked at");
            case.unseen.push(Unseen { what, why, is_forbidden: false });
        }
        Ok(case)
    }

    async fn read_certificates(
        &self,
        names: &[&ObjectName],
        case: &mut Case,
    ) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        if case.is_of_many && store.in_cluster() {
            // What hangs below the first of a namespace is read with all of it: that is done once.
            let places: BTreeSet<&str> = names.iter().map(|name| name.namespace.as_str()).collect();
            let kinds = [Kind::CertificateRequest, Kind::Order, Kind::Challenge];
            let all = places.into_iter().flat_map(|place| kinds.map(|kind| (place, kind)));
            let all = all.map(|(place, kind)| async move {
                // Where it may not be read, each Certificate says so.
                store.list(kind, &Scope::owned_by(place, "none")).await.is_ok()
            });
            join_all(all).await;
        }
        let is_of_many = case.is_of_many;
        let read = names.iter().map(|name| self.read_certificate(store, name, is_of_many));
        let mut read = stream::iter(read).buffered(AT_ONCE);
        while let Some(one) = read.next().await {
            let (of, unseen) = one?;
            case.certificates.extend(of);
            case.unseen.extend(unseen);
        }
        Ok(())
    }

    /// A Certificate with all that hangs below it, and what of it may not be read; nothing where it has just gone.
    async fn read_certificate(
        &self,
        store: &Arc<dyn Store>,
        name: &ObjectName,
        is_of_many: bool,
    ) -> Result<(Option<CertificateCase>, Vec<Unseen>), Failure> {
        let mut missed = Vec::new();
        let chain = match chain::read(store, name).await {
            Ok(Some(chain)) => chain,
            // It may have been deleted since it was listed.
            Ok(None) if is_of_many => return Ok((None, missed)),
            Ok(None) => {
                let key = Key::new(Kind::Certificate, name.clone());
                return Err(lookup::not_found(store, &key).await?);
            }
            Err(error) if error.lacks_permission() => {
                missed.push(unseen(format!("what belongs to Certificate {name}"), &error));
                self.bare(store, name).await?
            }
            Err(error) => return Err(error.into()),
        };
        let (due, next_try) = match self.read_state(store, &chain.certificate).await {
            Ok(state) => state,
            Err(error) => {
                let what = format!("the Secret and the requests of Certificate {name}");
                missed.push(unseen(what, &error));
                (by_condition(&chain.certificate), None)
            }
        };
        let rivals = Vec::new();
        let Chain { certificate, requests, orders, challenges, .. } = chain;
        let (held, held_order, kept) = (Vec::new(), None, None);
        let of = CertificateCase {
            certificate,
            requests,
            orders,
            challenges,
            due,
            next_try,
            rivals,
            held,
            held_order,
            kept,
        };
        Ok((Some(of), missed))
    }

    /// A Certificate of which nothing else may be read.
    async fn bare(&self, store: &Arc<dyn Store>, name: &ObjectName) -> Result<Chain, Failure> {
        let key = Key::new(Kind::Certificate, name.clone());
        let certificate = typed(lookup::read(store, &key).await?)?;
        let (requests, orders, challenges) = Default::default();
        let in_cluster = store.in_cluster();
        Ok(Chain { certificate, requests, orders, challenges, issuer: None, in_cluster })
    }

    /// Why it has to be issued, and until when a pause lasts.
    async fn read_state(
        &self,
        store: &Arc<dyn Store>,
        certificate: &Certificate,
    ) -> Result<(Option<DueReason>, Option<Timestamp>), StoreError> {
        let namespace = &certificate.metadata.namespace;
        let secret = ObjectName::new(namespace, &certificate.spec.secret_name);
        let secrets = Resources::<Secret>::new(Arc::clone(store), Kind::Secret);
        let secret = secrets.get(&secret).await?;
        let mut observed =
            Neighbours::new(store).observe_from_outside(certificate, secret.as_ref()).await?;
        observed.windows = renewal::windows(&certificate.spec, |zone| TimeZone::get(zone).ok());
        let due = certificate::due(certificate, &observed, self.now);
        let due = due.map(|due| DueReason { reason: due.reason.to_owned(), message: due.message });
        let next_try = certificate::held_until(certificate, &observed, self.now);
        Ok((due, next_try))
    }

    /// Which of the challenges wait for their turn: all that may be listed count.
    async fn read_queue(&self, store: &Arc<dyn Store>, case: &mut Case) -> Result<(), StoreError> {
        let asked: BTreeSet<ObjectName> =
            case.certificates.iter().flat_map(|of| &of.challenges).map(Challenge::name).collect();
        if asked.is_empty() {
            return Ok(());
        }
        let all = Resources::<Challenge>::new(Arc::clone(store), Kind::Challenge);
        let Some(all) = unless_forbidden(all.list(&Scope::all().brief()).await)? else {
            // Few may look into other namespaces; the reasons of challenges say what they wait for.
            return Ok(());
        };
        let Plan { queue, .. } = plan(&all, self.limits);
        let own = queue.into_iter().filter(|queued| asked.contains(&queued.challenge.name()));
        let order_of = |name: &ObjectName| {
            let challenge = all.iter().find(|challenge| challenge.name() == *name);
            challenge.and_then(|c| c.metadata.controller()).map(|order| order.uid.clone())
        };
        case.queue = own
            .map(|queued| {
                let challenge = queued.challenge.name();
                let is_of_same_order = match &queued.waits {
                    Waits::Lock { holder } => order_of(holder) == order_of(&challenge),
                    Waits::Slot { .. } | Waits::Nothing => false,
                };
                let domain = queued.challenge.spec.shown_domain();
                QueuedCase { challenge, domain, waits: queued.waits, is_of_same_order }
            })
            .collect();
        Ok(())
    }

    /// Asks the CA what it holds of the names of orders that have not succeeded. That costs nothing there.
    async fn ask_authority(&self, case: &mut Case) {
        let Some(store) = &self.store else { return };
        let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
        let accounts = &authority::accounts(store, resolver, namespace);
        let mut asked = Vec::new();
        for (index, of) in case.certificates.iter().enumerate() {
            if of.is_open() && answers(case, of) {
                asked.extend(authorizations(store, of).await.into_iter().map(|one| (index, one)));
            }
        }
        let left_out = asked.len().saturating_sub(MOST_NAMES);
        asked.truncate(MOST_NAMES);
        let asked = asked.into_iter().map(|(index, one)| async move {
            let issuer = (one.namespace.as_str(), &one.issuer);
            let asked = authority::ask(&one.url, issuer, accounts);
            let held = timeout(PROBE_TIMEOUT, asked).await;
            (index, one, held)
        });
        let replies: Vec<_> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        for (index, one, held) in replies {
            let name = one.name;
            let blank = HeldCase {
                name: name.clone(),
                status: String::new(),
                expires: None,
                offered: Vec::new(),
                problem: None,
                at: self.now,
            };
            let why = match held {
                Ok(Ok(reply)) => {
                    let own = reply.challenges.iter().find(|c| c.url == one.challenge_url);
                    let problem = own.and_then(|own| own.error.clone());
                    let problem =
                        problem.or_else(|| reply.challenges.iter().find_map(|c| c.error.clone()));
                    case.certificates[index].held.push(HeldCase {
                        status: reply.status.clone(),
                        expires: reply.expires,
                        offered: reply.challenges.iter().map(|c| c.kind.clone()).collect(),
                        problem,
                        ..blank
                    });
                    continue;
                }
                // That it refuses to tell is its word, too: of an account that is gone, for example.
                Ok(Err(ReconcileError::Acme(AcmeError::Refused { problem, .. }))) => {
                    let problem = Some(*problem);
                    case.certificates[index].held.push(HeldCase { problem, ..blank });
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", PROBE_TIMEOUT.as_secs()),
            };
            let what = format!("what the CA holds of {name}");
            case.unseen.push(Unseen { what, why, is_forbidden: false });
        }
        if left_out > 0 {
            let what = format!("what the CA holds of {left_out} more names");
            let why = format!("it is asked for {MOST_NAMES} at most");
            case.unseen.push(Unseen { what, why, is_forbidden: false });
        }
    }

    /// Answers on this machine while it is looked, where nobody else does who would: between two commands nothing listens.
    async fn listen(&self, case: &mut Case) -> Option<Listener> {
        let is_needed = |name: &NameCase| name.kind == Some(ChallengeType::Http01);
        let addresses = self.http01_listen.as_ref()?;
        let is_ours = self.store.as_ref().is_some_and(|store| !store.in_cluster());
        if !is_ours || case.driver != DriverCase::Nobody || !case.names.iter().any(is_needed) {
            return None;
        }
        match listener(addresses).await {
            Ok(listener) => {
                for (answer, _) in case.names.iter().filter_map(names::looked_for) {
                    listener.put(&answer);
                }
                Some(listener)
            }
            Err(failure) => {
                case.listener_fault = Some(failure.message);
                // What has to be answered here is not to be seen now.
                for name in case.names.iter_mut().filter(|name| is_needed(name)) {
                    name.pending = None;
                }
                None
            }
        }
    }
}

/// Why a Certificate has to be issued, by what its controller has written last.
pub(super) fn by_condition(certificate: &Certificate) -> Option<DueReason> {
    let ready = condition(&certificate.status.conditions, "Ready");
    if ready.is_some_and(|ready| ready.status == ConditionStatus::True) {
        return None;
    }
    let (reason, message) =
        ready.map(|r| (r.reason.clone(), r.message.clone())).unwrap_or_default();
    Some(DueReason { reason, message })
}
