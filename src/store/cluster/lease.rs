//! Leadership in a cluster: the Lease shared with cert-manager, so that the two never work at once.
//!
//! By default we hold the Lease for 15 s, renew it every 5 s, and stop work after 10 s without success, or at once if
//! another holder's name is in it or if the machine slept. Flags of cert-manager's names change these times.

use std::time::Duration;

use http::{Method, StatusCode};
use jiff::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::access_request::AccessRequest;
use super::lease_object::{IDENTITY_SUFFIX, LeaseHolder, LeaseObject};
use super::wire::{ApiAnswer, Call, Wire};
use super::{ClusterStore, refusal};
use crate::store::error::StoreError;
use crate::store::ids;
use crate::store::lease::Role;
use crate::surroundings::Environment;

/// The Lease that cert-manager's controller holds.
pub const LEASE_NAME: &str = "cert-manager-controller";
/// The namespace in which cert-manager looks for the Lease unless configured otherwise.
pub const LEASE_NAMESPACE: &str = "kube-system";

/// Resource, as in a Role.
const RESOURCE: &str = "leases.coordination.k8s.io";
/// cert-manager's field manager for the Lease.
const MANAGER: &str = "cert-manager-leader-election";
/// Longest interval between two checks of the renewing task, which also retries a failed write.
const TICK_MAX: Duration = Duration::from_secs(1);
/// Reason for the loss of the Lease if the server does not answer.
const SILENT: &str = "the API server does not answer";
/// Longest interval between two polls of a waiting process.
const POLL_INTERVAL_MAX: Duration = Duration::from_secs(2);

/// Times of the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimes {
    /// Time for which the Lease counts after its holder's last write; whole seconds.
    pub duration: Duration,
    /// Time without a successful write after which the holder stops work: well before the Lease runs out for others.
    pub renew_deadline: Duration,
    /// Interval between two writes.
    pub retry_period: Duration,
}

impl Default for LeaseTimes {
    fn default() -> Self {
        let [duration, renew_deadline, retry_period] = [15, 10, 5].map(Duration::from_secs);
        Self { duration, renew_deadline, retry_period }
    }
}

impl LeaseTimes {
    /// Time for which work under way may go on once the Lease is lost: after that others may take the Lease.
    pub fn grace(&self) -> Duration {
        self.duration.saturating_sub(self.renew_deadline)
    }

    fn tick(&self) -> Duration {
        TICK_MAX.min(self.retry_period)
    }

    fn poll(&self) -> Duration {
        POLL_INTERVAL_MAX.min(self.retry_period)
    }
}

/// The Lease of one cluster.
#[derive(Clone)]
pub struct ClusterLease {
    wire: Wire,
    namespace: String,
    identity: String,
    terms: LeaseTimes,
    surroundings: Environment,
}

/// Proof that this process drives, as long as the Lease is not lost. Releases the Lease when dropped, in the background.
#[derive(Debug)]
pub struct ClusterGuard {
    identity: String,
    lost: CancellationToken,
    stop: CancellationToken,
    renewing: JoinHandle<()>,
}

impl ClusterGuard {
    /// The name under which the Lease is held.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns a token that is cancelled at once when the Lease is lost; work has to stop then.
    pub fn lost(&self) -> CancellationToken {
        self.lost.clone()
    }

    /// Releases the Lease and waits until others can see the release.
    pub async fn release(mut self) {
        self.stop.cancel();
        // A task that panicked has been reported by the runtime; the Lease then runs out by itself.
        let _ended = (&mut self.renewing).await.is_ok();
    }
}

impl Drop for ClusterGuard {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl ClusterLease {
    /// Makes the Lease of a namespace, by default [`LEASE_NAMESPACE`]; this process gets a name of its own.
    ///
    /// # Errors
    /// Fails if no random name can be drawn.
    pub fn new(store: &ClusterStore, namespace: &str) -> Result<Self, StoreError> {
        Self::on(store.wire().clone(), namespace)
    }

    fn on(wire: Wire, namespace: &str) -> Result<Self, StoreError> {
        let host = hostname::get().unwrap_or_default();
        let surroundings = Environment::default();
        let drawn = ids::name("", &surroundings)?;
        let identity = format!("{}_{drawn}{IDENTITY_SUFFIX}", host.to_string_lossy());
        let (namespace, terms) = (namespace.to_owned(), LeaseTimes::default());
        Ok(Self { wire, namespace, identity, terms, surroundings })
    }

    /// Makes the Lease at an API server that this client reaches.
    ///
    /// # Errors
    /// Fails as [`Self::new`] does.
    pub fn at(client: kube::Client, server: &str, namespace: &str) -> Result<Self, StoreError> {
        let timeout = LeaseTimes::default().renew_deadline;
        Self::on(Wire { client, server: server.to_owned(), timeout }, namespace)
    }

    /// Sets another clock than this machine's.
    #[must_use]
    pub fn within(self, surroundings: Environment) -> Self {
        Self { surroundings, ..self }
    }

    /// Sets other times.
    #[must_use]
    pub fn on_terms(self, terms: LeaseTimes) -> Self {
        Self { terms, ..self }
    }

    /// The name under which this process holds the Lease.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Returns the holder of the Lease, if there is one.
    pub async fn holder(&self) -> Result<Option<LeaseHolder>, StoreError> {
        Ok(self.read().await?.and_then(|(lease, now)| lease.holder(now)))
    }

    /// Returns the holder's name in the Lease, whether or not it still counts.
    pub async fn written(&self) -> Result<Option<String>, StoreError> {
        let lease = self.read().await?;
        Ok(lease.map(|(lease, _)| lease.identity().to_owned()).filter(|name| !name.is_empty()))
    }

    /// Takes the Lease unless another process holds it.
    pub async fn try_acquire(&self, role: Role) -> Result<Option<ClusterGuard>, StoreError> {
        let read = self.read().await?;
        let is_there = read.is_some();
        let mut lease = match read {
            Some((lease, now)) if lease.holder(now).is_some() => return Ok(None),
            Some((lease, _)) => lease,
            None => LeaseObject::new(&self.namespace, LEASE_NAME),
        };
        lease.take(&self.identity, self.terms.duration, role, self.surroundings.now());
        let asked = (Instant::now(), self.surroundings.now());
        let written =
            if is_there { self.update(&lease).await? } else { self.create(&lease).await? };
        let Written::Done(lease) = written else { return Ok(None) };
        let (lost, stop) = (CancellationToken::new(), CancellationToken::new());
        let keeper = Keeper {
            lease: self.clone(),
            object: lease,
            renewed: asked,
            lost: lost.clone(),
            stop: stop.clone(),
        };
        let renewing = tokio::spawn(keeper.keep());
        let identity = self.identity.clone();
        Ok(Some(ClusterGuard { identity, lost, stop, renewing }))
    }

    /// Waits for the Lease. Dropping the future gives up.
    pub async fn acquire(&self, role: Role) -> Result<ClusterGuard, StoreError> {
        loop {
            if let Some(guard) = self.try_acquire(role).await? {
                return Ok(guard);
            }
            sleep(self.terms.poll()).await;
        }
    }

    /// Reads the Lease, with the API server's time of the answer.
    async fn read(&self) -> Result<Option<(LeaseObject, Timestamp)>, StoreError> {
        let deed = AccessRequest::other("get", RESOURCE, &self.namespace);
        let call = Call::new(Method::GET, self.path(LEASE_NAME));
        match self.wire.answer(&deed, &call).await? {
            Ok(answer) => Ok(Some(dated(answer))),
            Err(status) if status.code == StatusCode::NOT_FOUND => Ok(None),
            Err(status) => Err(refusal::refused(&self.wire.server, &deed, &status)),
        }
    }

    async fn create(&self, lease: &LeaseObject) -> Result<Written, StoreError> {
        let deed = AccessRequest::other("create", RESOURCE, &self.namespace);
        let call = Call::new(Method::POST, self.path(""));
        // A new object cannot be gone already: a 404 is about its namespace.
        self.write(&deed, call, lease, &[StatusCode::CONFLICT]).await
    }

    async fn update(&self, lease: &LeaseObject) -> Result<Written, StoreError> {
        let deed = AccessRequest::other("update", RESOURCE, &self.namespace);
        let call = Call::new(Method::PUT, self.path(LEASE_NAME));
        self.write(&deed, call, lease, &[StatusCode::CONFLICT, StatusCode::NOT_FOUND]).await
    }

    /// Writes the Lease; `overtaken` holds the codes of a server's answer if another process was quicker.
    async fn write(
        &self,
        deed: &AccessRequest<'_>,
        call: Call,
        lease: &LeaseObject,
        overtaken: &[StatusCode],
    ) -> Result<Written, StoreError> {
        let call = call.with("fieldManager", MANAGER).body("application/json", &lease.0);
        let status = match self.wire.answer(deed, &call).await? {
            Ok(answer) => return Ok(Written::Done(LeaseObject(answer.body))),
            Err(status) => status,
        };
        let is_overtaken = overtaken.iter().any(|code| code.as_u16() == status.code);
        if is_overtaken && status.details.is_some() {
            return Ok(Written::Overtaken);
        }
        let what = format!("the Lease {LEASE_NAME}");
        Err(refusal::without_namespace(&what, &self.namespace, &status, true)
            .unwrap_or_else(|| refusal::refused(&self.wire.server, deed, &status)))
    }

    fn path(&self, name: &str) -> String {
        let all = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        if name.is_empty() { all } else { format!("{all}/{name}") }
    }
}

impl std::fmt::Debug for ClusterLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterLease({}/{LEASE_NAME} at {})", self.namespace, self.wire.server)
    }
}

/// Reads a Lease with the server's time of the answer; a server without a clock is trusted to agree with ours.
pub(super) fn dated(answer: ApiAnswer) -> (LeaseObject, Timestamp) {
    let now = answer.date.unwrap_or_else(Timestamp::now);
    (LeaseObject(answer.body), now)
}

/// Outcome of a write.
enum Written {
    /// The Lease is written.
    Done(LeaseObject),
    /// Another process wrote, made or deleted the Lease in between.
    Overtaken,
}

/// Task that renews the Lease until it is stopped, or fails.
struct Keeper {
    lease: ClusterLease,
    object: LeaseObject,
    /// Start of the last write that succeeded, by two clocks; the second shows that the machine slept.
    renewed: (Instant, Timestamp),
    lost: CancellationToken,
    stop: CancellationToken,
}

impl Keeper {
    async fn keep(mut self) {
        let terms = self.lease.terms;
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                () = sleep(terms.tick()) => {}
            }
            let kept = if self.is_overdue() {
                Err(format!("it could not be renewed for {} s", terms.renew_deadline.as_secs()))
            } else if self.is_due() {
                self.renew().await.map_err(str::to_owned)
            } else {
                Ok(())
            };
            if let Err(why) = kept {
                tracing::warn!(lease = %self.lease.namespace, "the Lease is lost: {why}");
                self.lost.cancel();
                return;
            }
        }
        self.object.release(self.lease.surroundings.now());
        let released = self.lease.update(&self.object);
        if let Ok(Err(error)) = tokio::time::timeout(terms.renew_deadline, released).await {
            tracing::debug!(%error, "the Lease could not be given back; it runs out by itself");
        }
    }

    fn is_due(&self) -> bool {
        let terms = self.lease.terms;
        self.renewed.0.elapsed() + terms.tick() > terms.retry_period
    }

    fn is_overdue(&self) -> bool {
        let deadline = self.lease.terms.renew_deadline;
        let passed = self.lease.surroundings.now().duration_since(self.renewed.1);
        let asleep = Duration::try_from(passed).is_ok_and(|passed| passed >= deadline);
        asleep || self.renewed.0.elapsed() >= deadline
    }

    /// Writes once; fails with the reason if the Lease is lost. Any other failure is left to the next tick.
    async fn renew(&mut self) -> Result<(), &'static str> {
        let begun = (Instant::now(), self.lease.surroundings.now());
        let mut object = self.object.clone();
        object.renew(begun.1);
        let written = self.lease.update(&object);
        match timeout_at(self.renewed.0 + self.lease.terms.renew_deadline, written).await {
            Ok(Ok(Written::Done(object))) => {
                self.object = object;
                self.renewed = begun;
                Ok(())
            }
            Ok(Ok(Written::Overtaken)) => self.is_still_ours().await,
            Ok(Err(error)) => {
                tracing::debug!(%error, "the Lease could not be renewed; it is tried again");
                Ok(())
            }
            Err(_) => Err(SILENT),
        }
    }

    /// Reads the Lease again: another process may have written no more than a label.
    async fn is_still_ours(&mut self) -> Result<(), &'static str> {
        match timeout_at(self.renewed.0 + self.lease.terms.renew_deadline, self.lease.read()).await
        {
            Ok(Ok(Some((object, _)))) if object.identity() == self.lease.identity => {
                self.object = object;
                Ok(())
            }
            Ok(Err(_)) => Ok(()),
            Ok(Ok(_)) => Err("somebody else holds it"),
            Err(_) => Err(SILENT),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::Router;
    use axum::body::Bytes;
    use axum::extract::State;
    use axum::routing::{get, post};
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;
    use crate::store::cluster::lease_object::HolderKind;

    /// An API server that knows one Lease, and may fall silent.
    #[derive(Clone, Default)]
    struct Double {
        lease: Arc<Mutex<Option<Value>>>,
        silent: Arc<AtomicBool>,
    }

    impl Double {
        fn lease(&self) -> ClusterLease {
            let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";
            let router = Router::new()
                .route(path, post(Self::write))
                .route(&format!("{path}/{LEASE_NAME}"), get(Self::read).put(Self::write))
                .with_state(self.clone());
            lease(router, LEASE_NAMESPACE)
        }

        async fn read(State(double): State<Self>) -> (StatusCode, String) {
            double.hang().await;
            match &*double.lease.lock() {
                Some(lease) => (StatusCode::OK, lease.to_string()),
                None => refusal(StatusCode::NOT_FOUND),
            }
        }

        async fn write(State(double): State<Self>, body: Bytes) -> (StatusCode, String) {
            double.hang().await;
            let mut given: Value = serde_json::from_slice(&body).unwrap();
            let mut stored = double.lease.lock();
            let revision = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
            if stored.as_ref().map_or(Value::Null, revision) != revision(&given) {
                return refusal(StatusCode::CONFLICT);
            }
            let next =
                revision(&given).as_str().and_then(|text| text.parse().ok()).unwrap_or(0) + 1;
            given["metadata"]["resourceVersion"] = next.to_string().into();
            given["metadata"]["uid"] = "uid".into();
            *stored = Some(given.clone());
            (StatusCode::OK, given.to_string())
        }

        async fn hang(&self) {
            if self.silent.load(Ordering::Relaxed) {
                std::future::pending::<()>().await;
            }
        }

        fn set(&self, pointer: &str, value: Value) {
            let mut lease = self.lease.lock();
            let lease = lease.as_mut().unwrap();
            *lease.pointer_mut(pointer).unwrap() = value;
            lease["metadata"]["resourceVersion"] = "1000".into();
        }
    }

    /// The Lease in a namespace of an API server.
    fn lease(router: Router, namespace: &str) -> ClusterLease {
        let client = kube::Client::new(router, "default");
        let timeout = Duration::from_secs(30);
        let wire = Wire { client, server: "https://double".into(), timeout };
        ClusterLease::on(wire, namespace).unwrap()
    }

    fn refusal(code: StatusCode) -> (StatusCode, String) {
        (code, json!({ "code": code.as_u16(), "details": { "name": LEASE_NAME } }).to_string())
    }

    /// Whether the Lease is lost within a time, which passes at once.
    async fn check(guard: &ClusterGuard, seconds: u64, expected: bool) {
        let lost = guard.lost();
        let within = tokio::time::timeout(Duration::from_secs(seconds), lost.cancelled()).await;
        assert_eq!(within.is_ok(), expected, "after {seconds} s");
    }

    #[tokio::test(start_paused = true)]
    async fn a_held_lease_is_renewed_until_it_is_given_back() {
        let double = Double::default();
        let (first, second) = (double.lease(), double.lease());
        let guard = first.try_acquire(Role::Always).await.unwrap().unwrap();
        let holder = second.holder().await.unwrap().unwrap();
        assert_eq!(holder.identity, first.identity());
        assert_eq!(holder.who, HolderKind::Ours(Some(Role::Always)));
        assert!(second.try_acquire(Role::Once).await.unwrap().is_none());
        check(&guard, 600, false).await;
        guard.release().await;
        assert_eq!(second.holder().await.unwrap(), None);
        assert!(second.try_acquire(Role::Once).await.unwrap().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_guard_gives_the_lease_back() {
        let double = Double::default();
        let (first, second) = (double.lease(), double.lease());
        drop(first.try_acquire(Role::Once).await.unwrap().unwrap());
        let _second = second.acquire(Role::Once).await.unwrap();
        assert_eq!(first.holder().await.unwrap().unwrap().identity, second.identity());
    }

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_somebody_took_is_lost_at_the_next_look() {
        let double = Double::default();
        let guard = double.lease().try_acquire(Role::Always).await.unwrap().unwrap();
        double.set("/spec/holderIdentity", "node-b".into());
        check(&guard, 6, true).await;
        guard.release().await;
        let holder = double.lease().holder().await.unwrap().unwrap();
        assert_eq!(holder.identity, "node-b", "what is lost is not given back");
    }

    #[tokio::test(start_paused = true)]
    async fn a_label_put_on_the_lease_costs_nothing() {
        let double = Double::default();
        let guard = double.lease().try_acquire(Role::Always).await.unwrap().unwrap();
        double.set("/metadata/labels", json!({ "a": "b" }));
        check(&guard, 600, false).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_server_costs_the_lease_before_it_has_run_out() {
        let double = Double::default();
        let guard = double.lease().try_acquire(Role::Always).await.unwrap().unwrap();
        double.silent.store(true, Ordering::Relaxed);
        check(&guard, 8, false).await;
        check(&guard, 3, true).await;
    }

    #[tokio::test(start_paused = true)]
    async fn other_terms_are_written_down_and_kept() {
        let [duration, renew_deadline, retry_period] = [40, 30, 20].map(Duration::from_secs);
        let terms = LeaseTimes { duration, renew_deadline, retry_period };
        assert_eq!(terms.grace(), Duration::from_secs(10));
        let double = Double::default();
        let guard = double.lease().on_terms(terms).try_acquire(Role::Always).await.unwrap();
        let guard = guard.unwrap();
        let lease = double.lease.lock().clone().unwrap();
        assert_eq!(lease["spec"]["leaseDurationSeconds"], 40);
        let writes = || {
            let lease = double.lease.lock().clone().unwrap();
            lease["metadata"]["resourceVersion"].as_str().unwrap().parse::<u32>().unwrap()
        };
        let before = writes();
        check(&guard, 200, false).await;
        let written = writes() - before;
        assert!((9..=10).contains(&written), "{written} times: one in 20 s is enough");
        double.silent.store(true, Ordering::Relaxed);
        check(&guard, 9, false).await;
        check(&guard, 22, true).await;
    }

    /// Tries to take the Lease in `nowhere`, where there is none and none can be made; tells what is said.
    async fn check_nowhere(code: StatusCode, details: Value, says: &str) {
        let answer = json!({ "code": code.as_u16(), "message": "no", "details": details });
        let router = Router::new().fallback(
            post(move || async move { (code, answer.to_string()) })
                .get(|| async { refusal(StatusCode::NOT_FOUND) }),
        );
        let error = lease(router, "nowhere").try_acquire(Role::Once).await.unwrap_err();
        assert_eq!((error.to_string().as_str(), error.may_pass()), (says, false));
    }

    #[tokio::test]
    async fn a_namespace_without_which_there_is_no_lease_is_named() {
        check_nowhere(
            StatusCode::NOT_FOUND,
            json!({ "kind": "namespaces", "name": "nowhere" }),
            "cannot write the Lease cert-manager-controller: there is no namespace nowhere",
        )
        .await;
        check_nowhere(
            StatusCode::FORBIDDEN,
            json!({ "causes": [{ "reason": "NamespaceTerminating" }] }),
            "cannot write the Lease cert-manager-controller: somebody has deleted namespace nowhere",
        )
        .await;
    }

    #[tokio::test]
    async fn whoever_made_the_lease_first_has_it() {
        let (conflict, missing) = (refusal(StatusCode::CONFLICT), refusal(StatusCode::NOT_FOUND));
        let router = Router::new().fallback(post(|| async { conflict }).get(|| async { missing }));
        assert!(lease(router, LEASE_NAMESPACE).try_acquire(Role::Once).await.unwrap().is_none());
    }
}
