//! The signals that end a command: SIGINT by a person, SIGTERM by the system.

use std::process;
use std::thread;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use super::context::Interrupted;
use super::failure::Kind;

/// How long a command may take for its end after the second signal.
const LAST: Duration = Duration::from_secs(2);

/// The first signal asks the command to end in good order; the second one ends it. They are heard beside the command, so that
/// nothing on which its own thread waits keeps them from being heard.
pub(super) fn second_signal(interrupted: &Interrupted) -> JoinHandle<Kind> {
    let (Ok(mut person), Ok(mut system)) =
        (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        return tokio::spawn(std::future::pending());
    };
    let interrupted = interrupted.clone();
    tokio::spawn(async move {
        let mut first = true;
        loop {
            let kind = tokio::select! {
                _ = person.recv() => Kind::Interrupted,
                _ = system.recv() => Kind::Terminated,
            };
            if !first {
                leave_soon(kind);
                return kind;
            }
            first = false;
            if kind == Kind::Interrupted {
                interrupted.by_person.cancel();
            } else {
                interrupted.by_system.cancel();
            }
        }
    })
}

/// Ends the process after a moment, should it not have ended by then: a disk that does not answer may hold those who tidy up.
#[expect(clippy::exit, reason = "nothing else ends a process whose threads are blocked")]
fn leave_soon(kind: Kind) {
    thread::spawn(move || {
        thread::sleep(LAST);
        process::exit(kind.exit_code().into())
    });
}
