//! The only loop: changes, delays, concurrency, shutdown.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::select_all;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::{self, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span};

use super::change_filter::ChangeFilter;
pub(crate) use super::obstacles::Obstacle;
pub(crate) use super::obstacles::ObstacleIndex;
pub(crate) use super::obstacles::Obstacles;
use super::selection::Selection;
use super::work_queue::{Job, News, SHORT_PAUSE, WorkQueue};
use super::{Clock, Controller, ReconcileError, ReconcileFailure, backoff};
use crate::model::{Key, Kind, Record};
use crate::reconcile::Wake;
use crate::store::error::StoreError;
use crate::store::{Change, Scope, Store};

/// Largest number of objects reconciled in parallel.
const CONCURRENCY: usize = 256;
/// Largest number of changes taken in a row before ended steps and due pauses have their turn.
const CHANGES_IN_A_ROW_MAX: u32 = 1_000;

/// Runs controllers over a store until stopped.
#[derive(Debug)]
pub struct Driver {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    controllers: Vec<Arc<dyn Controller>>,
    selection: Selection,
    obstacles: watch::Sender<Obstacles>,
    work_queue: WorkQueue,
    running: JoinSet<Result<Wake, ReconcileFailure>>,
    /// Job of each task: a task that panics cannot name its job.
    jobs: HashMap<task::Id, Job>,
    /// Obstacles found by each job's last reconcile; `obstacles` is their published view.
    standing: ObstacleIndex,
    /// Changes whose objects could not be found while the store was away, to be handled again at `listens`.
    unheard: BTreeMap<Key, Record>,
    listens: Option<Timestamp>,
    change_filter: ChangeFilter,
}

impl Driver {
    /// Builds a driver; `obstacles` publishes the obstacles of objects.
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
            work_queue: WorkQueue::default(),
            running: JoinSet::new(),
            jobs: HashMap::new(),
            standing: ObstacleIndex::default(),
            unheard: BTreeMap::new(),
            listens: None,
            change_filter: ChangeFilter::default(),
        }
    }

    /// Works until `stop` is cancelled or the store fails for good. Steps under way are finished first, either way: the
    /// reply to a request that a CA has just received would be lost.
    ///
    /// # Errors
    /// Fails if the store can no longer be watched.
    pub async fn run(mut self, stop: CancellationToken) -> Result<(), StoreError> {
        let ended = self.work(&stop).await;
        // Waits inside those steps that cannot succeed any more end, too.
        stop.cancel();
        while self.running.join_next().await.is_some() {}
        ended
    }

    async fn work(&mut self, stop: &CancellationToken) -> Result<(), StoreError> {
        let mut kinds: Vec<Kind> =
            self.controllers.iter().flat_map(|c| c.watches()).copied().collect();
        kinds.sort_unstable();
        kinds.dedup();
        let store = Arc::clone(&self.store);
        let mut changes = select_all(kinds.into_iter().map(|kind| store.watch(kind, Scope::all())));
        let clock = Arc::clone(&self.clock);
        let mut in_a_row = 0;
        loop {
            if in_a_row == CHANGES_IN_A_ROW_MAX {
                in_a_row = 0;
                task::yield_now().await;
                while let Some(done) = self.running.try_join_next_with_id() {
                    self.handle_end(done);
                }
                self.wake_due().await?;
            }
            // Last: nothing else starts the jobs that were queued above.
            self.start_waiting();
            let next_alarm = self.work_queue.next_alarm().into_iter().chain(self.listens).min();
            tokio::select! {
                biased;
                () = stop.cancelled() => return Ok(()),
                // Changes of others come before our own results: a watch that falls behind is sent everything anew.
                change = changes.next() => match change {
                    Some(Ok(change)) => {
                        in_a_row += 1;
                        self.handle_change(change).await?;
                    }
                    Some(Err(error)) if error.may_pass() => {
                        debug!(%error, "the store is away; this watch begins again");
                    }
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                },
                Some(done) = self.running.join_next_with_id(), if !self.running.is_empty() => {
                    in_a_row = 0;
                    self.handle_end(done);
                }
                () = sleep(&*clock, next_alarm) => {
                    in_a_row = 0;
                    self.wake_due().await?;
                }
            }
        }
    }

    /// Handles a step that has ended.
    fn handle_end(&mut self, done: Result<(task::Id, Result<Wake, ReconcileFailure>), JoinError>) {
        let (id, result) = match done {
            Ok(done) => done,
            Err(panic) => (panic.id(), Err(ReconcileError::Panicked.into())),
        };
        if let Some(job) = self.jobs.remove(&id) {
            self.settle(job, result);
        }
    }

    /// Wakes jobs whose pause is over.
    async fn wake_due(&mut self) -> Result<(), StoreError> {
        self.work_queue.wake_due(self.clock.now());
        self.retry_kept_changes().await
    }

    async fn handle_change(&mut self, change: Change) -> Result<(), StoreError> {
        match change {
            Change::Applied(record) => {
                let news = self.change_filter.news(&record);
                self.wake_or_keep(record, news).await
            }
            Change::Deleted(record) => {
                self.change_filter.forget(&record.key);
                self.wake_or_keep(record, News::Wish).await
            }
            Change::Resynced(records) => {
                self.change_filter.forget_all();
                for record in records {
                    let news = self.change_filter.news(&record);
                    self.wake_or_keep(record, news).await?;
                }
                Ok(())
            }
        }
    }

    /// Wakes the objects that a change concerns; while the store is away the change is kept. An object of which only
    /// the reason has changed keeps its pause: a reason that differs each time would cause reconciles without end.
    async fn wake_or_keep(&mut self, record: Record, news: News) -> Result<(), StoreError> {
        match self.wake_for(&record, news).await {
            Err(error) if error.may_pass() || error.lacks_permission() => {
                debug!(%error, object = %record.key, "this change is heard later");
                self.unheard.insert(record.key.clone(), record);
                self.listens = Some(self.clock.now() + SHORT_PAUSE);
                Ok(())
            }
            heard => heard,
        }
    }

    async fn retry_kept_changes(&mut self) -> Result<(), StoreError> {
        if self.listens.is_none_or(|at| at > self.clock.now()) {
            return Ok(());
        }
        self.listens = None;
        for record in std::mem::take(&mut self.unheard).into_values() {
            self.wake_or_keep(record, News::Wish).await?;
        }
        Ok(())
    }

    async fn wake_for(&mut self, record: &Record, news: News) -> Result<(), StoreError> {
        for index in 0..self.controllers.len() {
            let controller = Arc::clone(&self.controllers[index]);
            if !controller.watches().contains(&record.key.kind) {
                continue;
            }
            let woken = match controller.wakes(record).await {
                // The object's own reconcile reports that, as an obstacle of the object alone.
                Err(error @ StoreError::Unreadable { .. }) => {
                    debug!(%error, object = %record.key, "nobody else is woken");
                    let is_own = controller.watches().first() == Some(&record.key.kind);
                    is_own.then(|| record.key.clone()).into_iter().collect()
                }
                woken => woken?,
            };
            for key in woken {
                if !self.selection.covers(&*self.store, &key).await? {
                    continue;
                }
                let is_own = key == record.key;
                let job = (index, key);
                let news = match (is_own, news) {
                    (false, _) => News::Neighbour,
                    (true, News::Nothing) if self.work_queue.goes_on(&job) => continue,
                    (true, news) => news.max(News::Progress),
                };
                self.work_queue.hear(job, news, self.clock.now());
            }
        }
        Ok(())
    }

    /// Starts queued jobs as far as the concurrency allows.
    fn start_waiting(&mut self) {
        let now = self.clock.now();
        for job in self.work_queue.start(CONCURRENCY.saturating_sub(self.running.len()), now) {
            let controller = Arc::clone(&self.controllers[job.0]);
            let key = job.1.clone();
            let span = info_span!("reconcile", kind = %key.kind, name = %key.name);
            let look = async move { controller.reconcile(&key, now).await }.instrument(span);
            self.jobs.insert(self.running.spawn(look).id(), job);
        }
    }

    fn settle(&mut self, job: Job, result: Result<Wake, ReconcileFailure>) {
        let now = self.clock.now();
        let look = self.work_queue.ended(&job, now);
        let errors = match result {
            Ok(wake) => {
                self.publish(&job, BTreeMap::new());
                return self.work_queue.went_well(job, wake, look, now);
            }
            Err(stopped) => stopped.at(&job.1),
        };
        let has_failed = errors.values().any(|error| !error.is_race());
        let (tries, next_try) = if has_failed {
            let tries = self.work_queue.failed(&job, now);
            let failed = errors.values().filter(|error| !error.is_race());
            let next = failed.map(|error| backoff::next_try(error, tries, look.heard, now)).min();
            (tries, next.unwrap_or(now))
        } else {
            // Another writer came in between: reconcile again with the present state. Earlier obstacles still hold.
            let times = self.work_queue.outrun(&job);
            let (pause, is_obstacle) = backoff::race(times);
            if !is_obstacle {
                return self.work_queue.sleep_until(job, now + pause);
            }
            (times, now + pause)
        };
        let mut found = BTreeMap::new();
        for (about, error) in errors {
            let before = self.standing.get(&job, &about);
            if has_failed && error.is_race() {
                found.extend(before.map(|before| (about, before.clone())));
                continue;
            }
            let since = before.map_or(now, |before| before.since);
            // A job may fail again and again, each time at another object.
            let of_this = before.map_or(1, |before| before.tries.saturating_add(1));
            let tries = if has_failed { tries.min(of_this) } else { tries };
            debug!(%error, tries, %next_try, object = %about, "this step could not be taken");
            found.insert(about, Obstacle { error: Arc::new(error), since, next_try, tries });
        }
        self.publish(&job, found);
        self.work_queue.sleep_until(job, next_try);
    }

    /// Records and publishes the obstacles that a job has found.
    fn publish(&mut self, job: &Job, found: BTreeMap<Key, Obstacle>) {
        let concerned = self.standing.found(job, found);
        if concerned.is_empty() {
            return;
        }
        self.obstacles.send_if_modified(|all| {
            let mut is_news = false;
            for about in concerned {
                is_news |= match self.standing.first(&about) {
                    Some(obstacle) => {
                        all.insert(about, obstacle.clone());
                        true
                    }
                    None => all.remove(&about).is_some(),
                };
            }
            is_news
        });
    }
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

    use std::time::Duration;

    use async_trait::async_trait;
    use futures_util::stream::{self, BoxStream};
    use jiff::SignedDuration;
    use serde_json::json;

    use super::*;
    use crate::controllers::clock::SystemClock;
    use crate::controllers::work_queue::STEPS_IN_A_ROW_MAX;
    use crate::model::{Certificate, ObjectName};
    use crate::solvers::SolveError;
    use crate::store::Part;
    use crate::store::cluster_fault::ClusterFault;
    use crate::store::memory::MemoryStore;
    use crate::store::resources::{Resources, typed};
    use crate::store::testing::Front;

    async fn store_with_issuer() -> (MemoryStore, Record) {
        let store = MemoryStore::new();
        let issuer = json!({
            "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "acme", "namespace": "web"},
        });
        let issuer = store.create(Record::new(issuer).unwrap()).await.unwrap();
        (store, issuer)
    }

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
        async fn reconcile(&self, _: &Key, _: Timestamp) -> Result<Wake, ReconcileFailure> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(Wake::Now)
        }
    }

    #[tokio::test]
    async fn an_object_without_rest_is_made_to_pause() {
        let (store, issuer) = store_with_issuer().await;
        let store: Arc<dyn Store> = Arc::new(store);
        let restless = Arc::new(Restless::default());
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let selection = Selection::only([issuer.key].into());
        let controllers: Vec<Arc<dyn Controller>> = vec![restless.clone()];
        let driver =
            Driver::new(store, Arc::new(SystemClock::default()), controllers, selection, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        let steps = || restless.0.load(Ordering::Relaxed);
        while steps() <= STEPS_IN_A_ROW_MAX {
            task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(steps(), STEPS_IN_A_ROW_MAX + 1);
        stop.cancel();
        working.await.unwrap().unwrap();
    }

    /// Others write to that object so often.
    #[derive(Debug)]
    struct Busy(MemoryStore, Record, usize);

    impl Front for Busy {
        fn behind(&self) -> &dyn Store {
            &self.0
        }
        fn watch(&self, _: Kind, _: Scope) -> BoxStream<'static, Result<Change, StoreError>> {
            let told = self.1.clone();
            let changes = stream::repeat_with(move || Ok(Change::Applied(told.clone())));
            changes.take(self.2).chain(stream::pending()).boxed()
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn steps_go_on_while_others_write_without_end() {
        let (store, issuer) = store_with_issuer().await;
        let store: Arc<dyn Store> = Arc::new(Busy(store, issuer, usize::MAX));
        let restless = Arc::new(Restless::default());
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let controllers: Vec<Arc<dyn Controller>> = vec![restless.clone()];
        let (clock, all) = (Arc::new(SystemClock::default()), Selection::all());
        let driver = Driver::new(store, clock, controllers, all, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        let five = async {
            while restless.0.load(Ordering::Relaxed) < 5 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let went_on = tokio::time::timeout(Duration::from_mins(1), five).await;
        stop.cancel();
        working.await.unwrap().unwrap();
        went_on.unwrap();
    }

    /// Controller whose first reconcile lasts until all these changes have arrived.
    #[derive(Debug)]
    struct Slow {
        heard: watch::Sender<u32>,
        looks: watch::Sender<u32>,
    }

    #[async_trait]
    impl Controller for Slow {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Issuer]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            self.heard.send_modify(|heard| *heard += 1);
            Ok(vec![changed.key.clone()])
        }
        async fn reconcile(&self, _: &Key, _: Timestamp) -> Result<Wake, ReconcileFailure> {
            let mut heard = self.heard.subscribe();
            heard.wait_for(|heard| *heard >= CHANGES_IN_A_ROW_MAX).await.unwrap();
            self.looks.send_modify(|looks| *looks += 1);
            let is_first = *self.looks.borrow() == 1;
            Ok(if is_first { Wake::Now } else { Wake::OnChange })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_that_ends_among_many_changes_is_followed_by_the_next_one() {
        let (store, issuer) = store_with_issuer().await;
        let store: Arc<dyn Store> =
            Arc::new(Busy(store, issuer, CHANGES_IN_A_ROW_MAX.try_into().unwrap()));
        let (looks, mut looked) = watch::channel(0);
        let slow = Slow { heard: watch::channel(0).0, looks };
        let controllers: Vec<Arc<dyn Controller>> = vec![Arc::new(slow)];
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let (clock, all) = (Arc::new(SystemClock::default()), Selection::all());
        let driver = Driver::new(store, clock, controllers, all, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        let went_on = looked.wait_for(|looks| *looks == 2);
        drop(tokio::time::timeout(Duration::from_mins(1), went_on).await.unwrap().unwrap());
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
        async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
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
            Arc::new(SystemClock::default()),
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
        async fn reconcile(&self, _: &Key, _: Timestamp) -> Result<Wake, ReconcileFailure> {
            self.looked.cancel();
            Ok(Wake::OnChange)
        }
    }

    #[tokio::test]
    async fn a_change_that_comes_while_the_store_is_away_is_heard_later() {
        let (store, issuer) = store_with_issuer().await;
        let store: Arc<dyn Store> = Arc::new(store);
        let looked = CancellationToken::new();
        let controller = HardOfHearing { asked: AtomicU32::new(0), looked: looked.clone() };
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let selection = Selection::only([issuer.key].into());
        let controllers: Vec<Arc<dyn Controller>> = vec![Arc::new(controller)];
        let driver =
            Driver::new(store, Arc::new(SystemClock::default()), controllers, selection, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        tokio::time::timeout(Duration::from_mins(1), looked.cancelled()).await.unwrap();
        stop.cancel();
        working.await.unwrap().unwrap();
    }

    /// Reads what it hears of.
    #[derive(Debug)]
    struct Reader(Resources<Certificate>);

    #[async_trait]
    impl Controller for Reader {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Certificate]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            typed::<Certificate>(changed.clone()).map(|_| vec![changed.key.clone()])
        }
        async fn reconcile(&self, key: &Key, _: Timestamp) -> Result<Wake, ReconcileFailure> {
            self.0.get(&key.name).await?;
            Ok(Wake::OnChange)
        }
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_an_obstacle_of_its_own_until_it_is_corrected() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let certificate = |duration: &str| {
            let object = json!({
                "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
                "metadata": {"name": "web", "namespace": "web"},
                "spec": {"secretName": "web", "issuerRef": {"name": "acme"}, "duration": duration},
            });
            Record::new(object).unwrap()
        };
        let key = store.create(certificate("banana")).await.unwrap().key;
        let (sender, mut obstacles) = watch::channel(Obstacles::new());
        let reader = Reader(Resources::new(Arc::clone(&store), Kind::Certificate));
        let driver = Driver::new(
            Arc::clone(&store),
            Arc::new(SystemClock::default()),
            vec![Arc::new(reader)],
            Selection::all(),
            sender,
        );
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        let patience = Duration::from_mins(1);
        let stands = obstacles.wait_for(|all| all.get(&key).is_some_and(Obstacle::stays));
        drop(tokio::time::timeout(patience, stands).await.unwrap().unwrap());
        store.replace(certificate("90m"), Part::Whole).await.unwrap();
        let gone = obstacles.wait_for(Obstacles::is_empty);
        drop(tokio::time::timeout(patience, gone).await.unwrap().unwrap());
        stop.cancel();
        working.await.unwrap().unwrap();
    }

    /// Mishap during a first reconcile.
    #[derive(Clone, Copy, Debug)]
    enum Mishap {
        Panic,
        /// Somebody else is quicker, at every look.
        Race,
        /// A fault that names a far moment, after a change of the object was heard.
        After(Interference),
    }

    #[derive(Clone, Copy, Debug)]
    enum Interference {
        Deletion,
        Label,
        /// The look's own.
        Status,
    }

    #[derive(Debug)]
    struct Unlucky {
        store: Arc<dyn Store>,
        mishap: Mishap,
        looks: watch::Sender<u32>,
        heard: watch::Sender<u32>,
    }

    impl Unlucky {
        async fn change(&self, key: &Key, interference: Interference) {
            let heard = self.heard.subscribe().borrow().to_owned();
            let mut record = self.store.get(key).await.unwrap().unwrap();
            match interference {
                Interference::Deletion => drop(self.store.delete(key).await.unwrap()),
                Interference::Label => {
                    record.object["metadata"]["labels"] = json!({"a-person": "was-here"});
                    self.store.replace(record, Part::Metadata).await.unwrap();
                }
                Interference::Status => {
                    record.object["status"] = json!({"reason": "asked too often"});
                    self.store.replace(record, Part::Status).await.unwrap();
                }
            }
            self.heard.subscribe().wait_for(|now| *now > heard).await.unwrap();
        }
    }

    #[async_trait]
    impl Controller for Unlucky {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Order]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            self.heard.send_modify(|heard| *heard += 1);
            Ok(vec![changed.key.clone()])
        }
        async fn reconcile(&self, key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
            self.looks.send_modify(|looks| *looks += 1);
            let is_first = *self.looks.borrow() == 1;
            match self.mishap {
                Mishap::Race => Err(StoreError::AlreadyExists { key: key.clone() }.into()),
                Mishap::Panic if is_first => panic!("a mistake"),
                Mishap::After(interference) if is_first => {
                    self.change(key, interference).await;
                    let until = Some(now + SignedDuration::from_hours(1));
                    let [what, why] = ["cannot ask", "too many requests"].map(str::to_owned);
                    Err(SolveError::passing(what, why).until(until).into())
                }
                Mishap::Panic | Mishap::After(_) => Ok(Wake::OnChange),
            }
        }
    }

    /// Looks at one object until so many looks were taken and obstacles are as expected.
    async fn check(mishap: Mishap, looks: u32, expected: impl Fn(Option<&Obstacle>) -> bool) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let order = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "metadata": {"name": "web", "namespace": "web"},
        });
        let key = store.create(Record::new(order).unwrap()).await.unwrap().key;
        let (sender, mut obstacles) = watch::channel(Obstacles::new());
        let (looked, mut seen) = watch::channel(0);
        let unlucky = Unlucky {
            store: Arc::clone(&store),
            mishap,
            looks: looked,
            heard: watch::channel(0).0,
        };
        let controllers: Vec<Arc<dyn Controller>> = vec![Arc::new(unlucky)];
        let driver = Driver::new(
            store,
            Arc::new(SystemClock::default()),
            controllers,
            Selection::all(),
            sender,
        );
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        tokio::time::timeout(Duration::from_mins(1), async {
            seen.wait_for(|seen| *seen >= looks).await.unwrap();
            obstacles.wait_for(|all| expected(all.get(&key))).await.unwrap();
        })
        .await
        .unwrap();
        stop.cancel();
        working.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn an_object_whose_look_panics_is_looked_at_again() {
        check(Mishap::Panic, 1, |obstacle| obstacle.is_some()).await;
        check(Mishap::Panic, 2, |obstacle| obstacle.is_none()).await;
    }

    #[tokio::test]
    async fn what_others_want_during_a_look_does_not_wait_for_the_moment_that_it_names() {
        for interference in [Interference::Deletion, Interference::Label] {
            check(Mishap::After(interference), 2, |obstacle| obstacle.is_none()).await;
        }
        let is_far = |obstacle: &Obstacle| {
            obstacle.next_try.duration_since(obstacle.since) > SignedDuration::from_mins(59)
        };
        check(Mishap::After(Interference::Status), 1, |it| it.is_some_and(is_far)).await;
    }

    #[tokio::test]
    async fn whoever_is_outrun_without_end_pauses_longer_and_is_seen() {
        check(Mishap::Race, 1, |it| it.is_some_and(|it| it.stays() && it.tries > 10)).await;
    }

    const DENIED: &str = "denied";
    const PASSING: &str = "passing";
    const RACE: &str = "race";
    const WELL: &str = "well";

    fn challenge(name: &str) -> Key {
        Key::new(Kind::Challenge, ObjectName::new("web", name))
    }

    /// Builds the end of a reconcile of this object; with `about`, one of the job for all objects, stopped by these.
    fn ended(how: &str, about: Option<&str>) -> Result<Wake, ReconcileFailure> {
        let error = |how: &str, key: &Key| match how {
            DENIED => StoreError::Unreadable { key: key.clone(), why: DENIED.into() }.into(),
            RACE => StoreError::Conflict { key: key.clone() }.into(),
            _ => ReconcileError::Missing(PASSING.into()),
        };
        if how == WELL {
            return Ok(Wake::OnChange);
        }
        let Some(about) = about else { return Err(error(how, &challenge("")).into()) };
        let each = about.split(' ').map(challenge).zip(how.split(' '));
        Err(ReconcileFailure::Others(
            each.map(|(key, how)| (key.clone(), error(how, &key))).collect(),
        ))
    }

    /// Objects, each with what is told to stand in its way.
    type Told = &'static [(&'static str, &'static str)];

    /// Checks the obstacles after each of these reconciles, of the job for all Challenges or of one Challenge's own.
    fn seen(looks: &[(&str, Option<&str>, &str, Told)]) {
        let (sender, obstacles) = watch::channel(Obstacles::new());
        let store = Arc::new(MemoryStore::new());
        let (clock, all) = (Arc::new(SystemClock::default()), Selection::all());
        let mut driver = Driver::new(store, clock, Vec::new(), all, sender);
        for (object, about, how, expected) in looks {
            let key = Key::new(Kind::Challenge, ObjectName::new("web", *object));
            driver.settle((usize::from(!object.is_empty()), key), ended(how, *about));
            let seen = obstacles.borrow();
            let seen = seen.iter().map(|(key, it)| (key.name.name.as_str(), it.error.to_string()));
            let seen: Vec<_> = seen.collect();
            assert_eq!(seen.len(), expected.len(), "{object} {about:?} {how}: {seen:?}");
            for ((name, error), (of, why)) in seen.iter().zip(*expected) {
                assert!(name == of && error.contains(why), "{object} {about:?} {how}: {seen:?}");
            }
        }
    }

    #[test]
    fn what_one_job_sees_is_not_taken_away_by_another() {
        seen(&[
            ("", Some("b"), DENIED, &[("b", DENIED)]),
            ("b", None, WELL, &[("b", DENIED)]),
            ("b", None, PASSING, &[("b", DENIED)]),
            ("", None, WELL, &[("b", PASSING)]),
            ("b", None, WELL, &[]),
        ]);
    }

    #[test]
    fn a_race_over_one_object_leaves_what_stands_in_the_way_of_another() {
        seen(&[
            ("", Some("b"), DENIED, &[("b", DENIED)]),
            ("", Some("a"), RACE, &[("b", DENIED)]),
            ("", Some("a"), PASSING, &[("a", PASSING)]),
            ("", Some("b"), RACE, &[("a", PASSING)]),
            ("", None, WELL, &[]),
        ]);
    }

    #[test]
    fn a_job_may_find_what_stands_in_the_way_of_several_objects() {
        seen(&[
            ("", Some("b c"), "denied denied", &[("b", DENIED), ("c", DENIED)]),
            ("c", None, PASSING, &[("b", DENIED), ("c", DENIED)]),
            (
                "",
                Some("a b c"),
                "passing race race",
                &[("a", PASSING), ("b", DENIED), ("c", DENIED)],
            ),
            ("", Some("a b"), "race passing", &[("a", PASSING), ("b", PASSING), ("c", PASSING)]),
            ("", None, WELL, &[("c", PASSING)]),
        ]);
    }

    #[test]
    fn of_two_obstacles_the_one_that_stays_is_told_and_then_the_older_one() {
        seen(&[
            ("b", None, PASSING, &[("b", PASSING)]),
            ("", Some("b"), DENIED, &[("b", DENIED)]),
            ("b", None, DENIED, &[("b", DENIED)]),
            ("", Some("b"), PASSING, &[("b", DENIED)]),
        ]);
    }

    /// A store in memory whose watches fail for good once the login has run out; it still writes.
    #[derive(Debug, Default)]
    struct LoggedOut {
        store: MemoryStore,
        out: CancellationToken,
    }

    #[async_trait]
    impl Front for LoggedOut {
        fn behind(&self) -> &dyn Store {
            &self.store
        }
        fn watch(
            &self,
            kind: Kind,
            scope: Scope,
        ) -> BoxStream<'static, Result<Change, StoreError>> {
            let out = self.out.clone();
            let failed = stream::once(async move {
                out.cancelled().await;
                let (server, why) = ("https://server".into(), "Unauthorized".into());
                Err(ClusterFault::Credentials { server, why }.into())
            });
            stream::select(self.store.watch(kind, scope), failed).boxed()
        }
    }

    /// Writes down what a CA says, once it has said it.
    #[derive(Debug)]
    struct WaitsForCa {
        store: Arc<dyn Store>,
        asked: CancellationToken,
        answer: CancellationToken,
    }

    #[async_trait]
    impl Controller for WaitsForCa {
        fn watches(&self) -> &'static [Kind] {
            &[Kind::Order]
        }
        async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
            Ok(vec![changed.key.clone()])
        }
        async fn reconcile(&self, key: &Key, _: Timestamp) -> Result<Wake, ReconcileFailure> {
            self.asked.cancel();
            self.answer.cancelled().await;
            let mut order = self.store.get(key).await?.unwrap();
            order.object["status"] = json!({"url": "https://ca.example/order/1"});
            self.store.replace(order, Part::Status).await?;
            Ok(Wake::OnChange)
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_step_under_way_is_finished_when_the_store_fails_for_good() {
        let store = LoggedOut::default();
        let out = store.out.clone();
        let store: Arc<dyn Store> = Arc::new(store);
        let order = json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "metadata": {"name": "web", "namespace": "web"},
        });
        let key = store.create(Record::new(order).unwrap()).await.unwrap().key;
        let (asked, answer) = <(CancellationToken, CancellationToken)>::default();
        let controller =
            WaitsForCa { store: Arc::clone(&store), asked: asked.clone(), answer: answer.clone() };
        let controllers: Vec<Arc<dyn Controller>> = vec![Arc::new(controller)];
        let (sender, _obstacles) = watch::channel(Obstacles::new());
        let (clock, all) = (Arc::new(SystemClock::default()), Selection::all());
        let driver = Driver::new(Arc::clone(&store), clock, controllers, all, sender);
        let stop = CancellationToken::new();
        let working = tokio::spawn(driver.run(stop.clone()));
        asked.cancelled().await;
        out.cancel();
        // Time stands still until everybody waits: the driver has heard of the fault then.
        tokio::time::sleep(Duration::from_secs(1)).await;
        answer.cancel();
        let ended = working.await.unwrap();
        let order = store.get(&key).await.unwrap().unwrap();
        assert_eq!(order.text("/status/url"), "https://ca.example/order/1");
        assert!(ended.unwrap_err().to_string().contains("Unauthorized"));
        assert!(stop.is_cancelled());
    }
}
