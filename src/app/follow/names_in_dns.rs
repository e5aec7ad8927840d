//! What DNS says of names that are due, before anything is ordered for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::work::WorkArgs;
use crate::acme::Clients;
use crate::app::context::Context;
use crate::app::engine::clients;
use crate::app::failure::Failure;
use crate::app::preflight::public_dns::{self, Means};
use crate::model::Key;
use crate::print::Printer;
use crate::store::Store;

/// Looks at what DNS says of names that are due; returns what their CAs may not issue, and the CAs, which need not be asked again.
pub(super) async fn look_at_dns(
    due: &[Key],
    store: &Arc<dyn Store>,
    (work, deadline): (&WorkArgs, Timestamp),
    printer: &Printer,
    context: &Context,
) -> Result<(BTreeMap<Key, Failure>, Option<Clients>), Failure> {
    if due.is_empty() {
        return Ok((BTreeMap::new(), None));
    }
    let fetcher = work.drive.fetcher().await?;
    let clients = clients(&fetcher.resolver);
    let left = Duration::try_from(deadline.duration_since(Timestamp::now())).unwrap_or_default();
    let means = Means { clients: &clients, fetcher: &fetcher, left };
    let refused = tokio::select! {
        refused = public_dns::check(due, store, means, printer) => refused?,
        kind = context.interrupted().wait() => return Err(Failure::interrupted(kind)),
    };
    Ok((refused, Some(clients)))
}
