//! File work on its own thread: a disk that does not answer, or a pipe without data, does not delay the handling of signals.

use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

use crate::diagnosis::verdict::failure_kind::FailureKind;

/// Reason why file work has not ended.
#[derive(Debug)]
pub enum Unfinished {
    /// A signal came, and the work went on.
    Signal(FailureKind),
    /// The work panicked.
    Panic,
}

/// Runs work on a thread of its own. Work that goes on for longer than `grace` after a signal is abandoned.
///
/// # Errors
/// Fails if the work was abandoned or panicked.
pub async fn aside<T: Send + 'static>(
    interrupted: &Interrupted,
    grace: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unfinished> {
    let mut work = spawn_blocking(work);
    let ended = tokio::select! {
        biased;
        ended = &mut work => ended,
        kind = interrupted.wait() => match tokio::time::timeout(grace, work).await {
            Ok(ended) => ended,
            Err(_) => return Err(Unfinished::Signal(kind)),
        },
    };
    ended.map_err(|_| Unfinished::Panic)
}

/// Signal that asked this process to end, if any.
#[derive(Clone, Debug, Default)]
pub struct Interrupted {
    /// Ctrl-C.
    pub by_person: CancellationToken,
    /// SIGTERM.
    pub by_system: CancellationToken,
    /// Cancelled once a message has said how to continue.
    told: CancellationToken,
}

impl Interrupted {
    /// Waits for a signal, and returns its kind of failure.
    pub async fn wait(&self) -> FailureKind {
        tokio::select! {
            () = self.by_person.cancelled() => FailureKind::Interrupted,
            () = self.by_system.cancelled() => FailureKind::Terminated,
        }
    }

    /// Records that a message has said how to continue.
    pub fn note_told(&self) {
        self.told.cancel();
    }

    /// Returns whether a message has said how to continue.
    pub fn is_told(&self) -> bool {
        self.told.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test]
    async fn work_that_ends_is_heard_to_its_end() {
        let interrupted = Interrupted::default();
        interrupted.by_person.cancel();
        let grace = Duration::from_mins(1);
        assert!(matches!(aside(&interrupted, grace, || 7).await, Ok(7)));
    }

    #[tokio::test]
    async fn a_signal_ends_the_wait_for_work_that_goes_on() {
        for system in [false, true] {
            let interrupted = Interrupted::default();
            let (end, ended) = channel::<()>();
            let token = if system { &interrupted.by_system } else { &interrupted.by_person };
            let token = token.clone();
            let waiting = aside(&interrupted, Duration::from_millis(1), move || ended.recv());
            let (left, ()) = tokio::join!(waiting, async move { token.cancel() });
            let kind = if system { FailureKind::Terminated } else { FailureKind::Interrupted };
            assert!(matches!(left, Err(Unfinished::Signal(of)) if of == kind), "{left:?}");
            drop(end);
        }
    }
}
