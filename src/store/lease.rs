//! Who drives: a lock on the state folder that plays the part of the Lease in a cluster. The system frees it when its
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

/// The file that is locked, and says who holds it.
const FILE: &str = "driver.lock";
/// How often a waiting process looks again.
const POLL: Duration = Duration::from_millis(100);
/// Somebody who only looks who holds the lock shares it for a moment: so often, and after so long, it is tried again.
const GLANCES: u32 = 3;
const GLANCE: Duration = Duration::from_millis(2);

/// The lock of one state folder.
#[derive(Clone, Debug)]
pub struct LocalLease {
    path: PathBuf,
}

/// Proof that this process drives; gives the lock back when dropped.
#[derive(Debug)]
pub struct Guard {
    file: File,
}

/// How long somebody means to drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Everything, until it is stopped.
    Always,
    /// What it was given, once.
    Once,
}

impl Role {
    /// As it is written beside the holder.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::Once => "once",
        }
    }

    /// Reads what [`as_str`](Self::as_str) has written.
    pub(super) fn parse(word: &str) -> Option<Self> {
        [Self::Always, Self::Once].into_iter().find(|role| role.as_str() == word)
    }
}

/// Who drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// How long it means to, unless it has not told yet.
    pub role: Option<Role>,
    /// Process, unless it has not told yet.
    pub process: Option<u32>,
    /// Since when.
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
        for glance in 0..=GLANCES {
            match file.try_lock() {
                Ok(()) => {
                    sign(&mut file, now, role)
                        .map_err(|error| folder::unusable(&self.path, &error))?;
                    return Ok(Some(Guard { file }));
                }
                Err(TryLockError::WouldBlock) if glance < GLANCES => thread::sleep(GLANCE),
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
            tokio::time::sleep(POLL).await;
        }
    }

    /// Tells who holds the lock, if anybody does.
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

    /// The folder whose lock it is.
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
