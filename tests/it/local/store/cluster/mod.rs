//! The store on a real API server with cert-manager's definitions.

use std::path::Path;
use std::sync::Arc;

use kubectl_acme::store::cluster::{ClusterStore, Connection};

use super::Shared;
use super::tenant::Tenant;
use crate::support::cluster::Cluster;

mod alone;
mod connection;
mod faults;
mod lease;
mod managers;
mod reading;

/// A store with namespaces of its own in the shared cluster.
pub(super) async fn tenant() -> Shared {
    let cluster = Cluster::shared();
    let web = cluster.namespace("web");
    let mark = web.name().strip_prefix("web-").unwrap();
    cluster.kubectl().run(&["create", "namespace", &format!("mail-{mark}")]);
    Arc::new(Tenant::new(Arc::new(open(&cluster.kubeconfig()).await), mark))
}

/// The store as the user of a kubeconfig has it.
async fn open(kubeconfig: &Path) -> ClusterStore {
    ClusterStore::connect(&connection(kubeconfig)).await.unwrap()
}

fn connection(kubeconfig: &Path) -> Connection {
    Connection { kubeconfig: Some(kubeconfig.to_owned()), ..Connection::default() }
}
