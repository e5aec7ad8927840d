//! Working on some objects until each has ended: the controllers, watched.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::supervise::{End, Followed, Supervision};
use crate::commands::context::Context;
use crate::commands::drive::{DriveArgs, Engine, Equipment};
use crate::commands::failure::{Failure, Kind as FailureKind};
use crate::commands::local::Claim;
use crate::commands::renewal::look_anew;
use crate::controllers::selection::Selection;
use crate::fetch::Fetcher;
use crate::model::Key;
use crate::print::progress::Progress;
use crate::solvers::Solver;
use crate::store::Store;

/// So long the end of what is under way is awaited without a word.
const SILENCE: Duration = Duration::from_secs(1);

/// What is to be worked on, and with what.
#[derive(Debug)]
pub struct Job<'a> {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Whether we drive, or somebody else does already.
    pub claim: Claim,
    /// Flags of the solvers.
    pub drive: &'a DriveArgs,
    /// Solver and eyes of a rehearsal, in place of those that the flags name.
    pub rehearsal: Option<(Arc<dyn Solver>, Fetcher)>,
    /// Objects that may be worked on, with all that hangs on them.
    pub given: BTreeSet<Key>,
    /// Those whose end is awaited.
    pub open: BTreeMap<Key, Followed>,
    /// When this run began.
    pub started: Timestamp,
    /// When it gives up.
    pub deadline: Timestamp,
}

/// Works until every object has ended, time is up, or somebody interrupts.
///
/// # Errors
/// Fails when port 80 cannot be had, when the store fails, and when interrupted.
pub async fn work(job: Job<'_>, context: &Context) -> Result<BTreeMap<Key, End>, Failure> {
    if job.open.is_empty() {
        return Ok(BTreeMap::new());
    }
    let flags = job.rehearsal.is_none().then(|| context.flags());
    let engine = match job.claim {
        Claim::Watches => None,
        Claim::Drives(_) | Claim::Alone => {
            let (http01, fetcher) = match job.rehearsal {
                Some(means) => means,
                None => (job.drive.http01().await?, job.drive.fetcher().await?),
            };
            look_anew(&job.store, &job.given, job.started).await?;
            Some(Engine::start(Equipment {
                store: Arc::clone(&job.store),
                http01,
                fetcher,
                selection: Selection::only(job.given),
                cluster_resource_namespace: context.global.cluster_resource_namespace.clone(),
                limits: job.drive.limits(),
                check_period: job.drive.dns01_check_retry_period.0,
            }))
        }
    };
    let progress = Progress::new(context.talk(), std::io::stderr().is_terminal());
    let interrupted = context.interrupted().clone();
    let times = (job.started, job.deadline);
    let mut supervision =
        Supervision::new(job.store, engine.as_ref(), progress, interrupted, times, job.open);
    supervision.flags = flags;
    let watched = supervision.run().await;
    if let Some(engine) = engine {
        stop(engine, context).await?;
    }
    let (ends, signal) = watched?;
    match signal {
        None => Ok(ends),
        Some(kind) => Err(interrupted_failure(kind)),
    }
}

/// Stops the controllers; when the steps under way take their time, says what is waited for.
async fn stop(engine: Engine, context: &Context) -> Result<(), Failure> {
    let mut stopping = pin!(engine.stop());
    tokio::select! {
        ended = &mut stopping => return ended,
        () = tokio::time::sleep(SILENCE) => {}
    }
    context.talk().line("waiting for the requests under way; Ctrl-C once more leaves at once");
    stopping.await
}

fn interrupted_failure(kind: FailureKind) -> Failure {
    let words: Vec<String> = std::env::args().collect();
    Failure::new(kind, "interrupted; everything so far is kept")
        .hint(format!("go on with: {}", words.join(" ")))
}
