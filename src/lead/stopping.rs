//! End of work: the messages, and the requests that are waited for.
//!
//! After a signal, or if the store fails for good, the steps under way are finished. A lost Lease limits that wait, to 5 s on
//! cert-manager's terms, until others may take the Lease; a command's time limit does so some seconds after it has passed.
//! If a CA has not answered by then whether it made an order, the ledger leaves that open, and the next order counts it. No
//! command leaves without `Engine::stop`.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::acme::transport;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::OutputArgs;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::engine::Engine;
use crate::hints::invocation;

/// Longest wait for the steps under way without a message; mere reads are aborted before.
const SILENT_WAIT: Duration = Duration::from_millis(1500);
/// Longest wait for requests under way after the time limit of a command.
const LATE_WAIT_MAX: Duration = Duration::from_secs(5);
/// Message about requests that are not waited for any longer.
const GIVEN_UP_MESSAGE: &str = "the requests under way are given up: their outcome at the CA is not known, and the next run asks anew";
/// Note for a person who does not want to wait.
const LEAVE_AT_ONCE_NOTE: &str = "press Ctrl-C again to leave at once";

/// Reason why controllers are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    /// A signal has come.
    BySignal,
    /// All awaited work has ended, or time is up.
    AllEnded,
    /// The store has failed.
    ByFault,
}

/// Prints at once how to continue, since a second Ctrl-C ends the process silently; returns a failure that is printed already.
pub(crate) fn say_interrupted(failure: &Failure, context: &Context) -> Failure {
    let printer = context.printer(&OutputArgs::default());
    printer.error(&failure.message, &failure.hints);
    context.interrupted().note_told();
    Failure::silent(failure.kind)
}

/// Prints that a signal stopped a command which works until stopped; that is no error.
pub(crate) fn say_stopped(kind: FailureKind, context: &Context) -> Failure {
    let go_on = invocation::current().go_on();
    let signal = if kind == FailureKind::Interrupted { "Ctrl-C" } else { "SIGTERM" };
    context.talk().line(&format!("stopped by {signal}; everything so far is kept; {go_on}"));
    context.interrupted().note_told();
    Failure::silent(kind)
}

/// Stops the controllers; if the steps under way take long, prints what is waited for.
///
/// # Errors
/// Fails if the controllers had ended before, because the store could no longer be used.
pub(crate) async fn stop(
    engine: Engine,
    lost: &CancellationToken,
    why: Stopping,
    context: &Context,
) -> Result<(), Failure> {
    let over = lost.child_token();
    let mut stopping = pin!(engine.stop(&over));
    tokio::select! {
        ended = &mut stopping => return ended,
        () = tokio::time::sleep(SILENT_WAIT) => {}
    }
    let began = Instant::now();
    let waiting = "waiting for the requests under way";
    let ended = if why == Stopping::BySignal {
        let longest = transport::REQUEST_TIMEOUT.as_secs();
        let waiting = format!("{waiting}, each of which is given up after {longest} s");
        context.talk().line(&format!("{waiting}; {LEAVE_AT_ONCE_NOTE}"));
        stopping.await
    } else {
        context.talk().line(waiting);
        tokio::select! {
            ended = &mut stopping => ended,
            () = tokio::time::sleep(LATE_WAIT_MAX), if why == Stopping::AllEnded => {
                context.talk().line(GIVEN_UP_MESSAGE);
                over.cancel();
                stopping.await
            }
            _ = context.interrupted().wait() => {
                context.talk().line(LEAVE_AT_ONCE_NOTE);
                stopping.await
            }
        }
    };
    let waited = (began.elapsed() + SILENT_WAIT).as_secs();
    context.talk().line(&format!("waited {waited} s more for the requests under way"));
    ended
}
