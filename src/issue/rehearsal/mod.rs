//! Rehearsals: the same manifests, names and solvers against a CA of our own; nothing is spent, nothing is kept.
//!
//! The store of the real command decides what is refused, not where results go: a rehearsal reports what the real
//! command would. `caBundle`, `skipTLSVerify`, external account binding, profile and preferred chain of the issuer do
//! not apply, because they concern the real CA.
//!
//! Resources are kept in memory. Solver objects are real, without an owner, with a label of ours and the moment until
//! which they are needed; objects of a killed rehearsal are removed by the next command that works in the namespace. At
//! its end, however it ends, a rehearsal removes the answers that it published, and names the answers that have to stay.

mod answers;
mod borrow;
mod identities;
mod loopback;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::flags::drive::DriveArgs;
use super::preflight::{challenge_types, public_names};
use crate::ca::{self, Caa, Config, Server};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::engine::clients;
use crate::engine::memory_zone::{MemoryResolver, MemoryZone};
use crate::fetch::Fetcher;
use crate::input::Input;
use crate::lead::sweep::sweep_namespaces;
use crate::model::{Blob, Challenge, ChallengeType, Kind, Record};
use crate::solvers::http01::cluster::ClusterSolver;
use crate::solvers::http01::cluster::names::REHEARSAL;
use crate::solvers::http01::listener::Listener;
use crate::solvers::tls_alpn01::TlsAlpn01;
use crate::solvers::{SolveError, Solver, SolverGroup};
use crate::store::Store;
use crate::store::cluster::ClusterStore;
use crate::store::local::Access;

/// Time after its deadline in which a rehearsal may still clean up.
const CLEAN_UP_MARGIN: SignedDuration = SignedDuration::from_mins(1);
/// Longest time for which the removal of answers, and of solver objects, is tried without a reply.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(15);
const REMOVAL_RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Time after which the removal of answers is announced.
const SILENT_REMOVAL_TIME: Duration = Duration::from_secs(1);

/// Target to which names lead in a rehearsal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Rehearse {
    /// Every name leads to a listener of this program on a free port: no DNS, no root, no cluster
    Loopback,
    /// Names, ports and solvers are those of the real command
    Real,
}

/// CAs of our own, with the solvers and the fetcher of a rehearsal.
#[derive(Debug)]
pub struct Rehearsal {
    /// CAs, one for all Issuers whose real CAs have the same CAA identities; kept here because a CA stops when dropped.
    _servers: BTreeMap<Option<Caa>, Server>,
    /// Solver of HTTP-01.
    http01: Arc<dyn Solver>,
    /// Solver of TLS-ALPN-01.
    tls_alpn01: Arc<TlsAlpn01>,
    /// Fetcher of the self-check and the CA.
    pub fetcher: Fetcher,
    /// Zone that answers DNS-01 on loopback.
    memory_zone: Option<MemoryZone>,
    /// Solver in a cluster, which must leave nothing there.
    in_cluster: Option<Arc<ClusterSolver>>,
}

/// Solvers and fetcher of a rehearsal, in place of those that the flags name.
#[derive(Clone, Debug)]
pub struct RehearsalSolvers {
    /// Solver of HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// Solver of TLS-ALPN-01.
    pub tls_alpn01: Arc<TlsAlpn01>,
    /// Zone that answers DNS-01 on loopback.
    pub memory_zone: Option<MemoryZone>,
    /// Fetcher of the self-check and the CA.
    pub fetcher: Fetcher,
}

impl Rehearsal {
    /// Reads the objects to rehearse and starts the CA. Objects that the manifests leave out are taken from the store of
    /// the real command; on loopback there is no such store.
    ///
    /// # Errors
    /// Fails when a port is not permitted or taken, when the store cannot be read, and for names that the real CA never certifies.
    pub async fn start(
        how: Rehearse,
        args: &DriveArgs,
        input: &Input,
        deadline: Timestamp,
        context: &Context,
    ) -> Result<(Self, Vec<Record>), Failure> {
        let mut records = input.records().to_vec();
        let mut fetcher = args.fetcher().await?;
        let mut in_cluster = None;
        let mut tls_alpn01 = args.tls_alpn01();
        let mut caa = BTreeMap::new();
        let mut memory_zone = None;
        let http01: Arc<dyn Solver> = match how {
            Rehearse::Loopback => {
                tls_alpn01 = shake_hands_on_loopback(&mut fetcher).await?;
                challenge_types::check_rehearsal(&records)?;
                public_names::check(&records)?;
                if loopback::answer_by_memory(&mut records) {
                    context.talk().line(
                        "DNS-01 is answered in memory: providers, their Secrets and zones are not used",
                    );
                }
                let zone = MemoryZone::default();
                let addresses = Arc::clone(&fetcher.resolver);
                fetcher.resolver = Arc::new(MemoryResolver { zone: zone.clone(), addresses });
                memory_zone = Some(zone);
                answer_on_loopback(&mut fetcher).await?
            }
            Rehearse::Real => {
                let source = context.store(Access::ReadOnly).await?;
                borrow::borrow(&mut records, &source, context).await?;
                public_names::check(&records)?;
                // A cluster has no field for such a type at all, which the preflight reports before anything is issued.
                let cluster = context.cluster();
                if cluster.is_none() {
                    challenge_types::check_rehearsal(&records)?;
                }
                let clients = clients(&fetcher.resolver);
                caa = identities::read(&records, &source, &clients, context).await;
                match cluster.filter(|_| !args.answers_here()) {
                    // Without names for HTTP-01 no port is taken.
                    None if !challenge_types::leave_to_solvers(&records) => {
                        Arc::new(SolverGroup(Vec::new()))
                    }
                    None => args.http01_here(true).await?,
                    Some(cluster) => {
                        let until = prepare(cluster, &records, deadline, context).await?;
                        let solver = Arc::new(args.solver_pods.solver(cluster, Some(until)));
                        in_cluster = Some(Arc::clone(&solver));
                        solver
                    }
                }
            }
        };
        let mut servers = BTreeMap::new();
        for record in &mut records {
            if !matches!(record.key.kind, Kind::Issuer | Kind::ClusterIssuer) {
                continue;
            }
            let caa = caa.remove(&record.key);
            if !servers.contains_key(&caa) {
                servers.insert(caa.clone(), serve(caa.clone(), &fetcher).await?);
            }
            if let Some(server) = servers.get(&caa) {
                redirect(record, server);
            }
        }
        let rehearsal =
            Self { _servers: servers, http01, tls_alpn01, fetcher, memory_zone, in_cluster };
        Ok((rehearsal, records))
    }

    /// Returns the solvers and the fetcher of the rehearsal.
    pub fn means(&self) -> RehearsalSolvers {
        RehearsalSolvers {
            http01: Arc::clone(&self.http01),
            tls_alpn01: Arc::clone(&self.tls_alpn01),
            memory_zone: self.memory_zone.clone(),
            fetcher: self.fetcher.clone(),
        }
    }

    /// Returns whether challenges are answered in a cluster.
    pub fn is_in_cluster(&self) -> bool {
        self.in_cluster.is_some()
    }

    /// Removes every answer and every solver object that still exists, however the rehearsal ended.
    ///
    /// # Errors
    /// Fails when some of these answers or objects have to stay.
    pub async fn end(
        &self,
        store: &Arc<dyn Store>,
        drive: &DriveArgs,
        context: &Context,
    ) -> Result<(), Failure> {
        let answers = self.take_answers_down(store, drive, context).await;
        let objects = self.remove_objects().await;
        match (answers, objects) {
            (Err(answers), Err(objects)) => {
                let all = answers.hint(objects.message);
                Err(objects.hints.into_iter().fold(all, Failure::hint))
            }
            (answers, objects) => answers.and(objects),
        }
    }

    async fn take_answers_down(
        &self,
        store: &Arc<dyn Store>,
        drive: &DriveArgs,
        context: &Context,
    ) -> Result<(), Failure> {
        let mut challenges = answers::still_up(store).await?;
        if self.memory_zone.is_some() {
            challenges.retain(|challenge| !challenge.spec.kind.is_by_record());
        }
        // Objects in a cluster are removed all together.
        challenges.retain(|c| !self.is_in_cluster() || c.spec.kind.is_by_record());
        if challenges.is_empty() {
            return Ok(());
        }
        let zones = drive.zones(&self.fetcher).await?;
        let namespace = &context.global.cluster_resource_namespace;
        let reach = drive.dns01.reach(context);
        let dns01 = reach.solver(store, zones, &self.fetcher.resolver, namespace);
        let solver = |challenge: &Challenge| -> &dyn Solver {
            match challenge.spec.kind {
                ChallengeType::Http01 => &*self.http01,
                ChallengeType::TlsAlpn01 => &*self.tls_alpn01,
                ChallengeType::Dns01
                | ChallengeType::DnsAccount01
                | ChallengeType::DnsPersist01 => &*dns01,
            }
        };
        let mut taking =
            pin!(answers::take_down(&challenges, solver, Instant::now() + CLEAN_UP_TIMEOUT));
        tokio::select! {
            taken = &mut taking => return taken,
            () = tokio::time::sleep(SILENT_REMOVAL_TIME) => {}
        }
        context.talk().line("taking down the answers of the rehearsal");
        taking.await
    }

    async fn remove_objects(&self) -> Result<(), Failure> {
        let Some(solver) = &self.in_cluster else { return Ok(()) };
        let deadline = Instant::now() + CLEAN_UP_TIMEOUT;
        loop {
            match solver.clear().await {
                Ok(()) => return Ok(()),
                Err(error) if error.needs_person || Instant::now() >= deadline => {
                    return Err(leftover_failure(&error));
                }
                Err(_) => tokio::time::sleep(REMOVAL_RETRY_PAUSE).await,
            }
        }
    }
}

/// Starts a CA that checks CAA records for these identities, if any.
async fn serve(caa: Option<Caa>, fetcher: &Fetcher) -> Result<Server, Failure> {
    let config = Config { caa, ..Config::default() };
    ca::serve(config, Arc::new(fetcher.clone())).await.map_err(|why| {
        Failure::new(FailureKind::Unexpected, format!("cannot start the rehearsal CA: {why}"))
    })
}

/// Points an Issuer to a rehearsal CA.
fn redirect(record: &mut Record, server: &Server) {
    let Some(Value::Object(acme)) = record.object.pointer_mut("/spec/acme") else { return };
    acme.insert("server".to_owned(), server.directory_url().into());
    let roots = Blob(server.tls_root_pem().as_bytes().to_vec());
    acme.insert("caBundle".to_owned(), json!(roots));
    // Fields that concern the real CA only: trust, binding, its chains and its profiles.
    for field in ["skipTLSVerify", "externalAccountBinding", "preferredChain", "profile"] {
        acme.remove(field);
    }
}

/// Starts a listener on loopback that answers for every name.
async fn answer_on_loopback(fetcher: &mut Fetcher) -> Result<Arc<dyn Solver>, Failure> {
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(&[free])
        .await
        .map_err(|why| Failure::new(FailureKind::Solver, why.to_string()))?;
    let port = listener.addresses().first().map(SocketAddr::port);
    let loopback = IpAddr::V4(Ipv4Addr::LOCALHOST);
    fetcher.overrides.hosts.insert("*".to_owned(), (loopback, port));
    Ok(Arc::new(listener))
}

/// Starts a listener on loopback that answers every handshake.
async fn shake_hands_on_loopback(fetcher: &mut Fetcher) -> Result<Arc<TlsAlpn01>, Failure> {
    let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let solver = TlsAlpn01::new(vec![free]);
    let open = solver.open().await;
    let open = open.map_err(|why| Failure::new(FailureKind::Solver, why.to_string()))?;
    if let Some(address) = open.addresses().first() {
        let entry = (address.ip(), Some(address.port()));
        fetcher.overrides.handshakes.insert("*".to_owned(), entry);
    }
    Ok(Arc::new(solver))
}

/// Removes objects of earlier rehearsals in the namespaces of the Certificates; returns until when, by the cluster's
/// clock, the objects of this rehearsal may stay.
async fn prepare(
    cluster: &ClusterStore,
    records: &[Record],
    deadline: Timestamp,
    context: &Context,
) -> Result<Timestamp, Failure> {
    let now = cluster.clock().await?;
    let certificates = records.iter().filter(|record| record.key.kind.is_issued());
    let namespaces: BTreeSet<_> = certificates.map(|r| r.key.name.namespace.as_str()).collect();
    sweep_namespaces(cluster, namespaces, now, context).await;
    let left = deadline.duration_since(Timestamp::now()).saturating_add(CLEAN_UP_MARGIN);
    Ok(now.saturating_add(left).unwrap_or(Timestamp::MAX))
}

fn leftover_failure(error: &SolveError) -> Failure {
    Failure::new(FailureKind::Solver, format!("the rehearsal leaves objects behind: {error}"))
        .hint("the next command in that namespace removes the objects when their time is up")
        .hint(format!(
            "see: kubectl get pods,services,ingresses --all-namespaces --selector {REHEARSAL}"
        ))
}
