//! What needs a cluster of its own: servers that stop, definitions that are missing, and who drives all of it.

use futures_util::StreamExt as _;
use kubectl_acme::hints::store::lines;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::cluster::lease::{ClusterLease, LEASE_NAMESPACE};
use kubectl_acme::store::cluster::lease_object::HolderKind;
use kubectl_acme::store::cluster::survey::Driver;
use kubectl_acme::store::lease::Role;
use kubectl_acme::store::{Part, Scope, Store as _};
use serde_json::json;

use super::open;
use crate::cluster::faults::definitions::{definitions, install, release_challenges, remove};
use crate::local::store::{next, object, with};
use crate::support::cluster::{Arena, eventually};

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_watch_goes_on_after_the_server_was_gone() {
    let cluster = Arena::enter();
    let store = open(&cluster.kubeconfig()).await;
    let namespace = cluster.namespace("restart");
    let place = json!({ "metadata": { "namespace": namespace.name() } });
    let placed = |name: &str| {
        let order = with(&object(Kind::Order, name, json!({})), place.clone());
        Record::new(order.object).unwrap()
    };
    let first = store.create(placed("first")).await.unwrap();
    let mut watch = store.watch(Kind::Order, Scope::namespace(namespace.name()));
    assert_eq!(next(&mut watch).await, "all: first");
    cluster.stop_api_server();
    let refused = store.get(&first.key).await.unwrap_err().to_string();
    assert!(refused.starts_with("cannot reach the cluster at "), "{refused}");
    cluster.start_api_server();
    let pending = with(&first, json!({ "status": { "state": "pending" } }));
    store.replace(pending, Part::Status).await.unwrap();
    let mut told = next(&mut watch).await;
    if told.starts_with("all: ") {
        // It may have to begin anew, before or after the write.
        assert!(told.starts_with("all: first"), "{told}");
        if told == "all: first" {
            told = next(&mut watch).await;
        }
    }
    assert!(told.ends_with("first pending"), "{told}");
    store.create(placed("second")).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied second");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn missing_and_old_definitions_are_named() {
    let cluster = Arena::enter();
    let kubectl = cluster.kubectl();
    let store = open(&cluster.kubeconfig()).await;
    store.check_definitions().await.unwrap();
    release_challenges(&kubectl);
    let all = definitions(&kubectl);
    let of = |name: &str| all.iter().find(|crd| crd["metadata"]["name"] == name).unwrap().clone();
    let orders = of("orders.acme.cert-manager.io");
    remove(&kubectl, std::slice::from_ref(&orders));
    let fault = "does not serve orders.acme.cert-manager.io/v1: ";
    let refused = store.list(Kind::Order, &Scope::all()).await.unwrap_err();
    let said = refused.to_string();
    assert!(said.contains(fault) && said.contains("it has other resources"), "{said}");
    assert!(lines(&refused)[0].contains("crds"));
    assert_eq!(store.check_definitions().await.unwrap_err().to_string(), said);
    let mut watch = store.watch(Kind::Order, Scope::all());
    let told = watch.next().await.unwrap().unwrap_err();
    assert_eq!(told.to_string(), said);

    remove(&kubectl, &[of("challenges.acme.cert-manager.io")]);
    let mut old = orders;
    old["spec"]["versions"][0]["name"] = "v1alpha2".into();
    install(&kubectl, std::slice::from_ref(&old));
    eventually("the old version alone", || {
        let group = kubectl.try_run(&["get", "--raw", "/apis/acme.cert-manager.io"]).ok()?;
        (!group.contains("acme.cert-manager.io/v1\"")).then_some(())
    });
    let said = store.check_definitions().await.unwrap_err().to_string();
    assert!(
        said.contains("it has only v1alpha2, which is older than this program reads"),
        "{said}"
    );
    remove(&kubectl, &[old]);
    install(&kubectl, &all);
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn whoever_drives_is_found_wherever_a_chart_has_put_him() {
    let cluster = Arena::enter();
    let store = open(&cluster.kubeconfig()).await;
    let driver = async || Driver::of(&store, LEASE_NAMESPACE).await.unwrap();
    assert_eq!(driver().await, Driver::Nobody);

    let guard =
        ClusterLease::new(&store, LEASE_NAMESPACE).unwrap().acquire(Role::Once).await.unwrap();
    let Driver::Holder(holder) = driver().await else { panic!("we hold it") };
    assert_eq!(
        (holder.who, holder.namespace.as_str()),
        (HolderKind::Ours(Some(Role::Once)), LEASE_NAMESPACE)
    );
    guard.release().await;

    let namespace = cluster.namespace("chart");
    let labels = json!({
        "app.kubernetes.io/name": "cert-manager",
        "app.kubernetes.io/component": "controller",
    });
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "controller", "labels": labels },
        "spec": { "containers": [{ "name": "controller", "image": "none" }] },
    });
    let kubectl = namespace.kubectl();
    kubectl.apply(&pod.to_string());
    // The bed says of an image that it does not know that it waits: only after that our word stands.
    eventually("the word on the image", || {
        let waiting = "--output=jsonpath={.status.containerStatuses[0].state.waiting.reason}";
        let reason = kubectl.try_run(&["get", "pod/controller", waiting]).ok()?;
        (!reason.is_empty()).then_some(())
    });
    let running = r#"{"status": {"phase": "Running"}}"#;
    kubectl.run(&[
        "patch",
        "pod/controller",
        "--subresource=status",
        "--type=merge",
        "-p",
        running,
    ]);
    let name = format!("{}/controller", namespace.name());
    assert_eq!(driver().await, Driver::WithoutLease { pod: name });

    let peer = namespace.peer(&[]);
    peer.wait_until_at_work();
    let Driver::Holder(holder) = driver().await else { panic!("cert-manager holds it") };
    assert_eq!(
        (holder.who, holder.namespace.as_str()),
        (HolderKind::CertManager, namespace.name())
    );
    peer.stop();

    let account = namespace.service_account("stranger", "[]");
    let stranger = open(account.kubeconfig()).await;
    let Driver::Unknown { why } = Driver::of(&stranger, LEASE_NAMESPACE).await.unwrap() else {
        panic!("a stranger may not look")
    };
    assert!(
        why.starts_with("no permission to get leases.coordination.k8s.io in namespace"),
        "{why}"
    );
    kubectl.run(&["delete", "pod/controller", "--now"]);
}
