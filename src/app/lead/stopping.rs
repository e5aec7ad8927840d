//! The end of work: what is said, and what is waited for.
//!
//! A stop, and a store that fails for good, finish the steps under way. Only a lost Lease bounds that, by 5 s on
//! cert-manager's terms, until others may take it. No command leaves without `Engine::stop`.

use std::pin::pin;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::acme::transport;
use crate::app::context::Context;
use crate::app::engine::Engine;
use crate::app::failure::Failure;
use crate::app::flags::output::OutputArgs;
use crate::app::invocation;
use crate::diagnosis::failure_kind::FailureKind;

/// So long the end of what is under way is awaited without a word: what is only read is broken off before.
const SILENCE: Duration = Duration::from_millis(1500);
/// What a person can do about the wait.
const AT_ONCE: &str = "Ctrl-C once more leaves at once";

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
    is_interrupted: bool,
    context: &Context,
) -> Result<(), Failure> {
    let mut stopping = pin!(engine.stop(lost));
    tokio::select! {
        ended = &mut stopping => return ended,
        () = tokio::time::sleep(SILENCE) => {}
    }
    let began = Instant::now();
    let waiting = format!(
        "waiting for the requests under way, each of which is given up after {} s",
        transport::WHOLE.as_secs()
    );
    let ended = if is_interrupted {
        context.talk().line(&format!("{waiting}; {AT_ONCE}"));
        stopping.await
    } else {
        context.talk().line(&waiting);
        tokio::select! {
            ended = &mut stopping => ended,
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
