//! The only loop: changes in, delays, concurrency, shutdown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::select_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span};

use super::selection::Selection;
use super::substance::Substances;
use super::{Clock, Controller, ReconcileError};
use crate::acme::Retry;
use crate::model::{Key, Kind, Record};
use crate::reconcile::Wake;
use crate::store::{Change, Scope, Store, StoreError};

/// Most objects looked at side by side.
const CONCURRENCY: usize = 256;
/// When an obstacle is looked at again that only a person can remove.
const UNTOLD: SignedDuration = SignedDuration::from_mins(10);
/// The same where looking costs the world nothing: a permission, a port, an Ingress that is missing.
const NEARBY: SignedDuration = SignedDuration::from_secs(30);
/// Longest rest of an object after a look, before changes of others make us look again.
const LONGEST_REST: SignedDuration = SignedDuration::from_millis(30);
/// Most steps that one object takes in a row; then it pauses, so that no mistake of ours asks a CA without end.
const STEPS: u32 = 100;
/// How long it pauses.
const BREATH: SignedDuration = SignedDuration::from_secs(1);

/// Something that stands in the way of an object: what went wrong when it was last looked at.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// The fault, with its whole text.
    pub error: Arc<ReconcileError>,
    /// When it first showed.
    pub since: Timestamp,
    /// When the next try comes.
    pub next_try: Timestamp,
    /// Tries so far.
    pub tries: u32,
}

/// What stands in the way of which object, right now.
pub type Obstacles = BTreeMap<Key, Obstacle>;

/// Runs controllers over a store until it is told to stop.
#[derive(Debug)]
pub struct Driver {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    controllers: Vec<Arc<dyn Controller>>,
    selection: Selection,
    obstacles: watch::Sender<Obstacles>,
    work: HashMap<Job, Work>,
    waiting: Vec<Job>,
    delays: BTreeMap<(Timestamp, u64), Job>,
    serial: u64,
    running: JoinSet<(Job, Result<Wake, ReconcileError>)>,
    /// Until when a job rests: three times as long as its last look took. An Order of a hundred Challenges changes with
    /// each of them, and looks at all of them.
    rests: HashMap<Job, Timestamp>,
    /// Changes whose objects could not be found while the store was away, and when they are looked up again.
    unheard: Vec<Record>,
    listens: Option<Timestamp>,
    substances: Substances,
}

type Job = (usize, Key);

/// What is known about one job.
#[derive(Debug, Default)]
struct Work {
    running: bool,
    /// When it was started.
    started: Timestamp,
    /// It is to be looked at again, at once.
    again: bool,
    /// It is to be looked at again after its rest.
    rested: bool,
    failures: u32,
    /// Steps in a row.
    steps: u32,
    delay: Option<(Timestamp, u64)>,
}

impl Work {
    /// Tells whether it is looked at now, or will be by itself.
    fn goes_on(&self) -> bool {
        self.running || self.delay.is_some()
    }
}

impl Driver {
    /// Puts a driver together; `obstacles` tells whoever listens what stands in the way.
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        controllers: Vec<Arc<dyn Controller>>,
        selection: Selection,
        obstacles: watch::Sender<Obstacles>,
    ) -> Self {
        Self {
            store,
            clock,
            controllers,
            selection,
            obstacles,
            work: HashMap::new(),
            waiting: Vec::new(),
            delays: BTreeMap::new(),
            serial: 0,
            running: JoinSet::new(),
            rests: HashMap::new(),
            unheard: Vec::new(),
            listens: None,
            substances: Substances::default(),
        }
    }

    /// Works until `stop` is cancelled; steps under way are finished first.
    ///
    /// # Errors
    /// Fails when the store can no longer be watched.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), StoreError> {
        let mut kinds: Vec<Kind> =
            self.controllers.iter().flat_map(|c| c.watches()).copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        let store = Arc::clone(&self.store);
        let mut changes = select_all(kinds.into_iter().map(|kind| store.watch(kind, Scope::all())));
        let clock = Arc::clone(&self.clock);
        loop {
            self.start_waiting();
            let next_delay = self.delays.keys().next().map(|(at, _)| *at);
            let next_delay = next_delay.into_iter().chain(self.listens).min();
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(done) = self.running.join_next(), if !self.running.is_empty() => {
                    // A task that panicked has been reported by the runtime; its object is looked at on its next change.
                    if let Ok((job, result)) = done {
                        self.settle(job, result);
                    }
                }
                change = changes.next() => match change {
                    Some(Ok(change)) => self.changed(change).await?,
                    Some(Err(error)) if error.may_pass() => {
                        debug!(%error, "the store is away; this watch begins again");
                    }
                    Some(Err(error)) => return Err(error),
                    None => break,
                },
                () = sleep(&*clock, next_delay) => {
                    self.wake_due();
                    self.listen_again().await?;
                }
            }
        }
        while self.running.join_next().await.is_some() {}
        Ok(())
    }

    async fn changed(&mut self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::Applied(record) => {
                let is_new = self.substances.is_new(&record);
                self.hear(record, is_new).await
            }
            Change::Deleted(record) => {
                self.substances.forget(&record.key);
                self.hear(record, true).await
            }
            Change::Resynced(records) => {
                self.substances.forget_all();
                for record in records {
                    let is_new = self.substances.is_new(&record);
                    self.hear(record, is_new).await?;
                }
                Ok(())
            }
        }
    }

    /// Wakes whom a change concerns; while the store is away the change is kept. An object whose substance is the same keeps
    /// its pause: reasons that differ at each look would else have it look without end.
    async fn hear(&mut self, record: Record, is_new: bool) -> Result<(), StoreError> {
        match self.wake_for(&record, is_new).await {
            Err(error) if error.may_pass() || error.lacks_permission() => {
                debug!(%error, object = %record.key, "this change is heard later");
                self.unheard.push(record);
                self.listens = Some(self.clock.now() + BREATH);
                Ok(())
            }
            heard => heard,
        }
    }

    async fn listen_again(&mut self) -> Result<(), StoreError> {
        if self.listens.is_none_or(|at| at > self.clock.now()) {
            return Ok(());
        }
        self.listens = None;
        for record in std::mem::take(&mut self.unheard) {
            self.hear(record, true).await?;
        }
        Ok(())
    }

    async fn wake_for(&mut self, record: &Record, is_new: bool) -> Result<(), StoreError> {
        for index in 0..self.controllers.len() {
            let controller = Arc::clone(&self.controllers[index]);
            if !controller.watches().contains(&record.key.kind) {
                continue;
            }
            for key in controller.wakes(record).await? {
                if !self.selection.covers(&*self.store, &key).await? {
                    continue;
                }
                if key == record.key {
                    let job = (index, key);
                    if is_new || !self.work.get(&job).is_some_and(Work::goes_on) {
                        self.wake(job);
                    }
                } else {
                    self.wake_rested((index, key));
                }
            }
        }
        Ok(())
    }

    fn wake(&mut self, job: Job) {
        let work = self.work.entry(job.clone()).or_default();
        if let Some(delay) = work.delay.take() {
            self.delays.remove(&delay);
        }
        if work.running {
            work.again = true;
        } else if !work.again {
            work.again = true;
            self.waiting.push(job);
        }
    }

    /// Wakes a job because another object changed: many may change together.
    fn wake_rested(&mut self, job: Job) {
        let work = self.work.entry(job.clone()).or_default();
        if work.running {
            work.rested = true;
            return;
        }
        let Some(rest) = self.rests.get(&job).copied() else { return self.wake(job) };
        if rest <= self.clock.now() {
            return self.wake(job);
        }
        match work.delay {
            _ if work.again => {}
            Some((at, _)) if at <= rest => {}
            _ => self.wake_at(job, rest),
        }
    }

    fn wake_due(&mut self) {
        let now = self.clock.now();
        while let Some(entry) = self.delays.first_entry() {
            if entry.key().0 > now {
                return;
            }
            let job = entry.remove();
            self.wake(job);
        }
    }

    fn wake_at(&mut self, job: Job, at: Timestamp) {
        self.serial += 1;
        let delay = (at, self.serial);
        let later = self.work.entry(job.clone()).or_default().delay.replace(delay);
        if let Some(later) = later {
            self.delays.remove(&later);
        }
        self.delays.insert(delay, job);
    }

    /// Starts what waits, oldest first, as far as the concurrency allows.
    fn start_waiting(&mut self) {
        let free = CONCURRENCY.saturating_sub(self.running.len()).min(self.waiting.len());
        for job in self.waiting.drain(..free).collect::<Vec<_>>() {
            let work = self.work.entry(job.clone()).or_default();
            work.again = false;
            work.running = true;
            let controller = Arc::clone(&self.controllers[job.0]);
            let now = self.clock.now();
            work.started = now;
            let span = info_span!("reconcile", kind = %job.1.kind, name = %job.1.name);
            self.running.spawn(
                async move {
                    let result = controller.reconcile(&job.1, now).await;
                    (job, result)
                }
                .instrument(span),
            );
        }
    }

    fn settle(&mut self, job: Job, result: Result<Wake, ReconcileError>) {
        let now = self.clock.now();
        let work = self.work.entry(job.clone()).or_default();
        work.running = false;
        let again = std::mem::take(&mut work.again);
        let rested = std::mem::take(&mut work.rested);
        let rest = now + (now.duration_since(work.started) * 3).min(LONGEST_REST);
        match result {
            Ok(wake) => {
                work.failures = 0;
                work.steps = if wake == Wake::Now { work.steps.saturating_add(1) } else { 0 };
                let restless = work.steps > STEPS;
                self.obstacles.send_if_modified(|all| all.remove(&job.1).is_some());
                self.rests.retain(|_, rest| *rest > now);
                self.rests.insert(job.clone(), rest);
                match wake {
                    _ if restless => {
                        debug!(?job, "many steps in a row");
                        self.wake_at(job, now + BREATH);
                    }
                    _ if again => self.wake(job),
                    Wake::Now => self.wake(job),
                    Wake::At(at) if rested => self.wake_at(job, at.min(rest)),
                    Wake::At(at) => self.wake_at(job, at),
                    Wake::OnChange if rested => self.wake_at(job, rest),
                    Wake::OnChange => {
                        self.work.remove(&job);
                    }
                }
            }
            Err(ReconcileError::Store(
                StoreError::Conflict { .. } | StoreError::AlreadyExists { .. },
            )) => {
                // Somebody wrote in between: look again at what is there now.
                self.wake_at(job, now + Duration::from_millis(5));
            }
            Err(error) => self.failed(job, error, now, again || rested),
        }
    }

    fn failed(&mut self, job: Job, error: ReconcileError, now: Timestamp, again: bool) {
        let work = self.work.entry(job.clone()).or_default();
        work.failures = work.failures.saturating_add(1);
        let tries = work.failures;
        let next_try = match error.retry() {
            Retry::At(at) => at.max(now + Duration::from_millis(100)),
            Retry::Backoff => now + backoff(tries),
            // Whatever changed while we looked may be just what was missing.
            Retry::Never if again => now,
            // A person may mend what no change here tells of: a name in DNS, the server itself.
            Retry::Never => match error {
                ReconcileError::Solve(_) | ReconcileError::Store(_) => now + NEARBY,
                ReconcileError::Acme(_) | ReconcileError::Missing(_) => now + UNTOLD,
            },
        };
        debug!(%error, tries, %next_try, "this step could not be taken");
        let error = Arc::new(error);
        self.obstacles.send_modify(|all| {
            let since = all.get(&job.1).map_or(now, |old| old.since);
            all.insert(job.1.clone(), Obstacle { error, since, next_try, tries });
        });
        self.wake_at(job, next_try);
    }
}

/// Pauses between tries: 1 s doubling to 30 s.
fn backoff(failures: u32) -> SignedDuration {
    SignedDuration::from_secs(1_i64 << failures.saturating_sub(1).min(5))
        .min(SignedDuration::from_secs(30))
}

async fn sleep(clock: &dyn Clock, until: Option<Timestamp>) {
    match until {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use async_trait::async_trait;
    use serde_json::json;

    use super::*;
    use crate::controllers::clock::SystemClock;
    use crate::store::Part;
    use crate::store::cluster::ClusterFault;
    use crate::store::memory::MemoryStore;

    /// Always has another step to take.
    #[derive(Debug, Default)]
    struct Restless(AtomicU32);

    #[async_trait]
    impl Controller for Restless {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Issuer]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            Ok(vec![changed.key.clone()])
        }
        async fn reconcile(&self, _: &Key, _: Timestamp) -> Result<Wake, ReconcileError> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Wake::Now)
        }
    }

    #[tokio::test]
    async fn an_object_without_rest_is_made_to_pause() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme", "namespace": "web"},
        });
        let issuer = store.create(Record::new(issuer).unwrap()).await.unwrap();
        let restless = Arc::new(Restless::default());
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let selection = Selection::only([issuer.key].into());
        let controllers: Vec<Arc<dyn Controller>> = vec![restless.clone()];
        let driver = Driver::new(store, Arc::new(SystemClock), controllers, selection, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        let steps = || restless.0.load(Ordering::Relaxed);
        while steps() <= STEPS {
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(steps(), STEPS + 1);
        stop.cancel();
        working.await.unwrap().unwrap();
    }

    /// Writes another reason at each look, and wants to look again in an hour.
    #[derive(Debug)]
    struct Talkative {
        store: Arc<dyn Store>,
        looks: watch::Sender<Vec<String>>,
    }

    #[async_trait]
    impl Controller for Talkative {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Challenge]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            Ok(vec![changed.key.clone()])
        }
        async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileError> {
            self.looks.send_modify(|looks| looks.push(key.name.name.clone()));
            if let Some(mut record) = self.store.get(key).await? {
                record.object["status"]["reason"] = self.looks.borrow().len().to_string().into();
                self.store.replace(record, Part::Status).await?;
            }
            Ok(Wake::At(now + SignedDuration::from_hours(1)))
        }
    }

    #[tokio::test]
    async fn the_reason_that_a_look_writes_does_not_end_the_pause_after_it() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let challenge = |name: &str| {
            let object = json!({
                "apiVersion": "acme.cert-manager.io/v1", "kind": "Challenge",
                "metadata": {"name": name, "namespace": "web"}, "status": {},
            });
            Record::new(object).unwrap()
        };
        let names = ["first", "second", "third", "fourth"];
        let keys = names.map(|name| challenge(name).key);
        let (looks, mut seen) = watch::channel(Vec::new());
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let talkative = Talkative { store: Arc::clone(&store), looks };
        let driver = Driver::new(
            Arc::clone(&store),
            Arc::new(SystemClock),
            vec![Arc::new(talkative)],
            Selection::only(keys.clone().into()),
            sender,
        );
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        let mut expected = Vec::new();
        let mut look = async |name: &str| {
            expected.push(name.to_owned());
            let looked = seen.wait_for(|looks| looks.len() >= expected.len());
            let looks = tokio::time::timeout(Duration::from_mins(1), looked).await.unwrap();
            assert_eq!(*looks.unwrap(), expected);
        };
        // Changes come in order: whoever looks at the next one has heard of the reason of the one before.
        for name in names {
            store.create(challenge(name)).await.unwrap();
            look(name).await;
        }
        let mut first = store.get(&keys[0]).await.unwrap().unwrap();
        first.object["metadata"]["annotations"] = json!({"a-person": "was here"});
        store.replace(first, Part::Metadata).await.unwrap();
        look("first").await;
        store.delete(&keys[0]).await.unwrap();
        look("first").await;
        stop.cancel();
        working.await.unwrap().unwrap();
    }

    /// Cannot look up the neighbours of the first change; notes that it looked at an object.
    #[derive(Debug)]
    struct HardOfHearing {
        asked: AtomicU32,
        looked: CancellationToken,
    }

    #[async_trait]
    impl Controller for HardOfHearing {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Issuer]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            if self.asked.fetch_add(1, Ordering::Relaxed) == 0 {
                let (server, why) = ("https://server".into(), "connection refused".into());
                return Err(ClusterFault::Unreachable { server, why }.into());
            }
            Ok(vec![changed.key.clone()])
        }
        async fn reconcile(&self, _: &Key, _: Timestamp) -> Result<Wake, ReconcileError> {
            self.looked.cancel();
            Ok(Wake::OnChange)
        }
    }

    #[tokio::test]
    async fn a_change_that_comes_while_the_store_is_away_is_heard_later() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme", "namespace": "web"},
        });
        let issuer = store.create(Record::new(issuer).unwrap()).await.unwrap();
        let looked = CancellationToken::new();
        let controller = HardOfHearing { asked: AtomicU32::new(0), looked: looked.clone() };
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let selection = Selection::only([issuer.key].into());
        let controllers: Vec<Arc<dyn Controller>> = vec![Arc::new(controller)];
        let driver = Driver::new(store, Arc::new(SystemClock), controllers, selection, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        tokio::time::timeout(Duration::from_mins(1), looked.cancelled()).await.unwrap();
        stop.cancel();
        working.await.unwrap().unwrap();
    }
}
