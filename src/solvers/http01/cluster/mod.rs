//! HTTP-01 in a cluster: for each challenge a Pod that answers, a Service before it, and an Ingress or HTTPRoute that
//! leads there. The objects are cert-manager's own, so that either controller finds and removes what the other made.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use self::objects::{INGRESSES, PODS, ROUTES, SERVICES};
use super::super::{SolveError, Solver};
use crate::model::event::source;
use crate::model::solver::{GatewaySolver, Http01Solver, IngressSolver, PodTemplate};
use crate::model::{Answer, Challenge};
use crate::store::StoreError;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::foreign::{Foreign, Resource};
use crate::store::manager::Manager;

pub mod ingress;
pub mod names;
mod objects;
pub mod pod;
pub mod route;
pub mod service;
#[cfg(test)]
mod tests;

/// The solver image that is run unless a flag names another one.
pub const IMAGE: &str = "quay.io/jetstack/cert-manager-acmesolver:v1.21.2";
/// Where a solver Pod listens.
const PORT: u16 = 8089;
/// How long objects that were made are taken to be there still; then they are looked for, and made again if need be.
const TRUST: Duration = Duration::from_secs(30);
/// How often an edit is tried again because somebody else wrote in between.
const TRIES: u32 = 8;

/// What flags say about solver objects (cert-manager's `--acme-http01-solver-…`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Image of solver Pods.
    pub image: String,
    /// CPU that a Pod asks for, as Kubernetes writes quantities.
    pub request_cpu: String,
    /// Memory that a Pod asks for.
    pub request_memory: String,
    /// CPU that a Pod may use.
    pub limit_cpu: String,
    /// Memory that a Pod may use.
    pub limit_memory: String,
    /// Whether a Pod may not run as root.
    pub run_as_non_root: bool,
    /// Runtime class of Pods.
    pub runtime_class_name: Option<String>,
    /// More labels for all solver objects.
    pub extra_labels: BTreeMap<String, String>,
    /// Whether the Challenges are not in the cluster: then the objects carry a label of ours in place of an owner.
    pub rehearsal: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            image: IMAGE.to_owned(),
            request_cpu: "10m".to_owned(),
            request_memory: "64Mi".to_owned(),
            limit_cpu: "100m".to_owned(),
            limit_memory: "64Mi".to_owned(),
            run_as_non_root: true,
            runtime_class_name: None,
            extra_labels: BTreeMap::new(),
            rehearsal: false,
        }
    }
}

/// Answers HTTP-01 by objects in a cluster, as each Challenge's own solver says.
#[derive(Debug)]
pub struct ClusterSolver {
    cluster: ClusterStore,
    options: Options,
    /// When the objects of a Challenge, by its UID, were last seen.
    seen: Mutex<HashMap<String, Instant>>,
}

impl ClusterSolver {
    /// Solves in that cluster.
    pub fn new(cluster: ClusterStore, options: Options) -> Self {
        Self { cluster, options, seen: Mutex::default() }
    }

    fn seen(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn objects(&self, resource: Resource, challenge: &Challenge) -> Foreign {
        let manager = Manager::Controller(source::CHALLENGES);
        self.cluster.foreign(resource, &challenge.metadata.namespace, manager)
    }

    async fn make(&self, challenge: &Challenge) -> Result<(), Trouble> {
        match way(challenge)? {
            Way::Ingress(solver) => {
                let pod = self.pod(challenge, solver.pod_template.as_ref());
                let rest = async {
                    let service = self.service(challenge, &solver.service_type).await?;
                    self.ingress(challenge, solver, &service).await
                };
                both(pod, rest).await
            }
            Way::Gateway(solver) => {
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
        let wanted = pod::pod(challenge, template, &self.options);
        let serves = |pod: &serde_json::Value| {
            !["Failed", "Succeeded"].contains(&pod["status"]["phase"].as_str().unwrap_or_default())
        };
        let pods = self.objects(PODS, challenge);
        objects::exactly_one(&pods, challenge, &wanted, serves).await?;
        Ok(())
    }

    /// Returns the name of the Service.
    async fn service(&self, challenge: &Challenge, service_type: &str) -> Result<String, Trouble> {
        let wanted = service::service(challenge, service_type, &self.options);
        let services = self.objects(SERVICES, challenge);
        let service = objects::exactly_one(&services, challenge, &wanted, |_| true).await?;
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
            let serves = |found: &serde_json::Value| ingress::leads_to(found, service);
            objects::exactly_one(&ingresses, challenge, &wanted, serves).await?;
            return Ok(());
        }
        for _ in 0..TRIES {
            let Some(mut found) = ingresses.get(&solver.name).await? else {
                return Err(Trouble::Setup(format!("ingress {} not found", solver.name)));
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
        let wanted = route::route(challenge, solver, service, &self.options);
        let routes = self.objects(ROUTES, challenge);
        for _ in 0..TRIES {
            let mut found = objects::exactly_one(&routes, challenge, &wanted, |_| true).await?;
            let is_good = !route::bring_up_to_date(&mut found, &wanted);
            if is_good || routes.replace(&found).await? {
                return Ok(());
            }
        }
        Err(Trouble::Busy("its HTTPRoute changes all the time".to_owned()))
    }

    /// Removes the way in first, then what it leads to; goes on after a failure and returns the first one.
    async fn unmake(&self, challenge: &Challenge) -> Result<(), Trouble> {
        // Without a solver that we know nothing was made.
        let Ok(way) = way(challenge) else { return Ok(()) };
        let entrance = match way {
            Way::Ingress(solver) if !solver.name.is_empty() => {
                self.restore(challenge, &solver.name).await
            }
            Way::Ingress(_) => self.remove(INGRESSES, challenge).await,
            Way::Gateway(_) => self.remove(ROUTES, challenge).await,
        };
        let rest = both(self.remove(SERVICES, challenge), self.remove(PODS, challenge)).await;
        entrance.and(rest)
    }

    async fn remove(&self, resource: Resource, challenge: &Challenge) -> Result<(), Trouble> {
        match objects::remove(&self.objects(resource, challenge), challenge).await {
            // What the cluster does not serve is not there: a Challenge would be held for ever.
            Err(StoreError::Cluster(fault)) if fault.is_undefined() => Ok(()),
            removed => Ok(removed?),
        }
    }

    /// Takes our path out of an Ingress that is not ours; one that is gone is fine.
    async fn restore(&self, challenge: &Challenge, name: &str) -> Result<(), Trouble> {
        let ingresses = self.objects(INGRESSES, challenge);
        for _ in 0..TRIES {
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
        let made = self.make(challenge).await;
        made.map_err(|trouble| trouble.with("cannot make the solver objects", challenge))?;
        self.seen().insert(challenge.metadata.uid.clone(), Instant::now());
        Ok(())
    }

    async fn clean_up(&self, challenge: &Challenge, _: &Answer) -> Result<(), SolveError> {
        self.seen().remove(&challenge.metadata.uid);
        let removed = self.unmake(challenge).await;
        removed.map_err(|trouble| SolveError {
            // Nobody wakes us when a permission comes back, and the Challenge is held until then.
            needs_person: false,
            ..trouble.with("cannot remove the solver objects", challenge)
        })
    }

    /// Objects may go at any time, so none are taken to stand for longer than half a minute.
    fn stands(&self, challenge: &Challenge, _: &Answer) -> bool {
        self.seen().get(&challenge.metadata.uid).is_some_and(|seen| seen.elapsed() < TRUST)
    }
}

/// How a Challenge wants to be solved.
enum Way<'a> {
    Ingress(&'a IngressSolver),
    Gateway(&'a GatewaySolver),
}

fn way(challenge: &Challenge) -> Result<Way<'_>, Trouble> {
    match &challenge.spec.solver.http01 {
        Some(Http01Solver { ingress: Some(solver), .. }) => Ok(Way::Ingress(solver)),
        Some(Http01Solver { gateway_http_route: Some(solver), .. }) => Ok(Way::Gateway(solver)),
        _ => Err(Trouble::Setup("no Ingress nor Gateway HTTP01 solvers were specified".to_owned())),
    }
}

/// Why objects could not be made or removed.
enum Trouble {
    /// The cluster refused, or did not answer.
    Store(StoreError),
    /// What is asked for cannot be.
    Setup(String),
    /// Others write all the time.
    Busy(String),
}

impl Trouble {
    fn with(self, deed: &str, challenge: &Challenge) -> SolveError {
        let what = format!("{deed} of challenge {}", challenge.name());
        let (why, needs_person, hint) = match self {
            Self::Store(error) => {
                (error.to_string(), error.needs_person(), error.hints().into_iter().next())
            }
            Self::Setup(why) => (why, true, None),
            Self::Busy(why) => (why, false, None),
        };
        SolveError { what, why, needs_person, hint }
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

/// Does both side by side, to the end, and returns the first error.
async fn both(
    one: impl Future<Output = Result<(), Trouble>>,
    other: impl Future<Output = Result<(), Trouble>>,
) -> Result<(), Trouble> {
    let (one, other) = tokio::join!(one, other);
    one.and(other)
}
