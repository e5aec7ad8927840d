//! Whose turn it is to write to a folder: one writes, the others wait.

use std::fs::{self, File, Metadata, TryLockError};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};

use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::disk::Folder;

/// How long a write waits when there is no deadline, and the longest that it ever does: others have a folder for a moment only.
const LONGEST_LOCK_WAIT: Duration = Duration::from_secs(10);
/// The shortest, so that results that came last are written, too.
const SHORTEST_LOCK_WAIT: Duration = Duration::from_secs(1);
/// How often a waiting write looks again.
const POLL: Duration = Duration::from_millis(50);
/// How many folders are written at once: each takes a thread, which keeps memory of its own.
const SIDE_BY_SIDE: usize = 16;

/// How long a write waits for others who write to the same folder.
#[derive(Clone, Debug)]
pub struct WriteWait {
    limit: Duration,
    interrupted: Interrupted,
    threads: Arc<Semaphore>,
}

impl WriteWait {
    /// The wait of a command that works until it is interrupted.
    pub fn new(interrupted: &Interrupted) -> Self {
        Self::of(LONGEST_LOCK_WAIT, interrupted)
    }

    fn of(limit: Duration, interrupted: &Interrupted) -> Self {
        let threads = Arc::new(Semaphore::new(SIDE_BY_SIDE));
        Self { limit, interrupted: interrupted.clone(), threads }
    }

    /// Waits until there is a thread for file work; it is given back when what is returned is dropped.
    pub(super) async fn thread(&self) -> Option<SemaphorePermit<'_>> {
        // Nobody closes it; without a permit the work would be done all the same.
        self.threads.acquire().await.ok()
    }

    /// Whether a signal came.
    pub fn interrupted(&self) -> &Interrupted {
        &self.interrupted
    }

    /// The wait of a command that gives up at a deadline.
    pub fn until(deadline: Timestamp, interrupted: &Interrupted) -> Self {
        let left =
            Duration::try_from(deadline.duration_since(Timestamp::now())).unwrap_or_default();
        Self::of(left.clamp(SHORTEST_LOCK_WAIT, LONGEST_LOCK_WAIT), interrupted)
    }
}

/// Waits until nobody else writes to a folder, such as `run` beside a command that watches it; where the file system knows no
/// locks, the writers are few. Whoever may read the folder may lock it, so this ends. The turn ends when the folder is closed.
pub(super) async fn wait_for_turn(
    path: &Path,
    folder: &Folder,
    patience: &WriteWait,
) -> Result<(), Failure> {
    let file = folder.handle();
    let end = Instant::now() + patience.limit;
    loop {
        match file.try_lock() {
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() >= end => {
                let message = format!("cannot write {}: {}", path.display(), locked(file));
                return Err(Failure::new(FailureKind::Unexpected, message)
                    .hint("end what holds it, or write elsewhere: --out DIR"));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::select! {
            () = sleep(POLL) => {}
            kind = patience.interrupted.wait() => {
                let (path, locked) = (path.display(), locked(file));
                let message = format!("cannot write {path}: interrupted while {locked}");
                return Err(Failure::new(kind, message));
            }
        }
    }
}

/// Says who holds the lock on a folder, in words.
fn locked(folder: &File) -> String {
    let holder = folder.metadata().ok().and_then(|folder| holder(&folder));
    let who = holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
    format!("{who} holds a lock on that folder")
}

/// The process that holds the lock, where the system lists locks: `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`.
fn holder(folder: &Metadata) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let inode = folder.ino().to_string();
    let mut locks = locks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    locks.find_map(|lock| match lock[..] {
        [_, "FLOCK", _, _, process, place, ..] if place.rsplit(':').next() == Some(&*inode) => {
            // Processes outside our own view of them have the number 0.
            process.parse().ok().filter(|id| *id != 0)
        }
        _ => None,
    })
}
