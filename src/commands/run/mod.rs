//! `run`: runs the controllers in the foreground until interrupted.
//!
//! `-n` is refused: `run` works in all namespaces, while cert-manager's flag of that name limits the controllers to one.

pub(crate) mod files_to_write;
pub mod follow;
pub(crate) mod next_renewal;
pub mod obstacles;
pub mod provider_talk;
pub mod reasons;
pub(crate) mod reported;

use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use self::follow::{FileWriting, Files, follow};
use self::provider_talk::talk;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::engine::{ControllerParts, Engine, ProcessMemory, Rules};
use crate::hints::invocation;
use crate::issue::asking::asking_kinds;
use crate::issue::flags::drive::DriveArgs;
use crate::issue::flags::on_issued::OnIssuedArgs;
use crate::issue::preflight::announce;
use crate::issue::results::folder_turn::WriteWait;
use crate::lead::claim_everything;
use crate::lead::stopping::{self, Stopping, say_stopped};
use crate::lead::sweep::sweep_before_work;
use crate::model::Kind;
use crate::model::order_budget::Allowance;
use crate::permissions::Permissions;
use crate::permissions::task::Task;
use crate::print::progress::Progress;
use crate::store::Store;
use crate::store::local::Access;

/// Flags of `run`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// Write DIR/SECRETNAME/tls.crt and tls.key
    ///
    /// Default with --local: out in the state folder; in a cluster nothing is written.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Command to run after an issuance
    #[command(flatten)]
    pub on_issued: OnIssuedArgs,
    /// Flags of the work
    #[command(flatten)]
    pub drive: DriveArgs,
}

/// Works until interrupted: issues, renews, and keeps the files up to date.
///
/// # Errors
/// Fails when another process drives, when port 80 cannot be had, and when interrupted.
pub async fn run(args: RunArgs, context: &mut Context) -> Result<(), Failure> {
    match work(args, context).await {
        // Interrupted while `work` waited for the lead or for a server.
        Err(Failure { kind, message, .. }) if is_stop(kind) && !message.is_empty() => {
            Err(say_stopped(kind, context))
        }
        ended => ended,
    }
}

async fn work(args: RunArgs, context: &mut Context) -> Result<(), Failure> {
    context.global.cluster.terms = args.drive.lease.terms()?;
    // A namespace in the environment may be meant for other commands.
    if let Some(namespace) =
        context.global.namespace.as_ref().filter(|_| invocation::current().is_given_namespace())
    {
        let why = format!("run works in every namespace: -n {namespace} would limit nothing");
        return Err(Failure::usage(why)
            .hint("leave -n out; order -f works only on the objects of a manifest"));
    }
    let out = context.out(args.out.as_deref())?;
    let on_issued = args.on_issued.chosen(out.as_deref())?;
    let store = context.store(Access::ReadWrite).await?;
    let asking = asking_kinds(&store, context).await?;
    let permit = permit(&args, &store, &asking, context).await?;
    let claim = claim_everything(context, &permit).await?;
    announce::everything(context, &store, &claim, &args.drive).await?;
    context.talk().line("Ctrl-C ends this command");
    sweep_before_work([""].into(), context).await;
    let fetcher = args.drive.fetcher().await?;
    let stop = CancellationToken::new();
    let probe = args.drive.probe_pod.probe(fetcher.clone(), true, &stop, context)?;
    let store = context.at_hand(store);
    let http01 = args.drive.http01(context).await?;
    let by_flags = args.drive.equipment(Arc::clone(&store), http01, fetcher, context).await?;
    let asking = (asking, args.drive.ingress_shim.defaults());
    let memory = ProcessMemory::new(Allowance::Standing);
    let rules = Rules { memory, asking, ..by_flags.rules };
    let equipment = ControllerParts { rules, ..by_flags };
    let namespace = &equipment.rules.cluster_resource_namespace;
    let (zones, resolver) = (equipment.zones.clone(), &equipment.fetcher.resolver);
    let dns01 = equipment.dns01.clone().providers(&store, zones, resolver, namespace);
    let talk = talk(Arc::clone(&store), dns01, context.printer(&OutputArgs::default()));
    let patience = WriteWait::new(context.interrupted());
    let grace = context.global.cluster.terms.lease.grace();
    let engine = Engine::start_looking(equipment, probe, stop).with_grace(grace);
    let place = FileWriting { patience: &patience, command: on_issued.as_ref() };
    let backoff = args.drive.certificates.options().backoff;
    let files = Files::new(&store, out.as_deref().map(|out| (out, place)));
    let mut files = files.with_backoff(backoff);
    let mut progress = Progress::lines(context.talk());
    let told = obstacles::tell(engine.obstacles(), Progress::lines(context.talk()));
    let beside = Progress::lines(context.talk());
    let reasons = reasons::tell(&store, engine.obstacles(), beside);
    let lost = claim.lost();
    let ended = tokio::select! {
        ended = follow(&mut files, &mut progress) => {
            ended.map(|()| (FailureKind::Unexpected, "ended"))
        }
        () = talk => Ok((FailureKind::Unexpected, "ended")),
        () = reasons => Ok((FailureKind::Unexpected, "ended")),
        () = told => Ok((FailureKind::Unexpected, "the controllers ended")),
        kind = context.interrupted().wait() => Ok((kind, "ended")),
        () = lost.cancelled() => Ok((FailureKind::OwnedByAnother, "the Lease was lost")),
        () = engine.ended() => Ok((FailureKind::Unexpected, "the controllers ended")),
    };
    let ended = ended.map(|(kind, why)| {
        let failure = Failure::new(kind, format!("{why}; everything so far is kept"));
        let failure = failure.hint(invocation::current().go_on());
        if is_stop(kind) { say_stopped(kind, context) } else { failure }
    });
    files.finish(&mut progress).await;
    let is_interrupted = ended.as_ref().is_ok_and(|failure| failure.message.is_empty());
    let why = if is_interrupted { Stopping::BySignal } else { Stopping::ByFault };
    let stopped = stopping::stop(engine, &lost, why, context).await;
    let failure = ended?;
    stopped?;
    Err(failure)
}

/// Returns whether a signal ended `run`.
fn is_stop(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Interrupted | FailureKind::Terminated)
}

/// Permissions that work on all objects needs.
async fn permit(
    args: &RunArgs,
    store: &Arc<dyn Store>,
    asking: &[Kind],
    context: &Context,
) -> Result<Permissions, Failure> {
    if !store.in_cluster() {
        return Ok(Permissions::default());
    }
    let task = Task::on_everything(store, args.drive.places(context), asking).await?;
    Ok(Permissions::new(context, task).of_run())
}
