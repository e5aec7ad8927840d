//! Local leadership: a lock on the state folder in place of the Lease in a cluster. The system frees the lock when its
//! holder dies, however it dies.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use jiff::Timestamp;

use super::error::StoreError;
use super::folder;
use crate::model::Time;

/// File that is locked, and that names the holder.
const FILE: &str = "driver.lock";
/// Interval between two polls of a waiting process.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Number of retries, with a pause before each: a process that only reads the holder shares the lock for a moment.
const LOCK_RETRIES: u32 = 3;
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(2);

/// The lock of one state folder.
#[derive(Clone, Debug)]
pub struct LocalLease {
    path: PathBuf,
}

/// Proof that this process drives; releases the lock when dropped.
#[derive(Debug)]
pub struct Guard {
    file: File,
}

/// Time for which a process means to drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Until the process is stopped, all resources.
    Always,
    /// Once, the given resources.
    Once,
}

impl Role {
    /// Word for the role, as written beside the holder.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Once => "once",
        }
    }

    /// Reads a word of [`as_str`](Self::as_str).
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Always, Self::Once].into_iter().find(|role| role.as_str() == word)
    }
}

/// Process that drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Role, unless the holder has not written it yet.
    pub role: Option<Role>,
    /// Process ID, unless the holder has not written it yet.
    pub process: Option<u32>,
    /// Time at which the lock was taken.
    pub since: Option<Time>,
}

impl LocalLease {
    /// Names the lock of a state folder; the folder is made when the lock is first taken.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { path: folder.into().join(FILE) }
    }

    /// Takes the lock unless another process, or another part of this one, holds it.
    pub fn try_acquire(&self, now: Timestamp, role: Role) -> Result<Option<Guard>, StoreError> {
        if let Some(folder) = self.path.parent() {
            folder::make(folder)?;
        }
        let mut file = folder::open_file(&self.path)?;
        for glance in 0..=LOCK_RETRIES {
            match file.try_lock() {
                Ok(()) => {
                    sign(&mut file, now, role)
                        .map_err(|error| folder::unusable(&self.path, &error))?;
                    return Ok(Some(Guard { file }));
                }
                Err(TryLockError::WouldBlock) if glance < LOCK_RETRIES => {
                    thread::sleep(LOCK_RETRY_PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => {
                    return Err(folder::unusable(&self.path, &error));
                }
            }
        }
        Ok(None)
    }

    /// Waits for the lock. Dropping the future gives up.
    pub async fn acquire(&self, role: Role) -> Result<Guard, StoreError> {
        loop {
            if let Some(guard) = self.try_acquire(Timestamp::now(), role)? {
                return Ok(guard);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns the holder of the lock, if there is one.
    pub fn holder(&self) -> Result<Option<Holder>, StoreError> {
        let Some(mut file) = folder::open_file_to_read(&self.path)? else { return Ok(None) };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let read = file.read_to_string(&mut text);
                read.map_err(|error| folder::unusable(&self.path, &error))?;
                Ok(Some(Holder::parse(&text)))
            }
            Err(TryLockError::Error(error)) => Err(folder::unusable(&self.path, &error)),
        }
    }

    /// Folder of the lock.
    pub fn folder(&self) -> Option<&Path> {
        self.path.parent()
    }
}

impl Holder {
    fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        Self {
            process: words.next().and_then(|word| word.parse().ok()),
            since: words.next().and_then(|word| word.parse::<Timestamp>().ok()).map(Time::new),
            role: words.next().and_then(Role::parse),
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Closing the file frees the lock as well; a name left in it would only mislead people.
        let _cleared = self.file.set_len(0);
    }
}

fn sign(file: &mut File, now: Timestamp, role: Role) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{} {} {}", process::id(), Time::new(now), role.as_str())
}
