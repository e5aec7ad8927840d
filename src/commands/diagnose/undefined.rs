//! Clusters without definitions of cert-manager's kinds: this fault explains everything that does not happen there. Domains
//! are diagnosed then, objects are not.

use std::sync::Arc;

use tokio::time::timeout;

use crate::context::Context;
use crate::diagnosis::case::control::UndefinedCase;
use crate::evidence::patience::PROBE_TIMEOUT;
use crate::evidence::verdict::ObservedCase;
use crate::input::applying::behind;
use crate::store::Store;
use crate::store::cluster::definitions::UnservedKind;

/// Returns the store, or `None` if the cluster lacks definitions; records the missing definitions in `seen`.
pub async fn defined(
    store: Option<Arc<dyn Store>>,
    seen: &mut ObservedCase,
    context: &Context,
) -> Option<Arc<dyn Store>> {
    let cluster = store.as_ref().and_then(|store| behind(store, context));
    let Some(cluster) = cluster else { return store };
    // A server that does not answer is reported by the next read of objects.
    let unserved = timeout(PROBE_TIMEOUT, cluster.unserved_kinds()).await;
    seen.undefined = unserved.ok().and_then(Result::ok).into_iter().flatten().map(of).collect();
    store.filter(|_| seen.undefined.is_empty())
}

fn of(UnservedKind { kind, versions }: UnservedKind) -> UndefinedCase {
    let api_version = kind.api_version().to_owned();
    UndefinedCase { plural: kind.plural(), api_version, served: versions }
}
