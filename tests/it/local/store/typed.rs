//! The typed view, and Events.

use std::sync::Arc;

use jiff::Timestamp;
use kubectl_acme::model::event::{reason, source};
use kubectl_acme::model::{Blob, Event, Issuer, Kind, ObjectName, Order, Secret, Severity, State};
use kubectl_acme::store::error::StoreError;
use kubectl_acme::store::event_cache::Notice;
use kubectl_acme::store::resources::{Resources, typed};
use kubectl_acme::store::{Scope, events};
use serde_json::json;

use super::{Shared, names, object, order};

promises! {
    the_typed_view_writes_parts
    an_event_told_again_is_counted_up
    |
    what_has_not_the_shape_of_its_kind_is_named
}

async fn the_typed_view_writes_parts(store: Shared) {
    let orders: Resources<Order> = Resources::new(store, Kind::Order);
    let mut given = Order::default();
    given.metadata.generate_name = "web-".into();
    given.metadata.namespace = "web".into();
    given.spec.common_name = "www.example.com".into();
    given.spec.request = Blob(b"request".to_vec());
    let mut order = orders.create(&given).await.unwrap();
    assert_eq!((&order.kind[..], &order.api_version[..]), ("Order", "acme.cert-manager.io/v1"));
    let stale = order.clone();

    order.spec.common_name = "ignored".into();
    order.metadata.finalizers.push("f".into());
    order = orders.replace_metadata(&order).await.unwrap();
    order.status.state = Some(State::Pending);
    order = orders.replace_status(&order, &order.status).await.unwrap();
    assert_eq!(order.spec.common_name, "www.example.com");
    assert_eq!((order.status.state, order.metadata.finalizers.len()), (Some(State::Pending), 1));
    let late = orders.replace_status(&stale, &stale.status).await;
    assert!(matches!(late, Err(StoreError::Conflict { .. })));

    order.spec.common_name = "changed".into();
    order.status.state = None;
    let order = orders.replace(&order).await.unwrap();
    assert_eq!((order.status.state, order.metadata.generation), (Some(State::Pending), Some(2)));
    assert_eq!(orders.list(&Scope::all()).await.unwrap(), std::slice::from_ref(&order));
    orders.delete(&order.name()).await.unwrap();
    assert!(orders.get(&order.name()).await.unwrap().unwrap().metadata.is_deleted());
}

async fn what_has_not_the_shape_of_its_kind_is_named(store: Shared) {
    let broken = object(Kind::Order, "a", json!({ "spec": { "request": 5 } }));
    store.create(broken).await.unwrap();
    let orders: Resources<Order> = Resources::new(Arc::clone(&store), Kind::Order);
    let error = orders.get(&ObjectName::new("web", "a")).await.unwrap_err().to_string();
    assert!(
        error.contains("Order web/a: spec.request: ") && error.contains("integer `5`"),
        "{error}"
    );
    store.create(order("b")).await.unwrap();
    let readable = orders.list(&Scope::all()).await.unwrap();
    let readable: Vec<_> = readable.iter().map(|order| &order.metadata.name[..]).collect();
    assert_eq!(readable, ["b"]);

    let broken = object(Kind::Secret, "s", json!({ "type": ["hunter2"] }));
    store.create(broken).await.unwrap();
    let secrets: Resources<Secret> = Resources::new(store, Kind::Secret);
    let error = secrets.get(&ObjectName::new("web", "s")).await.unwrap_err().to_string();
    assert!(error.contains("Secret web/s") && !error.contains("hunter2"), "{error}");
}

async fn an_event_told_again_is_counted_up(store: Shared) {
    let about = store.create(order("a")).await.unwrap();
    let about = events::reference(&typed::<Order>(about).unwrap());
    let issuer = object(Kind::ClusterIssuer, "acme", json!({ "spec": {} }));
    let issuer = typed::<Issuer>(store.create(issuer).await.unwrap()).unwrap();
    let notice = Notice {
        severity: Severity::Warning,
        reason: reason::PRESENT_ERROR,
        message: "Error presenting challenge: no port 80",
        component: source::CHALLENGES,
    };
    let emit = async |about, notice, now: &str| {
        let now: Timestamp = format!("2026-11-21T04:30:{now}Z").parse().unwrap();
        events::emit(&*store, about, notice, now).await.unwrap();
    };
    emit(&about, notice, "25.5").await;
    emit(&about, notice, "26.5").await;
    emit(&about, Notice { message: "another", ..notice }, "26.5").await;
    emit(&about, Notice { message: "same instant", ..notice }, "26.5").await;
    emit(&about, Notice { severity: Severity::Normal, ..notice }, "27").await;
    emit(&events::reference(&issuer), notice, "28").await;

    let view: Resources<Event> = Resources::new(Arc::clone(&store), Kind::Event);
    let told = view.list(&Scope::about(&about.uid)).await.unwrap();
    let counts: Vec<_> = told.iter().map(|e| (e.message.as_str(), e.count.unwrap())).collect();
    let expected = [(notice.message, 2), ("another", 1), ("same instant", 1), (notice.message, 1)];
    assert_eq!(counts, expected, "names sort by time");
    let first = &told[0];
    assert_eq!(first.metadata.object_name().to_string(), "web/a.18e9f51ba11fef00");
    assert_eq!(first.first_timestamp.unwrap().to_string(), "2026-11-21T04:30:25Z");
    assert_eq!(first.last_timestamp.unwrap().to_string(), "2026-11-21T04:30:26Z");
    let times: Vec<String> = first.occasions().iter().map(|told| told.at.to_string()).collect();
    assert_eq!(times, ["2026-11-21T04:30:25.5Z", "2026-11-21T04:30:26.5Z"]);
    assert_eq!(first.involved_object, about);
    assert_eq!(first.source.component, source::CHALLENGES);
    assert_eq!(first.reporting_component, source::CHALLENGES);
    assert_eq!(first.reporting_instance, "kubectl-acme");
    // What is written later has the greater revision, at the first time and the last one.
    let revisions: Vec<_> = first.occasions().iter().map(|told| told.revision.unwrap()).collect();
    let others: Vec<_> = told[1..].iter().map(|e| e.occasions()[0].revision.unwrap()).collect();
    assert!(revisions.is_sorted() && others.is_sorted(), "{revisions:?} {others:?}");
    assert!(revisions[1] < others[0], "{revisions:?} {others:?}");
    assert_eq!(names(&store, Kind::Event, Scope::namespace("default")).await.len(), 1);
}
