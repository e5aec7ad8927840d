//! What a cluster may refuse, and what people are told then.

use std::fs;
use std::time::Duration;

use kubectl_acme::hints::store::lines;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::cluster::ClusterStore;
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::{Part, Scope, Store as _};
use serde_json::{Value, json};

use super::{connection, open};
use crate::local::store::{object, with};
use crate::support::bed::free_port;
use crate::support::cluster::{Cluster, Namespace};

fn order_in(namespace: &Namespace<'_>) -> Record {
    let place = json!({ "metadata": { "namespace": namespace.name() } });
    Record::new(with(&object(Kind::Order, "a", json!({})), place).object).unwrap()
}

/// The error, which begins with one text and contains another.
fn check<T: std::fmt::Debug>(done: Result<T, StoreError>, begin: &str, inside: &str) -> StoreError {
    let error = done.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(begin) && text.contains(inside), "{text}");
    error
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_missing_permission_is_named() {
    let namespace = Cluster::shared().namespace("faults");
    let rules =
        r#"[{"apiGroups": ["acme.cert-manager.io"], "resources": ["orders"], "verbs": ["get"]}]"#;
    let account = namespace.service_account("reader", rules);
    let store = open(account.kubeconfig()).await;
    let order = order_in(&namespace);
    assert_eq!(store.get(&order.key).await.unwrap(), None);
    let place = format!("in namespace {}", namespace.name());
    let created = store.create(order.clone()).await;
    let begin = format!("no permission to create orders.acme.cert-manager.io {place}: ");
    let error = check(created, &begin, "cannot create resource \"orders\"");
    assert!(lines(&error)[0].contains("kubectl auth can-i create orders.acme.cert-manager.io"));
    let made = open(&Cluster::shared().kubeconfig()).await.create(order.clone()).await.unwrap();
    let status = with(&made, json!({ "status": { "state": "pending" } }));
    let begin = format!("no permission to patch orders.acme.cert-manager.io/status {place}: ");
    let error = check(store.replace(status, Part::Status).await, &begin, "reader");
    assert!(lines(&error)[0].contains("patch orders.acme.cert-manager.io --subresource status"));
    let listed = store.list(Kind::Secret, &Scope::namespace(namespace.name())).await;
    check(listed, &format!("no permission to list secrets {place}: "), "reader");
    for (kind, resource) in [
        (Kind::Order, "orders.acme.cert-manager.io"),
        (Kind::ClusterIssuer, "clusterissuers.cert-manager.io"),
    ] {
        let listed = store.list(kind, &Scope::all()).await;
        let begin = format!("no permission to list {resource}: ");
        let hint = lines(&check(listed, &begin, "at the cluster scope")).remove(0);
        let (ask, question) = hint.split_once("; kubectl ").unwrap();
        assert_eq!(ask, "ask for this in a ClusterRole");
        // kubectl says no, and has nothing to say against the question.
        let question: Vec<_> = question.split(' ').take_while(|word| *word != "says").collect();
        assert_eq!(account.try_run(&question), Err(String::new()), "{question:?}");
    }
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_guard_of_the_cluster_is_quoted() {
    let namespace = Cluster::shared().namespace("faults");
    let name = namespace.name();
    let policy = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": name },
        "spec": {
            "matchConstraints": { "resourceRules": [{
                "apiGroups": ["acme.cert-manager.io"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["orders"],
            }] },
            "validations": [{ "expression": "false", "message": "not on Fridays" }],
        },
    });
    let selector = json!({ "matchLabels": { "kubernetes.io/metadata.name": name } });
    let binding = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": { "name": name },
        "spec": {
            "policyName": name,
            "validationActions": ["Deny"],
            "matchResources": { "namespaceSelector": selector },
        },
    });
    namespace.kubectl().apply(&format!("{policy}\n---\n{binding}"));
    let store = open(&Cluster::shared().kubeconfig()).await;
    let order = order_in(&namespace);
    // The API server heeds a new policy a moment later.
    let refused = loop {
        match store.create(order.clone()).await {
            Ok(made) => drop(store.delete(&made.key).await.unwrap()),
            Err(error) => break Err::<Record, _>(error),
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    let error = check(refused, &format!("cannot write Order {name}/a: "), "not on Fridays");
    assert!(matches!(error, StoreError::Denied { .. }), "{error:?}");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_missing_namespace_and_a_wrong_field_are_named() {
    let namespace = Cluster::shared().namespace("faults");
    let store = open(&Cluster::shared().kubeconfig()).await;
    let nowhere = with(&order_in(&namespace), json!({ "metadata": { "namespace": "nowhere" } }));
    let nowhere = Record::new(nowhere.object).unwrap();
    let expected = "cannot write Order nowhere/a: there is no namespace nowhere";
    check(store.create(nowhere.clone()).await, expected, "");
    check(store.apply(nowhere).await, expected, "");
    let wrong = with(&order_in(&namespace), json!({ "spec": { "request": 5 } }));
    check(store.create(wrong).await, "cannot write Order ", "spec.request: Invalid value");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_server_that_does_not_know_us_or_is_not_there_is_named() {
    let cluster = Cluster::shared();
    let kubeconfig = fs::read_to_string(cluster.kubeconfig()).unwrap();
    let kubeconfig: Value = serde_yaml::from_str(&kubeconfig).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let list = async |changed: &Value| {
        fs::write(&file, changed.to_string()).unwrap();
        let store = ClusterStore::connect(&connection(&file)).await?;
        store.list(Kind::Order, &Scope::all()).await
    };
    let server = kubeconfig["clusters"][0]["cluster"]["server"].as_str().unwrap().to_owned();

    let mut expired = kubeconfig.clone();
    expired["users"][0]["user"] = json!({ "token": "expired" });
    check(list(&expired).await, &format!("cannot log in to {server}: "), "Unauthorized");

    let mut gone = kubeconfig.clone();
    let closed = format!("https://127.0.0.1:{}", free_port());
    gone["clusters"][0]["cluster"]["server"] = closed.clone().into();
    let begin = format!("cannot reach the cluster at {closed}: ");
    let error = check(list(&gone).await, &begin, "refused");
    assert!(!error.to_string().contains("ServiceError"), "{error}");

    let mut strange = kubeconfig.clone();
    strange["clusters"][0]["cluster"]["certificate-authority-data"] = Value::Null;
    let begin = format!("cannot reach the cluster at {server}: ");
    check(list(&strange).await, &begin, "invalid peer certificate");
}
