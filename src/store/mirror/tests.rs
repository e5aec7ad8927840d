use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use serde_json::json;

use super::*;
use crate::model::ObjectName;
use crate::store::cluster_fault::ClusterFault;
use crate::store::memory::MemoryStore;
use crate::store::testing::Front;

/// Counts what is read of a store in memory, and has watches that a test can make fail.
#[derive(Clone, Debug)]
struct Distant {
    store: Arc<MemoryStore>,
    reads: Arc<AtomicU32>,
    /// Holds answers to looks back while it is held.
    slow: Arc<tokio::sync::Mutex<()>>,
    /// Whether looks get no answer.
    is_away: Arc<AtomicBool>,
    failures: tokio::sync::broadcast::Sender<()>,
    /// Number of watches that have been opened.
    watches: Arc<AtomicU32>,
}

impl Distant {
    fn new() -> Self {
        let (failures, _) = tokio::sync::broadcast::channel(8);
        Self {
            store: Arc::default(),
            reads: Arc::default(),
            slow: Arc::default(),
            is_away: Arc::default(),
            failures,
            watches: Arc::default(),
        }
    }

    fn reads(&self) -> u32 {
        self.reads.swap(0, Ordering::Relaxed)
    }
}

#[async_trait]
impl Front for Distant {
    fn behind(&self) -> &dyn Store {
        &*self.store
    }
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let found = self.store.get(key).await;
        drop(self.slow.lock().await);
        if self.is_away.load(Ordering::Relaxed) { Err(unreachable()) } else { found }
    }
    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.store.list(kind, scope).await
    }
    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        self.watches.fetch_add(1, Ordering::Relaxed);
        let failures = told_failures(self.failures.subscribe());
        stream::select(self.store.watch(kind, scope), failures).boxed()
    }
}

fn unreachable() -> StoreError {
    let (server, why) = ("https://server".into(), "connection refused".into());
    ClusterFault::Unreachable { server, why }.into()
}

fn told_failures(
    failures: tokio::sync::broadcast::Receiver<()>,
) -> BoxStream<'static, Result<Change, StoreError>> {
    let failed = |mut failures: tokio::sync::broadcast::Receiver<()>| async {
        failures.recv().await.ok()?;
        Some((Err(unreachable()), failures))
    };
    stream::unfold(failures, failed).boxed()
}

async fn mirror(store: &Distant) -> Mirror {
    let mirror = Mirror::new(Arc::new(store.clone()));
    for kind in [Kind::Order, Kind::Secret] {
        mirror.watch(kind, Scope::all()).next().await.unwrap().unwrap();
    }
    mirror
}

fn object(kind: Kind, name: &str) -> Record {
    let object = json!({
        "apiVersion": kind.api_version(),
        "kind": kind.as_str(),
        "metadata": { "name": name, "namespace": "web" },
    });
    Record::new(object).unwrap()
}

/// Gives an object an owner, which is made; tells where its objects are found.
async fn owned(mut record: Record, store: &Distant) -> (Record, Scope) {
    let owner = store.store.create(object(Kind::CertificateRequest, "web-1")).await.unwrap();
    record.object["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "cert-manager.io/v1",
        "kind": "CertificateRequest",
        "name": "web-1",
        "uid": owner.uid(),
        "controller": true,
    }]);
    (record, Scope::owned_by("web", owner.uid()))
}

fn key(kind: Kind, name: &str) -> Key {
    Key::new(kind, ObjectName::new("web", name))
}

/// Waits until the mirror has heard of something.
async fn until(mut heard: impl AsyncFnMut() -> bool) {
    let hearing = async {
        while !heard().await {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), hearing).await.unwrap();
}

#[tokio::test]
async fn what_is_watched_is_read_without_a_request() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let (order, owned) = owned(object(Kind::Order, "a"), &store).await;
    let written = mirror.create(order).await.unwrap();
    assert_eq!(mirror.get(&written.key).await.unwrap(), Some(written.clone()));
    assert_eq!(mirror.list(Kind::Order, &owned).await.unwrap(), std::slice::from_ref(&written));
    mirror.delete(&written.key).await.unwrap();
    assert_eq!(mirror.list(Kind::Order, &owned).await.unwrap(), []);
    assert_eq!(store.reads(), 0);
}

#[tokio::test]
async fn what_is_not_in_memory_is_looked_for_in_the_store() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    assert_eq!(mirror.get(&key(Kind::Order, "a")).await.unwrap(), None);
    assert_eq!(mirror.get(&key(Kind::Secret, "a")).await.unwrap(), None);
    assert_eq!(mirror.get_known(&key(Kind::Order, "b")).await.unwrap(), None, "as far as is told");
    // Nobody watches these.
    mirror.list(Kind::Issuer, &Scope::all()).await.unwrap();
    assert_eq!(store.reads(), 3);
}

#[tokio::test]
async fn what_another_one_has_just_deleted_is_found_gone_by_reading_anew() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let order = mirror.create(object(Kind::Order, "a")).await.unwrap();
    store.store.delete(&order.key).await.unwrap();
    // The watch has had no time to tell.
    assert_eq!(mirror.get(&order.key).await.unwrap(), Some(order.clone()));
    assert_eq!(mirror.get_anew(&order.key).await.unwrap(), None);
    assert_eq!(mirror.get(&order.key).await.unwrap(), None);
}

#[tokio::test]
async fn what_went_with_its_owner_is_not_made_again() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let (order, scope) = owned(object(Kind::Order, "a"), &store).await;
    let owner = key(Kind::CertificateRequest, "web-1");
    mirror.watch(owner.kind, Scope::all()).next().await.unwrap().unwrap();
    let made = mirror.create(order.clone()).await.unwrap();
    store.store.delete(&made.key).await.unwrap();
    until(async || mirror.list(Kind::Order, &scope).await.unwrap().is_empty()).await;
    store.reads();
    // A person has deleted it.
    let again = mirror.create(order.clone()).await.unwrap();
    assert_eq!(store.reads(), 1);
    // Its owner is deleted, and that it is gone is told before that.
    store.store.delete(&owner).await.unwrap();
    mirror.get_anew(&again.key).await.unwrap();
    let refused = mirror.create(order.clone()).await.unwrap_err();
    assert!(matches!(&refused, StoreError::Conflict { key } if *key == owner), "{refused}");
    assert_eq!(mirror.get_known(&owner).await.unwrap(), None);
    // Another one has taken its name.
    store.store.create(object(owner.kind, "web-1")).await.unwrap();
    mirror.create(order).await.unwrap_err();
}

#[tokio::test]
async fn the_content_of_secrets_is_read_when_it_is_needed() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let (mut secret, owned) = owned(object(Kind::Secret, "tls"), &store).await;
    secret.object["data"] = json!({ "tls.key": "a2V5" });
    let theirs = store.store.create(secret).await.unwrap();
    until(async || !mirror.list(Kind::Secret, &owned).await.unwrap().is_empty()).await;
    assert_eq!(mirror.get(&theirs.key).await.unwrap(), Some(theirs.clone()));
    assert_eq!(store.reads(), 1, "once, not for the list and then again");
    let mut ours = theirs;
    ours.object["data"] = json!({ "tls.key": "bmV3" });
    let ours = mirror.replace(ours, Part::Whole).await.unwrap();
    assert_eq!(mirror.get(&ours.key).await.unwrap(), Some(ours));
    assert_eq!(store.reads(), 0);
    let change = mirror.watch(Kind::Secret, Scope::all()).next().await.unwrap().unwrap();
    let Change::Resynced(told) = change else { panic!("{change:?}") };
    assert_eq!(told[0].object.get("data"), None);
}

#[tokio::test]
async fn a_write_on_something_old_makes_us_read_it_anew() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let old = mirror.create(object(Kind::Order, "a")).await.unwrap();
    let mut newer = old.clone();
    newer.object["spec"] = json!({ "commonName": "theirs" });
    let newer = store.store.replace(newer, Part::Whole).await.unwrap();
    let refused = mirror.replace(old, Part::Whole).await.unwrap_err();
    assert!(matches!(refused, StoreError::Conflict { .. }), "{refused}");
    assert_eq!(mirror.get(&newer.key).await.unwrap(), Some(newer));
}

#[tokio::test]
async fn what_another_one_deletes_is_a_conflict_and_then_gone() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let order = mirror.create(object(Kind::Order, "a")).await.unwrap();
    store.store.delete(&order.key).await.unwrap();
    // Whether the watch has told it by now or not.
    let refused = mirror.replace(order.clone(), Part::Whole).await.unwrap_err();
    let expected = [
        format!("cannot write {}: it was changed by another writer", order.key),
        format!("{} not found", order.key),
    ];
    assert!(expected.contains(&refused.to_string()), "{refused}");
    assert_eq!(mirror.get(&order.key).await.unwrap(), None);
}

#[tokio::test]
async fn everybody_is_told_of_a_write_once() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let mut changes = mirror.watch(Kind::Order, Scope::all());
    assert_eq!(changes.next().await.unwrap().unwrap(), Change::Resynced(Vec::new()));
    let ours = mirror.create(object(Kind::Order, "ours")).await.unwrap();
    let theirs = store.store.create(object(Kind::Order, "theirs")).await.unwrap();
    mirror.delete(&ours.key).await.unwrap();
    store.store.delete(&theirs.key).await.unwrap();
    let mut told = Vec::new();
    while told.len() < 4 {
        told.push(match changes.next().await.unwrap().unwrap() {
            Change::Applied(record) => format!("applied {}", record.key.name.name),
            Change::Deleted(record) => format!("deleted {}", record.key.name.name),
            Change::Resynced(_) => "all".to_owned(),
        });
    }
    told.sort_unstable();
    assert_eq!(told, ["applied ours", "applied theirs", "deleted ours", "deleted theirs"]);
}

#[tokio::test]
async fn what_somebody_else_s_finalizer_keeps_is_there() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let order = mirror.create(object(Kind::Order, "a")).await.unwrap();
    let mut held = order.clone();
    held.object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    // The mirror has not heard of the finalizer when it deletes.
    store.store.replace(held, Part::Metadata).await.unwrap();
    store.reads();
    let left = mirror.delete(&order.key).await.unwrap().unwrap();
    assert!(left.metadata().is_deleted());
    assert_eq!(mirror.get(&order.key).await.unwrap(), Some(left));
    assert_eq!(store.reads(), 0, "the answer says all");
}

#[tokio::test]
async fn what_others_let_go_meanwhile_is_gone_after_a_deletion() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let mut order = object(Kind::Order, "a");
    order.object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let order = mirror.create(order).await.unwrap();
    let mut free = order.clone();
    free.object["metadata"]["finalizers"] = json!([]);
    store.store.replace(free, Part::Metadata).await.unwrap();
    assert_eq!(mirror.delete(&order.key).await.unwrap(), None);
    assert_eq!(mirror.list(Kind::Order, &Scope::all()).await.unwrap(), []);
}

#[tokio::test]
async fn while_a_watch_fails_the_store_is_read() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    mirror.create(object(Kind::Order, "a")).await.unwrap();
    let mut changes = mirror.watch(Kind::Order, Scope::all());
    changes.next().await.unwrap().unwrap();
    store.failures.send(()).unwrap();
    until(async || {
        mirror.list(Kind::Order, &Scope::all()).await.unwrap();
        store.reads() > 0
    })
    .await;
    assert!(changes.next().await.unwrap().unwrap_err().may_pass());
    // The watch goes on, and so does the memory.
    let another = store.store.create(object(Kind::Order, "b")).await.unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap(), Change::Applied(another));
    until(async || {
        let listed = mirror.list(Kind::Order, &Scope::all()).await.unwrap();
        listed.len() == 2 && store.reads() == 0
    })
    .await;
}

#[tokio::test]
async fn whoever_is_told_of_a_change_reads_it_even_when_the_watch_failed_at_first() {
    let store = Distant::new();
    let mirror = Mirror::new(Arc::new(store.clone()));
    let mut changes = mirror.watch(Kind::Order, Scope::all());
    store.failures.send(()).unwrap();
    let mut failed = false;
    for name in ["a", "b", "c"] {
        let made = store.store.create(object(Kind::Order, name)).await.unwrap();
        loop {
            match changes.next().await.unwrap() {
                Ok(Change::Applied(record)) if record == made => break,
                Ok(Change::Resynced(records)) if records.contains(&made) => break,
                told => failed |= told.is_err(),
            }
        }
        assert_eq!(mirror.get(&made.key).await.unwrap(), Some(made));
    }
    assert!(failed);
    assert_eq!(store.watches.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn what_is_missing_from_a_new_list_is_told_as_gone() {
    let mut cache = KindCache::new();
    let (told, mut changes) = mpsc::unbounded_channel();
    cache.tell(Scope::all(), told);
    let store = MemoryStore::new();
    let mut records = Vec::new();
    for name in ["deleted", "stays", "written"] {
        records.push(store.create(object(Kind::Order, name)).await.unwrap());
    }
    let [deleted, stays, written] = &records[..] else { unreachable!() };
    cache.watched(Change::Resynced(vec![deleted.clone(), stays.clone()]));
    cache.written(written);
    cache.watched(Change::Resynced(vec![stays.clone()]));
    drop(store);
    let mut heard = Vec::new();
    while let Ok(change) = changes.try_recv() {
        heard.push(change.unwrap());
    }
    let both = vec![stays.clone(), written.clone()];
    assert_eq!(
        heard[1..],
        [
            Change::Applied(written.clone()),
            Change::Resynced(both.clone()),
            Change::Deleted(deleted.clone()),
        ]
    );
    assert_eq!(cache.list(&Scope::all()), both);
}

#[tokio::test]
async fn what_is_made_while_it_is_looked_for_stays() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let order = object(Kind::Order, "a");
    // The look has its answer when the Order is made.
    let mut look = std::pin::pin!(mirror.get(&order.key));
    let slow = store.slow.lock().await;
    assert!(futures_util::poll!(&mut look).is_pending());
    let made = mirror.create(order.clone()).await.unwrap();
    drop(slow);
    assert_eq!(look.await.unwrap(), None);
    store.reads();
    assert_eq!(mirror.get(&order.key).await.unwrap(), Some(made));
    assert_eq!(store.reads(), 0);
}

#[tokio::test]
async fn what_goes_while_it_is_looked_for_does_not_come_back() {
    let store = Distant::new();
    let mirror = mirror(&store).await;
    let order = mirror.create(object(Kind::Order, "a")).await.unwrap();
    let mut changes = mirror.watch(Kind::Order, Scope::all());
    changes.next().await.unwrap().unwrap();
    // A write on something old makes us look; the look finds it before it goes.
    let mut newer = order.clone();
    newer.object["spec"] = json!({ "commonName": "theirs" });
    let newer = store.store.replace(newer, Part::Whole).await.unwrap();
    let mut write = std::pin::pin!(mirror.replace(order, Part::Whole));
    let slow = store.slow.lock().await;
    assert!(futures_util::poll!(&mut write).is_pending());
    store.store.delete(&newer.key).await.unwrap();
    while !matches!(changes.next().await.unwrap().unwrap(), Change::Deleted(_)) {}
    drop(slow);
    write.await.unwrap_err();
    assert_eq!(mirror.list(Kind::Order, &Scope::all()).await.unwrap(), []);
}

#[tokio::test]
async fn for_one_look_a_namespace_is_read_once_and_what_is_written_meanwhile_is_seen() {
    for kind in [Kind::Order, Kind::Secret] {
        let store = Distant::new();
        let (record, owned) = owned(object(kind, "a"), &store).await;
        let made = store.store.create(record.clone()).await.unwrap();
        let mirror = Mirror::for_one_look(Arc::new(store.clone()));
        for _ in 0..2 {
            assert_eq!(mirror.list(kind, &owned).await.unwrap(), std::slice::from_ref(&made));
            let nobodys = Scope::owned_by("web", "another");
            assert_eq!(mirror.list(kind, &nobodys.brief()).await.unwrap(), []);
        }
        assert_eq!(store.reads(), 1);
        mirror.delete(&made.key).await.unwrap();
        assert_eq!(mirror.list(kind, &owned).await.unwrap(), []);
        // One of nobody's is not kept, and one that others have made since is there all the same.
        store.store.create(object(kind, "b")).await.unwrap();
        assert!(mirror.get(&key(kind, "b")).await.unwrap().is_some());
        assert_eq!((store.reads(), store.watches.load(Ordering::Relaxed)), (1, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_list_lacks_is_looked_for_until_the_store_answers() {
    let store = Distant::new();
    let mirror = Mirror::new(Arc::new(store.clone()));
    mirror.room.caches().insert(Kind::Order, KindCache::new());
    let (list, told) = mpsc::unbounded_channel();
    let lists = stream::unfold(told, |mut told| async { Some((told.recv().await?, told)) });
    let following = follow(Arc::downgrade(&mirror.room), Kind::Order, lists.boxed());
    let following = tokio::spawn(following);
    list.send(Ok(Change::Resynced(Vec::new()))).unwrap();
    let [gone, stays] = ["gone", "stays"].map(|name| object(Kind::Order, name));
    let (gone, stays) = (mirror.create(gone).await.unwrap(), mirror.create(stays).await.unwrap());
    // Its deletion was never told.
    store.store.delete(&gone.key).await.unwrap();
    store.is_away.store(true, Ordering::Relaxed);
    list.send(Ok(Change::Resynced(Vec::new()))).unwrap();
    tokio::time::sleep(Duration::from_mins(5)).await;
    let listed = async || mirror.list(Kind::Order, &Scope::all()).await.unwrap();
    assert_eq!(listed().await, [gone, stays.clone()], "nobody knows yet");
    let reads = store.reads();
    assert!((10..30).contains(&reads), "{reads} reads of two objects in five minutes");
    store.is_away.store(false, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(listed().await, [stays]);
    assert_eq!(store.reads(), 2);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(store.reads(), 0, "both were answered for");
    drop(list);
    following.await.unwrap();
}
