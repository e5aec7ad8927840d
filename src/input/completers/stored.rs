//! Objects in the store of a command line, read within a short time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::typed::{Typed, Whereabouts};
use crate::context;
use crate::context::blocking::Interrupted;
use crate::input::target;
use crate::model::{Kind, Record};
use crate::store::cluster::{ClusterStore, Connection};
use crate::store::local::{Access, LocalStore};
use crate::store::{Scope, Store};

/// Longest wait for names on this machine.
const LOCAL_TIMEOUT: Duration = Duration::from_millis(300);

/// Longest wait for names in a cluster, including that for a log-in plugin.
const CLUSTER_TIMEOUT: Duration = Duration::from_secs(3);

/// Returns the objects of a kind; `None` if they could not be read in time.
pub(super) fn records(kind: Kind, typed: &Typed) -> Option<Vec<Record>> {
    let place = typed.place();
    within(time_limit(&place), async {
        let (store, namespace) = open(&place).await?;
        store.list(kind, &target::scope(kind, Some(&namespace)).brief()).await.ok()
    })
}

/// Returns the namespaces: in a cluster all that may be listed, on this machine those of objects.
pub(super) fn namespaces(typed: &Typed) -> Option<BTreeSet<String>> {
    let place = typed.place();
    within(time_limit(&place), async {
        match &place {
            Whereabouts::Cluster(connection) => {
                let listed = connect(connection).await?.namespaces().await.ok()?;
                Some(listed.into_iter().collect())
            }
            Whereabouts::Local(..) => {
                let (store, _) = open(&place).await?;
                let mut namespaces = BTreeSet::new();
                for kind in Kind::SIX.into_iter().filter(|kind| kind.is_namespaced()) {
                    let found = store.list(kind, &Scope::all().brief()).await.ok()?;
                    namespaces.extend(found.into_iter().map(|record| record.key.name.namespace));
                }
                Some(namespaces)
            }
        }
    })
}

fn time_limit(place: &Whereabouts) -> Duration {
    match place {
        Whereabouts::Local(..) => LOCAL_TIMEOUT,
        Whereabouts::Cluster(_) => CLUSTER_TIMEOUT,
    }
}

fn within<T>(patience: Duration, asked: impl Future<Output = Option<T>>) -> Option<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let found =
        runtime.block_on(async { tokio::time::timeout(patience, asked).await.ok().flatten() });
    // A thread that still reads does not hold up the shell.
    runtime.shutdown_background();
    found
}

/// Returns the store, and the namespace in it.
async fn open(place: &Whereabouts) -> Option<(Arc<dyn Store>, String)> {
    let (folder, namespace) = match place {
        Whereabouts::Cluster(connection) => {
            let cluster = connect(connection).await?;
            let namespace = cluster.namespace().to_owned();
            return Some((Arc::new(cluster), namespace));
        }
        Whereabouts::Local(folder, namespace) => (folder, namespace.clone()),
    };
    let folder = context::state_folder(Some(folder)).ok()?;
    if !LocalStore::exists(&folder).unwrap_or(false) {
        return None;
    }
    let uninterrupted = Interrupted::default();
    let store = context::open(folder, Access::ReadOnly, &uninterrupted).await.ok()?;
    Some((store, namespace.unwrap_or_else(|| "default".to_owned())))
}

async fn connect(connection: &Connection) -> Option<ClusterStore> {
    ClusterStore::connect(connection).await.ok()
}
