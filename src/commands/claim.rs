//! Whose turn it is: the lock of the state folder, or the Lease of the cluster.

use std::time::Duration;

use clap::ValueEnum;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::context::{Context, OutputArgs};
use super::failure::{Failure, Kind};
use crate::store::cluster::ClusterStore;
use crate::store::cluster::lease::{ClusterGuard, ClusterLease, Holder, Who};
use crate::store::cluster::survey::Driver;
use crate::store::lease::{Guard, LocalLease, Role};

/// How often a waiting process looks again at a lock.
const POLL: Duration = Duration::from_millis(100);
/// How often a waiting process asks a cluster again.
const CLUSTER_POLL: Duration = Duration::from_secs(1);

/// Who is to work on the resources of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Wish {
    /// cert-manager where it holds its Lease, else this process
    #[default]
    Auto,
    /// cert-manager, whether it is seen or not
    CertManager,
    /// This process; refused while another one holds the Lease
    #[value(name = "self")]
    Ourselves,
}

/// How this process may work on a store.
#[derive(Debug)]
pub enum Claim {
    /// Nobody else can know the store: it drives.
    Alone,
    /// It drives, for as long as it keeps the turn.
    Drives(Turn),
    /// Somebody else drives, here in words: it is enough to watch.
    Watches(String),
}

impl Claim {
    /// Who drives, in words.
    pub fn driver(&self) -> &str {
        match self {
            Self::Alone | Self::Drives(_) => "kubectl-acme",
            Self::Watches(driver) => driver,
        }
    }

    /// Tells whether cert-manager's own controllers do the work, which act on more than ours.
    pub fn is_cert_manager(&self) -> bool {
        matches!(self, Self::Watches(driver) if driver.starts_with("cert-manager"))
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

/// Proof that it is our turn.
#[derive(Debug)]
pub enum Turn {
    /// The lock of the state folder.
    Local(Guard),
    /// The Lease, which the context gives back at the end; is cancelled when it is lost before.
    Cluster(CancellationToken),
}

/// Waits for our turn; while a one-shot command drives, says so, and while `run` or cert-manager drives, leaves the work to
/// it.
///
/// # Errors
/// Fails when the store cannot be used, when the wish cannot be granted, when time is up, or when interrupted.
pub async fn claim(context: &Context, deadline: Timestamp) -> Result<Claim, Failure> {
    match context.cluster() {
        None => local(context, deadline).await,
        Some(cluster) => in_cluster(cluster, context, deadline).await,
    }
}

/// Tells whether anybody works on the store now.
///
/// # Errors
/// Fails when the store cannot be used.
pub async fn is_driven(context: &Context) -> Result<bool, Failure> {
    match context.cluster() {
        None => Ok(LocalLease::new(context.state_folder()?).holder()?.is_some()),
        Some(cluster) => {
            let namespace = &context.global.cluster.leader_election_namespace;
            Ok(Driver::of(cluster, namespace).await? != Driver::Nobody)
        }
    }
}

/// Takes the turn of one that drives everything until it is stopped. In a cluster it stands by while another one holds the
/// Lease, as a second replica does; a state folder that is taken is refused.
///
/// # Errors
/// Fails when another process drives the state folder, when a controller without a Lease drives the cluster, or when
/// interrupted.
pub async fn claim_everything(context: &Context) -> Result<Claim, Failure> {
    let Some(cluster) = context.cluster() else {
        let folder = context.state_folder()?;
        let lease = LocalLease::new(&folder);
        let Some(guard) = lease.try_acquire(Timestamp::now(), Role::Always)? else {
            let message = format!("cannot work on {}: another process does", folder.display());
            return Err(Failure::new(Kind::OwnedByAnother, message)
                .hint("wait for it, end it, or use another state folder (--local=DIR)"));
        };
        return Ok(Claim::Drives(Turn::Local(guard)));
    };
    let namespace = &context.global.cluster.leader_election_namespace;
    let lease = ClusterLease::new(cluster, namespace)?;
    let mut told = String::new();
    loop {
        let who = match Driver::of(cluster, namespace).await? {
            Driver::Nobody => match lease.try_acquire(Role::Always).await? {
                Some(guard) => return Ok(drives(context, guard)),
                None => continue,
            },
            Driver::WithoutLease { pod } => return Err(driven(&without_lease(&pod))),
            Driver::Unknown { why } => return Err(driven(&why)),
            Driver::Holder(holder) => holder.identity,
        };
        if told != who {
            let line = format!("standing by while {who} holds the Lease");
            context.printer(&OutputArgs::default()).note(&line);
            told = who;
        }
        pause(context, CLUSTER_POLL).await?;
    }
}

async fn local(context: &Context, deadline: Timestamp) -> Result<Claim, Failure> {
    let folder = context.state_folder()?;
    let lease = LocalLease::new(&folder);
    let printer = context.printer(&OutputArgs::default());
    let mut told = false;
    loop {
        let now = Timestamp::now();
        if let Some(guard) = lease.try_acquire(now, Role::Once)? {
            return Ok(Claim::Drives(Turn::Local(guard)));
        }
        let Some(holder) = lease.holder()? else { continue };
        let who = holder
            .process
            .map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        if holder.role == Some(Role::Always) {
            printer.note(&format!("{who} (run) drives this state folder; watching it"));
            return Ok(Claim::Watches("kubectl-acme run, in another process".to_owned()));
        }
        if !told {
            printer.note(&format!("{who} works on {}; waiting for its end", folder.display()));
            told = true;
        }
        if now >= deadline {
            let message = format!("cannot work on {}: {who} still does", folder.display());
            return Err(Failure::new(Kind::OwnedByAnother, message)
                .hint("wait for it, end it, or use another state folder (--local=DIR)"));
        }
        pause(context, POLL).await?;
    }
}

async fn in_cluster(
    cluster: &ClusterStore,
    context: &Context,
    deadline: Timestamp,
) -> Result<Claim, Failure> {
    let wish = context.global.cluster.driver;
    if wish == Wish::CertManager {
        return Ok(Claim::Watches("cert-manager".to_owned()));
    }
    let namespace = &context.global.cluster.leader_election_namespace;
    let lease = ClusterLease::new(cluster, namespace)?;
    let mut told = false;
    loop {
        let driver = Driver::of(cluster, namespace).await?;
        let holder = match driver {
            Driver::Nobody => match lease.try_acquire(Role::Once).await? {
                Some(guard) => return Ok(drives(context, guard)),
                None => continue,
            },
            Driver::WithoutLease { pod } => return watches(wish, without_lease(&pod)),
            Driver::Unknown { why } => {
                return watches(wish, format!("cert-manager, as far as may be seen ({why})"));
            }
            Driver::Holder(holder) => holder,
        };
        match holder.who {
            Who::CertManager => return watches(wish, cert_manager(&holder)),
            Who::Ours(Some(Role::Always)) => {
                return watches(wish, format!("kubectl-acme run ({})", holder.identity));
            }
            Who::Ours(_) => {}
        }
        if !told {
            let line = format!("{} works on this cluster; waiting for its end", holder.identity);
            context.printer(&OutputArgs::default()).note(&line);
            told = true;
        }
        if Timestamp::now() >= deadline {
            return Err(driven(&holder.identity));
        }
        pause(context, CLUSTER_POLL).await?;
    }
}

fn drives(context: &Context, guard: ClusterGuard) -> Claim {
    let lost = guard.lost();
    context.keep(guard);
    Claim::Drives(Turn::Cluster(lost))
}

fn watches(wish: Wish, driver: String) -> Result<Claim, Failure> {
    match wish {
        Wish::Ourselves => Err(driven(&driver)),
        Wish::Auto | Wish::CertManager => Ok(Claim::Watches(driver)),
    }
}

fn cert_manager(holder: &Holder) -> String {
    format!("cert-manager ({} holds the Lease in {})", holder.identity, holder.namespace)
}

fn without_lease(pod: &str) -> String {
    format!("cert-manager (Pod {pod}, which holds no Lease)")
}

fn driven(by: &str) -> Failure {
    Failure::new(Kind::OwnedByAnother, format!("cannot drive this cluster: {by} does"))
        .hint("--driver=auto leaves the work to it and watches")
        .hint("scale it down first, if this process is to work in its place")
}

async fn pause(context: &Context, time: Duration) -> Result<(), Failure> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        kind = context.interrupted().wait() => Err(Failure::interrupted(kind)),
    }
}
