//! `wait`: waits until objects reach a goal, or can no longer reach it; read-only.

pub mod goal;
pub mod named_objects;

use std::sync::Arc;
use std::time::Duration as StdDuration;

use futures_util::StreamExt as _;
use jiff::{SignedDuration, Timestamp};
use tokio::time::{sleep, timeout};

use self::goal::{WaitGoal, WaitState};
use self::named_objects::NamedObjects;
use crate::context::failure::Failure;
use crate::context::flags::duration;
use crate::context::flags::output::OutputArgs;
use crate::context::{Context, store_when_there};
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::input::completers;
use crate::input::selector::LabelSelector;
use crate::known::StoredFinding;
use crate::lead;
use crate::listing::changes::{self, may_be_left_out, others};
use crate::model::{Duration, Key, Record};
use crate::print::columns::{Namespaces, qualified_name};
use crate::print::{Group, Printer, Shape};
use crate::store::Store;
use crate::store::local::Access;

/// Maximum time without a running controller on a state folder: time for a controller to start before the wait fails.
const IDLE_MAX: SignedDuration = SignedDuration::from_secs(5);
/// Interval between checks without a change: some facts, such as the time named by a CA, come without an event.
const POLL_INTERVAL: StdDuration = StdDuration::from_secs(1);

/// Flags of `wait`.
#[derive(Debug, clap::Args)]
pub struct WaitArgs {
    /// KIND/NAME…, KIND NAME…, or KIND with --all or -l
    #[arg(required = true, value_name = "KIND/NAME", add = completers::objects())]
    pub objects: Vec<String>,
    /// Goal: condition=NAME[=STATUS], issued, create, delete or jsonpath='{.PATH}'[=VALUE]
    ///
    /// issued is a Certificate that is ready and not being issued again, an Order or a Challenge that is valid, or an issuer
    /// with its account. If the goal can no longer be reached, the command ends at once with the cause.
    #[arg(long = "for", value_name = "GOAL")]
    pub goal: WaitGoal,
    /// Give up after this time; 0 checks once
    ///
    /// With --local the command also ends when no controller has run on the state folder for 5 s.
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration)]
    pub timeout: Duration,
    /// Every object of the kind
    #[arg(long)]
    pub all: bool,
    /// Only objects with these labels, such as app=web
    #[arg(long, short = 'l', value_name = "LABELS", conflicts_with = "all")]
    pub selector: Option<LabelSelector>,
    /// Flags of the output
    #[command(flatten)]
    pub output: OutputArgs,
}

/// Runs `wait`.
///
/// # Errors
/// Fails with the lowest exit code of all objects: at once if an object can no longer reach the goal, with 13 if no
/// controller runs on the state folder, with 124 when time is up.
pub async fn run(args: WaitArgs, context: &mut Context) -> Result<(), Failure> {
    let deadline = Timestamp::now().saturating_add(args.timeout.0).unwrap_or(Timestamp::MAX);
    let store = match args.goal {
        // The state folder may be made together with the object.
        WaitGoal::Created => {
            match timeout(args.timeout.unsigned(), store_when_there(context)).await {
                Ok(store) => store?,
                Err(_) => context.store(Access::ReadOnly).await?,
            }
        }
        _ => context.store(Access::ReadOnly).await?,
    };
    let store = context.at_hand(store);
    let named = NamedObjects {
        words: &args.objects,
        all: args.all,
        selector: args.selector.as_ref(),
        namespace: context.namespace(),
    };
    let mut open = named.keys(&args.goal, &store).await?;
    if open.is_empty() {
        return Err(Failure::new(FailureKind::Unexpected, "no object was found to wait for"));
    }
    let mut printer = context.printer(&args.output);
    let namespace = context.namespace().to_owned();
    let mut changes = changes::of_the_six(&store, Some(&namespace));
    let roots = open.clone();
    let mut failures: Vec<(Key, Failure)> = Vec::new();
    let mut is_told = false;
    let mut idle_since = None;
    loop {
        let is_last = Timestamp::now() >= deadline;
        let mut waiting = Vec::new();
        for key in std::mem::take(&mut open) {
            match args.goal.judge(&store, &key, deadline).await? {
                WaitState::Met(record) => print(&mut printer, &key, record.as_deref(), context)?,
                WaitState::Unreachable(failure) => failures.push((key, *failure)),
                WaitState::Waiting(why) if is_last => {
                    failures.push((key.clone(), timeout_failure(&args, &key, why)));
                }
                WaitState::Waiting(_) => waiting.push(key),
            }
        }
        open = waiting;
        if open.is_empty() || printer.is_closed() {
            break;
        }
        if args.goal != WaitGoal::Deleted
            && (!is_told || !store.in_cluster())
            && lead::is_driven(context).await.is_ok_and(|is_driven| !is_driven)
        {
            if !std::mem::replace(&mut is_told, true) {
                printer.note(lead::NO_CONTROLLER);
            }
            // In a cluster a controller starts by itself; other programs may create objects.
            let since = *idle_since.get_or_insert_with(Timestamp::now);
            let is_started = Timestamp::now().duration_since(since) < IDLE_MAX;
            if !store.in_cluster() && args.goal != WaitGoal::Created && !is_started {
                failures.extend(std::mem::take(&mut open).into_iter().map(|key| {
                    let failure = idle_failure(&args, &key);
                    (key, failure)
                }));
                break;
            }
        } else {
            (is_told, idle_since) = (true, None);
        }
        let left = deadline.duration_since(Timestamp::now());
        let pause = StdDuration::try_from(left).unwrap_or_default().min(POLL_INTERVAL);
        tokio::select! {
            change = changes.next() => if let Some((kind, Err(error))) = change {
                let root = roots.iter().find(|root| root.kind == kind);
                if may_be_left_out(kind, root, &error) {
                    changes = others(changes, kind);
                } else if !error.may_pass() {
                    return Err(error.into());
                }
            },
            () = sleep(pause) => {}
            kind = context.interrupted().wait() => return Err(Failure::silent(kind)),
        }
    }
    conclude(failures, &printer, &store, context).await
}

/// Prints that an object has reached the goal, in kubectl's words, or prints the object for programs.
fn print(
    printer: &mut Printer,
    key: &Key,
    record: Option<&Record>,
    context: &Context,
) -> Result<(), Failure> {
    match record {
        Some(record) if !printer.format().is_for_people() => {
            let group = [Group { kind: key.kind, objects: vec![&record.object] }];
            printer.resources(&group, Shape::One, Namespaces::Hidden, context.now())?;
        }
        Some(record) => {
            let name = qualified_name(&record.object);
            printer.text(&format!("{name} condition met\n"))?;
        }
        None if printer.format().is_for_people() => {
            let name = format!("{}.{}/{}", key.kind.singular(), key.kind.group(), key.name.name);
            printer.text(&format!("{name} condition met\n"))?;
        }
        None => {}
    }
    Ok(())
}

/// Failure if no controller runs on the state folder.
fn idle_failure(args: &WaitArgs, key: &Key) -> Failure {
    let message = format!("cannot wait for {key} {}: {}", args.goal.words(), lead::NO_CONTROLLER);
    Failure::new(FailureKind::Person, message).about(key)
}

/// Failure when time is up.
fn timeout_failure(args: &WaitArgs, key: &Key, why: Option<String>) -> Failure {
    let (goal, timeout) = (args.goal.words(), args.timeout);
    let why = why.map(|why| format!(": it waits for {why}")).unwrap_or_default();
    let message = format!("timed out after {timeout} waiting for {key} {goal}{why}");
    Failure::new(FailureKind::Timeout, message).about(key).late()
}

/// Prints each failure with its cause; returns the lowest exit code.
async fn conclude(
    failures: Vec<(Key, Failure)>,
    printer: &Printer,
    store: &Arc<dyn Store>,
    context: &Context,
) -> Result<(), Failure> {
    for (key, failure) in &failures {
        printer.error(&failure.message, &failure.hints);
        if let Some(known) = StoredFinding::of(store, key, context.now()).await {
            printer.note(&known.line());
        }
    }
    let all: Vec<Failure> = failures.into_iter().map(|(_, failure)| failure).collect();
    let lowest = all.iter().map(|failure| failure.kind).min_by_key(|kind| kind.exit_code());
    match (lowest, Failure::of_all(&all)) {
        (Some(kind), Some(told)) => Err(Failure { kind, ..told }),
        _ => Ok(()),
    }
}
