//! Work on some objects until each has ended: starts the controllers and watches the objects.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::answer_removal::await_removal_of_answers;
use super::supervise::{
    FollowEnd, ManualRecords, ManualWatch, OtherDriver, Supervision, SupervisionSetup,
};
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::duration;
use crate::context::flags::output::{OutputArgs, TimelineChoice};
use crate::context::flags::report::ReportChoice;
use crate::controllers::selection::Selection;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::engine::{ControllerParts, Engine, ProcessMemory, Rules, account_keys};
use crate::input::completers;
use crate::issue::flags::drive::DriveArgs;
use crate::issue::flags::on_issued::OnIssuedArgs;
use crate::issue::manual::ManualArgs;
use crate::issue::plan::leftovers;
use crate::issue::plan::renewal::look_anew;
use crate::issue::plan::required_types::required_types;
use crate::issue::preflight::public_dns::{self, CheckClients};
use crate::issue::rehearsal::RehearsalSolvers;
use crate::issue::tracked::{End, Tracked, WorkResult};
use crate::lead::Claim;
use crate::lead::stopping::{Stopping, say_interrupted, stop};
use crate::lead::sweep::sweep_before_work;
use crate::lead::takeover::{Inherited, inherit, once_the_cluster_answers, regain};
use crate::model::order_budget::Allowance;
use crate::model::{ChallengeType, Duration, Key};
use crate::permissions::Permissions;
use crate::print::age::short;
use crate::print::event_log::EventLog;
use crate::print::progress::Progress;
use crate::probes::dns::DnsProbe;
use crate::reconcile::order::required::Types;
use crate::reconcile::request::Approval;
use crate::store::Store;

/// Flags of every command that works until Certificates have ended.
#[derive(Clone, Debug, clap::Args)]
pub struct WorkArgs {
    /// Give up after this time
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration, help_heading = "How to issue")]
    pub timeout: Duration,
    /// Flags that decide how challenges are answered
    #[command(flatten)]
    pub drive: DriveArgs,
    /// Flags of DNS-01 records that a person makes
    #[command(flatten)]
    pub manual: ManualArgs,
    /// Write DIR/SECRETNAME/tls.crt and tls.key
    ///
    /// Default with --local: out in the state folder; in a cluster nothing is written.
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Write DIR/SECRETNAME/secret.yaml, too: the Secret as a manifest that kubectl applies to any cluster
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub out_secret: bool,
    /// Command that is run for each issued certificate
    #[command(flatten)]
    pub on_issued: OnIssuedArgs,
    /// Show a timeline of each Certificate
    #[arg(
        long,
        value_name = "WHEN",
        default_value = "auto",
        value_enum,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub timeline: TimelineChoice,
    /// Also write every step as a line of JSON
    ///
    /// FILE is a path, or the number of an open file descriptor.
    #[arg(long, hide_short_help = true, value_name = "FILE", help_heading = "Output")]
    pub events: Option<String>,
    /// Also write a CI report: github, junit=FILE, sarif=FILE, markdown=FILE
    ///
    /// FORMAT may also be none; a FILE of - is standard output. Repeatable, or with commas. On GitHub Actions
    /// (GITHUB_ACTIONS=true) the default is github: annotations on stderr, with file and line of each manifest, and a page
    /// in the summary of the step.
    #[arg(
        long,
        value_name = "FORMAT",
        value_delimiter = ',',
        add = completers::reports(),
        help_heading = "Output"
    )]
    pub report: Vec<ReportChoice>,
    /// Flags of the output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Objects to work on, and the means of the work.
#[derive(Debug)]
pub struct Job<'a> {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Claim that says whether this process drives, or another process does already.
    pub claim: Claim,
    /// Permissions of this process, used if it gets the turn.
    pub permit: Permissions,
    /// Flags of the solvers.
    pub drive: &'a DriveArgs,
    /// Solvers and fetcher of a rehearsal, in place of those that the flags name.
    pub rehearsal: Option<RehearsalSolvers>,
    /// Whether failed names are left out, which needs the CA's own answer for each name.
    pub leaves_names_out: bool,
    /// Whether a person makes the records of DNS-01.
    pub by_hand: bool,
    /// Objects that may be worked on, with all objects below them.
    pub given: BTreeSet<Key>,
    /// Objects whose end is awaited.
    pub open: BTreeMap<Key, Tracked>,
    /// Start of this run.
    pub started: Timestamp,
    /// Event log that gets every step, for programs.
    pub events: EventLog,
    /// Deadline of this run.
    pub deadline: Timestamp,
}

/// Works until every object has ended, time is up, or a signal comes; stops when port 80 cannot be bound, and when the
/// store fails.
pub async fn work(job: Job<'_>, context: &Context) -> WorkResult {
    let mut ends = BTreeMap::new();
    let stopped = Box::pin(follow(job, context, &mut ends)).await.err();
    WorkResult { ends, stopped, untidy: None }
}

async fn follow(
    mut job: Job<'_>,
    context: &Context,
    ended_so: &mut BTreeMap<Key, End>,
) -> Result<(), Failure> {
    if let Claim::Drives(_) = job.claim {
        let namespaces = job.given.iter().map(|key| key.name.namespace.as_str());
        let namespaces = namespaces.filter(|namespace| !namespace.is_empty()).collect();
        sweep_before_work(namespaces, context).await;
    }
    if job.open.is_empty() {
        return Ok(());
    }
    let is_kept = job.rehearsal.is_none();
    let store = Arc::clone(&job.store);
    let open = std::mem::take(&mut job.open);
    let mut supervision = Supervision::new(SupervisionSetup {
        store: Arc::clone(&store),
        progress: progress(&job, context),
        interrupted: context.interrupted().clone(),
        times: (job.started, job.deadline),
        standstill: context.global.cluster.terms.standstill(),
        is_kept,
        by_hand: by_hand(&job, &open).await?,
        approval: job.drive.approval(),
        open,
    });
    job.drive.probe_pod.say_whether_it_counts(&job.claim, context);
    let mut engine = None;
    // When a lost Lease is held again, new controllers start with the same memory.
    let memory = ProcessMemory::new(Allowance::OneShot);
    let mut is_first_turn = true;
    let ended = loop {
        if is_kept {
            // Only now: objects that were read before this process had the turn may be old.
            job.store = context.at_hand(Arc::clone(&store));
        }
        supervision.begin_turn(&job.store, job.claim.is_cert_manager());
        if let Claim::Drives(_) | Claim::Alone = job.claim {
            engine = if is_first_turn {
                begin(&mut job, &mut supervision, &memory, context).await?
            } else {
                begin_again(&mut job, &mut supervision, &memory, context).await?
            };
        } else if !job.store.in_cluster() {
            look_anew(&job.store, &job.given, job.started).await?;
        }
        is_first_turn = false;
        let lost = job.claim.lost();
        let watched = tokio::select! {
            watched = supervision.run(engine.as_ref(), other_driver(&job, context)) => watched,
            () = lost.cancelled() => Ok(FollowEnd::Lost),
        };
        let (claim, why) = match watched {
            Ok(FollowEnd::Ended(ends)) => break Ok(ends),
            Ok(FollowEnd::Interrupted(kind)) => break Err(Stopped::Interrupted(kind)),
            Err(failure) => break Err(Stopped::Failed(failure)),
            Ok(FollowEnd::Inherited(Inherited { claim, why })) => (claim, why),
            Ok(FollowEnd::Lost) => {
                context.talk().line("the Lease was lost: the work under way is stopped");
                if let Some(engine) = engine.take() {
                    engine.stop(&lost).await?;
                }
                context.talk().line("work is paused until it is settled which process drives");
                let claim = regain(context, job.deadline, &job.permit).await?;
                (claim, "the Lease was lost before".to_owned())
            }
        };
        context.talk().line(&format!("driver: {} ({why})", claim.driver()));
        job.claim = claim;
    };
    let interrupted = match &ended {
        Err(Stopped::Interrupted(kind)) => Some(announce_interruption(*kind, is_kept, context)),
        Err(Stopped::Failed(_)) | Ok(_) => None,
    };
    if let Some(engine) = engine {
        let lost = job.claim.lost();
        if let Ok(ends) = &ended {
            await_removal_of_answers(&job.store, ends, &lost, context).await;
        }
        let why = match &ended {
            _ if interrupted.is_some() => Stopping::BySignal,
            Ok(_) => Stopping::AllEnded,
            Err(_) => Stopping::ByFault,
        };
        let stopped = stop(engine, &lost, why, context).await;
        if stopped.is_err() || ended.is_err() {
            ended_so.extend(supervision.take_ends());
        }
        stopped?;
    }
    for line in supervision.removable().await? {
        context.talk().line(&line);
    }
    match (ended, interrupted) {
        (_, Some(failure)) | (Err(Stopped::Failed(failure)), None) => Err(failure),
        (Err(Stopped::Interrupted(kind)), None) => Err(Failure::interrupted(kind)),
        (Ok(ends), None) => {
            ended_so.extend(ends);
            Ok(())
        }
    }
}

/// Why the work stopped before every object had ended.
enum Stopped {
    Interrupted(FailureKind),
    Failed(Failure),
}

/// Builds the progress display, with the time limit of the work.
fn progress(job: &Job<'_>, context: &Context) -> Progress {
    let is_terminal = std::io::stderr().is_terminal();
    let timeout = short(job.deadline.duration_since(job.started));
    Progress::new(context.talk(), is_terminal, context.talk_colour())
        .limited(job.started, format!("{timeout} (--timeout)"))
        .with_events(job.events.clone())
}

/// Prints that the work was interrupted, and how to go on if the work is kept.
fn announce_interruption(kind: FailureKind, is_kept: bool, context: &Context) -> Failure {
    say_interrupted(&interruption(kind, is_kept), context)
}

/// Returns the failure that a signal means for the work.
pub fn interruption(kind: FailureKind, is_kept: bool) -> Failure {
    if is_kept {
        Failure::interrupted(kind)
    } else {
        Failure::new(kind, "interrupted; nothing is kept of a rehearsal")
    }
}

/// Returns the other process that drives, if this process only watches.
fn other_driver<'a>(job: &'a Job<'_>, context: &'a Context) -> Option<OtherDriver<'a>> {
    let Claim::Watches(other) = &job.claim else { return None };
    Some(OtherDriver { other, turn: Box::pin(inherit(context, &job.permit, other)) })
}

/// Starts the controllers of a later turn once the cluster answers; `None` if the turn is lost meanwhile.
async fn begin_again(
    job: &mut Job<'_>,
    supervision: &mut Supervision,
    memory: &ProcessMemory,
    context: &Context,
) -> Result<Option<Engine>, Failure> {
    let (deadline, lost) = (job.deadline, job.claim.lost());
    let start = async || begin(job, supervision, memory, context).await;
    tokio::select! {
        begun = once_the_cluster_answers("go on", context, deadline, start) => begun,
        () = lost.cancelled() => Ok(None),
    }
}

/// Starts the controllers for the objects that are ours to issue; other objects end here. `None` if no object is left.
async fn begin(
    job: &mut Job<'_>,
    supervision: &mut Supervision,
    memory: &ProcessMemory,
    context: &Context,
) -> Result<Option<Engine>, Failure> {
    if job.store.in_cluster() {
        for (key, failure) in
            leftovers::to_cert_manager(&job.store, supervision.open().keys()).await?
        {
            job.given.remove(&key);
            supervision.leave(&key, failure);
        }
    }
    if supervision.open().is_empty() {
        return Ok(None);
    }
    look_anew(&job.store, &job.given, job.started).await?;
    let is_kept = job.rehearsal.is_none();
    let asked = required_types(&job.store, &job.given, supervision.open()).await?;
    let (http01, rehearsed, fetcher) = match job.rehearsal.take() {
        Some(RehearsalSolvers { http01, tls_alpn01, memory_zone, fetcher }) => {
            (http01, Some((tls_alpn01, memory_zone)), fetcher)
        }
        None => (
            job.drive.http01_for(&asked, job.store.in_cluster(), context).await?,
            None,
            job.drive.fetcher().await?,
        ),
    };
    let (probe_pod, stop) = (&job.drive.probe_pod, CancellationToken::new());
    let probe = probe_pod.probe(fetcher.clone(), is_kept, &stop, context)?;
    let store = Arc::clone(&job.store);
    let by_flags = job.drive.equipment(store, http01, fetcher, context).await?;
    let rules = Rules {
        selection: Selection::only(job.given.clone()),
        memory: memory.clone(),
        ..by_flags.rules
    };
    let dns01 = by_flags.dns01.by_hand(job.by_hand);
    let mut equipment = ControllerParts { dns01, rules, ..by_flags };
    if let Some((tls_alpn01, memory_zone)) = rehearsed {
        // No other process knows the store of a rehearsal, uses its keys, or approves its requests.
        (equipment.tls_alpn01, equipment.memory_zone) = (tls_alpn01, memory_zone);
        equipment.rules.account_keys = account_keys(false);
        equipment.rules.approval = Approval::Ours;
    }
    if equipment.rules.types == Types::All && asked.contains(&ChallengeType::TlsAlpn01) {
        equipment.tls_alpn01.open().await?;
    }
    if is_kept && !job.leaves_names_out {
        let due = supervision.open().iter().filter(|(_, tracked)| tracked.is_due());
        let due: Vec<Key> = due.map(|(key, _)| key.clone()).collect();
        let ControllerParts { clients, fetcher, .. } = &equipment;
        let means = CheckClients { clients, fetcher, deadline: job.deadline };
        let printer = context.printer(&OutputArgs::default());
        for (key, failure) in public_dns::check(&due, &job.store, means, &printer).await? {
            job.given.remove(&key);
            supervision.leave(&key, failure);
        }
        equipment.rules.selection = Selection::only(job.given.clone());
    }
    let grace = context.global.cluster.terms.lease.grace();
    Ok(Some(Engine::start_looking(equipment, probe, stop).with_grace(grace)))
}

/// Returns the watcher of records made by hand: all records, or persistent ones, which need no flag with a local store.
async fn by_hand(
    job: &Job<'_>,
    open: &BTreeMap<Key, Tracked>,
) -> Result<Option<ManualWatch>, Failure> {
    let hands = if job.by_hand {
        ManualRecords::All
    } else if !job.store.in_cluster()
        && required_types(&job.store, &job.given, open)
            .await?
            .contains(&ChallengeType::DnsPersist01)
    {
        ManualRecords::Persistent
    } else {
        return Ok(None);
    };
    let fetcher = job.drive.fetcher().await?;
    let probe = DnsProbe { zones: job.drive.zones(&fetcher).await? };
    let limits = job.drive.slots.limits();
    Ok(Some(ManualWatch::new(probe, limits, hands, &job.store, open.keys()).await?))
}
