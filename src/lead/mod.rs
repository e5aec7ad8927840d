//! Whose turn it is: the lock of the state folder, or the Lease of the cluster.
//!
//! This is settled before anything is written. The Lease wherever we see it, a controller's Pod without one, and what
//! we may not read all count as cert-manager's. A one-shot command that drives keeps the Lease until it ends. One that
//! loses it breaks off what is under way, waits until it is settled who drives, and goes on or watches: a stalled API
//! server is no reason to end. `run` ends then (exit 12), as cert-manager does, and its Deployment starts it again. A
//! command that only watches leaves Issuers and solvers to whoever drives.

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
use crate::store::cluster::lease_object::Who;
use crate::store::cluster::survey::Driver;
use crate::store::lease::{Guard, LocalLease, Role};

/// How often a waiting process looks again at a lock.
const POLL: Duration = Duration::from_millis(100);
/// How often a waiting process asks a cluster again.
const CLUSTER_POLL: Duration = Duration::from_secs(1);

/// How this process may work on a store.
#[derive(Debug)]
pub enum Claim {
    /// Nobody else can know the store: it drives.
    Alone,
    /// It drives, for as long as it keeps the turn.
    Drives(Turn),
    /// Somebody else drives: it is enough to watch.
    Watches(Other),
}

impl Claim {
    /// Who drives, in words.
    pub fn driver(&self) -> &str {
        match self {
            Self::Alone | Self::Drives(_) => "kubectl-acme",
            Self::Watches(other) => &other.driver,
        }
    }

    /// Tells whether cert-manager's own controllers do the work, which act on more than ours.
    pub fn is_cert_manager(&self) -> bool {
        matches!(self, Self::Watches(other) if other.program == Program::CertManager)
    }

    /// Is cancelled when the turn is lost; never where it cannot be.
    pub fn lost(&self) -> CancellationToken {
        match self {
            Self::Drives(Turn::Cluster(lost)) => lost.clone(),
            Self::Alone | Self::Drives(Turn::Local(_)) | Self::Watches(_) => {
                CancellationToken::new()
            }
        }
    }
}

/// What keeps two programs from working on one store.
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

/// Proof that it is our turn.
#[derive(Debug)]
pub enum Turn {
    /// The lock of the state folder.
    Local(Guard),
    /// The Lease, which the context gives back at the end; is cancelled when it is lost before.
    Cluster(CancellationToken),
}

/// Waits for our turn; while a one-shot command drives, says so, and while `run` or cert-manager drives, leaves the work to
/// it. In a cluster nothing is written before all that is needed for our part of the work is permitted.
///
/// # Errors
/// Fails when the store cannot be used, when a permission is missing, when the wish cannot be granted, when time is up, or
/// when interrupted.
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

/// The claim that a command would have now; no turn is taken, and one-shot commands of ours, for whose end it would wait, are
/// passed over.
///
/// # Errors
/// Fails when the store cannot be used, or the wish cannot be granted.
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

/// What that means for whatever waits.
pub const NOBODY_DRIVES: &str = "nobody drives: nothing moves before the next order -f … or run";

/// Tells whether anybody works on the store now.
///
/// # Errors
/// Fails when the store cannot be used.
pub async fn is_driven(context: &Context) -> Result<bool, Failure> {
    match Arbiter::of(context)? {
        Arbiter::Folder(folder) => Ok(LocalLease::new(folder).holder()?.is_some()),
        Arbiter::Cluster(cluster) => {
            let namespace = &context.global.cluster.leader_election_namespace;
            Ok(Driver::of(cluster, namespace).await? != Driver::Nobody)
        }
    }
}

/// Somebody who works on a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtWork {
    /// Who, in words.
    pub who: String,
    /// Since when; `None` if nobody has written that down.
    pub since: Option<Time>,
}

/// Who works on the store now, one-shot commands included; `None` if nobody does.
///
/// # Errors
/// Fails when the store cannot be used.
pub async fn at_work(context: &Context) -> Result<Option<AtWork>, Failure> {
    let one_shot = || "a command of kubectl-acme that ends by itself".to_owned();
    let cluster = match Arbiter::of(context)? {
        Arbiter::Folder(folder) => {
            return Ok(LocalLease::new(folder).holder()?.map(|holder| AtWork {
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
    Ok(Some(AtWork { who, since }))
}

/// Tells whether cert-manager's own controllers do the work, as far as can be told from here.
///
/// # Errors
/// Fails when nobody can say.
pub async fn is_cert_managers(context: &Context) -> Result<bool, Failure> {
    let Arbiter::Cluster(cluster) = Arbiter::of(context)? else { return Ok(false) };
    let namespace = &context.global.cluster.leader_election_namespace;
    Ok(match Driver::of(cluster, namespace).await? {
        Driver::Nobody => false,
        Driver::Holder(holder) => holder.who == Who::CertManager,
        Driver::WithoutLease { .. } | Driver::Unknown { .. } => true,
    })
}

/// Takes the turn of one that drives everything until it is stopped. In a cluster it stands by while another one holds the
/// Lease, as a second replica does; a state folder that is taken is refused.
///
/// # Errors
/// Fails when another process drives the state folder, when a controller without a Lease drives the cluster or the wish is for
/// what is not so, when a permission is missing, or when interrupted.
pub async fn claim_everything(context: &Context, permit: &Permissions) -> Result<Claim, Failure> {
    let cluster = match Arbiter::of(context)? {
        Arbiter::Folder(folder) => {
            let guard = LocalLease::new(&folder).try_acquire(Timestamp::now(), Role::Always)?;
            let guard = guard.ok_or_else(|| taken(&folder, "another process does"))?;
            return Ok(Claim::Drives(Turn::Local(guard)));
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
            return Err(driven(&other.driver));
        }
        let who = match driver {
            Driver::Nobody => {
                return Ok(match lease.try_acquire(Role::Always).await? {
                    Some(guard) => StandbyState::Settled(drives(context, guard)),
                    None => overtaken(),
                });
            }
            Driver::WithoutLease { pod } => return Err(driven(&without_lease(&pod).driver)),
            Driver::Unknown { why } => return Err(driven(&why)),
            Driver::Holder(holder) => holder.identity,
        };
        let line = format!("standing by while {who} holds the Lease");
        Ok(StandbyState::Held { line, refusal: driven(&who) })
    };
    settle(context, CLUSTER_POLL, None, look).await
}

/// Why a state folder cannot be worked on, since somebody has its lock.
fn taken(folder: &Path, who: &str) -> Failure {
    let message = format!("cannot work on {}: {who}", folder.display());
    Failure::new(FailureKind::OwnedByAnother, message)
        .hint("wait for it, end it, or use another state folder (--local=DIR)")
}

async fn local(folder: PathBuf, context: &Context, deadline: Timestamp) -> Result<Claim, Failure> {
    let lease = LocalLease::new(&folder);
    let taken = |who: &str| taken(&folder, &format!("{who} still does"));
    let mut told = None;
    let look = async || {
        if let Some(guard) = lease.try_acquire(Timestamp::now(), Role::Once)? {
            return Ok(StandbyState::Settled(Claim::Drives(Turn::Local(guard))));
        }
        let another = "another process".to_owned();
        let Some(holder) = lease.holder()? else {
            return Ok(StandbyState::Overtaken { refusal: taken(&another) });
        };
        let who = holder.process.map_or(another, |pid| format!("process {pid}"));
        if holder.role == Some(Role::Always) {
            let line = format!("{who} (run) drives this state folder; watching it");
            context.printer(&OutputArgs::default()).note(&line);
            return Ok(StandbyState::Settled(Claim::Watches(local_run())));
        }
        let refusal = taken(&who);
        // Whoever has the lock takes a moment to sign it, and to take the signature off: that is nobody new.
        let line = told.get_or_insert_with(|| {
            format!("{who} works on {}; waiting for its end", folder.display())
        });
        Ok(StandbyState::Held { line: line.clone(), refusal })
    };
    settle(context, POLL, Some(deadline), look).await
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
                None => overtaken(),
            });
        };
        let line = if context.has_held(&holder.identity) {
            "the Lease that was lost has not run out yet; waiting for its end".to_owned()
        } else {
            format!("{} works on this cluster; waiting for its end", holder.identity)
        };
        Ok(StandbyState::Held { line, refusal: driven(&holder.identity) })
    };
    settle(context, CLUSTER_POLL, Some(deadline), look).await
}

/// Stands by until the claim is settled.
async fn settle(
    context: &Context,
    gap: Duration,
    deadline: Option<Timestamp>,
    look: impl AsyncFnMut() -> Result<StandbyState<Claim>, Failure>,
) -> Result<Claim, Failure> {
    let patience = StandbyTimes { gap, deadline, interrupted: context.interrupted() };
    let printer = context.printer(&OutputArgs::default());
    patience.settle(|line| printer.note(line), look).await
}

/// Somebody wrote the Lease of a cluster between our look and our write.
fn overtaken() -> StandbyState<Claim> {
    StandbyState::Overtaken { refusal: driven("another process") }
}

/// The claim of whoever has the Lease, which is given back when the command ends.
pub(super) fn drives(context: &Context, guard: ClusterGuard) -> Claim {
    let lost = guard.lost();
    context.keep(guard);
    Claim::Drives(Turn::Cluster(lost))
}

fn watches(wish: DriverChoice, other: Other) -> Result<Claim, Failure> {
    match wish {
        DriverChoice::Ourselves => Err(driven(&other.driver)),
        DriverChoice::Auto | DriverChoice::CertManager => Ok(Claim::Watches(other)),
    }
}

fn driven(by: &str) -> Failure {
    Failure::new(FailureKind::OwnedByAnother, format!("cannot drive this cluster: {by} does"))
        .hint("--driver=auto leaves the work to it and watches")
        .hint("scale it down first, if this process is to work in its place")
}
