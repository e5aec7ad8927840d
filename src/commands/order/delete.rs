//! `order delete`: deletes orders with their challenges, after the clean-up of the answers.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration as StdDuration;

use jiff::{SignedDuration, Timestamp};

use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::look::{LookArgs, NameserverArgs};
use crate::context::flags::output::OutputArgs;
use crate::controllers::selection::Selection;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::dns::zone::Zones;
use crate::engine::{ControllerParts, Engine, Rules};
use crate::fetch::Fetcher;
use crate::input::{completers, lookup, target};
use crate::issue::flags::dns01::Dns01Args;
use crate::issue::flags::drive::lasting_http01;
use crate::issue::follow::supervise::removable;
use crate::issue::preflight::announce;
use crate::lead::{Claim, claim};
use crate::model::{Challenge, ChallengeType, Key, Kind};
use crate::permissions::Permissions;
use crate::permissions::task::{Places, Task};
use crate::probes::dns::DnsProbe;
use crate::reconcile::request::Approval;
use crate::reconcile::schedule::Limits;
use crate::solvers::Solver;
use crate::solvers::dns01::manual::is_a_persons;
use crate::solvers::http01::cluster::ClusterSolver;
use crate::solvers::http01::cluster::options::Options;
use crate::store::cluster::ClusterStore;
use crate::store::local::Access;
use crate::store::resources::typed;
use crate::store::{Scope, Store};

/// Maximum time for the clean-up.
const CLEAN_UP_TIMEOUT: SignedDuration = SignedDuration::from_secs(60);
const POLL_INTERVAL: StdDuration = StdDuration::from_millis(20);

/// Flags of `order delete`.
#[derive(Clone, Debug, clap::Args)]
pub struct DeleteOrderArgs {
    /// Names of orders
    #[arg(value_name = "NAME", required = true, add = completers::names(Kind::Order))]
    names: Vec<String>,
    /// Folder in which answers were written as files, to remove the files
    #[arg(long, value_name = "DIR")]
    http01_webroot: Option<PathBuf>,
    #[command(flatten)]
    dns01: Dns01Args,
    #[command(flatten)]
    nameservers: NameserverArgs,
}

/// Deletes orders and waits until their challenges are gone.
///
/// # Errors
/// Fails when there is no such order, or an answer cannot be taken down.
pub async fn run(args: DeleteOrderArgs, context: &Context) -> Result<(), Failure> {
    let names = args.names.iter().map(|name| target::name_of(Kind::Order, name));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let places =
        Places::of(context, args.http01_webroot.is_none()).with_direct(&args.dns01.dns01_webhook);
    let namespace = context.namespace();
    let store = context.store(Access::ReadWrite).await?;
    let task = if store.in_cluster() {
        Task::deletion(&names, namespace, &store, places).await?
    } else {
        Task::within(namespace, places)
    };
    let store = context.store_within(task.confinement(), Access::ReadWrite).await?;
    let permit = Permissions::new(context, task);
    let deadline = Timestamp::now().saturating_add(CLEAN_UP_TIMEOUT).unwrap_or(Timestamp::MAX);
    let claim = claim(context, deadline, &permit).await?;
    let mut orders = Vec::new();
    for name in &names {
        let key = target::key(Kind::Order, name, namespace);
        let record = lookup::read(&store, &key).await?;
        orders.push((key, record.uid().to_owned()));
    }
    announce::work(context, &store, &BTreeSet::new(), &[], &claim, None).await?;
    let engine = match claim {
        // The process that drives removes the answers.
        Claim::Watches(_) => None,
        Claim::Alone | Claim::Drives(_) => Some(engine(&args, &store, &orders, context).await?),
    };
    let deleted = delete(&args, &store, &orders, deadline, context).await;
    let stopped = match engine {
        Some(engine) => engine.stop(&claim.lost()).await,
        None => Ok(()),
    };
    deleted.and(stopped)
}

/// Deletes these orders, waits until their challenges are gone, and prints which hand-made records can be removed.
async fn delete(
    args: &DeleteOrderArgs,
    store: &Arc<dyn Store>,
    orders: &[(Key, String)],
    deadline: Timestamp,
    context: &Context,
) -> Result<(), Failure> {
    let by_hand = list_by_hand(store, orders).await?;
    let mut printer = context.printer(&OutputArgs::default());
    for (key, uid) in orders {
        store.delete(key).await?;
        wait_until_gone(store, key, uid, deadline).await?;
        printer.text(&format!("order.acme.cert-manager.io \"{}\" deleted\n", key.name.name))?;
    }
    if !by_hand.is_empty() {
        let probe = DnsProbe { zones: args.zones().await?.1 };
        for line in removable(&probe, by_hand.iter()).await {
            context.talk().line(&line);
        }
    }
    Ok(())
}

impl DeleteOrderArgs {
    /// Builds the fetcher and the zones for lookups.
    async fn zones(&self) -> Result<(Fetcher, Zones), Failure> {
        let look = LookArgs::default();
        let fetcher = look.fetcher().await?;
        let zones = self.nameservers.zones(&look, &fetcher).await?;
        Ok((fetcher, zones))
    }
}

/// Challenges of these orders whose records a person has made or was asked to make.
async fn list_by_hand(
    store: &Arc<dyn Store>,
    orders: &[(Key, String)],
) -> Result<Vec<Challenge>, Failure> {
    let mut all = Vec::new();
    for (key, uid) in orders {
        let scope = Scope::owned_by(&key.name.namespace, uid);
        let records = store.list(Kind::Challenge, &scope).await?.into_iter();
        let own = records.map(typed::<Challenge>).collect::<Result<Vec<_>, _>>()?;
        // A person is asked for the records of queued challenges together with the running challenge before them.
        let has_a_persons = own.iter().any(is_a_persons);
        all.extend(own.into_iter().filter(|challenge| {
            // The record of dns-persist-01 stays for the next order.
            if challenge.spec.kind == ChallengeType::DnsPersist01 {
                return false;
            }
            let is_queued = !challenge.status.presented && challenge.spec.solver.dns01.is_some();
            is_a_persons(challenge) || (has_a_persons && is_queued)
        }));
    }
    Ok(all)
}

/// Starts controllers for these orders only: the controllers clean up, and start no challenge.
async fn engine(
    args: &DeleteOrderArgs,
    store: &Arc<dyn Store>,
    orders: &[(Key, String)],
    context: &Context,
) -> Result<Engine, Failure> {
    let pods = |cluster: &ClusterStore| -> Arc<dyn Solver> {
        Arc::new(ClusterSolver::new(cluster.clone(), Options::default()))
    };
    let http01 = lasting_http01(args.http01_webroot.as_deref(), pods, context);
    let (fetcher, zones) = args.zones().await?;
    let rules = Rules {
        selection: Selection::only(orders.iter().map(|(key, _)| key.clone()).collect()),
        approval: Approval::Theirs,
        cluster_resource_namespace: context.global.cluster_resource_namespace.clone(),
        limits: Limits { max_in_flight: 0 },
        ..Rules::without_flags(store.in_cluster())
    };
    let dns01 = args.dns01.reach(context);
    let equipment = ControllerParts::new(Arc::clone(store), http01, fetcher, zones);
    Ok(Engine::start(ControllerParts { dns01, rules, ..equipment }))
}

async fn wait_until_gone(
    store: &Arc<dyn Store>,
    key: &Key,
    uid: &str,
    deadline: Timestamp,
) -> Result<(), Failure> {
    loop {
        let scope = Scope::owned_by(&key.name.namespace, uid);
        let left = store.list(Kind::Challenge, &scope).await?;
        let Some(first) = left.first() else { return Ok(()) };
        if Timestamp::now() >= deadline {
            let why = first.text("/status/reason");
            let message = format!("{key} is deleted, but {} is not cleaned up: {why}", first.key);
            return Err(Failure::new(FailureKind::Solver, message)
                .hint("the next order -f … or run goes on with the clean-up"));
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}
