//! The store on a real API server with cert-manager's definitions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use kube::api::{Api, ObjectMeta, PostParams};
use kubectl_acme::store::cluster::{ClusterStore, Connection};

use super::Shared;
use super::tenant::Tenant;

/// A store with namespaces of its own.
pub(super) async fn tenant() -> Shared {
    static TENANTS: AtomicU32 = AtomicU32::new(0);
    let store = connect(&connection()).await;
    let mark = format!("{:x}-{}", std::process::id(), TENANTS.fetch_add(1, Ordering::Relaxed));
    for namespace in ["web", "mail"] {
        make_namespace(&store, &format!("{namespace}-{mark}")).await;
    }
    Arc::new(Tenant::new(Arc::new(store), &mark))
}

fn connection() -> Connection {
    let kubeconfig = std::env::var_os("BED_KUBECONFIG").map(Into::into);
    Connection { kubeconfig, ..Connection::default() }
}

async fn connect(connection: &Connection) -> ClusterStore {
    ClusterStore::connect(connection).await.unwrap()
}

async fn make_namespace(store: &ClusterStore, name: &str) {
    let namespaces: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(store.client());
    let namespace = k8s_openapi::api::core::v1::Namespace {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..k8s_openapi::api::core::v1::Namespace::default()
    };
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
}
