//! The process dies at every write to the store, before it and after it: the next one always ends with the certificate, with
//! one account and one order at the CA, and leaves nothing behind.

mod dying_store;
mod rollover;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use kubectl_acme::acme::AccountKey;
use kubectl_acme::ca::{Config, Look};
use kubectl_acme::controllers::selection::Selection;
use kubectl_acme::engine::{ControllerParts, Engine};
use kubectl_acme::fetch::Fetcher;
use kubectl_acme::fetch::outcome::Fetched;
use kubectl_acme::model::{Blob, KeyAlgorithm, Kind, Record};
use kubectl_acme::solvers::http01::listener::Listener;
use kubectl_acme::store::memory::MemoryStore;
use kubectl_acme::store::{Scope, Store};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use url::Url;

use self::dying_store::{Death, Mortal};
use crate::support::bed::PATIENCE;
use crate::support::ca::{TestCa, certificate, is_pair};
use crate::support::name_server::nobody_to_ask;

/// How many issuances run side by side: they wait more than they work.
const SIDE_BY_SIDE: usize = 6;
/// What is issued.
#[derive(Clone, Copy)]
struct Wish {
    names: &'static [&'static str],
    algorithm: &'static str,
    /// The account key that a person brings along; without one it is made, which takes a few more writes.
    account_key: Option<KeyAlgorithm>,
    /// Behind so many writes only every eighth one is deadly.
    all_of: i64,
}

/// What two lives led to.
struct End {
    died: bool,
    /// Whether newOrder was taken and death came before that could be written down.
    lost_order: bool,
}

/// Lets the process die at every write in turn, and another one go on.
async fn check(death: Death, wish: Wish) {
    let writes = undisturbed(wish).await;
    assert!(writes > 20, "an issuance takes more than 20 writes, not {writes}");
    let deadly = (0..writes).filter(|step| *step < wish.all_of || step % 8 == 0);
    let lives = deadly.map(|step| die_and_live_on(step, death, wish));
    let ends: Vec<End> = stream::iter(lives).buffer_unordered(SIDE_BY_SIDE).collect().await;
    // How many events are one event depends on the clock, so the last step or two may not be reached.
    let deaths = ends.iter().filter(|end| end.died).count();
    assert!(deaths + 5 > ends.len(), "{deaths} deaths at {writes} writes");
}

/// Issues without any death; returns how many writes that takes.
async fn undisturbed(wish: Wish) -> i64 {
    let bed = Bed::start(wish).await;
    let mortal = Arc::new(Mortal::immortal(bed.store.clone()));
    bed.live(mortal.clone(), async || bed.is_settled().await).await;
    assert_eq!((bed.ca.server.accounts(), bed.ca.server.orders().len()), (1, 1));
    mortal.writes()
}

/// Dies at one write, then lives on.
async fn die_and_live_on(step: i64, death: Death, wish: Wish) -> End {
    let bed = Bed::start(wish).await;
    let mortal = Mortal::new(bed.store.clone(), step, death);
    live_on_after(bed, mortal, &format!("{death:?} {step}"), death).await
}

async fn live_on_after(bed: Bed, mortal: Mortal, when: &str, death: Death) -> End {
    let mortal = Arc::new(mortal);
    bed.live(mortal.clone(), async || mortal.last().is_some() || bed.is_settled().await).await;
    let last = mortal.last();
    let what = format!("{when}, to {}", last.map(ToString::to_string).unwrap_or_default());
    let lost_order = bed.ca.server.orders().len() == 1 && !bed.has_order_url().await;
    // Of the Order's own writes after newOrder the first one is that of its URL.
    let of_order = last.is_some_and(|key| key.kind == Kind::Order);
    assert!(!lost_order || !of_order || death == Death::BeforeTheWrite, "{what}: no order URL");

    bed.live(bed.store.clone(), async || bed.is_settled().await).await;
    let server = &bed.ca.server;
    let expected = 1 + usize::from(lost_order);
    assert_eq!(
        (server.accounts(), server.orders().len()),
        (1, expected),
        "{what}: accounts, orders"
    );
    bed.check_pair(&what).await;
    End { died: last.is_some(), lost_order }
}

/// A CA, and a store with the manifests.
struct Bed {
    ca: TestCa,
    store: Arc<MemoryStore>,
    given: Vec<Record>,
}

impl Bed {
    async fn start(wish: Wish) -> Self {
        let config = Config { reuse_orders: false, ..Config::default() };
        let ca = TestCa::start(config, Patient).await;
        let manifests = [ca.issuer(), certificate("web", wish.names, wish.algorithm)];
        let store = Arc::new(MemoryStore::new());
        let given: Vec<Record> = manifests.map(|object| Record::new(object).unwrap()).into();
        let account = wish.account_key.map(account_secret);
        for record in given.iter().cloned().chain(account) {
            store.apply(record).await.unwrap();
        }
        Self { ca, store, given }
    }

    /// Lets the controllers work until `done` says so, or the store is dead.
    async fn live(&self, store: Arc<dyn Store>, done: impl AsyncFn() -> bool) {
        let deadline = Instant::now() + PATIENCE;
        let listener = loop {
            match Listener::bind(&[self.ca.http01]).await {
                Ok(listener) => break listener,
                // The listener of the life before is closing.
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            pause().await;
        };
        let keys: BTreeSet<_> = self.given.iter().map(|r| r.key.clone()).collect();
        let mut equipment =
            ControllerParts::new(store, Arc::new(listener), self.ca.fetcher(), nobody_to_ask());
        equipment.rules.selection = Selection::only(keys);
        let engine = Engine::start(equipment);
        while !done().await && !engine.has_ended() {
            assert!(Instant::now() < deadline, "nothing moves any more");
            pause().await;
        }
        // A death shows as an error of the store.
        engine.stop(&CancellationToken::new()).await.ok();
    }

    /// Issued, and nothing is left of the way there.
    async fn is_settled(&self) -> bool {
        let all = self.list(Kind::Certificate).await;
        let condition = |kind: &str| {
            let conditions = all[0].object.pointer("/status/conditions")?.as_array()?;
            conditions.iter().find(|c| c["type"] == kind).cloned()
        };
        let next_key = "cert-manager.io/next-private-key";
        condition("Ready").is_some_and(|ready| ready["status"] == "True")
            && condition("Issuing").is_none()
            && all[0].text("/status/nextPrivateKeySecretName").is_empty()
            && self.list(Kind::Challenge).await.is_empty()
            && self
                .list(Kind::Secret)
                .await
                .iter()
                .all(|secret| !secret.metadata().labels.contains_key(next_key))
    }

    async fn has_order_url(&self) -> bool {
        self.list(Kind::Order).await.iter().any(|order| !order.text("/status/url").is_empty())
    }

    async fn check_pair(&self, what: &str) {
        let secrets = self.list(Kind::Secret).await;
        let secret = secrets.iter().find(|secret| secret.key.name.name == "web-tls").unwrap();
        let value = |key: &str| -> Blob {
            serde_json::from_value(secret.object["data"][key].clone()).unwrap()
        };
        assert!(is_pair(&value("tls.crt").0, &value("tls.key").0), "{what}: not a pair");
    }

    async fn list(&self, kind: Kind) -> Vec<Record> {
        self.store.list(kind, &Scope::all()).await.unwrap()
    }
}

fn account_secret(algorithm: KeyAlgorithm) -> Record {
    let pem = AccountKey::generate(algorithm).unwrap().to_pem().unwrap();
    let object = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "acme-account", "namespace": "default"},
        "data": {"tls.key": Blob(pem.as_bytes().to_vec())},
    });
    Record::new(object).unwrap()
}

/// Eyes that look until they see an answer: a CA that validates slowly, so that a listener which died in between is no reason
/// to refuse, as long as the next life puts the answer up again.
#[derive(Debug)]
struct Patient(Fetcher);

#[async_trait]
impl Look for Patient {
    async fn get(&self, url: &Url) -> Fetched {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let fetched = self.0.get(url).await;
            let is_seen = fetched.result.as_ref().is_ok_and(|reply| reply.status == 200);
            if is_seen || Instant::now() > deadline {
                return fetched;
            }
            pause().await;
        }
    }
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

const TWO_NAMES: Wish = Wish {
    names: &["a.example.com", "b.example.com"],
    algorithm: "ECDSA",
    account_key: Some(KeyAlgorithm::Ecdsa(256)),
    all_of: i64::MAX,
};
/// RSA throughout, as with a manifest that says nothing; it takes its time, and the account is there after a few writes.
const RSA: Wish =
    Wish { names: &["www.example.com"], algorithm: "RSA", account_key: None, all_of: 8 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_after_any_write_resumes() {
    check(Death::AfterTheWrite, TWO_NAMES).await;
    check(Death::AfterTheWrite, RSA).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_whose_url_was_lost_is_asked_for_once_more() {
    let bed = Bed::start(TWO_NAMES).await;
    let mortal = Mortal::before_the_order_url(bed.store.clone());
    let end = live_on_after(bed, mortal, "before the URL", Death::BeforeTheWrite).await;
    assert!(end.died && end.lost_order);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_killed_before_any_write_resumes() {
    check(Death::BeforeTheWrite, TWO_NAMES).await;
    check(Death::BeforeTheWrite, RSA).await;
}
