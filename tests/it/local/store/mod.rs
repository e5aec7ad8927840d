//! The contract of [`Store`], one test per promise, kept by every implementation; and what only the local one promises.

use crate::support::bed::PATIENCE;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use kubectl_acme::model::{Key, Kind, ObjectName, Record};
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::local::{Access, LocalStore};
use kubectl_acme::store::mirror::Mirror;
use kubectl_acme::store::{Change, Part, Scope, Store};
use serde_json::{Value, json};

/// Runs each promise on each store; those after the bar concern what an API server does by rules of its own.
macro_rules! promises {
    ($($promise:ident)* | $($own:ident)*) => {
        promises!(here: $($promise)* $($own)*);
        mod mirror {
            $(#[tokio::test]
            async fn $promise() {
                let store = kubectl_acme::store::memory::MemoryStore::new();
                super::$promise(crate::local::store::mirrored(std::sync::Arc::new(store)).await).await;
            })*
        }
        mod cluster {
            $(#[tokio::test]
            #[ignore = "needs a Kubernetes API server: run by just cluster"]
            async fn $promise() {
                super::$promise(crate::local::store::cluster::tenant().await).await;
            })*
        }
    };
    ($($promise:ident)*) => { promises!($($promise)* |); };
    (here: $($promise:ident)*) => {
        mod memory {
            $(#[tokio::test]
            async fn $promise() {
                let store = kubectl_acme::store::memory::MemoryStore::new();
                super::$promise(std::sync::Arc::new(store)).await;
            })*
        }
        mod local {
            $(#[tokio::test]
            async fn $promise() {
                let folder = tempfile::tempdir().unwrap();
                let store = crate::local::store::open(folder.path()).unwrap();
                super::$promise(std::sync::Arc::new(store)).await;
            })*
        }
    };
}

mod cluster;
mod deleting;
mod faults;
mod lease;
mod processes;
mod tenant;
mod typed;
mod watching;
mod writing;

type Shared = Arc<dyn Store>;
type Watch = BoxStream<'static, Result<Change, StoreError>>;

/// The store with every kind kept in memory in front of it.
async fn mirrored(store: Shared) -> Shared {
    let mirror = Mirror::new(store);
    for kind in Kind::ALL {
        mirror.watch(kind, Scope::all()).next().await.unwrap().unwrap();
    }
    Arc::new(mirror)
}

fn open(folder: &Path) -> Result<LocalStore, StoreError> {
    LocalStore::open(folder, Access::ReadWrite)
}

fn object(kind: Kind, name: &str, more: Value) -> Record {
    let mut object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": { "name": name, "namespace": "web" },
    });
    if !kind.is_namespaced() {
        object["metadata"] = json!({ "name": name });
    }
    merge(&mut object, needed(kind));
    merge(&mut object, more);
    Record::new(object).unwrap()
}

/// What the definitions ask for.
fn needed(kind: Kind) -> Value {
    let issuer = json!({ "name": "acme" });
    match kind {
        Kind::Certificate => json!({ "spec": { "secretName": "tls", "issuerRef": issuer } }),
        Kind::CertificateRequest | Kind::Order => {
            json!({ "spec": { "request": "cmVxdWVzdA==", "issuerRef": issuer } })
        }
        Kind::Challenge => json!({ "spec": {
            "authorizationURL": "https://ca.example/authz/1",
            "dnsName": "www.example.com",
            "issuerRef": issuer,
            "key": "token.thumbprint",
            "solver": {},
            "token": "token",
            "type": "HTTP-01",
            "url": "https://ca.example/challenge/1",
        } }),
        Kind::Issuer | Kind::ClusterIssuer => json!({ "spec": { "selfSigned": {} } }),
        Kind::Event => json!({ "involvedObject": { "namespace": "web" } }),
        Kind::Ingress => json!({ "spec": { "defaultBackend": {
            "service": { "name": "web", "port": { "number": 80 } },
        } } }),
        Kind::Gateway => {
            json!({ "spec": { "gatewayClassName": "bed", "listeners": [listener()] } })
        }
        Kind::ListenerSet => {
            json!({ "spec": { "parentRef": { "name": "edge" }, "listeners": [listener()] } })
        }
        Kind::Secret => json!({}),
    }
}

fn listener() -> Value {
    json!({ "name": "http", "port": 80, "protocol": "HTTP" })
}

fn order(name: &str) -> Record {
    object(Kind::Order, name, json!({}))
}

fn key(kind: Kind, name: &str) -> Key {
    Key::new(kind, ObjectName::new("web", name))
}

/// The record with some fields set; what is set to null is given as null.
fn with(record: &Record, more: Value) -> Record {
    let mut changed = record.clone();
    merge(&mut changed.object, more);
    changed
}

fn merge(object: &mut Value, more: Value) {
    match (object, more) {
        (Value::Object(object), Value::Object(more)) => {
            for (name, value) in more {
                merge(object.entry(name).or_insert(Value::Null), value);
            }
        }
        (object, more) => *object = more,
    }
}

/// Owner references; the first owner manages.
fn owned_by(owners: &[&Record]) -> Value {
    let reference = |owner: &&Record| {
        json!({
            "apiVersion": owner.key.kind.api_version(),
            "kind": owner.key.kind.as_str(),
            "name": owner.key.name.name,
            "uid": owner.uid(),
            "controller": owner.uid() == owners[0].uid(),
        })
    };
    json!({ "metadata": { "ownerReferences": owners.iter().map(reference).collect::<Vec<_>>() } })
}

/// Waits until just these are there: an API server deletes what hung on an object a moment after it.
async fn left(store: &Shared, kind: Kind, expected: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let names = names(store, kind, Scope::all()).await;
        if names == expected || Instant::now() > deadline {
            assert_eq!(names, expected);
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn names(store: &Shared, kind: Kind, scope: Scope) -> Vec<String> {
    let listed = store.list(kind, &scope).await.unwrap();
    listed.iter().map(|record| record.key.name.to_string()).collect()
}

/// The next change, shortened; fails rather than wait for one that never comes.
async fn next(watch: &mut Watch) -> String {
    let next = tokio::time::timeout(PATIENCE, watch.next()).await;
    let short = |record: &Record| {
        format!("{} {}", record.key.name.name, record.text("/status/state")).trim().to_owned()
    };
    match next.expect("a change in time").expect("the store is still there").unwrap() {
        Change::Applied(record) => format!("applied {}", short(&record)),
        Change::Deleted(record) => format!("deleted {}", short(&record)),
        Change::Resynced(records) if records.len() > 9 => format!("{} objects", records.len()),
        Change::Resynced(records) => {
            format!("all: {}", records.iter().map(short).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Adds to a counter as a controller does: read, decide, write unless somebody else wrote.
async fn count_up(store: Shared, times: usize) {
    let mut done = 0;
    while done < times {
        let counter = store.get(&key(Kind::Order, "counter")).await.unwrap().unwrap();
        let more = json!({ "spec": { "commonName": (count(&counter) + 1).to_string() } });
        match store.replace(with(&counter, more), Part::Whole).await {
            Ok(_) => done += 1,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn counter() -> Record {
    object(Kind::Order, "counter", json!({ "spec": { "commonName": "0" } }))
}

fn count(counter: &Record) -> u64 {
    counter.text("/spec/commonName").parse().unwrap()
}
