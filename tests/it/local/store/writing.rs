//! What is written, and what a write leaves alone.

use std::sync::Arc;

use futures_util::future::join_all;
use jiff::Timestamp;
use kubectl_acme::model::{Kind, Record};
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::{Part, Scope};
use serde_json::json;

use super::{Shared, count, count_up, counter, key, next, object, order, owned_by, with};

promises! {
    a_new_object_gets_identity_and_revision
    a_name_is_made_from_generate_name
    what_is_there_is_not_created_again
    a_stale_write_is_a_conflict_and_one_without_revision_is_not
    a_write_meant_for_an_older_object_of_that_name_is_a_conflict
    a_write_to_what_is_not_there_says_so
    a_write_that_changes_nothing_keeps_the_revision
    generation_grows_with_the_spec_only
    status_and_the_rest_are_written_apart
    a_manifest_applied_again_keeps_what_is_not_its_own
    text_in_a_secret_is_stored_as_data
    names_are_checked
    concurrent_writers_lose_nothing
    finalizers_are_written_alone
    |
    unknown_fields_are_kept
    events_go_a_hundred_days_after_they_were_told_last
    of_many_events_about_one_object_the_newest_are_kept
}

async fn a_new_object_gets_identity_and_revision(store: Shared) {
    let before = Timestamp::now();
    let theirs =
        json!({ "uid": "mine", "resourceVersion": "77", "generation": 9, "managedFields": [] });
    let given = with(&order("a"), json!({ "metadata": theirs }));
    let stored = store.create(given).await.unwrap();
    let metadata = stored.metadata();
    assert_eq!(metadata.uid.len(), 36, "{}", metadata.uid);
    assert_ne!(metadata.resource_version, "77");
    assert_eq!(metadata.generation, Some(1));
    assert_eq!(metadata.other.get("managedFields"), None);
    let age = before.duration_since(metadata.creation_timestamp.unwrap().timestamp());
    assert!(age.as_secs().abs() <= 1, "{age}");
    assert_eq!(store.get(&stored.key).await.unwrap(), Some(stored));
    let secret = store.create(object(Kind::Secret, "s", json!({}))).await.unwrap();
    assert_eq!(secret.metadata().generation, None, "an API server counts none for Secrets");
}

async fn a_name_is_made_from_generate_name(store: Shared) {
    let unnamed = with(&order(""), json!({ "metadata": { "generateName": "web-" } }));
    let first = store.create(unnamed.clone()).await.unwrap().key;
    let second = store.create(unnamed).await.unwrap().key;
    assert_ne!(first, second);
    assert_eq!((first.name.name.len(), &first.name.name[..4]), (9, "web-"));
    assert!(store.get(&first).await.unwrap().is_some());
}

async fn what_is_there_is_not_created_again(store: Shared) {
    store.create(order("a")).await.unwrap();
    let again = store.create(order("a")).await;
    assert!(matches!(again, Err(StoreError::AlreadyExists { key }) if key == order("a").key));
}

async fn a_stale_write_is_a_conflict_and_one_without_revision_is_not(store: Shared) {
    let first = store.create(order("a")).await.unwrap();
    let change = |text: &str| json!({ "spec": { "commonName": text } });
    let second = store.replace(with(&first, change("x")), Part::Whole).await.unwrap();
    assert_ne!(first.resource_version(), second.resource_version());
    for part in [Part::Whole, Part::Status, Part::Metadata] {
        let stale = store.replace(with(&first, change("y")), part).await;
        assert!(matches!(stale, Err(StoreError::Conflict { .. })), "{part:?}");
    }
    assert!(matches!(store.apply(first).await, Err(StoreError::Conflict { .. })));
    let unconditional = store.replace(with(&order("a"), change("z")), Part::Whole).await.unwrap();
    assert_eq!(unconditional.text("/spec/commonName"), "z");
}

async fn a_write_meant_for_an_older_object_of_that_name_is_a_conflict(store: Shared) {
    let first = store.create(order("a")).await.unwrap();
    store.delete(&first.key).await.unwrap();
    store.create(order("a")).await.unwrap();
    let late = with(&first, json!({ "metadata": { "resourceVersion": null } }));
    let written = store.replace(late, Part::Whole).await;
    assert!(matches!(written, Err(StoreError::Conflict { .. })), "{written:?}");
}

async fn a_write_to_what_is_not_there_says_so(store: Shared) {
    let written = store.replace(order("a"), Part::Whole).await;
    assert!(matches!(written, Err(StoreError::NotFound { key }) if key == order("a").key));
    assert_eq!(store.get(&order("a").key).await.unwrap(), None);
    store.delete(&order("a").key).await.unwrap();
}

async fn a_write_that_changes_nothing_keeps_the_revision(store: Shared) {
    let mut watch = store.watch(Kind::Order, Scope::all());
    assert_eq!(next(&mut watch).await, "all: ");
    let stored = store.apply(order("a")).await.unwrap();
    for part in [Part::Whole, Part::Metadata, Part::Status] {
        assert_eq!(store.replace(stored.clone(), part).await.unwrap(), stored, "{part:?}");
    }
    let empty = with(&stored, json!({ "status": {} }));
    assert_eq!(store.replace(empty, Part::Status).await.unwrap(), stored);
    assert_eq!(store.apply(order("a")).await.unwrap(), stored);
    store.create(order("b")).await.unwrap();
    assert_eq!(next(&mut watch).await, "applied a");
    assert_eq!(next(&mut watch).await, "applied b", "nothing is told between the two");
}

async fn generation_grows_with_the_spec_only(store: Shared) {
    let mut stored = store.create(order("a")).await.unwrap();
    for (part, change, generation) in [
        (Part::Status, json!({ "status": { "state": "pending" } }), 1),
        (Part::Metadata, json!({ "metadata": { "annotations": { "a": "b" } } }), 1),
        (Part::Whole, json!({ "metadata": { "labels": { "a": "b" } } }), 1),
        (Part::Whole, json!({ "spec": { "commonName": "a.example" } }), 2),
        (Part::Whole, json!({ "metadata": { "generation": 50 } }), 2),
    ] {
        stored = store.replace(with(&stored, change.clone()), part).await.unwrap();
        assert_eq!(stored.metadata().generation, Some(generation), "{change}");
    }
}

async fn status_and_the_rest_are_written_apart(store: Shared) {
    let all = |text: &str| {
        json!({
            "metadata": { "annotations": { "which": text } },
            "spec": { "commonName": text },
            "status": { "reason": text },
        })
    };
    let seen = |record: &Record| {
        ["/metadata/annotations/which", "/spec/commonName", "/status/reason"]
            .map(|field| record.text(field).to_owned())
    };
    let mut stored = store.create(with(&order("a"), all("one"))).await.unwrap();
    assert_eq!(seen(&stored), ["one", "one", ""]);
    for (part, text, expected) in [
        (Part::Status, "two", ["one", "one", "two"]),
        (Part::Metadata, "three", ["three", "one", "two"]),
        (Part::Whole, "four", ["four", "four", "two"]),
    ] {
        stored = store.replace(with(&stored, all(text)), part).await.unwrap();
        assert_eq!(seen(&stored), expected);
    }
    let without = with(&stored, json!({ "status": null }));
    let stored = store.replace(without, Part::Status).await.unwrap();
    assert_eq!(stored.object.get("status"), None);
    let secret = store.create(object(Kind::Secret, "s", json!({}))).await.unwrap();
    let refused = store.replace(secret, Part::Status).await.unwrap_err();
    assert_eq!(refused.to_string(), "cannot write Secret web/s: a Secret has no status");
}

async fn unknown_fields_are_kept(store: Shared) {
    let given = json!({
        "metadata": { "selfMade": [1, 2.5, null], "annotations": { "ü": "\u{1f512}" } },
        "spec": { "solver": { "future": { "deep": [true, u64::MAX] } } },
        "extra": "kept",
    });
    let stored = store.create(with(&order("a"), given)).await.unwrap();
    let news = with(&stored, json!({ "status": { "news": {} } }));
    store.replace(news, Part::Status).await.unwrap();
    let read = store.get(&stored.key).await.unwrap().unwrap();
    assert_eq!(read.object["metadata"]["selfMade"], json!([1, 2.5, null]));
    assert_eq!(read.text("/metadata/annotations/ü"), "\u{1f512}");
    assert_eq!(read.object["spec"]["solver"]["future"]["deep"][1], json!(u64::MAX));
    assert_eq!((read.text("/extra"), &read.object["status"]["news"]), ("kept", &json!({})));
}

async fn a_manifest_applied_again_keeps_what_is_not_its_own(store: Shared) {
    let manifest = |text: &str| {
        let annotations = json!({
            text: "", "kubectl-acme/order-next-try": text, "kubectl-acme/challenge-type": text,
        });
        let given = json!({
            "metadata": { "labels": { text: "" }, "annotations": annotations },
            "spec": { "commonName": text },
            "status": { "reason": text },
        });
        with(&order("a"), given)
    };
    let owner = store.create(object(Kind::Certificate, "owner", json!({}))).await.unwrap();
    let stored = store.apply(manifest("one")).await.unwrap();
    assert_eq!(stored.object.get("status"), None);
    let ours =
        json!({ "finalizers": ["f"], "annotations": { "kubectl-acme/order-next-try": "ours" } });
    let ours = with(&with(&stored, json!({ "metadata": ours })), owned_by(&[&owner]));
    let stored = store.replace(ours, Part::Metadata).await.unwrap();
    let ours = with(&stored, json!({ "status": { "reason": "ours" } }));
    let stored = store.replace(ours, Part::Status).await.unwrap();

    let again = store.apply(manifest("two")).await.unwrap();
    let metadata = again.metadata();
    assert_eq!(again.uid(), stored.uid());
    assert_eq!(metadata.generation, Some(2));
    assert_eq!(metadata.labels.keys().collect::<Vec<_>>(), ["two"]);
    assert_eq!(
        metadata.annotations.keys().collect::<Vec<_>>(),
        ["kubectl-acme/challenge-type", "kubectl-acme/order-next-try", "two"]
    );
    assert_eq!(metadata.annotations["kubectl-acme/order-next-try"], "ours");
    assert_eq!(metadata.annotations["kubectl-acme/challenge-type"], "two", "people write it");
    let plain = with(&order("a"), json!({ "spec": { "commonName": "two" } }));
    let plain = store.apply(plain).await.unwrap().metadata().annotations;
    assert_eq!(plain.keys().collect::<Vec<_>>(), ["kubectl-acme/order-next-try"]);
    assert_eq!(metadata.finalizers, ["f"]);
    assert_eq!(metadata.owner_references.len(), 1);
    assert_eq!((again.text("/spec/commonName"), again.text("/status/reason")), ("two", "ours"));
}

async fn text_in_a_secret_is_stored_as_data(store: Shared) {
    let given = json!({ "data": { "a": "b2xk\n", "b": "a2VwdA==" }, "stringData": { "a": "new" } });
    let stored = store.create(object(Kind::Secret, "s", given)).await.unwrap();
    assert_eq!(stored.object["data"], json!({ "a": "bmV3", "b": "a2VwdA==" }));
    assert_eq!((stored.object.get("stringData"), stored.text("/type")), (None, "Opaque"));
    for broken in [
        json!({ "data": { "a": "hunter2!" } }),
        json!({ "data": "hunter2!" }),
        json!({ "stringData": { "a": ["hunter2!"] } }),
    ] {
        let refused = store.apply(object(Kind::Secret, "s", broken)).await.unwrap_err().to_string();
        assert!(refused.starts_with("cannot write Secret web/s: "), "{refused}");
        assert!(!refused.contains("hunter2"), "{refused}");
    }
}

async fn names_are_checked(store: Shared) {
    let long = "a".repeat(254);
    for name in ["", "Web", "a_b", "-a", "a-", "a..b", "a b", "ä", long.as_str()] {
        let refused = store.create(order(name)).await;
        assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{name}");
    }
    for namespace in ["", "Web", "a.b", &long[..64]] {
        let given = with(&order("a"), json!({ "metadata": { "namespace": namespace } }));
        let refused = store.create(Record::new(given.object).unwrap()).await;
        assert!(matches!(refused, Err(StoreError::Invalid { .. })), "{namespace}");
    }
    let everywhere = object(Kind::ClusterIssuer, "acme", json!({}));
    assert!(store.create(everywhere.clone()).await.is_ok());
    let misplaced = with(&everywhere, json!({ "metadata": { "namespace": "web" } }));
    let refused = store.create(Record::new(misplaced.object).unwrap()).await.unwrap_err();
    let expected = "cannot write ClusterIssuer web/acme: a ClusterIssuer has no namespace";
    assert_eq!(refused.to_string(), expected);
    assert!(store.create(order("a.b-c.1")).await.is_ok());
}

async fn finalizers_are_written_alone(store: Shared) {
    let labelled = json!({ "metadata": { "labels": { "a": "b" }, "finalizers": ["old"] } });
    let stored = store.create(with(&order("a"), labelled)).await.unwrap();
    let given = |names: &[&str]| json!({ "metadata": { "labels": {}, "finalizers": names } });
    let written = store.replace(with(&stored, given(&["new"])), Part::Finalizers).await.unwrap();
    let metadata = written.metadata();
    assert_eq!((metadata.finalizers, metadata.labels.len()), (vec!["new".to_owned()], 1));
    let stale = store.replace(with(&stored, given(&[])), Part::Finalizers).await;
    assert!(matches!(stale, Err(StoreError::Conflict { .. })), "{stale:?}");
    let written = store.replace(with(&written, given(&[])), Part::Finalizers).await.unwrap();
    assert!(written.metadata().finalizers.is_empty());
}

async fn concurrent_writers_lose_nothing(store: Shared) {
    store.create(counter()).await.unwrap();
    let writers = (0..4).map(|_| tokio::spawn(count_up(Arc::clone(&store), 25)));
    assert!(join_all(writers).await.iter().all(Result::is_ok));
    assert_eq!(count(&store.get(&key(Kind::Order, "counter")).await.unwrap().unwrap()), 100);
}

fn event(name: &str, about: &str, told: &str) -> Record {
    let involved = json!({ "uid": about });
    object(Kind::Event, name, json!({ "involvedObject": involved, "lastTimestamp": told }))
}

async fn events(store: &Shared) -> Vec<String> {
    let events = store.list(Kind::Event, &Scope::all()).await.unwrap();
    events.into_iter().map(|event| event.key.name.name).collect()
}

async fn events_go_a_hundred_days_after_they_were_told_last(store: Shared) {
    store.create(event("old", "one", "2020-01-01T00:00:00Z")).await.unwrap();
    let again = store.create(event("again", "one", "2020-01-01T00:00:00Z")).await.unwrap();
    let again = with(&again, json!({ "lastTimestamp": "2020-01-02T00:00:00Z" }));
    store.replace(again, Part::Whole).await.unwrap();
    store.create(event("last-day", "gone", "2020-04-10T00:00:00Z")).await.unwrap();
    assert_eq!(events(&store).await, ["again", "last-day", "old"]);
    let mut watch = store.watch(Kind::Event, Scope::all());
    next(&mut watch).await;
    store.create(event("new", "another", "2020-04-11T00:00:00Z")).await.unwrap();
    assert_eq!(events(&store).await, ["again", "last-day", "new"]);
    let heard = [next(&mut watch).await, next(&mut watch).await];
    assert_eq!(heard, ["applied new", "deleted old"]);
    // A clock that is ahead by a thousand years.
    store.create(event("tomorrow", "another", "3020-04-11T00:00:00Z")).await.unwrap();
    assert_eq!(events(&store).await, ["tomorrow"], "the others are old by the store's clock");
}

async fn of_many_events_about_one_object_the_newest_are_kept(store: Shared) {
    store.create(event("other", "another", "2020-01-01T00:00:00Z")).await.unwrap();
    let first = store.create(event("e000", "one", "2020-01-01T00:00:00Z")).await.unwrap();
    let counted_up = with(&first, json!({ "lastTimestamp": "2020-01-02T00:00:00Z" }));
    store.replace(counted_up, Part::Whole).await.unwrap();
    for number in 1..203 {
        let told = format!("2020-01-01T00:{:02}:{:02}Z", number / 60, number % 60);
        store.create(event(&format!("e{number:03}"), "one", &told)).await.unwrap();
    }
    let kept = events(&store).await;
    assert_eq!(kept.len(), 201);
    assert_eq!(kept[..2], ["e000", "e004"]);
    assert_eq!(kept[199..], ["e202", "other"]);
}
