//! End of a command that was refused before any work began.

use std::sync::Arc;

use jiff::Timestamp;

use super::finish::settle;
use super::purpose::Purpose;
use super::report::Places;
use super::subject::Results;
use crate::context::Context;
use crate::context::failure::Failure;
use crate::context::flags::output::{OutputArgs, TimelineChoice};
use crate::issue::tracked::WorkResult;
use crate::model::Record;
use crate::print::event_log::EventLog;
use crate::store::Store;
use crate::store::memory::MemoryStore;

/// A command that was refused before any work began.
#[derive(Debug)]
pub struct RefusedCommand<'a> {
    /// Objects of the command.
    pub records: &'a [Record],
    /// Places where the manifests of the objects begin.
    pub places: &'a Places,
    /// Purpose of the command.
    pub purpose: Purpose,
    /// Start of the command, and its deadline.
    pub times: (Timestamp, Timestamp),
    /// Event log that gets the report, too.
    pub events: &'a EventLog,
}

/// Reports to programs that nothing was done, and why.
///
/// # Errors
/// Fails with that failure.
pub async fn settle_unbegun(
    unbegun: &RefusedCommand<'_>,
    output: &OutputArgs,
    context: &Context,
    failure: Failure,
) -> Result<(), Failure> {
    let followed = unbegun.records.iter().map(|record| (record.key.clone(), false)).collect();
    // The store was not read, or it failed.
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let results = Results {
        store: &store,
        out: None,
        out_secret: false,
        on_issued: None,
        zone_file: None,
        purpose: unbegun.purpose,
        times: unbegun.times,
        timeline: TimelineChoice::Never,
        records: unbegun.records,
        places: unbegun.places,
        followed: &followed,
        events: unbegun.events,
    };
    settle(&results, output, context, WorkResult::stopped(failure)).await
}
