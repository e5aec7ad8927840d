//! The end of a command that failed: its answers to challenges are taken down before it ends.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::issue::tracked::End;
use crate::model::{Challenge, Key};
use crate::objects::chain;
use crate::store::Store;

/// How long taking answers down may hold the end of a command.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Waits until the challenges of what failed have taken their answers down; what lasts is left to the next run.
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
            // A store that is away for a moment has told nothing yet.
            while chain::of(store, key).await.map_or_else(
                |error| error.may_pass(),
                |chain| chain.is_some_and(|c| c.challenges.iter().any(is_up)),
            ) {
                tokio::time::sleep(POLL).await;
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
