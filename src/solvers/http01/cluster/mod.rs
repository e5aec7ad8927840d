//! HTTP-01 in a cluster: for each challenge a Pod that answers, a Service before it, and an Ingress or HTTPRoute that
//! leads there. The objects are cert-manager's own, so that either controller finds and removes what the other made.
//!
//! At clean-up the Ingress or HTTPRoute goes first, then Service and Pod, so that no request is led to a Pod that is
//! gone. An object is found by its label and its controlling owner, in a fresh list, before one is made, so that a
//! repeat, another process or cert-manager finds it. The Pod runs cert-manager's image or this program's (`solve`).
//! This folder and `probes/cluster` are the only folders of their floor that use a store.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::Instant;

use self::made::KnownObjects;
use self::objects::{INGRESSES, Own, PODS, ROUTES, SERVICES};
pub(crate) use self::options::Options;
use crate::model::event::source;
use crate::model::solver::{GatewaySolver, Http01Solver, IngressSolver, PodTemplate};
use crate::model::{Answer, Challenge};
use crate::solvers::remedy::Remedy;
use crate::solvers::{SolveError, Solver};
use crate::store::Manager;
use crate::store::cluster::raw_objects::{RawObjects, Resource};
use crate::store::cluster::{ClusterStore, temporary};
use crate::store::error::StoreError;

pub mod ingress;
mod made;
pub mod names;
pub mod objects;
pub mod options;
pub mod pod;
pub mod route;
pub mod sweep;
#[cfg(test)]
mod tests;

/// Time for which objects count as present after they were made; then they are searched for, and made again if needed.
const PRESENCE_LIFETIME: Duration = Duration::from_secs(30);
/// Most tries of an edit that other clients overtake.
const MAX_TRIES: u32 = 8;

/// Answers HTTP-01 by objects in a cluster, as each Challenge's own solver says.
#[derive(Debug)]
pub struct ClusterSolver {
    cluster: ClusterStore,
    options: Options,
    /// Times at which the objects of a Challenge, by its UID, were last known to be there.
    last_seen: Mutex<HashMap<String, Instant>>,
    made: KnownObjects,
    /// Challenges of a rehearsal whose objects were made and not yet removed, by UID.
    open: Mutex<BTreeMap<String, Challenge>>,
}

impl ClusterSolver {
    /// Creates a solver for that cluster.
    pub fn new(cluster: ClusterStore, options: Options) -> Self {
        Self {
            cluster,
            options,
            last_seen: Mutex::default(),
            made: KnownObjects::default(),
            open: Mutex::default(),
        }
    }

    /// Removes the objects that a rehearsal has made and not removed; no other process would.
    ///
    /// # Errors
    /// Fails with the first Challenge whose objects could not be removed; a repeat is safe.
    pub async fn clear(&self) -> Result<(), SolveError> {
        let open: Vec<_> = self.open().values().cloned().collect();
        let mut cleared = Ok(());
        for challenge in open {
            cleared = cleared.and(self.take_down(&challenge).await);
        }
        cleared
    }

    async fn take_down(&self, challenge: &Challenge) -> Result<(), SolveError> {
        self.last_seen().remove(&challenge.metadata.uid);
        let removed = self.unmake(challenge).await;
        self.made.forget(&challenge.metadata.uid);
        removed.map_err(|trouble| trouble.with("cannot remove the solver objects", challenge))?;
        self.open().remove(&challenge.metadata.uid);
        Ok(())
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<String, Challenge>> {
        self.open.lock()
    }

    fn last_seen(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.last_seen.lock()
    }

    fn objects(&self, resource: Resource, challenge: &Challenge) -> RawObjects {
        // cert-manager has no part in a rehearsal.
        let manager = match self.options.rehearsal {
            Some(_) => Manager::Person,
            None => Manager::Controller(source::CHALLENGES),
        };
        self.cluster.foreign(resource, &challenge.metadata.namespace, manager)
    }

    async fn make(&self, challenge: &Challenge) -> Result<(), Trouble> {
        match way(challenge)? {
            SolverWay::Ingress(solver) => {
                let pod = self.pod(challenge, solver.pod_template.as_ref());
                let rest = async {
                    let service = self.service(challenge, &solver.service_type).await?;
                    self.ingress(challenge, solver, &service).await
                };
                both(pod, rest).await
            }
            SolverWay::Gateway(solver) => {
                let pod = self.pod(challenge, solver.pod_template.as_ref());
                let rest = async {
                    let service = self.service(challenge, &solver.service_type).await?;
                    self.route(challenge, solver, &service).await
                };
                both(pod, rest).await
            }
        }
    }

    async fn pod(
        &self,
        challenge: &Challenge,
        template: Option<&PodTemplate>,
    ) -> Result<(), Trouble> {
        let wanted = self.mark_rehearsal(pod::pod(challenge, template, &self.options), challenge);
        let serves = |pod: &Value| {
            !["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default())
        };
        let pods = self.objects(PODS, challenge);
        self.exactly_one(&pods, challenge, &wanted, serves).await?;
        Ok(())
    }

    /// Returns the name of the Service.
    async fn service(&self, challenge: &Challenge, service_type: &str) -> Result<String, Trouble> {
        let mut wanted = pod::service(challenge, service_type, &self.options);
        if let (Some(_), Some(ingress)) = (self.options.rehearsal, edited_ingress(challenge)) {
            temporary::set(
                &mut wanted["metadata"],
                "annotations",
                names::EDITS_INGRESS_ANNOTATION,
                ingress,
            );
        }
        let wanted = self.mark_rehearsal(wanted, challenge);
        let services = self.objects(SERVICES, challenge);
        let service = self.exactly_one(&services, challenge, &wanted, |_| true).await?;
        Ok(objects::name(&service).to_owned())
    }

    async fn ingress(
        &self,
        challenge: &Challenge,
        solver: &IngressSolver,
        service: &str,
    ) -> Result<(), Trouble> {
        let ingresses = self.objects(INGRESSES, challenge);
        if solver.name.is_empty() {
            let wanted = ingress::ingress(challenge, solver, service, &self.options)?;
            let wanted = self.mark_rehearsal(wanted, challenge);
            let serves = |found: &Value| ingress::leads_to(found, service);
            self.exactly_one(&ingresses, challenge, &wanted, serves).await?;
            return Ok(());
        }
        for _ in 0..MAX_TRIES {
            let Some(mut found) = ingresses.get(&solver.name).await? else {
                return Err(Trouble::NoIngress(solver.name.clone()));
            };
            let is_there = !ingress::add_path(&mut found, challenge, service);
            if is_there || ingresses.replace(&found).await? {
                return Ok(());
            }
        }
        Err(Trouble::Busy(format!("ingress {} changes all the time", solver.name)))
    }

    async fn route(
        &self,
        challenge: &Challenge,
        solver: &GatewaySolver,
        service: &str,
    ) -> Result<(), Trouble> {
        let wanted =
            self.mark_rehearsal(route::route(challenge, solver, service, &self.options), challenge);
        let routes = self.objects(ROUTES, challenge);
        for _ in 0..MAX_TRIES {
            let mut found = self.exactly_one(&routes, challenge, &wanted, |_| true).await?;
            let is_good = !route::bring_up_to_date(&mut found, &wanted);
            if is_good || routes.replace(&found).await? {
                return Ok(());
            }
        }
        Err(Trouble::Busy("its HTTPRoute changes all the time".to_owned()))
    }

    /// Marks an object of a rehearsal, last of all, so that no template can remove the mark.
    fn mark_rehearsal(&self, mut object: Value, challenge: &Challenge) -> Value {
        if let Some(until) = self.options.rehearsal {
            temporary::mark(&mut object, names::REHEARSAL, &challenge.metadata.uid, until);
        }
        object
    }

    async fn exactly_one(
        &self,
        all: &RawObjects,
        challenge: &Challenge,
        wanted: &Value,
        serves: impl Fn(&Value) -> bool,
    ) -> Result<Value, StoreError> {
        let uid = &challenge.metadata.uid;
        if self.made.of(uid, all.resource()).is_some_and(|none| none.is_empty()) {
            self.made.begin(uid, all.resource());
            let object = all.create(wanted).await?;
            self.made.add(uid, all.resource(), &object);
            return Ok(object);
        }
        self.made.forget(uid);
        let own = Own { challenge, options: &self.options };
        objects::exactly_one(all, own, wanted, serves).await
    }

    /// Removes the Ingress or HTTPRoute first, then the objects behind; goes on after a failure and returns the first one.
    async fn unmake(&self, challenge: &Challenge) -> Result<(), Trouble> {
        // A solver of an unknown kind has made nothing.
        let Ok(way) = way(challenge) else { return Ok(()) };
        let entrance = match way {
            SolverWay::Ingress(solver) if !solver.name.is_empty() => {
                self.restore(challenge, &solver.name).await
            }
            SolverWay::Ingress(_) => self.remove(INGRESSES, challenge).await,
            SolverWay::Gateway(_) => self.remove(ROUTES, challenge).await,
        };
        let rest = both(self.remove(SERVICES, challenge), self.remove(PODS, challenge)).await;
        entrance.and(rest)
    }

    async fn remove(&self, resource: Resource, challenge: &Challenge) -> Result<(), Trouble> {
        let all = self.objects(resource, challenge);
        if let Some(objects) = self.made.of(&challenge.metadata.uid, resource) {
            for object in &objects {
                all.delete(object).await?;
            }
            return Ok(());
        }
        let own = Own { challenge, options: &self.options };
        match objects::remove(&all, own).await {
            // Objects of a kind that the cluster does not serve cannot be there; an error would hold the Challenge for ever.
            Err(StoreError::Cluster(fault)) if fault.is_undefined() => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Removes the challenge's path from a foreign Ingress; a missing Ingress is no error.
    async fn restore(&self, challenge: &Challenge, name: &str) -> Result<(), Trouble> {
        let ingresses = self.objects(INGRESSES, challenge);
        for _ in 0..MAX_TRIES {
            let Some(mut found) = ingresses.get(name).await? else { return Ok(()) };
            let is_clean = !ingress::remove_path(&mut found, challenge);
            if is_clean || ingresses.replace(&found).await? {
                return Ok(());
            }
        }
        Err(Trouble::Busy(format!("ingress {name} changes all the time")))
    }
}

#[async_trait]
impl Solver for ClusterSolver {
    async fn present(&self, challenge: &Challenge, _: &Answer) -> Result<(), SolveError> {
        if self.options.rehearsal.is_some() {
            self.open().insert(challenge.metadata.uid.clone(), challenge.clone());
        }
        let made = self.make(challenge).await;
        if made.is_err() {
            self.made.forget(&challenge.metadata.uid);
        }
        made.map_err(|trouble| trouble.with("cannot make the solver objects", challenge))?;
        self.last_seen().insert(challenge.metadata.uid.clone(), Instant::now());
        Ok(())
    }

    fn nothing_stands(&self, challenge: &Challenge) {
        self.made.nothing(&challenge.metadata.uid);
    }

    async fn clean_up(&self, challenge: &Challenge, _: &Answer) -> Result<(), SolveError> {
        // No event reports that a permission is back, and the Challenge is held until then.
        let impatient = |error| SolveError { needs_person: false, ..error };
        self.take_down(challenge).await.map_err(impatient)
    }

    /// Returns whether the objects count as present: for half a minute only, since objects may go at any time.
    fn stands(&self, challenge: &Challenge, _: &Answer) -> bool {
        self.last_seen()
            .get(&challenge.metadata.uid)
            .is_some_and(|seen| seen.elapsed() < PRESENCE_LIFETIME)
    }
}

/// Kind of solver that a Challenge names.
enum SolverWay<'a> {
    Ingress(&'a IngressSolver),
    Gateway(&'a GatewaySolver),
}

fn way(challenge: &Challenge) -> Result<SolverWay<'_>, Trouble> {
    match &challenge.spec.solver.http01 {
        Some(Http01Solver { ingress: Some(solver), .. }) => Ok(SolverWay::Ingress(solver)),
        Some(Http01Solver { gateway_http_route: Some(solver), .. }) => {
            Ok(SolverWay::Gateway(solver))
        }
        _ => Err(Trouble::Setup("no Ingress nor Gateway HTTP01 solvers were specified".to_owned())),
    }
}

/// Returns the foreign Ingress that the Challenge's solver names; `None` if it names none.
fn edited_ingress(challenge: &Challenge) -> Option<&str> {
    match way(challenge) {
        Ok(SolverWay::Ingress(solver)) => {
            Some(solver.name.as_str()).filter(|name| !name.is_empty())
        }
        Ok(SolverWay::Gateway(_)) | Err(_) => None,
    }
}

/// Runs both futures side by side, to the end, and returns the first error.
async fn both(
    one: impl Future<Output = Result<(), Trouble>>,
    other: impl Future<Output = Result<(), Trouble>>,
) -> Result<(), Trouble> {
    let (one, other) = tokio::join!(one, other);
    one.and(other)
}

/// Reason why objects could not be made or removed. A quota is waited for, because it may pass by itself; a missing
/// permission, a class that is named twice and a missing Ingress wait for a person.
enum Trouble {
    /// The cluster refused, or did not answer.
    Store(StoreError),
    /// The Ingress that is to be edited is not there.
    NoIngress(String),
    /// The solver's settings are invalid.
    Setup(String),
    /// Other clients write all the time.
    Busy(String),
}

impl Trouble {
    /// Builds the error, with the failed action and its object.
    fn with(self, deed: &str, challenge: &Challenge) -> SolveError {
        let what = format!("{deed} of challenge {}", challenge.name());
        match self {
            Self::Store(error) => SolveError::new(what, error.to_string(), error.needs_person())
                .advised(Remedy::Store(Box::new(error))),
            Self::NoIngress(name) => {
                let namespace = challenge.metadata.namespace.clone();
                SolveError::lasting(what, format!("ingress {name} not found"))
                    .advised(Remedy::Ingress { name, namespace })
            }
            Self::Setup(why) => SolveError::lasting(what, why),
            Self::Busy(why) => SolveError::passing(what, why),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Setup(why)
    }
}
