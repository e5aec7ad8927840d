//! What is listed, and what a watcher is told.

use crate::support::bed::PATIENCE;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::{Part, Scope, Store as _};
use serde_json::json;

use super::{Shared, names, next, object, order, owned_by, with};

promises! {
    lists_are_in_order_and_keep_to_their_scope
    a_brief_list_has_what_tables_show
    a_watch_tells_everything_once_and_in_order
    a_watch_keeps_to_its_scope
    a_watch_ends_with_the_store
    |
    a_watcher_that_fell_behind_is_told_everything_anew
}

async fn lists_are_in_order_and_keep_to_their_scope(store: Shared) {
    let owner = store.create(object(Kind::Certificate, "owner", json!({}))).await.unwrap();
    let other = store.create(object(Kind::Certificate, "other", json!({}))).await.unwrap();
    store.create(with(&order("b"), owned_by(&[&owner]))).await.unwrap();
    store.create(with(&order("c"), owned_by(&[&other, &owner]))).await.unwrap();
    store.create(order("a")).await.unwrap();
    let elsewhere = with(&order("a"), json!({ "metadata": { "namespace": "mail" } }));
    store.create(Record::new(elsewhere.object).unwrap()).await.unwrap();
    let about = json!({ "involvedObject": { "uid": owner.uid() } });
    store.create(object(Kind::Event, "owner.1", about)).await.unwrap();
    store.create(object(Kind::Event, "other.1", json!({}))).await.unwrap();
    let expectations: [(Kind, Scope, &[&str]); 7] = [
        (Kind::Order, Scope::all(), &["mail/a", "web/a", "web/b", "web/c"]),
        (Kind::Order, Scope::namespace("mail"), &["mail/a"]),
        (Kind::Order, Scope::namespace("we"), &[]),
        (Kind::Order, Scope::owned_by("web", owner.uid()), &["web/b"]),
        (Kind::Order, Scope::owned_by("mail", owner.uid()), &[]),
        (Kind::Event, Scope::about(owner.uid()), &["web/owner.1"]),
        (Kind::Challenge, Scope::all(), &[]),
    ];
    for (kind, scope, expected) in expectations {
        assert_eq!(names(&store, kind, scope.clone()).await, expected, "{kind} {scope:?}");
    }
}

async fn a_brief_list_has_what_tables_show(store: Shared) {
    let status = json!({
        "status": { "state": "invalid", "reason": "r".repeat(9_000), "certificate": "QUJD", "authorizations": [{ "url": "u" }] },
    });
    let stored = store.create(order("a")).await.unwrap();
    let stored = store.replace(with(&stored, status), Part::Status).await.unwrap();
    store.create(object(Kind::Order, "bare", json!({}))).await.unwrap();
    let listed = store.list(Kind::Order, &Scope::all().brief()).await.unwrap();
    assert_eq!(listed.len(), 2);
    let bulk = json!({
        "spec": { "request": "" },
        "status": { "certificate": "", "authorizations": [] },
    });
    assert_eq!(with(&listed[0], bulk.clone()), with(&stored, bulk));
    assert_eq!(store.get(&stored.key).await.unwrap(), Some(stored));
}

async fn a_watch_tells_everything_once_and_in_order(store: Shared) {
    let mut stored = store.create(order("a")).await.unwrap();
    let mut watch = store.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: a");
    for state in ["pending", "ready", "valid"] {
        let changed = with(&stored, json!({ "status": { "state": state } }));
        stored = store.replace(changed, Part::Status).await.unwrap();
    }
    store.create(object(Kind::Secret, "not-an-order", json!({}))).await.unwrap();
    store.delete(&stored.key).await.unwrap();
    store.create(order("a")).await.unwrap();
    for expected in
        ["applied a pending", "applied a ready", "applied a valid", "deleted a valid", "applied a"]
    {
        assert_eq!(next(&mut watch).await, expected);
    }
}

async fn a_watch_keeps_to_its_scope(store: Shared) {
    let owner = store.create(object(Kind::Certificate, "owner", json!({}))).await.unwrap();
    let mut watch = store.watch(Kind::Order, Scope::owned_by("web", owner.uid()));
    assert_eq!(next(&mut watch).await, "all: ");
    store.create(order("strange")).await.unwrap();
    let mine = store.create(with(&order("mine"), owned_by(&[&owner]))).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied mine");
    let given_away = with(&mine, json!({ "metadata": { "ownerReferences": [] } }));
    store.replace(given_away, Part::Metadata).await.unwrap();
    assert_eq!(next(&mut watch).await, "deleted mine", "it has left the scope");
    store.delete(&mine.key).await.unwrap();
    store.create(with(&order("last"), owned_by(&[&owner]))).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied last");
}

async fn a_watcher_that_fell_behind_is_told_everything_anew(store: Shared) {
    let mut watch = store.watch(Kind::Event, Scope::all());
    assert_eq!(next(&mut watch).await, "all: ");
    let event = |number: usize| object(Kind::Event, &format!("web.{number}"), json!({}));
    let created = join_all((0..2_001).map(|number| store.create(event(number)))).await;
    assert!(created.iter().all(Result::is_ok));
    assert_eq!(next(&mut watch).await, "2001 objects");
    store.create(object(Kind::Event, "next", json!({}))).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied next");
}

async fn a_watch_ends_with_the_store(store: Shared) {
    let mut watch = store.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: ");
    drop(store);
    let end = tokio::time::timeout(PATIENCE, watch.next()).await;
    assert!(matches!(end, Ok(None)), "{end:?}");
}

#[tokio::test]
async fn the_local_store_leaves_the_bulk_out_of_brief_lists() {
    let folder = tempfile::tempdir().unwrap();
    let store = super::open(folder.path()).unwrap();
    store.create(order("a")).await.unwrap();
    let listed = store.list(Kind::Order, &Scope::all().brief()).await.unwrap();
    assert_eq!((listed[0].text("/spec/request"), listed[0].text("/kind")), ("", "Order"));
}

#[tokio::test]
async fn a_watcher_of_the_local_store_that_fell_behind_is_told_of_each_object_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = super::open(folder.path()).unwrap();
    let mut stored = Vec::new();
    for name in ["changed", "gone", "made-anew", "same"] {
        stored.push(store.create(order(name)).await.unwrap());
    }
    let mut watch = store.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: changed, gone, made-anew, same");
    for state in ["pending", "ready", "valid"] {
        let changed = with(&stored[0], json!({ "status": { "state": state } }));
        stored[0] = store.replace(changed, Part::Status).await.unwrap();
    }
    store.delete(&stored[1].key).await.unwrap();
    store.delete(&stored[2].key).await.unwrap();
    store.create(order("made-anew")).await.unwrap();
    let event = |number: usize| object(Kind::Event, &format!("web.{number}"), json!({}));
    let created = join_all((0..2_001).map(|number| store.create(event(number)))).await;
    assert!(created.iter().all(Result::is_ok));
    for number in 0..300 {
        store.create(order(&format!("new-{number}"))).await.unwrap();
    }
    for expected in
        ["applied changed valid", "deleted gone", "deleted made-anew", "applied made-anew"]
    {
        assert_eq!(next(&mut watch).await, expected);
    }
    for number in 0..300 {
        assert_eq!(next(&mut watch).await, format!("applied new-{number}"));
    }
    store.delete(&stored[3].key).await.unwrap();
    assert_eq!(next(&mut watch).await, "deleted same");
}
