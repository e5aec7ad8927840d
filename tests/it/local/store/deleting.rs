//! What goes, and what is held.

use kubectl_acme::model::Kind;
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::{Part, Scope};
use serde_json::json;

use super::{Shared, key, left, next, object, order, owned_by, with};

promises! {
    finalizers_hold_a_deleted_object
    a_deleted_object_takes_no_new_finalizer
    dependents_go_with_their_last_owner
    finalizers_hold_dependents_too
    an_object_whose_owner_is_gone_already_does_not_stay
    only_that_very_object_is_deleted
}

async fn finalizers_hold_a_deleted_object(store: Shared) {
    let held = json!({ "metadata": { "finalizers": ["acme.cert-manager.io/finalizer"] } });
    let stored = store.create(with(&order("a"), held)).await.unwrap();
    let mut watch = store.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: a");
    let held = store.delete(&stored.key).await.unwrap().unwrap();
    assert_eq!(store.delete(&stored.key).await.unwrap(), Some(held.clone()));
    let deleted = store.get(&stored.key).await.unwrap().unwrap();
    assert_eq!(held, deleted, "a deletion gives back what is there then");
    let metadata = deleted.metadata();
    assert!(metadata.is_deleted());
    assert_eq!(metadata.other["deletionGracePeriodSeconds"], 0);
    assert_eq!(metadata.generation, Some(2), "as an API server counts it");
    let pending = with(&deleted, json!({ "status": { "state": "pending" } }));
    let deleted = store.replace(pending, Part::Status).await.unwrap();
    let free = with(&deleted, json!({ "metadata": { "finalizers": [] } }));
    store.replace(free, Part::Finalizers).await.unwrap();
    assert_eq!(store.get(&stored.key).await.unwrap(), None);
    for expected in ["applied a", "applied a pending", "deleted a pending"] {
        assert_eq!(next(&mut watch).await, expected);
    }
}

async fn a_deleted_object_takes_no_new_finalizer(store: Shared) {
    let held = |names: &[&str]| json!({ "metadata": { "finalizers": names } });
    let stored = store.create(with(&order("a"), held(&["one"]))).await.unwrap();
    store.delete(&stored.key).await.unwrap();
    let written = store.replace(with(&order("a"), held(&["one", "two"])), Part::Metadata).await;
    let refused = written.unwrap_err().to_string();
    assert!(refused.starts_with("cannot write Order web/a: "), "{refused}");
    assert!(refused.contains("no new finalizers"), "{refused}");
}

async fn dependents_go_with_their_last_owner(store: Shared) {
    let first = store.create(object(Kind::Certificate, "first", json!({}))).await.unwrap();
    let second = store.create(object(Kind::Certificate, "second", json!({}))).await.unwrap();
    let both = store.create(with(&order("both"), owned_by(&[&first, &second]))).await.unwrap();
    store.create(with(&order("one"), owned_by(&[&first]))).await.unwrap();
    store.create(object(Kind::Challenge, "below", owned_by(&[&both]))).await.unwrap();
    store.delete(&first.key).await.unwrap();
    left(&store, Kind::Order, &["web/both"]).await;
    store.delete(&second.key).await.unwrap();
    left(&store, Kind::Order, &[]).await;
    left(&store, Kind::Challenge, &[]).await;
}

async fn finalizers_hold_dependents_too(store: Shared) {
    let owner = store.create(order("owner")).await.unwrap();
    let held = json!({ "metadata": { "finalizers": ["mine"] } });
    let challenge = with(&object(Kind::Challenge, "held", held), owned_by(&[&owner]));
    store.create(challenge).await.unwrap();
    let mut watch = store.watch(Kind::Challenge, Scope::all());
    assert_eq!(next(&mut watch).await, "all: held");
    store.delete(&owner.key).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied held");
    let held = store.get(&key(Kind::Challenge, "held")).await.unwrap().unwrap();
    assert!(held.metadata().is_deleted());
    let free = with(&held, json!({ "metadata": { "finalizers": null } }));
    store.replace(free, Part::Metadata).await.unwrap();
    assert_eq!(store.get(&key(Kind::Challenge, "held")).await.unwrap(), None);
}

async fn an_object_whose_owner_is_gone_already_does_not_stay(store: Shared) {
    let owner = store.create(order("owner")).await.unwrap();
    store.delete(&owner.key).await.unwrap();
    let late = store.create(object(Kind::Challenge, "late", owned_by(&[&owner]))).await.unwrap();
    assert_eq!(late.key.name.name, "late");
    left(&store, Kind::Challenge, &[]).await;
}

async fn only_that_very_object_is_deleted(store: Shared) {
    let first = store.create(order("a")).await.unwrap();
    assert_eq!(store.delete_exactly(&first.key, first.uid()).await.unwrap(), None);
    assert_eq!(store.delete_exactly(&first.key, first.uid()).await.unwrap(), None);
    let second = store.create(order("a")).await.unwrap();
    let refused = store.delete_exactly(&first.key, first.uid()).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })), "{refused:?}");
    assert_eq!(store.get(&first.key).await.unwrap(), Some(second));
}
