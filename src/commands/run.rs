//! `run`: the controllers in the foreground until interrupted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::StreamExt;
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::announce;
use super::claim::claim_everything;
use super::context::{Context, OutputArgs};
use super::drive::{DriveArgs, Engine, Equipment, types};
use super::failure::{Failure, Kind as FailureKind};
use super::needs::Task;
use super::out;
use super::permissions::Permit;
use super::provider_talk::talk;
use super::sweep::sweep_before_work;
use crate::cli;
use crate::controllers::selection::Selection;
use crate::model::common::is_true;
use crate::model::{Certificate, Key, Kind, ObjectName, Secret};
use crate::print::progress::Progress;
use crate::store::cluster::lease::GRACE;
use crate::store::local::Access;
use crate::store::resources::typed;
use crate::store::{Change, Scope, Store};

/// Flags of `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Write DIR/SECRETNAME/tls.crt and tls.key [default: out in the state folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// How challenges are answered
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Works until interrupted: issues, renews, and keeps the files up to date.
///
/// # Errors
/// Fails when another process drives, when port 80 cannot be had, and when interrupted.
pub async fn run(args: RunArgs, context: &mut Context) -> Result<(), Failure> {
    let store = context.store(Access::ReadWrite).await?;
    let permit = permit(&args, &store, context).await?;
    let claim = claim_everything(context, &permit).await?;
    announce::everything(context, &store).await?;
    context.talk().line("Ctrl-C ends it");
    if let Some(cluster) = context.cluster() {
        sweep_before_work(cluster, [""].into(), context).await;
    }
    let fetcher = args.drive.fetcher().await?;
    let stop = CancellationToken::new();
    let probe = args.drive.probe_pod.probe(fetcher.clone(), true, &stop, context)?;
    let store = context.at_hand(store);
    let equipment = Equipment {
        store: Arc::clone(&store),
        http01: args.drive.http01(context.cluster()).await?,
        dns01: args.drive.dns01.reach(context.cluster()),
        tls_alpn01: args.drive.tls_alpn01(),
        types: types(context.cluster()),
        zones: args.drive.zones(&fetcher).await?,
        fetcher,
        selection: Selection::all(),
        approval: args.drive.approval(),
        account_keys: context.account_keys(),
        cluster_resource_namespace: context.global.cluster_resource_namespace.clone(),
        limits: args.drive.slots.limits(),
        check_period: args.drive.dns01_check_retry_period.0,
    };
    let namespace = &equipment.cluster_resource_namespace;
    let (zones, resolver) = (equipment.zones.clone(), &equipment.fetcher.resolver);
    let dns01 = equipment.dns01.clone().providers(&store, zones, resolver, namespace);
    let talk = talk(Arc::clone(&store), dns01, context.printer(&OutputArgs::default()));
    let engine = Engine::start_looking(equipment, probe, stop);
    let out = context.out(args.out.as_deref())?;
    let mut progress = Progress::new(context.talk(), false);
    let lost = claim.lost();
    let (kind, why) = tokio::select! {
        ended = follow(&store, out.as_deref(), &mut progress) => {
            ended?;
            (FailureKind::Unexpected, "ended")
        }
        () = talk => (FailureKind::Unexpected, "ended"),
        kind = context.interrupted().wait() => (kind, "ended"),
        () = lost.cancelled() => (FailureKind::OwnedByAnother, "the Lease was lost"),
        () = engine.ended() => (FailureKind::Unexpected, "the controllers ended"),
    };
    if lost.is_cancelled() {
        engine.break_off(GRACE).await;
    } else {
        engine.stop().await?;
    }
    Err(Failure::new(kind, format!("{why}; everything so far is kept"))
        .hint(format!("go on with: {}", cli::again())))
}

/// What has to be permitted for work on everything.
async fn permit(
    args: &RunArgs,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<Permit, Failure> {
    if context.cluster().is_none() {
        return Ok(Permit::default());
    }
    let task = Task::on_everything(store, args.drive.places(context)).await?;
    Ok(Permit::new(context, task).of_run())
}

/// Tells what becomes of Certificates, and writes what was issued.
async fn follow(
    store: &Arc<dyn Store>,
    out: Option<&Path>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let mut changes = store.watch(Kind::Certificate, Scope::all());
    while let Some(change) = changes.next().await {
        let change = match change {
            Err(error) if error.may_pass() => continue,
            change => change?,
        };
        let records = match change {
            Change::Applied(record) => vec![record],
            Change::Resynced(records) => records,
            Change::Deleted(_) => Vec::new(),
        };
        for record in records {
            let certificate = typed::<Certificate>(record)?;
            let conditions = &certificate.status.conditions;
            let is_good = is_true(conditions, "Ready") && !is_true(conditions, "Issuing");
            if is_good {
                write(store, &certificate, out, progress).await?;
            } else if let Some(condition) = conditions.iter().find(|c| c.kind == "Issuing") {
                let name = certificate.name();
                progress
                    .line(&format!("Certificate {name}: {}", condition.message), Timestamp::now());
            }
        }
    }
    Ok(())
}

async fn write(
    store: &Arc<dyn Store>,
    certificate: &Certificate,
    out: Option<&Path>,
    progress: &mut Progress,
) -> Result<(), Failure> {
    let Some(out) = out else {
        progress.line(&format!("Certificate {}: up to date", certificate.name()), Timestamp::now());
        return Ok(());
    };
    let name = ObjectName::new(&certificate.metadata.namespace, &certificate.spec.secret_name);
    let Some(record) = store.get(&Key::new(Kind::Secret, name)).await? else { return Ok(()) };
    let secret = typed::<Secret>(record)?;
    let now = Timestamp::now();
    // A full disk must not end the controllers: the Secret is safe in the store.
    match out::write(out, &secret) {
        Ok(written) => progress.line(
            &format!(
                "Certificate {}: up to date in {}",
                certificate.name(),
                written.certificate.display()
            ),
            now,
        ),
        Err(failure) => {
            progress.line(&format!("Certificate {}: {failure}", certificate.name()), now);
        }
    }
    Ok(())
}
