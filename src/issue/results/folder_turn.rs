//! Turns of writing to a folder: one process writes, the others wait.

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

/// Longest wait of a write, also without a deadline: other processes lock a folder for a moment only.
const LONGEST_LOCK_WAIT: Duration = Duration::from_secs(10);
/// Shortest limit of the wait, so that results that come at the deadline are written, too.
const SHORTEST_LOCK_WAIT: Duration = Duration::from_secs(1);
/// Pause of a waiting write before it tries the lock again.
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Most folders that are written at once: each takes a thread, which keeps memory of its own.
const MAX_FOLDERS_AT_ONCE: usize = 16;

/// Limit of the time that a write waits for other processes that write to the same folder.
#[derive(Clone, Debug)]
pub struct WriteWait {
    limit: Duration,
    interrupted: Interrupted,
    threads: Arc<Semaphore>,
}

impl WriteWait {
    /// Builds the wait of a command that works until it is interrupted.
    pub fn new(interrupted: &Interrupted) -> Self {
        Self::of(LONGEST_LOCK_WAIT, interrupted)
    }

    fn of(limit: Duration, interrupted: &Interrupted) -> Self {
        let threads = Arc::new(Semaphore::new(MAX_FOLDERS_AT_ONCE));
        Self { limit, interrupted: interrupted.clone(), threads }
    }

    /// Waits until there is a thread for file work; the thread is given back when the permit is dropped.
    pub(super) async fn thread(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed; without a permit the work would be done all the same.
        self.threads.acquire().await.ok()
    }

    /// Signals that end the wait.
    pub fn interrupted(&self) -> &Interrupted {
        &self.interrupted
    }

    /// Builds the wait of a command that gives up at a deadline.
    pub fn until(deadline: Timestamp, interrupted: &Interrupted) -> Self {
        let left =
            Duration::try_from(deadline.duration_since(Timestamp::now())).unwrap_or_default();
        Self::of(left.clamp(SHORTEST_LOCK_WAIT, LONGEST_LOCK_WAIT), interrupted)
    }
}

/// Waits until no other process writes to a folder, such as `run` beside a command that watches it. A file system without
/// locks has few writers. Any reader of the folder may lock it, so the wait ends. The turn ends when the folder is closed.
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
                let message = format!("cannot write {}: {}", path.display(), describe_lock(file));
                return Err(Failure::new(FailureKind::Unexpected, message)
                    .hint("end that process, or write elsewhere: --out DIR"));
            }
            Err(TryLockError::WouldBlock) => {}
        }
        tokio::select! {
            () = sleep(LOCK_RETRY_PAUSE) => {}
            kind = patience.interrupted.wait() => {
                let (path, locked) = (path.display(), describe_lock(file));
                let message = format!("cannot write {path}: interrupted while {locked}");
                return Err(Failure::new(kind, message));
            }
        }
    }
}

/// Describes who holds the lock on a folder.
fn describe_lock(folder: &File) -> String {
    let holder = folder.metadata().ok().and_then(|folder| holder(&folder));
    let who = holder.map_or_else(|| "another process".to_owned(), |id| format!("process {id}"));
    format!("{who} holds a lock on that folder")
}

/// Returns the process that holds the lock, if the system lists locks: `1: FLOCK ADVISORY WRITE PID MAJOR:MINOR:INODE 0 EOF`.
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
