//! Who watches an API server and writes down every change, by nothing of ours but HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::runtime::Runtime;

use super::super::bed::PATIENCE;
use super::super::story::Turn;
use super::Cluster;
use super::api::{self, Api};

/// What is watched.
const KINDS: [&str; 12] = [
    "Certificate",
    "CertificateRequest",
    "Challenge",
    "ClusterIssuer",
    "Event",
    "HTTPRoute",
    "Ingress",
    "Issuer",
    "Order",
    "Pod",
    "Secret",
    "Service",
];

/// Kind, namespace and name.
type Place = (&'static str, String, String);

/// A watch over everything that an issuance touches, in all namespaces; it ends when it goes.
pub struct Witness {
    api: Api,
    shared: Arc<Shared>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    /// Every change with its revision: those of all kinds together are in the order of their commits.
    turns: Vec<(u64, Turn)>,
    /// What there is.
    live: BTreeMap<Place, Value>,
}

impl Witness {
    /// Begins to watch; what is there already is known when this returns.
    pub fn of(cluster: &Cluster) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (api, shared) = (Api::of(&cluster.kubeconfig()), Arc::new(Shared::default()));
        for kind in KINDS {
            let revision = runtime.block_on(list(&api, kind, &mut shared.seen().live));
            runtime.spawn(watch(api.clone(), kind, revision, Arc::clone(&shared)));
        }
        Self { api, shared, runtime: Some(runtime) }
    }

    /// Waits until the objects there are give something; those of a namespace are told where they never do.
    pub fn until<T>(
        &self,
        what: &str,
        namespace: &str,
        mut look: impl FnMut(&Objects<'_>) -> Option<T>,
    ) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut seen = self.shared.seen();
        loop {
            if let Some(found) = look(&Objects(&seen.live)) {
                return found;
            }
            assert!(
                Instant::now() < deadline,
                "in vain waited for {what} in {namespace}; there are{}",
                seen.states(namespace)
            );
            let pause = Duration::from_secs(1);
            let waited = self.shared.changed.wait_timeout(seen, pause);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// What happened to the objects that are wanted, by namespace and name, in the order of the commits. Complete only when
    /// nobody writes any more: it waits until all of that is seen.
    pub fn turns(&self, wanted: impl Fn(&str, &str) -> bool) -> Vec<Turn> {
        self.catch_up();
        let seen = self.shared.seen();
        let is_wanted = |turn: &Turn| {
            let text = |field: &str| turn.object["metadata"][field].as_str().unwrap_or_default();
            wanted(text("namespace"), text("name"))
        };
        let mut turns: Vec<(u64, Turn)> =
            seen.turns.iter().filter(|(_, turn)| is_wanted(turn)).cloned().collect();
        turns.sort_by_key(|(revision, _)| *revision);
        turns.into_iter().map(|(_, turn)| turn).collect()
    }

    /// Waits until what is seen is what the API server has.
    fn catch_up(&self) {
        let runtime = self.runtime.as_ref().unwrap();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let mut there = BTreeMap::new();
            for kind in KINDS {
                runtime.block_on(list(&self.api, kind, &mut there));
            }
            let revisions = |objects: &BTreeMap<Place, Value>| -> Vec<(Place, Value)> {
                let revision = |object: &Value| object["metadata"]["resourceVersion"].clone();
                objects.iter().map(|(place, object)| (place.clone(), revision(object))).collect()
            };
            if revisions(&there) == revisions(&self.shared.seen().live) {
                return;
            }
            assert!(Instant::now() < deadline, "the watches lag behind the API server");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Seen {
    /// What everything in a namespace says of itself, a line each.
    fn states(&self, namespace: &str) -> String {
        let told = |((kind, _, name), object): (&Place, &Value)| {
            let status = &object["status"];
            let conditions = status["conditions"].as_array().into_iter().flatten();
            let words = conditions
                .flat_map(|condition| ["type", "status", "message"].map(|field| &condition[field]));
            let words: Vec<&str> = [&status["state"], &status["reason"], &object["message"]]
                .into_iter()
                .chain(words)
                .filter_map(Value::as_str)
                .collect();
            let says = !words.is_empty() && *kind != "Pod";
            says.then(|| format!("\n{kind} {name}: {}", words.join(" ")))
        };
        self.live.iter().filter(|(place, _)| place.1 == namespace).filter_map(told).collect()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The objects of a moment.
pub struct Objects<'a>(&'a BTreeMap<Place, Value>);

impl Objects<'_> {
    /// Those of a kind in a namespace, `""` for objects without one.
    pub fn of(&self, kind: &str, namespace: &str) -> Vec<&Value> {
        let is_wanted = |place: &Place| place.0 == kind && place.1 == namespace;
        self.0.iter().filter(|(place, _)| is_wanted(place)).map(|(_, object)| object).collect()
    }
}

impl Shared {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, kind: &'static str, change: &Value) {
        let object = change["object"].clone();
        let revision: u64 =
            object["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse().unwrap();
        let gone = change["type"] == "DELETED";
        let mut seen = self.seen();
        if gone {
            seen.live.remove(&place(kind, &object));
        } else {
            seen.live.insert(place(kind, &object), object.clone());
        }
        seen.turns.push((revision, Turn { kind: kind.to_owned(), object, gone }));
        self.changed.notify_all();
    }
}

/// Where the objects of a kind are, in all namespaces.
fn path(kind: &str) -> String {
    api::path(&kind.to_lowercase(), None).expect("a kind that tests look at")
}

fn place(kind: &'static str, object: &Value) -> Place {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    (kind, text("namespace"), text("name"))
}

/// Adds the objects of a kind; returns the revision of the list.
async fn list(api: &Api, kind: &'static str, into: &mut BTreeMap<Place, Value>) -> String {
    let list = api.read(&path(kind)).await.unwrap();
    for object in list["items"].as_array().unwrap() {
        into.insert(place(kind, object), object.clone());
    }
    list["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

/// Notes every change of a kind since a revision, for as long as a test may take.
async fn watch(api: Api, kind: &'static str, revision: String, shared: Arc<Shared>) {
    let path = format!("{}?watch=1&timeoutSeconds=3600&resourceVersion={revision}", path(kind));
    let answer = api.get(&path).await.unwrap();
    let (mut chunks, mut pending) = (answer.bytes_stream(), Vec::new());
    while let Some(chunk) = chunks.next().await {
        pending.extend_from_slice(&chunk.unwrap());
        while let Some(end) = pending.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = pending.drain(..=end).collect();
            shared.note(kind, &serde_json::from_slice(&line).unwrap());
        }
    }
}
