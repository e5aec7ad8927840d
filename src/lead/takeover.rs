//! Later leadership: from a process that drove and does not come back, and of this process again after a lost Lease.
//!
//! A command that watches keeps checking who drives, and takes the Lease after 20 s without a driver (the flags of the
//! Lease change that). A command that takes a lost Lease again uses nothing that was read before.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::{Arbiter, Claim, Other, Tenure, claim, drives};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::connection::DriverChoice;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::hints::invocation;
use crate::permissions::Permissions;
use crate::permissions::task::Part;
use crate::store::cluster::ClusterStore;
use crate::store::cluster::lease::{ClusterGuard, ClusterLease};
use crate::store::cluster::lease_object::HolderKind;
use crate::store::cluster::survey::Driver;
use crate::store::error::StoreError;
use crate::store::lease::{LocalLease, Role};

/// Longest time between two checks whether any process drives.
const DRIVER_CHECK_PERIOD: Duration = Duration::from_secs(3);

/// Leadership taken over from another process.
#[derive(Debug)]
pub struct Inherited {
    /// Claim of this process.
    pub claim: Claim,
    /// Reason, in words.
    pub why: String,
}

/// Waits until no process drives any more, and takes over. Waits for ever if `--driver` rules a takeover out.
///
/// # Errors
/// Fails if the store cannot be used, or a permission for driving is missing.
pub async fn inherit(
    context: &Context,
    permit: &Permissions,
    from: &Other,
) -> Result<Inherited, Failure> {
    match Arbiter::of(context)? {
        Arbiter::Folder(folder) => local(folder).await,
        Arbiter::Cluster(cluster) if context.global.cluster.driver == DriverChoice::Auto => {
            in_cluster(cluster, context, permit, from).await
        }
        Arbiter::Cluster(_) => std::future::pending().await,
    }
}

/// Takes a lost Lease again, or finds its present holder. Waits for a cluster that does not answer.
///
/// # Errors
/// Fails as [`claim`] does, but with the cluster's last error only when time is up.
pub async fn regain(
    context: &Context,
    deadline: Timestamp,
    permit: &Permissions,
) -> Result<Claim, Failure> {
    let lease = async || claim(context, deadline, permit).await;
    once_the_cluster_answers("take the Lease again", context, deadline, lease).await.map_err(
        |failure| {
            if failure.kind == FailureKind::Cluster { still_lost(failure) } else { failure }
        },
    )
}

/// Repeats an attempt until the cluster does not fail it: an API server that has just come back answers some requests and
/// refuses others, because it has not read everything yet.
///
/// # Errors
/// Fails as the attempt does, with the cluster's last error once the deadline has passed, and when interrupted.
pub async fn once_the_cluster_answers<T>(
    what: &str,
    context: &Context,
    deadline: Timestamp,
    mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut last = Failure::new(FailureKind::Cluster, "the cluster does not answer");
    loop {
        // A stalled server gives no answer, not even a refusal.
        let left = Duration::try_from(deadline.duration_since(Timestamp::now()));
        let failure = tokio::select! {
            made = attempt() => match made {
                Err(failure) if failure.kind == FailureKind::Cluster => failure,
                made => return made,
            },
            () = sleep(left.unwrap_or_default()) => return Err(last),
            kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
        };
        if failure.message != last.message {
            let line = format!("cannot {what} yet: {}", failure.message);
            context.printer(&OutputArgs::default()).note(&line);
        }
        last = failure;
        tokio::select! {
            () = sleep(DRIVER_CHECK_PERIOD) => {}
            kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
        }
    }
}

/// Returns the failure of a command that could not take a lost Lease again in time.
fn still_lost(why: Failure) -> Failure {
    let message = format!("the Lease was lost and could not be taken again: {}", why.message);
    let failure = Failure { message, ..why };
    failure.hint(format!("when the cluster answers, {}", invocation::current().go_on()))
}

async fn local(folder: PathBuf) -> Result<Inherited, Failure> {
    let lease = LocalLease::new(folder);
    loop {
        if let Some(guard) = lease.try_acquire(Timestamp::now(), Role::Once)? {
            let why = "kubectl-acme run has ended".to_owned();
            return Ok(Inherited { claim: Claim::Drives(Tenure::Local(guard)), why });
        }
        sleep(DRIVER_CHECK_PERIOD).await;
    }
}

async fn in_cluster(
    cluster: &ClusterStore,
    context: &Context,
    permit: &Permissions,
    from: &Other,
) -> Result<Inherited, Failure> {
    let namespace = &context.global.cluster.leader_election_namespace;
    let (terms, gap) = (
        context.global.cluster.terms,
        DRIVER_CHECK_PERIOD.min(context.global.cluster.terms.patience / 4),
    );
    let lease = ClusterLease::new(cluster, namespace)?.on_terms(terms.lease);
    let (mut last, mut free_since) = (from.seen.clone(), None);
    loop {
        match Driver::of(cluster, namespace).await {
            Ok(Driver::Nobody) => {
                let since = *free_since.get_or_insert_with(Instant::now);
                if since.elapsed() >= terms.patience {
                    permit.check(Part::Drive).await?;
                    match take(cluster, &lease, last.as_ref()).await {
                        Ok(Some((guard, why))) => {
                            return Ok(Inherited { claim: drives(context, guard), why });
                        }
                        Ok(None) => {}
                        Err(error) if error.may_pass() => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Ok(driver) => (last, free_since) = (Some(driver), None),
            Err(error) if error.may_pass() => free_since = None,
            Err(error) => return Err(error.into()),
        }
        sleep(gap).await;
    }
}

/// Takes the Lease; returns the reason why it was free.
async fn take(
    cluster: &ClusterStore,
    lease: &ClusterLease,
    last: Option<&Driver>,
) -> Result<Option<(ClusterGuard, String)>, StoreError> {
    let why = why(cluster, last).await?;
    Ok(lease.try_acquire(Role::Once).await?.map(|guard| (guard, why)))
}

/// Describes the end of the process that drove before.
async fn why(cluster: &ClusterStore, last: Option<&Driver>) -> Result<String, StoreError> {
    Ok(match last {
        Some(Driver::Holder(holder)) => {
            let who = match holder.who {
                HolderKind::CertManager => "cert-manager's",
                HolderKind::Ours(_) => "another kubectl-acme's",
            };
            let lease = ClusterLease::new(cluster, &holder.namespace)?;
            let still = lease.written().await?.is_some_and(|name| name == holder.identity);
            let end = if still { "expired" } else { "was given back" };
            format!("{who} Lease in {} {end}, {} held it", holder.namespace, holder.identity)
        }
        Some(Driver::WithoutLease { pod }) => format!("Pod {pod} no longer runs"),
        Some(Driver::Unknown { .. } | Driver::Nobody) | None => {
            "no other controller drives".to_owned()
        }
    })
}
