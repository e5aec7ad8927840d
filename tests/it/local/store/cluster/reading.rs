//! What is listed and watched, where an API server has ways of its own.

use futures_util::future::join_all;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::cluster::ClusterStore;
use kubectl_acme::store::{Change, Scope, Store as _};
use serde_json::{Value, json};

use super::open;
use crate::local::store::{Watch, next, object, with};
use crate::support::cluster::{Cluster, Namespace};

async fn begin() -> (Namespace<'static>, ClusterStore) {
    let cluster = Cluster::shared();
    (cluster.namespace("reading"), open(&cluster.kubeconfig()).await)
}

fn placed(namespace: &Namespace<'_>, kind: Kind, name: &str, more: Value) -> Record {
    let place = json!({ "namespace": namespace.name() });
    let given = with(&object(kind, name, more), json!({ "metadata": place }));
    let about = if kind == Kind::Event { json!({ "involvedObject": place }) } else { json!({}) };
    Record::new(with(&given, about).object).unwrap()
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_long_list_comes_whole_and_in_order() {
    let (namespace, store) = begin().await;
    let event =
        |number: usize| placed(&namespace, Kind::Event, &format!("e-{number:04}"), json!({}));
    let created = join_all((0..1_001).rev().map(|number| store.create(event(number)))).await;
    assert!(created.iter().all(Result::is_ok));
    let scope = Scope::namespace(namespace.name());
    let listed = store.list(Kind::Event, &scope).await.unwrap();
    let names: Vec<_> = listed.iter().map(|record| record.key.name.name.clone()).collect();
    assert_eq!(names, (0..1_001).map(|number| format!("e-{number:04}")).collect::<Vec<_>>());
    let mut watch = store.watch(Kind::Event, scope);
    assert_eq!(next(&mut watch).await, "1001 objects");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_watch_of_secrets_does_not_carry_them() {
    async fn told(watch: &mut Watch) -> Record {
        use futures_util::StreamExt as _;
        match watch.next().await.unwrap().unwrap() {
            Change::Applied(record) | Change::Deleted(record) => record,
            Change::Resynced(mut records) => records.remove(0),
        }
    }
    let (namespace, store) = begin().await;
    let data = json!({ "data": { "key": "aHVudGVyMg==" } });
    let labelled = json!({ "metadata": { "labels": { "a": "b" } } });
    let secret = with(&placed(&namespace, Kind::Secret, "s", data), labelled);
    let stored = store.create(secret).await.unwrap();
    let mut watch = store.watch(Kind::Secret, Scope::namespace(namespace.name()));
    let seen = told(&mut watch).await;
    assert_eq!((&seen.key, seen.metadata()), (&stored.key, stored.metadata()));
    assert_eq!((seen.text("/kind"), seen.object.get("data")), ("Secret", None));
    store.delete(&stored.key).await.unwrap();
    let seen = told(&mut watch).await;
    assert_eq!((&seen.key, seen.object.get("data")), (&stored.key, None));
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn whoever_may_only_see_a_namespace_sees_that() {
    let (namespace, admin) = begin().await;
    let rules = r#"[{"apiGroups": ["acme.cert-manager.io"], "resources": ["orders"], "verbs": ["list", "watch"]}]"#;
    let account = namespace.service_account("reader", rules);
    let store = open(account.kubeconfig()).await;
    let confined = store.confined_to(namespace.name());
    admin.create(placed(&namespace, Kind::Order, "first", json!({}))).await.unwrap();
    let listed = confined.list(Kind::Order, &Scope::all()).await.unwrap();
    assert_eq!(listed.len(), 1);
    assert!(store.list(Kind::Order, &Scope::all()).await.is_err());
    assert!(confined.list(Kind::ClusterIssuer, &Scope::all()).await.unwrap().is_empty());
    let mut issuers = confined.watch(Kind::ClusterIssuer, Scope::all());
    assert_eq!(next(&mut issuers).await, "all: ");
    let mut orders = confined.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut orders).await, "all: first");
    admin.create(placed(&namespace, Kind::Order, "second", json!({}))).await.unwrap();
    assert_eq!(next(&mut orders).await, "applied second");
}
