//! One look at everything.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::investigator::{DiagnosisTarget, Investigator, MOST_NAMES, unseen};
use super::{names, wanted_names};
use crate::app::chain;
use crate::app::failure::Failure;
use crate::app::flags::drive::listener;
use crate::app::input::lookup;
use crate::app::inspect::authority::{self, HeldByCa};
use crate::controllers::neighbours::Neighbours;
use crate::diagnosis::case::{
    Case, CertificateCase, DriverCase, DueReason, HeldCase, NameCase, QueuedCase, Unseen,
};
use crate::diagnosis::chain::{Chain, issuer_key};
use crate::model::{Certificate, Challenge, ChallengeType, Key, Kind, ObjectName, Secret};
use crate::reconcile::schedule::{Plan, plan};
use crate::reconcile::{certificate, renewal};
use crate::solvers::http01::listener::Listener;
use crate::store::error::{StoreError, unless_forbidden};
use crate::store::resources::Resources;
use crate::store::{Scope, Store};

impl Investigator {
    /// Looks at all that these targets are about.
    ///
    /// # Errors
    /// Fails when an object is not there, or the store cannot be read at all.
    pub async fn look(&self, targets: &[DiagnosisTarget]) -> Result<Case, Failure> {
        let in_cluster = self.store.as_ref().is_some_and(|store| store.in_cluster());
        let driver = self.driver.clone();
        let mut case = Case { at: self.now, in_cluster, driver, ..Case::default() };
        let mut issuers: BTreeSet<Key> = BTreeSet::new();
        for target in targets {
            match target {
                DiagnosisTarget::Certificate(name) => {
                    self.read_certificate(name, &mut case).await?;
                }
                DiagnosisTarget::Issuer(key) => drop(issuers.insert(key.clone())),
                DiagnosisTarget::Domain(name) => case.names.push(wanted_names::of_domain(name)),
            }
        }
        issuers.extend(case.certificates.iter().filter_map(|of| issuer_key(&of.certificate)));
        if let Some(store) = &self.store {
            case.issuers = self.issuers(store, issuers, &mut case.unseen).await?;
            self.read_queue(store, &mut case).await?;
        }
        self.ask_authority(&mut case).await;
        case.names.extend(wanted_names::of_certificates(&case));
        let listener = self.listen(&mut case).await;
        let is_listening = listener.is_some();
        let left_out = case.names.len().saturating_sub(MOST_NAMES);
        let looked = join_all(case.names.drain(..).enumerate().map(|(index, name)| async move {
            if index < MOST_NAMES { names::look(self, name, is_listening).await } else { name }
        }));
        let mut names = looked.await;
        names.truncate(MOST_NAMES);
        case.names = names;
        if left_out > 0 {
            let what = format!("{left_out} more names");
            let why = format!("at most {MOST_NAMES} are looked at");
            case.unseen.push(Unseen { what, why, is_forbidden: false });
        }
        Ok(case)
    }

    async fn read_certificate(&self, name: &ObjectName, case: &mut Case) -> Result<(), Failure> {
        let Some(store) = &self.store else { return Ok(()) };
        let Some(chain) = chain::read(store, name).await? else {
            let key = Key::new(Kind::Certificate, name.clone());
            return Err(lookup::not_found(store, &key).await?);
        };
        let (due, next_try, rivals) = match self.read_state(store, &chain.certificate).await {
            Ok(state) => state,
            Err(error) => {
                case.unseen
                    .push(unseen(format!("Certificate {name}: its Secret and requests"), &error));
                (None, None, Vec::new())
            }
        };
        let Chain { certificate, requests, orders, challenges, .. } = chain;
        let held = Vec::new();
        case.certificates.push(CertificateCase {
            certificate,
            requests,
            orders,
            challenges,
            due,
            next_try,
            rivals,
            held,
        });
        Ok(())
    }

    /// Why it has to be issued, until when a pause lasts, and who else has its Secret.
    async fn read_state(
        &self,
        store: &Arc<dyn Store>,
        certificate: &Certificate,
    ) -> Result<(Option<DueReason>, Option<Timestamp>, Vec<ObjectName>), StoreError> {
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
        let all = Resources::<Certificate>::new(Arc::clone(store), Kind::Certificate);
        let all = all.list(&Scope::namespace(namespace).brief()).await?;
        let is_rival = |other: &&Certificate| {
            other.metadata.name != certificate.metadata.name
                && other.spec.secret_name == certificate.spec.secret_name
        };
        Ok((due, next_try, all.iter().filter(is_rival).map(Certificate::name).collect()))
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
            let what = "the challenges of other namespaces, which may take slots".to_owned();
            let why = "they may not be listed".to_owned();
            case.unseen.push(Unseen { what, why, is_forbidden: true });
            return Ok(());
        };
        let Plan { queue, .. } = plan(&all, self.limits);
        let own = queue.into_iter().filter(|queued| asked.contains(&queued.challenge.name()));
        case.queue = own
            .map(|queued| QueuedCase {
                challenge: queued.challenge.name(),
                domain: queued.challenge.spec.shown_domain(),
                waits: queued.waits,
            })
            .collect();
        Ok(())
    }

    /// Asks the CA what it holds of the names of orders that have not succeeded: by each Challenge that is there.
    async fn ask_authority(&self, case: &mut Case) {
        let Some(store) = &self.store else { return };
        let mut unseen = Vec::new();
        for of in &mut case.certificates {
            let challenges: Vec<Challenge> =
                of.current_challenges().take(MOST_NAMES).cloned().collect();
            let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
            let asked = challenges.iter().map(|c| authority::read(c, store, resolver, namespace));
            let replies = join_all(asked).await;
            for (challenge, reply) in challenges.iter().zip(replies) {
                let name = challenge.spec.shown_domain();
                match reply {
                    HeldByCa::Authorization(reply) => {
                        let own = reply.challenges.iter().find(|c| c.url == challenge.spec.url);
                        let problem = own.and_then(|own| own.error.clone());
                        let problem = problem
                            .or_else(|| reply.challenges.iter().find_map(|c| c.error.clone()));
                        of.held.push(HeldCase {
                            name,
                            status: reply.status.clone(),
                            expires: reply.expires,
                            offered: reply.challenges.iter().map(|c| c.kind.clone()).collect(),
                            problem,
                            at: self.now,
                        });
                    }
                    HeldByCa::Unknown(why) => unseen.push(Unseen {
                        what: format!("what the CA holds of {name}"),
                        why,
                        is_forbidden: false,
                    }),
                }
            }
        }
        case.unseen.extend(unseen);
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
                None
            }
        }
    }
}
