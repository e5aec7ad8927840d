//! Leadership: the lock of the state folder, or the Lease of the cluster.
//!
//! Leadership is settled before anything is written. The Lease in any namespace, a controller's Pod without a Lease, and a
//! Lease that may not be read all count as cert-manager's. A one-shot command that drives keeps the Lease until it ends. A
//! command that loses the Lease aborts its requests, waits until leadership is settled, and continues or watches: a stalled
//! API server is no reason to end. `run` ends then (exit 12), as cert-manager does, and its Deployment starts it again. A
//! command that only watches leaves Issuers and solvers to the leader.

mod other;
mod standby;
pub mod stopping;
pub mod sweep;
pub mod takeover;
pub mod venue;

use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

pub use self::other::{Other, Program};
use self::other::{as_wished, local_run, other, without_lease};
use self::standby::{StandbyState, StandbyTimes};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::connection::DriverChoice;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::model::Time;
use crate::permissions::Permissions;
use crate::permissions::task::Part;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::lease::{ClusterGuard, ClusterLease};
use crate::store::cluster::lease_object::HolderKind;
use crate::store::cluster::survey::Driver;
use crate::store::lease::{Guard, LocalLease, Role};

/// Time between two tries of a process that waits for a lock.
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Time between two requests of a process that waits for a Lease.
const LEASE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Right of this process to work on a store.
#[derive(Debug)]
pub enum Claim {
    /// This process drives, since no other process can know the store.
    Alone,
    /// This process drives, for as long as it keeps the lock or the Lease.
    Drives(Tenure),
    /// Another process drives, and this process only watches.
    Watches(Other),
}

impl Claim {
    /// Names the program that drives.
    pub fn driver(&self) -> &str {
        match self {
            Self::Alone | Self::Drives(_) => "kubectl-acme",
            Self::Watches(other) => &other.driver,
        }
    }

    /// Returns whether cert-manager's own controllers do the work, which act on more than ours.
    pub fn is_cert_manager(&self) -> bool {
        matches!(self, Self::Watches(other) if other.program == Program::CertManager)
    }

    /// Returns the token that is cancelled when the Lease is lost; a lock cannot be lost.
    pub fn lost(&self) -> CancellationToken {
        match self {
            Self::Drives(Tenure::Cluster(lost)) => lost.clone(),
            Self::Alone | Self::Drives(Tenure::Local(_)) | Self::Watches(_) => {
                CancellationToken::new()
            }
        }
    }
}

/// Lock or Lease that keeps two programs from working on one store.
enum Arbiter<'a> {
    /// The lock of a state folder.
    Folder(PathBuf),
    /// The Lease of a cluster.
    Cluster(&'a ClusterStore),
}

impl<'a> Arbiter<'a> {
    fn of(context: &'a Context) -> Result<Self, Failure> {
        match context.cluster() {
            Some(cluster) => Ok(Self::Cluster(cluster)),
            None => context.state_folder().map(Self::Folder),
        }
    }
}

/// Proof that this process holds the lock or the Lease.
#[derive(Debug)]
pub enum Tenure {
    /// The lock of the state folder.
    Local(Guard),
    /// The Lease, which the context releases at the end; the token is cancelled if the Lease is lost before.
    Cluster(CancellationToken),
}

/// Waits for the lock or the Lease; says so while a one-shot command drives, and leaves the work to `run` or cert-manager. In
/// a cluster nothing is written before all permissions for this process's part of the work are checked.
///
/// # Errors
/// Fails if the store cannot be used, a permission is missing, or `--driver` cannot be followed; when time is up, or when
/// interrupted.
pub async fn claim(
    context: &Context,
    deadline: Timestamp,
    permit: &Permissions,
) -> Result<Claim, Failure> {
    let cluster = match Arbiter::of(context)? {
        Arbiter::Folder(folder) => return local(folder, context, deadline).await,
        Arbiter::Cluster(cluster) => cluster,
    };
    let claim = in_cluster(cluster, context, deadline, permit).await?;
    if let Claim::Watches(_) = claim {
        permit.check(Part::Watch).await?;
    }
    Ok(claim)
}

/// Returns the claim that a command would have now, without a lock or Lease; one-shot commands of ours are passed over, as the
/// command would wait for their end.
///
/// # Errors
/// Fails if the store cannot be used, or `--driver` cannot be followed.
pub async fn foreseen(context: &Context) -> Result<Claim, Failure> {
    let cluster = match Arbiter::of(context)? {
        Arbiter::Folder(folder) => {
            let holder = LocalLease::new(folder).holder()?;
            let is_run = holder.is_some_and(|holder| holder.role == Some(Role::Always));
            return Ok(if is_run { Claim::Watches(local_run()) } else { Claim::Alone });
        }
        Arbiter::Cluster(cluster) => cluster,
    };
    let wish = context.global.cluster.driver;
    if wish == DriverChoice::CertManager {
        return Ok(Claim::Watches(as_wished()));
    }
    let namespace = &context.global.cluster.leader_election_namespace;
    let driver = Driver::of(cluster, namespace).await?;
    other(&driver).map_or(Ok(Claim::Alone), |other| watches(wish, other))
}

/// Note about objects that wait while no controller is running.
pub const NO_CONTROLLER: &str =
    "no controller is running: nothing will change until you run `order -f` or `run`";

/// Returns whether any controller works on the store now.
///
/// # Errors
/// Fails if the store cannot be used.
pub async fn is_driven(context: &Context) -> Result<bool, Failure> {
    match Arbiter::of(context)? {
        Arbiter::Folder(folder) => Ok(LocalLease::new(folder).holder()?.is_some()),
        Arbiter::Cluster(cluster) => {
            let namespace = &context.global.cluster.leader_election_namespace;
            Ok(Driver::of(cluster, namespace).await? != Driver::Nobody)
        }
    }
}

/// Process that works on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningController {
    /// Description of the process.
    pub who: String,
    /// Start of the work; `None` if no process has recorded it.
    pub since: Option<Time>,
}

/// Returns the process that works on the store now, one-shot commands included; `None` if there is none.
///
/// # Errors
/// Fails if the store cannot be used.
pub async fn at_work(context: &Context) -> Result<Option<RunningController>, Failure> {
    let one_shot = || "a command of kubectl-acme that ends by itself".to_owned();
    let cluster = match Arbiter::of(context)? {
        Arbiter::Folder(folder) => {
            return Ok(LocalLease::new(folder).holder()?.map(|holder| RunningController {
                who: match holder.role {
                    Some(Role::Always) => local_run().driver,
                    _ => one_shot(),
                },
                since: holder.since,
            }));
        }
        Arbiter::Cluster(cluster) => cluster,
    };
    let driver = Driver::of(cluster, &context.global.cluster.leader_election_namespace).await?;
    let since = match &driver {
        Driver::Nobody => return Ok(None),
        Driver::Holder(holder) => holder.since,
        Driver::WithoutLease { .. } | Driver::Unknown { .. } => None,
    };
    let who = other(&driver).map_or_else(one_shot, |other| other.driver);
    Ok(Some(RunningController { who, since }))
}

/// Returns whether cert-manager's own controllers do the work, as far as this process may see.
///
/// # Errors
/// Fails if the cluster cannot be read.
pub async fn is_cert_managers(context: &Context) -> Result<bool, Failure> {
    let Arbiter::Cluster(cluster) = Arbiter::of(context)? else { return Ok(false) };
    let namespace = &context.global.cluster.leader_election_namespace;
    Ok(match Driver::of(cluster, namespace).await? {
        Driver::Nobody => false,
        Driver::Holder(holder) => holder.who == HolderKind::CertManager,
        Driver::WithoutLease { .. } | Driver::Unknown { .. } => true,
    })
}

/// Takes the lock or the Lease for a command that drives everything until stopped. In a cluster the command stands by while
/// another process holds the Lease, as a second replica does; a locked state folder is an error.
///
/// # Errors
/// Fails if another process drives the state folder, a controller without a Lease drives the cluster, `--driver` cannot be
/// followed, or a permission is missing; and when interrupted.
pub async fn claim_everything(context: &Context, permit: &Permissions) -> Result<Claim, Failure> {
    let cluster = match Arbiter::of(context)? {
        Arbiter::Folder(folder) => {
            let guard = LocalLease::new(&folder).try_acquire(Timestamp::now(), Role::Always)?;
            let guard = guard.ok_or_else(|| folder_refusal(&folder, "another process does"))?;
            return Ok(Claim::Drives(Tenure::Local(guard)));
        }
        Arbiter::Cluster(cluster) => cluster,
    };
    let wish = context.global.cluster.driver;
    if wish == DriverChoice::CertManager {
        let message = "cannot drive this cluster: cert-manager does, as --driver=cert-manager says";
        return Err(Failure::new(FailureKind::OwnedByAnother, message)
            .hint("without --driver this command stands by while cert-manager holds the Lease"));
    }
    permit.check(Part::Drive).await?;
    let namespace = &context.global.cluster.leader_election_namespace;
    let lease = ClusterLease::new(cluster, namespace)?.on_terms(context.global.cluster.terms.lease);
    let look = async || {
        let driver = Driver::of(cluster, namespace).await?;
        if wish == DriverChoice::Ourselves
            && let Some(other) = other(&driver)
        {
            return Err(drive_refusal(&other.driver));
        }
        let who = match driver {
            Driver::Nobody => {
                return Ok(match lease.try_acquire(Role::Always).await? {
                    Some(guard) => StandbyState::Settled(drives(context, guard)),
                    None => lost_race(),
                });
            }
            Driver::WithoutLease { pod } => return Err(drive_refusal(&without_lease(&pod).driver)),
            Driver::Unknown { why } => return Err(drive_refusal(&why)),
            Driver::Holder(holder) => holder.identity,
        };
        let line = format!("standing by while {who} holds the Lease");
        Ok(StandbyState::Held { line, refusal: drive_refusal(&who) })
    };
    settle(context, LEASE_POLL_INTERVAL, None, look).await
}

/// Returns the failure for a state folder whose lock another process holds.
fn folder_refusal(folder: &Path, who: &str) -> Failure {
    let message = format!("cannot work on {}: {who}", folder.display());
    Failure::new(FailureKind::OwnedByAnother, message)
        .hint("wait for that process, end it, or use another state folder (--local=DIR)")
}

async fn local(folder: PathBuf, context: &Context, deadline: Timestamp) -> Result<Claim, Failure> {
    let lease = LocalLease::new(&folder);
    let refuse = |who: &str| folder_refusal(&folder, &format!("{who} still does"));
    let mut told = None;
    let look = async || {
        if let Some(guard) = lease.try_acquire(Timestamp::now(), Role::Once)? {
            return Ok(StandbyState::Settled(Claim::Drives(Tenure::Local(guard))));
        }
        let another = "another process".to_owned();
        let Some(holder) = lease.holder()? else {
            return Ok(StandbyState::Overtaken { refusal: refuse(&another) });
        };
        let who = holder.process.map_or(another, |pid| format!("process {pid}"));
        if holder.role == Some(Role::Always) {
            let line = format!("{who} (run) drives this state folder; watching it");
            context.printer(&OutputArgs::default()).note(&line);
            return Ok(StandbyState::Settled(Claim::Watches(local_run())));
        }
        let refusal = refuse(&who);
        // The holder takes a moment to sign the lock, and to remove the signature: an unsigned lock is no new holder.
        let line = told.get_or_insert_with(|| {
            format!("{who} works on {}; waiting for its end", folder.display())
        });
        Ok(StandbyState::Held { line: line.clone(), refusal })
    };
    settle(context, LOCK_POLL_INTERVAL, Some(deadline), look).await
}

async fn in_cluster(
    cluster: &ClusterStore,
    context: &Context,
    deadline: Timestamp,
    permit: &Permissions,
) -> Result<Claim, Failure> {
    let wish = context.global.cluster.driver;
    if wish == DriverChoice::CertManager {
        return Ok(Claim::Watches(as_wished()));
    }
    let namespace = &context.global.cluster.leader_election_namespace;
    let lease = ClusterLease::new(cluster, namespace)?.on_terms(context.global.cluster.terms.lease);
    let look = async || {
        let (driver, ()) = tokio::join!(Driver::of(cluster, namespace), permit.prepare());
        let driver = driver?;
        if let Some(other) = other(&driver) {
            return watches(wish, other).map(StandbyState::Settled);
        }
        let Driver::Holder(holder) = driver else {
            permit.check(Part::Drive).await?;
            return Ok(match lease.try_acquire(Role::Once).await? {
                Some(guard) => StandbyState::Settled(drives(context, guard)),
                None => lost_race(),
            });
        };
        let line = if context.has_held(&holder.identity) {
            "the lost Lease has not expired yet; waiting for its end".to_owned()
        } else {
            format!("{} works on this cluster; waiting for its end", holder.identity)
        };
        Ok(StandbyState::Held { line, refusal: drive_refusal(&holder.identity) })
    };
    settle(context, LEASE_POLL_INTERVAL, Some(deadline), look).await
}

/// Stands by until the claim is settled.
async fn settle(
    context: &Context,
    gap: Duration,
    deadline: Option<Timestamp>,
    look: impl AsyncFnMut() -> Result<StandbyState<Claim>, Failure>,
) -> Result<Claim, Failure> {
    let standby = StandbyTimes { gap, deadline, interrupted: context.interrupted() };
    let printer = context.printer(&OutputArgs::default());
    standby.settle(|line| printer.note(line), look).await
}

/// State after another process wrote the Lease of a cluster between our read and our write.
fn lost_race() -> StandbyState<Claim> {
    StandbyState::Overtaken { refusal: drive_refusal("another process") }
}

/// Returns the claim of this process as holder of the Lease, which is released when the command ends.
pub(super) fn drives(context: &Context, guard: ClusterGuard) -> Claim {
    let lost = guard.lost();
    context.keep(guard);
    Claim::Drives(Tenure::Cluster(lost))
}

fn watches(wish: DriverChoice, other: Other) -> Result<Claim, Failure> {
    match wish {
        DriverChoice::Ourselves => Err(drive_refusal(&other.driver)),
        DriverChoice::Auto | DriverChoice::CertManager => Ok(Claim::Watches(other)),
    }
}

fn drive_refusal(by: &str) -> Failure {
    Failure::new(FailureKind::OwnedByAnother, format!("cannot drive this cluster: {by} does"))
        .hint("--driver=auto leaves the work to that controller and watches")
        .hint("scale that controller down first, if this process is to work in its place")
}
