//! Whose turn it is on this machine: the lock of the state folder.

use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;

use super::context::{Context, OutputArgs};
use super::failure::{Failure, Kind};
use crate::store::lease::{Guard, LocalLease, Role};

/// How often a waiting process looks again.
const POLL: Duration = Duration::from_millis(100);

/// How this process may work on a state folder.
#[derive(Debug)]
pub enum Claim {
    /// Nobody else can know the store: it drives.
    Alone,
    /// It drives, for as long as it keeps the guard.
    Drives(Guard),
    /// `run` drives everything already: it is enough to watch.
    Watches,
}

/// Waits for our turn; while a one-shot command drives, says so, and while `run` drives, leaves the work to it.
///
/// # Errors
/// Fails when the folder cannot be used, when time is up, or when interrupted.
pub async fn claim(
    folder: &Path,
    context: &Context,
    deadline: Timestamp,
) -> Result<Claim, Failure> {
    let lease = LocalLease::new(folder);
    let mut told = false;
    loop {
        let now = Timestamp::now();
        if let Some(guard) = lease.try_acquire(now, Role::Once)? {
            return Ok(Claim::Drives(guard));
        }
        let Some(holder) = lease.holder()? else { continue };
        let who = holder
            .process
            .map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"));
        let printer = context.printer(&OutputArgs::default());
        if holder.role == Some(Role::Always) {
            printer.note(&format!("{who} (run) drives this state folder; watching it"));
            return Ok(Claim::Watches);
        }
        if !told {
            printer.note(&format!("{who} works on {}; waiting for its end", folder.display()));
            told = true;
        }
        if now >= deadline {
            let message = format!("cannot work on {}: {who} still does", folder.display());
            return Err(Failure::new(Kind::OwnedByAnother, message)
                .hint("wait for it, end it, or use another state folder (--local=DIR)"));
        }
        tokio::select! {
            () = tokio::time::sleep(POLL) => {}
            kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
        }
    }
}
