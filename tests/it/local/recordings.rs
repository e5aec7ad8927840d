//! Our controllers do what cert-manager's did when they were recorded (`tests/fixtures/traces`); every difference is listed here,
//! with the line of the design that wants it.

use std::mem;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use kubectl_acme::ca::{self, Config, Server};
use kubectl_acme::dns::lookup::SystemResolver;
use kubectl_acme::engine::{ControllerParts, Engine, ProcessMemory};
use kubectl_acme::fetch::{Fetcher, Overrides};
use kubectl_acme::issue::plan::renewal::mark_for_renewal;
use kubectl_acme::model::order_budget::Allowance;
use kubectl_acme::model::{Key, KeyAlgorithm, Kind, ObjectName, Record};
use kubectl_acme::solvers::http01::listener::Listener;
use kubectl_acme::store::memory::MemoryStore;
use kubectl_acme::store::{Change, Scope, Store};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::bed::PATIENCE;
use crate::support::difference::{self, Difference};
use crate::support::gate::{Gate, Passage};
use crate::support::name_server::nobody_to_ask;
use crate::support::purpose;
use crate::support::recorded::{manifest, recorded, waits_for_its_order, without_cluster};
use crate::support::story::{self, Turn};

const KINDS: [Kind; 8] = [
    Kind::Certificate,
    Kind::CertificateRequest,
    Kind::Challenge,
    Kind::ClusterIssuer,
    Kind::Event,
    Kind::Issuer,
    Kind::Order,
    Kind::Secret,
];
/// Where the objects are that tell a watcher of the end.
const END: &str = "the-end";

/// Controllers with a CA, and gates before the listener: one for self-checks, one for the CA.
struct Stage {
    ca: Server,
    store: Arc<dyn Store>,
    engine: Engine,
    self_check: Gate,
    validation: Gate,
    watchers: Vec<JoinHandle<Vec<(i64, Turn)>>>,
    recorded: Vec<Turn>,
}

impl Stage {
    async fn set(trace: &str) -> Self {
        // As Pebble, which gives every client an order of its own.
        let config = Config { reuse_orders: false, ..Config::default() };
        Self::with(trace, config, Allowance::Standing).await
    }

    async fn with(trace: &str, config: Config, allowance: Allowance) -> Self {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let mut watchers = Vec::new();
        for kind in KINDS {
            watchers.push(tokio::spawn(watch(Arc::clone(&store), kind)));
        }
        let free = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(&[free]).await.unwrap();
        let address = listener.addresses()[0];
        let (self_check, validation) = (Gate::to(address).await, Gate::to(address).await);
        let ca = ca::serve(config, Arc::new(fetcher(validation.port))).await.unwrap();
        let fetcher = fetcher(self_check.port);
        let mut equipment =
            ControllerParts::new(Arc::clone(&store), Arc::new(listener), fetcher, nobody_to_ask());
        equipment.rules.memory = ProcessMemory::new(allowance);
        equipment.rules.account_keys = KeyAlgorithm::Rsa(2048); // as cert-manager makes them
        let engine = Engine::start(equipment);
        let recorded = without_cluster(recorded(trace));
        Self { ca, store, engine, self_check, validation, watchers, recorded }
    }

    /// Applies the `turn`-th state of a recorded object that a person applied.
    async fn apply(&self, kind: Kind, name: &str, generation: u64) {
        let mut object = manifest(&self.recorded, kind.as_str(), name, generation);
        if let Some(server) = object.pointer_mut("/spec/acme/server") {
            *server = self.ca.directory_url().into();
        }
        self.store.apply(Record::new(object).unwrap()).await.unwrap();
    }

    async fn delete(&self, kind: Kind, namespace: &str, name: &str) {
        let key = Key::new(kind, ObjectName::new(namespace, name));
        self.store.delete(&key).await.unwrap();
    }

    /// Waits until an object of this name is as wanted.
    async fn until(&self, kind: Kind, name: &str, wanted: impl Fn(&Value) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = self.store.list(kind, &Scope::all()).await.unwrap();
            if all.iter().any(|r| r.key.name.name.starts_with(name) && wanted(&r.object)) {
                return;
            }
            let seen: Vec<String> = all.iter().map(|record| record.object.to_string()).collect();
            assert!(Instant::now() < deadline, "{kind:?} {name} never comes: {seen:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn until_gone(&self, kind: Kind, name: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let all = self.store.list(kind, &Scope::all()).await.unwrap();
            if all.iter().all(|r| r.key.name.name != name) {
                return;
            }
            assert!(Instant::now() < deadline, "{kind:?} {name} never goes");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Waits until a Certificate is issued and nothing is left of the way there.
    async fn until_issued(&self, name: &str, revision: u64) {
        let issued = |certificate: &Value| {
            let issuing = condition(certificate, "Issuing").is_some();
            !issuing && is_ready(certificate) && certificate["status"]["revision"] == revision
        };
        self.until(Kind::Certificate, name, issued).await;
        self.until_clean().await;
    }

    /// Waits until no challenge is at work, no key waits for its certificate.
    async fn until_clean(&self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let challenges = self.store.list(Kind::Challenge, &Scope::all()).await.unwrap();
            let secrets = self.store.list(Kind::Secret, &Scope::all()).await.unwrap();
            let certificates = self.store.list(Kind::Certificate, &Scope::all()).await.unwrap();
            let waits =
                |r: &Record| r.metadata().labels.contains_key("cert-manager.io/next-private-key");
            let names_key = |r: &Record| !r.text("/status/nextPrivateKeySecretName").is_empty();
            let idle = !secrets.iter().any(waits) && !certificates.iter().any(names_key);
            let at_work = |r: &Record| {
                r.object["status"]["state"] == "valid"
                    || r.object["status"]["processing"] != false
                    || !r.metadata().finalizers.is_empty()
            };
            if idle && !challenges.iter().any(at_work) {
                return;
            }
            assert!(Instant::now() < deadline, "never clean: {challenges:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends the play and compares it with the recording.
    async fn check(mut self, allowed: &[Difference]) {
        self.engine.stop(&CancellationToken::new()).await.unwrap();
        for kind in KINDS {
            let mut metadata = json!({"name": END});
            if kind.is_namespaced() {
                metadata["namespace"] = END.into();
            }
            let (version, kind) = (kind.api_version(), kind.as_str());
            let object = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
            self.store.create(Record::new(object).unwrap()).await.unwrap();
        }
        let mut turns = Vec::new();
        for watcher in mem::take(&mut self.watchers) {
            turns.extend(watcher.await.unwrap());
        }
        turns.sort_by_key(|(revision, _)| *revision);
        let turns: Vec<Turn> = turns.into_iter().map(|(_, turn)| turn).collect();
        let (theirs, ours) = (story::tell(&self.recorded), story::tell(&turns));
        let listed = [purpose::EVERYWHERE, allowed].concat();
        let surprises = difference::compare(&theirs, &ours, &listed).surprises;
        assert!(surprises.is_empty(), "not as recorded: {}", surprises.join("\n"));
    }
}

/// Writes down every change of a kind with its revision, until the end is told. What is gone comes right after it was last
/// changed.
async fn watch(store: Arc<dyn Store>, kind: Kind) -> Vec<(i64, Turn)> {
    let mut changes = store.watch(kind, Scope::all());
    let mut turns = Vec::new();
    while let Some(change) = changes.next().await {
        let (records, gone) = match change.unwrap() {
            Change::Applied(record) => (vec![record], false),
            Change::Deleted(record) => (vec![record], true),
            Change::Resynced(records) => (records, false),
        };
        for record in records {
            if record.key.name.name == END {
                return turns;
            }
            let revision = record.resource_version().parse().unwrap();
            let kind = kind.as_str().to_owned();
            turns.push((revision, Turn { kind, object: record.object, gone }));
        }
    }
    turns
}

fn fetcher(port: u16) -> Fetcher {
    let target = (IpAddr::V4(Ipv4Addr::LOCALHOST), Some(port));
    let overrides = Overrides { hosts: [("*".to_owned(), target)].into(), ..Overrides::default() };
    Fetcher { resolver: Arc::new(SystemResolver::new()), overrides }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == kind)
}

fn is_ready(object: &Value) -> bool {
    condition(object, "Ready").is_some_and(|ready| ready["status"] == "True")
}

/// Issues what a recording issues at first: Issuer, then Certificate.
async fn issue(trace: &str, name: &str) -> Stage {
    let stage = Stage::set(trace).await;
    stage.apply(Kind::Issuer, "acme", 1).await;
    stage.until(Kind::Issuer, "acme", is_ready).await;
    stage.apply(Kind::Certificate, name, 1).await;
    stage
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_name_over_http_is_issued_as_recorded() {
    let stage = issue("01-http01-single", "web").await;
    stage.until_issued("web", 1).await;
    stage.check(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_self_check_that_fails_waits_as_recorded() {
    let stage = Stage::set("03-http01-self-check-fails").await;
    stage.self_check.set(Passage::Missing);
    stage.apply(Kind::Issuer, "acme", 1).await;
    stage.until(Kind::Issuer, "acme", is_ready).await;
    stage.apply(Kind::Certificate, "web", 1).await;
    stage.until(Kind::Challenge, "web", |c| !c["status"]["reason"].is_null()).await;
    stage.until(Kind::CertificateRequest, "web", waits_for_its_order).await;
    stage.self_check.set(Passage::Open);
    stage.until_issued("web", 1).await;
    stage.check(&[purpose::ACCEPTED]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_validation_fails_as_recorded() {
    let stage = Stage::set("04-http01-ca-refuses").await;
    stage.validation.set(Passage::Wrong);
    stage.apply(Kind::Issuer, "acme", 1).await;
    stage.until(Kind::Issuer, "acme", is_ready).await;
    stage.apply(Kind::Certificate, "web", 1).await;
    let failed = |c: &Value| c["status"]["failedIssuanceAttempts"] == 1;
    stage.until(Kind::Certificate, "web", failed).await;
    stage.until_clean().await;
    stage.check(&[
        Difference {
            about: "",
            theirs: r#"order is in "invalid" state: "#,
            ours: r#"order is in "invalid" state: acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: <detail>"#,
            why: "an invalid Order has its reason in its status, with the CA's problem",
        },
        Difference {
            about: "Order web-1-2726938748, reason",
            theirs: "-",
            ours: "- > acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: <detail>",
            why: "an invalid Order has its reason in its status, with the CA's problem",
        },
        Difference {
            about: "Order web-1-2726938748, at last /status/reason",
            theirs: "-",
            ours: "acme: authorization error for www.t04.example.test: 403 urn:ietf:params:acme:error:unauthorized: <detail>",
            why: "an invalid Order has its reason in its status, with the CA's problem",
        },
    ]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_without_a_fitting_solver_waits_for_one_as_recorded() {
    let stage = issue("06-no-solver-matches", "web").await;
    stage.until(Kind::Event, "web", |event| event["reason"] == "Solver").await;
    stage.apply(Kind::Issuer, "acme", 2).await;
    stage.until_issued("web", 1).await;
    stage.check(&[purpose::NO_SOLVER]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_renewals_go_as_recorded() {
    let stage = issue("09-renewal", "web").await;
    stage.until_issued("web", 1).await;
    for revision in 2..=3 {
        let name = ObjectName::new("trace-09", "web");
        mark_for_renewal(&stage.store, &name).await.unwrap();
        stage.until_issued("web", revision).await;
    }
    stage.check(&purpose::RENEWALS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_issuer_keeps_its_account_as_recorded() {
    let stage = Stage::set("12-cluster-issuer").await;
    stage.apply(Kind::ClusterIssuer, "trace-12-acme", 1).await;
    stage.until(Kind::ClusterIssuer, "trace-12-acme", is_ready).await;
    stage.apply(Kind::Certificate, "web", 1).await;
    stage.until_issued("web", 1).await;
    stage.delete(Kind::ClusterIssuer, "", "trace-12-acme").await;
    stage.delete(Kind::Secret, "cert-manager", "trace-12-acme-account").await;
    stage.check(&[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_change_meanwhile_make_a_new_request_as_recorded() {
    let stage = Stage::set("13-spec-change-while-pending").await;
    stage.self_check.set(Passage::Missing);
    stage.apply(Kind::Issuer, "acme", 1).await;
    stage.until(Kind::Issuer, "acme", is_ready).await;
    stage.apply(Kind::Certificate, "web", 1).await;
    stage.until(Kind::Challenge, "web", |c| !c["status"]["reason"].is_null()).await;
    stage.until(Kind::CertificateRequest, "web", waits_for_its_order).await;
    stage.apply(Kind::Certificate, "web", 2).await;
    // On a busy machine the first Challenge may look again before it goes: it must not pass.
    stage.until_gone(Kind::Order, "web-1-3485123724").await;
    stage.self_check.set(Passage::Open);
    stage.until_issued("web", 1).await;
    stage.check(&[purpose::ONE_INGRESS]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_orders_of_one_name_go_one_after_the_other_as_recorded() {
    let config = Config { reuse_orders: false, reuse_authorizations: false, ..Config::default() };
    // Unwatched, the second would be asked for ten seconds after the first, which is as long as a self-check waits for an answer.
    let stage = Stage::with("21-same-name-twice", config, Allowance::OneShot).await;
    stage.self_check.set(Passage::Held);
    stage.apply(Kind::Issuer, "acme", 1).await;
    stage.until(Kind::Issuer, "acme", is_ready).await;
    stage.apply(Kind::Certificate, "one", 1).await;
    stage.until(Kind::Challenge, "one", |c| c["status"]["presented"] == true).await;
    stage.apply(Kind::Certificate, "two", 1).await;
    stage.until(Kind::Challenge, "two", |c| !c["status"]["reason"].is_null()).await;
    stage.self_check.set(Passage::Open);
    stage.until_issued("one", 1).await;
    stage.until_issued("two", 1).await;
    stage.check(&purpose::HELD_BACK).await;
}
