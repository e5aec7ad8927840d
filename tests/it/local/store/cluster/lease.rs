//! The Lease on a real API server, whose clock counts.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use kubectl_acme::store::cluster::lease::{ClusterLease, LEASE_NAME};
use kubectl_acme::store::cluster::lease_object::HolderKind;
use kubectl_acme::store::lease::Role;
use serde_json::{Value, json};

use super::open;
use crate::support::cluster::{Cluster, Namespace};

/// Two processes that want the Lease of a namespace.
async fn rivals(namespace: &Namespace<'_>) -> [ClusterLease; 2] {
    let store = open(&Cluster::shared().kubeconfig()).await;
    [(); 2].map(|()| ClusterLease::new(&store, namespace.name()).unwrap())
}

/// Writes the Lease as cert-manager on another machine would, whose clock is wrong by some time.
fn hold(namespace: &Namespace<'_>, seconds: u32, wrong_by: SignedDuration) {
    let time = format!("{:.6}", Timestamp::now() + wrong_by);
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": { "name": LEASE_NAME },
        "spec": {
            "holderIdentity": "node-a-external-cert-manager-controller",
            "leaseDurationSeconds": seconds,
            "acquireTime": time,
            "renewTime": time,
        },
    });
    namespace.kubectl().apply(&lease.to_string());
}

fn spec(namespace: &Namespace<'_>) -> Value {
    namespace.kubectl().object(&format!("lease/{LEASE_NAME}"))["spec"].clone()
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn only_one_drives_and_gives_the_lease_back() {
    let namespace = Cluster::shared().namespace("lease");
    let [first, second] = rivals(&namespace).await;
    assert_eq!(first.holder().await.unwrap(), None);
    let guard = first.try_acquire(Role::Once).await.unwrap().unwrap();
    assert!(second.try_acquire(Role::Once).await.unwrap().is_none());
    let holder = second.holder().await.unwrap().unwrap();
    assert_eq!(
        (holder.identity.as_str(), holder.who),
        (first.identity(), HolderKind::Ours(Some(Role::Once)))
    );
    assert!(holder.identity.ends_with("_kubectl-acme"), "{holder:?}");
    let written = spec(&namespace);
    assert_eq!(
        (&written["leaseDurationSeconds"], &written["leaseTransitions"]),
        (&json!(15), &json!(0))
    );
    guard.release().await;
    assert_eq!(spec(&namespace)["holderIdentity"], "");
    let guard = second.try_acquire(Role::Always).await.unwrap().unwrap();
    assert_eq!(spec(&namespace)["leaseTransitions"], 1);
    guard.release().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_holder_whose_clock_is_wrong_counts_by_the_server_s() {
    for wrong_by in [SignedDuration::from_hours(-3), SignedDuration::from_hours(3)] {
        let namespace = Cluster::shared().namespace("lease");
        let [lease, _] = rivals(&namespace).await;
        hold(&namespace, 3_600, wrong_by);
        assert_eq!(
            lease.holder().await.unwrap().unwrap().who,
            HolderKind::CertManager,
            "{wrong_by}"
        );
        assert!(lease.try_acquire(Role::Once).await.unwrap().is_none());
        hold(&namespace, 1, wrong_by);
        let waiting = tokio::time::timeout(Duration::from_mins(2), lease.acquire(Role::Once));
        waiting.await.unwrap().unwrap().release().await;
    }
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn whoever_finds_the_lease_taken_from_him_stops() {
    let namespace = Cluster::shared().namespace("lease");
    let [lease, _] = rivals(&namespace).await;
    let guard = lease.try_acquire(Role::Always).await.unwrap().unwrap();
    hold(&namespace, 60, SignedDuration::ZERO);
    let lost = tokio::time::timeout(Duration::from_mins(1), guard.lost().cancelled_owned()).await;
    assert!(lost.is_ok());
    guard.release().await;
    assert_eq!(spec(&namespace)["holderIdentity"], "node-a-external-cert-manager-controller");
}
