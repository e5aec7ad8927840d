//! Under whose names fields are written, and that either controller can finish what the other began.

use std::sync::Arc;

use kubectl_acme::hints::store::lines;
use kubectl_acme::model::event::source;
use kubectl_acme::model::{Key, Kind, ObjectName, Record};
use kubectl_acme::store::{Manager, Part, Store, under};
use serde_json::{Value, json};

use super::open;
use crate::local::store::{object, with};
use crate::support::cluster::{Cluster, Namespace};

const FINALIZER: &str = "acme.cert-manager.io/finalizer";
const LEGACY: &str = "finalizer.acme.cert-manager.io";

/// A store that writes as a controller or a person in a namespace of its own.
async fn begin(manager: Manager) -> (Namespace<'static>, Arc<dyn Store>) {
    let cluster = Cluster::shared();
    let store: Arc<dyn Store> = Arc::new(open(&cluster.kubeconfig()).await);
    (cluster.namespace("managers"), under(&store, manager))
}

/// The object of a manifest, in a namespace.
fn within(namespace: &Namespace<'_>, record: &Record, more: Value) -> Record {
    let moved = with(record, json!({ "metadata": { "namespace": namespace.name() } }));
    Record::new(with(&moved, more).object).unwrap()
}

/// Who wrote what part of an object, as `manager/operation/subresource`.
fn writers(namespace: &Namespace<'_>, object: &str) -> Vec<String> {
    let flags = ["get", object, "-o", "json", "--show-managed-fields"];
    let object: Value = serde_json::from_str(&namespace.kubectl().run(&flags)).unwrap();
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    let all = ["manager", "operation", "subresource"];
    let mut all: Vec<_> =
        entries.iter().map(|entry| all.map(|field| text(entry, field)).join("/")).collect();
    all.sort();
    all
}

fn finalizers(namespace: &Namespace<'_>, object: &str) -> Vec<Value> {
    let object = namespace.kubectl().object(object);
    object["metadata"]["finalizers"].as_array().cloned().unwrap_or_default()
}

/// What cert-manager does with its finalizer: it applies the list.
fn apply_as_cert_manager(namespace: &Namespace<'_>, name: &str, finalizers: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("challenge.json");
    let manifest = json!({
        "apiVersion": "acme.cert-manager.io/v1",
        "kind": "Challenge",
        "metadata": { "name": name, "finalizers": finalizers },
    });
    std::fs::write(&file, manifest.to_string()).unwrap();
    let flags = ["apply", "--server-side", "--force-conflicts", "--validate=false", "-f"];
    let manager = format!("--field-manager={}", source::CHALLENGES);
    namespace.kubectl().run(&[&flags[..], &[file.to_str().unwrap(), &manager]].concat());
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn cert_manager_takes_off_the_finalizer_that_we_put_on() {
    let (namespace, store) = begin(Manager::Controller(source::CHALLENGES)).await;
    let challenge = within(&namespace, &object(Kind::Challenge, "c", json!({})), json!({}));
    let challenge = store.create(challenge).await.unwrap();
    let marked = with(&challenge, json!({ "metadata": { "finalizers": [FINALIZER] } }));
    let marked = store.replace(marked, Part::Finalizers).await.unwrap();
    let status = with(&marked, json!({ "status": { "processing": true, "state": "pending" } }));
    store.replace(status, Part::Status).await.unwrap();
    let expected = [
        "cert-manager-challenges/Apply/",
        "cert-manager-challenges/Update/",
        "cert-manager-challenges/Update/status",
    ];
    assert_eq!(writers(&namespace, "challenge/c"), expected);
    apply_as_cert_manager(&namespace, "c", &[]);
    assert!(finalizers(&namespace, "challenge/c").is_empty());
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn we_take_off_the_finalizers_that_cert_manager_put_on() {
    let (namespace, store) = begin(Manager::Controller(source::CHALLENGES)).await;
    let old = json!({ "metadata": { "finalizers": [LEGACY] } });
    let challenge = within(&namespace, &object(Kind::Challenge, "c", json!({})), old);
    store.create(challenge.clone()).await.unwrap();
    apply_as_cert_manager(&namespace, "c", &[FINALIZER]);
    assert_eq!(finalizers(&namespace, "challenge/c").len(), 2);
    let found = store.get(&challenge.key).await.unwrap().unwrap();
    store.delete(&found.key).await.unwrap();
    let deleted = store.get(&found.key).await.unwrap().unwrap();
    let bare = with(&deleted, json!({ "metadata": { "finalizers": [] } }));
    store.replace(bare, Part::Finalizers).await.unwrap();
    assert_eq!(store.get(&found.key).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn what_others_keep_in_a_secret_stays() {
    let (namespace, store) = begin(Manager::Controller(source::ISSUING)).await;
    let kubectl = namespace.kubectl();
    kubectl.run(&["create", "secret", "generic", "tls", "--from-literal=theirs=1"]);
    kubectl.run(&["label", "secret/tls", "theirs=yes"]);
    let issued = |data: Value| {
        let ours = json!({ "metadata": { "labels": { "ours": "yes" } }, "data": data });
        within(&namespace, &object(Kind::Secret, "tls", json!({})), ours)
    };
    store.apply(issued(json!({ "tls.crt": "MQ==", "key.der": "Mg==" }))).await.unwrap();
    let applied = store.apply(issued(json!({ "tls.crt": "Mw==" }))).await.unwrap();
    assert_eq!(applied.object["data"], json!({ "theirs": "MQ==", "tls.crt": "Mw==" }));
    assert_eq!(applied.object["metadata"]["labels"], json!({ "ours": "yes", "theirs": "yes" }));
    let writers = writers(&namespace, "secret/tls");
    assert!(writers.contains(&"cert-manager-certificates-issuing/Apply/".into()), "{writers:?}");
}

#[tokio::test]
#[ignore = "needs a Kubernetes API server: run by just cluster"]
async fn a_field_that_somebody_else_applied_is_not_taken_over_unless_a_person_insists() {
    let (namespace, store) = begin(Manager::Person).await;
    let manifest = |names: Value| {
        let names = json!({ "spec": { "dnsNames": names } });
        within(&namespace, &object(Kind::Certificate, "web", json!({})), names)
    };
    let theirs = manifest(json!(["a.example"]));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.json");
    std::fs::write(&file, theirs.object.to_string()).unwrap();
    let flags = ["apply", "--server-side", "--field-manager=helm", "-f", file.to_str().unwrap()];
    namespace.kubectl().run(&flags);
    store.apply(theirs).await.unwrap();

    let ours = manifest(json!(["b.example"]));
    let refused = store.apply(ours.clone()).await.unwrap_err();
    let expected = format!("cannot apply Certificate {}/web: ", namespace.name());
    assert!(refused.to_string().starts_with(&expected), "{refused}");
    assert!(refused.to_string().contains(".spec.dnsNames: conflict with \"helm\""), "{refused}");
    assert!(lines(&refused)[0].contains("--force-conflicts"));
    let forced = under(&store, Manager::PersonByForce).apply(ours).await.unwrap();
    assert_eq!(forced.object["spec"]["dnsNames"], json!(["b.example"]));
    let key = Key::new(Kind::Certificate, ObjectName::new(namespace.name(), "web"));
    let read = store.get(&key).await.unwrap().unwrap();
    assert_eq!(read.metadata().other.get("managedFields"), None);
}
