//! Turns that come later: from somebody who drove and does not come back, and our own once more when it was lost.
//!
//! A command that watches goes on looking who drives, and takes the Lease once nobody does for 20 s (the terms of the
//! Lease change that). Whoever had the Lease before looks at nothing that was read before it was had again.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::{Instant, sleep};

use super::{Arbiter, Claim, Other, Turn, claim, drives};
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
use crate::store::cluster::lease_object::Who;
use crate::store::cluster::survey::Driver;
use crate::store::error::StoreError;
use crate::store::lease::{LocalLease, Role};

/// How often at least it is looked whether anybody drives.
const DRIVER_CHECK_PERIOD: Duration = Duration::from_secs(3);

/// The work is ours now.
#[derive(Debug)]
pub struct Inherited {
    /// As whom.
    pub claim: Claim,
    /// Why, in words.
    pub why: String,
}

/// Waits until nobody drives any more, and takes the turn from whoever had it. For ever, where that is not wished for.
///
/// # Errors
/// Fails when the store cannot be used, or when what driving needs is not permitted.
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

/// Takes a turn that was lost once more, or finds who has it now. A cluster that does not answer is waited for.
///
/// # Errors
/// Fails as [`claim`] does, but with what the cluster said last only when time is up.
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

/// Makes an attempt, and makes it again until the cluster does not fail it: one that has just come back answers some requests
/// and refuses others, for lack of what it has not read yet.
///
/// # Errors
/// Fails as the attempt does, with what the cluster said last once the deadline has passed, and when interrupted.
pub async fn once_the_cluster_answers<T>(
    what: &str,
    context: &Context,
    deadline: Timestamp,
    mut attempt: impl AsyncFnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut last = Failure::new(FailureKind::Cluster, "the cluster does not answer");
    loop {
        // A server that stands still answers nothing, not even no.
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

/// The end of whoever could not take a lost Lease again in time.
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
            return Ok(Inherited { claim: Claim::Drives(Turn::Local(guard)), why });
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

/// Takes the Lease, and tells why it was free.
async fn take(
    cluster: &ClusterStore,
    lease: &ClusterLease,
    last: Option<&Driver>,
) -> Result<Option<(ClusterGuard, String)>, StoreError> {
    let why = why(cluster, last).await?;
    Ok(lease.try_acquire(Role::Once).await?.map(|guard| (guard, why)))
}

/// What has become of whoever drove before.
async fn why(cluster: &ClusterStore, last: Option<&Driver>) -> Result<String, StoreError> {
    Ok(match last {
        Some(Driver::Holder(holder)) => {
            let who = match holder.who {
                Who::CertManager => "cert-manager's",
                Who::Ours(_) => "another kubectl-acme's",
            };
            let lease = ClusterLease::new(cluster, &holder.namespace)?;
            let still = lease.written().await?.is_some_and(|name| name == holder.identity);
            let end = if still { "expired" } else { "was given back" };
            format!("{who} Lease in {} {end}, {} held it", holder.namespace, holder.identity)
        }
        Some(Driver::WithoutLease { pod }) => format!("Pod {pod} runs no more"),
        Some(Driver::Unknown { .. } | Driver::Nobody) | None => "nobody else drives".to_owned(),
    })
}
