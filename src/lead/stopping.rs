//! The end of work: what is said, and what is waited for.
//!
//! A signal, and a store that fails for good, finish the steps under way. A lost Lease bounds that, by 5 s on
//! cert-manager's terms, until others may take it; and so does the end of the time that a command has, some seconds later:
//! whether a CA has made an order that it does not tell of, the ledger leaves open, and the next order counts it. No
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

/// So long the end of what is under way is awaited without a word: what is only read is broken off before.
const SILENCE: Duration = Duration::from_millis(1500);
/// So long requests under way are waited for beyond the time that a command has.
const BEYOND: Duration = Duration::from_secs(5);
/// What it means that they are not waited for any longer.
const GIVEN_UP: &str = "the requests under way are given up: what the CA makes of them is not known, and the next run asks anew";
/// What a person can do about the wait.
const AT_ONCE: &str = "Ctrl-C once more leaves at once";

/// Why controllers are stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stopping {
    /// Somebody has sent a signal.
    BySignal,
    /// All that was awaited has ended, be it because time is up.
    AllEnded,
    /// The store has failed.
    ByFault,
}

/// Says at once how to go on: whoever leaves by a second Ctrl-C hears nothing more. What is returned has been said.
pub(crate) fn say_interrupted(failure: &Failure, context: &Context) -> Failure {
    let printer = context.printer(&OutputArgs::default());
    printer.error(&failure.message, &failure.hints);
    context.interrupted().note_told();
    Failure::silent(failure.kind)
}

/// Says that a command which works until it is stopped was stopped by a signal, which is no error.
pub(crate) fn say_stopped(kind: FailureKind, context: &Context) -> Failure {
    let go_on = invocation::current().go_on();
    let signal = if kind == FailureKind::Interrupted { "Ctrl-C" } else { "SIGTERM" };
    context.talk().line(&format!("stopped by {signal}; everything so far is kept; {go_on}"));
    context.interrupted().note_told();
    Failure::silent(kind)
}

/// Stops the controllers; when the steps under way take their time, says what is waited for.
///
/// # Errors
/// Fails when they had ended before, because the store could no longer be used.
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
        () = tokio::time::sleep(SILENCE) => {}
    }
    let began = Instant::now();
    let waiting = "waiting for the requests under way";
    let ended = if why == Stopping::BySignal {
        let longest = transport::WHOLE.as_secs();
        let waiting = format!("{waiting}, each of which is given up after {longest} s");
        context.talk().line(&format!("{waiting}; {AT_ONCE}"));
        stopping.await
    } else {
        context.talk().line(waiting);
        tokio::select! {
            ended = &mut stopping => ended,
            () = tokio::time::sleep(BEYOND), if why == Stopping::AllEnded => {
                context.talk().line(GIVEN_UP);
                over.cancel();
                stopping.await
            }
            _ = context.interrupted().wait() => {
                context.talk().line(AT_ONCE);
                stopping.await
            }
        }
    };
    let waited = (began.elapsed() + SILENCE).as_secs();
    context.talk().line(&format!("waited {waited} s more for the requests under way"));
    ended
}
