//! The process is killed after every write to the store, and before every write is recorded: the next run always ends with
//! the certificate, with one account and one order at the CA, and leaves nothing behind.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use kubectl_acme::ca::{self, Config, Server};
use kubectl_acme::commands::drive::{Engine, Equipment};
use kubectl_acme::controllers::selection::Selection;
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::model::{Key, Kind, ObjectName, Record};
use kubectl_acme::reconcile::schedule::Limits;
use kubectl_acme::solvers::http01::listener::Listener;
use kubectl_acme::store::memory::MemoryStore;
use kubectl_acme::store::{Change, Part, Scope, Store, StoreError};
use serde_json::json;

/// What happens to the write at which the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Death {
    /// It is in the store.
    AfterTheWrite,
    /// The deed is done, its record is lost.
    BeforeTheWrite,
}

/// A store whose process dies at one write.
#[derive(Debug)]
struct Mortal {
    store: Arc<dyn Store>,
    left: AtomicI64,
    death: Death,
}

impl Mortal {
    fn dead() -> StoreError {
        StoreError::Unusable { place: "test".to_owned(), why: "the process is dead".to_owned() }
    }

    fn alive(&self) -> Result<(), StoreError> {
        if self.left.load(Ordering::SeqCst) < 0 { Err(Self::dead()) } else { Ok(()) }
    }

    /// Counts a write; tells whether it still reaches the store.
    fn write(&self) -> Result<bool, StoreError> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        match left {
            1.. => Ok(true),
            0 if self.death == Death::AfterTheWrite => Ok(false),
            _ => Err(Self::dead()),
        }
    }
}

/// Passes a write on unless the process has died; dies after it when it is the last one.
macro_rules! write {
    ($self:ident, $write:expr) => {{
        let lives = $self.write()?;
        let written = $write.await;
        if lives { written } else { written.and(Err(Mortal::dead())) }
    }};
}

#[async_trait]
impl Store for Mortal {
    async fn get(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        self.alive()?;
        self.store.get(key).await
    }

    async fn list(&self, kind: Kind, scope: &Scope) -> Result<Vec<Record>, StoreError> {
        self.alive()?;
        self.store.list(kind, scope).await
    }

    async fn create(&self, record: Record) -> Result<Record, StoreError> {
        write!(self, self.store.create(record))
    }

    async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
        write!(self, self.store.replace(record, part))
    }

    async fn apply(&self, record: Record) -> Result<Record, StoreError> {
        write!(self, self.store.apply(record))
    }

    async fn delete(&self, key: &Key) -> Result<(), StoreError> {
        write!(self, self.store.delete(key))
    }

    async fn delete_exactly(&self, key: &Key, uid: &str) -> Result<(), StoreError> {
        write!(self, self.store.delete_exactly(key, uid))
    }

    fn watch(&self, kind: Kind, scope: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
        self.store.watch(kind, scope).boxed()
    }
}

/// A CA, and where its validation looks.
struct Bed {
    server: Server,
    port: u16,
}

impl Bed {
    async fn start() -> Self {
        // A free port that the listeners of all lives share, one after the other.
        let port = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let config = Config { reuse_orders: false, ..Config::default() };
        let server = ca::serve(config, Arc::new(fetcher(port))).await.unwrap();
        Self { server, port }
    }

    fn manifests(&self) -> [Record; 2] {
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Issuer",
            "metadata": {"name": "acme", "namespace": "default"},
            "spec": {"acme": {
                "server": self.server.directory_url(),
                "caBundle": base64(self.server.tls_root_pem()),
                "privateKeySecretRef": {"name": "acme-account"},
                "solvers": [{"http01": {"ingress": {}}}],
            }},
        });
        let certificate = json!({
            "apiVersion": "cert-manager.io/v1",
            "kind": "Certificate",
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {
                "secretName": "web-tls",
                "dnsNames": ["a.example.com", "b.example.com"],
                "privateKey": {"algorithm": "ECDSA"},
                "issuerRef": {"name": "acme"},
            },
        });
        [issuer, certificate].map(|object| Record::new(object).unwrap())
    }

    /// Lets the controllers work until `done` says so, or the store is dead.
    async fn live(&self, store: Arc<dyn Store>, mut done: impl FnMut() -> bool) {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let listener = loop {
            match Listener::bind(&[address]).await {
                Ok(listener) => break listener,
                // The listener of the life before is closing.
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        };
        let given = self.manifests().map(|record| record.key);
        let engine = Engine::start(Equipment {
            store,
            http01: Arc::new(listener),
            fetcher: fetcher(self.port),
            selection: Selection::only(BTreeSet::from(given)),
            cluster_resource_namespace: "cert-manager".to_owned(),
            limits: Limits::default(),
            check_period: jiff::SignedDuration::from_secs(10),
        });
        let mut waited = 0;
        while !done() && !engine.has_ended() {
            tokio::time::sleep(Duration::from_millis(5)).await;
            waited += 5;
            assert!(waited < 20_000, "nothing moves any more");
        }
        // A death shows as an error of the store.
        engine.stop().await.ok();
    }
}

fn fetcher(port: u16) -> Fetcher {
    let target = (IpAddr::V4(Ipv4Addr::LOCALHOST), Some(port));
    let overrides = Overrides { hosts: [("*".to_owned(), target)].into() };
    Fetcher { resolver: Arc::new(SystemResolver::new()), overrides }
}

fn base64(text: &str) -> serde_json::Value {
    json!(kubectl_acme::model::Blob(text.as_bytes().to_vec()))
}

fn is_issued(store: &MemoryStore) -> bool {
    let key = Key::new(Kind::Certificate, ObjectName::new("default", "web"));
    let record = futures_util::FutureExt::now_or_never(store.get(&key)).unwrap().unwrap();
    let Some(record) = record else { return false };
    let conditions = record.object.pointer("/status/conditions").cloned().unwrap_or_default();
    let conditions = conditions.as_array().cloned().unwrap_or_default();
    let of = |kind: &str| conditions.iter().find(|c| c["type"] == kind).cloned();
    of("Ready").is_some_and(|c| c["status"] == "True") && of("Issuing").is_none()
}

/// Dies at the `step`-th write, then lives on; returns whether it died at all.
async fn die_and_live_on(step: i64, death: Death) -> bool {
    let bed = Bed::start().await;
    let store = Arc::new(MemoryStore::new());
    for record in bed.manifests() {
        store.apply(record).await.unwrap();
    }
    let mortal = Arc::new(Mortal { store: store.clone(), left: AtomicI64::new(step), death });
    let watched = Arc::clone(&mortal);
    let seen = Arc::clone(&store);
    bed.live(mortal.clone(), || watched.alive().is_err() || is_issued(&seen)).await;
    let died = mortal.alive().is_err();
    let seen = Arc::clone(&store);
    bed.live(store.clone(), || is_settled(&seen)).await;
    let asked = bed.server.statistics();
    let orders = asked.of("newOrder");
    // The one exception: newOrder was taken, and its answer was not recorded.
    let allowed = if death == Death::BeforeTheWrite { 2 } else { 1 };
    assert!(orders <= allowed, "{death:?} at write {step}: {orders} orders; {asked:?}");
    died
}

/// Issued, and nothing is left of the way there.
fn is_settled(store: &MemoryStore) -> bool {
    let left = |kind, label: Option<&str>| {
        let all = futures_util::FutureExt::now_or_never(store.list(kind, &Scope::all()));
        let all = all.unwrap().unwrap();
        let matches = |r: &Record| label.is_none_or(|l| r.metadata().labels.contains_key(l));
        all.iter().filter(|r| matches(r)).count()
    };
    is_issued(store)
        && left(Kind::Challenge, None) == 0
        && left(Kind::Secret, Some("cert-manager.io/next-private-key")) == 0
}

async fn check(death: Death) {
    let mut second_orders = 0;
    let mut step = 0;
    while die_and_live_on(step, death).await {
        step += 1;
        second_orders += 0;
        assert!(step < 300, "an issuance takes more than 300 writes");
    }
    assert!(step > 20, "an issuance takes more than 20 writes, not {step}");
    assert_eq!(second_orders, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_after_any_write_resumes() {
    check(Death::AfterTheWrite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_before_any_record_resumes() {
    check(Death::BeforeTheWrite).await;
}
