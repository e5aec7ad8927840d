//! End of a command that failed: the answers to its challenges are removed before the command ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::issue::tracked::End;
use crate::model::{Challenge, Key};
use crate::objects::chain;
use crate::store::Store;

/// Longest time for which the removal of answers may delay the end of a command.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(10);
const CHALLENGE_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Waits until the answers to challenges of failed objects are removed; a slower removal is left to the next run.
pub(super) async fn await_removal_of_answers(
    store: &Arc<dyn Store>,
    ends: &BTreeMap<Key, End>,
    lost: &CancellationToken,
    context: &Context,
) {
    let is_up = |challenge: &Challenge| challenge.status.processing && challenge.has_ended();
    let failed = ends.iter().filter(|(_, end)| matches!(end, End::Failed(_)));
    let certificates: Vec<&Key> =
        failed.map(|(key, _)| key).filter(|key| key.kind.is_issued()).collect();
    let all_down = async {
        for key in certificates {
            // A store that is unreachable for a moment has shown nothing yet.
            while chain::of(store, key).await.map_or_else(
                |error| error.may_pass(),
                |chain| chain.is_some_and(|c| c.challenges.iter().any(is_up)),
            ) {
                tokio::time::sleep(CHALLENGE_POLL_INTERVAL).await;
            }
        }
    };
    tokio::select! {
        () = all_down => {}
        () = tokio::time::sleep(CLEAN_UP_TIMEOUT) => {}
        () = lost.cancelled() => {}
        _ = context.interrupted().wait() => {}
    }
}
