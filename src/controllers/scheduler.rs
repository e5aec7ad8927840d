//! Starts admitted challenges, and records the obstacle of each other one.
//!
//! Every admitted challenge is started, even if others fail, and a fault of one challenge is an obstacle of that
//! challenge alone: one tenant's mistake must not stop the others' work. One-shot commands count only the Challenges in
//! their selection, because the Challenges of an interrupted run are not worked on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use serde::Deserialize as _;
use tokio::time::Instant;

use super::recorder::Recorder;
use super::selection::Selection;
use super::{Controller, ReconcileError, ReconcileFailure};
use crate::model::event::{reason, source};
use crate::model::{Challenge, ChallengeStatus, Key, Kind, ObjectName, Order, Record, State};
use crate::reconcile::challenge::first_state;
use crate::reconcile::schedule::{self, Contention, Limits, Plan};
use crate::reconcile::{Note, Wake};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::events::reference;
use crate::store::resources::Resources;

/// Largest number of challenges whose obstacle one pass records: slots that come free meanwhile wait for the next pass.
const REASONS_PER_PASS: usize = 256;
/// Number of reasons that are written in parallel.
const PARALLEL_WRITES: usize = 16;
/// Rest between two plans, in multiples of a plan's duration: among thousands of challenges one ends at any moment.
const REST_FACTOR: i32 = 30;
/// Longest time without a plan.
const REST_MAX: SignedDuration = SignedDuration::from_millis(300);

/// Contention between challenges at the last pass. Clones share the value.
#[derive(Clone, Debug, Default)]
pub struct SharedContention(Arc<Mutex<Contention>>);

impl SharedContention {
    /// Returns whether a running challenge stands in another one's way.
    pub fn is_held_up_by(&self, challenge: &ObjectName) -> bool {
        self.0.lock().concerns(challenge)
    }

    /// Returns whether another challenge of the Order with this UID is kept from the CA.
    pub fn keeps_back(&self, order: &str, now: Timestamp) -> bool {
        self.0.lock().keeps_back(order, now)
    }

    /// Returns whether a challenge that is proved by a record waits for its turn.
    pub fn has_queued(&self, challenge: &ObjectName) -> bool {
        self.0.lock().has_queued(challenge)
    }

    fn is_now(&self, contention: Contention) {
        *self.0.lock() = contention;
    }
}

/// Standing of a challenge, as far as it matters to challenges that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Waits for its turn.
    Waits,
    /// Has a slot and its name.
    Runs {
        /// Moment since which the challenge is kept from the CA.
        kept_back_from: Option<Timestamp>,
    },
    /// Has no slot, and wants none.
    Out,
    /// Unknown: the object does not have the shape of a Challenge.
    Unknown,
}

impl Standing {
    fn of(record: &Record) -> Self {
        let Ok(challenge) = Challenge::deserialize(&record.object) else { return Self::Unknown };
        let is_over = challenge.has_ended();
        match challenge.status.processing {
            true => Self::Runs { kept_back_from: schedule::kept_back_from(&challenge) },
            false if is_over || challenge.metadata.is_deleted() => Self::Out,
            false => Self::Waits,
        }
    }
}

/// Plans all challenges on every change that matters to challenges that wait.
#[derive(Debug)]
pub struct Scheduler {
    /// Last known standing of each challenge that has one, by UID: another challenge may take the name.
    standings: Mutex<HashMap<String, Standing>>,
    challenges: Resources<Challenge>,
    orders: Resources<Order>,
    limits: Limits,
    selection: Selection,
    contention: SharedContention,
    recorder: Recorder,
    /// Challenges that may have been started: the store did not answer.
    doubtful: Mutex<BTreeSet<ObjectName>>,
    /// Earliest moment of the next pass.
    rest: Mutex<Timestamp>,
}

impl Scheduler {
    /// Builds the scheduler; challenges outside the selection are not worked on and do not count. Each pass records in
    /// `contention` the challenges that stand in others' way.
    pub fn new(
        recorder: Recorder,
        limits: Limits,
        selection: Selection,
        contention: SharedContention,
    ) -> Self {
        let challenges = Resources::new(Arc::clone(recorder.store()), Kind::Challenge)
            .written_by(source::CHALLENGES);
        let orders = Resources::new(Arc::clone(recorder.store()), Kind::Order);
        let (standings, doubtful) = Default::default();
        let rest = Mutex::new(Timestamp::MIN);
        Self {
            standings,
            challenges,
            orders,
            limits,
            selection,
            contention,
            recorder,
            doubtful,
            rest,
        }
    }

    /// Starts challenges that may start, and records obstacles of others; returns whether more are to be recorded.
    ///
    /// # Errors
    /// Fails if the store does. A fault of one challenge stops none of the others.
    pub async fn pass(&self, now: Timestamp) -> Result<bool, ReconcileFailure> {
        let began = Instant::now();
        self.settle_doubts().await?;
        let all = self.ours().await?;
        let all = all.iter().map(|challenge| &**challenge);
        let Plan { admitted, queue } = schedule::plan(all.clone(), self.limits);
        self.contention.is_now(Contention::of(all, &queue));
        let planning = SignedDuration::try_from(began.elapsed()).unwrap_or(REST_MAX);
        *self.rest.lock() = now + planning.saturating_mul(REST_FACTOR).min(REST_MAX);
        let mut faults = self.start_all(admitted, now).await;
        let mut untold = Vec::new();
        for queued in &queue {
            let reason = queued.waits.reason(queued.challenge);
            if queued.challenge.status.reason != reason {
                untold.push((queued.challenge, reason));
            }
        }
        let told = untold.len().min(REASONS_PER_PASS);
        for some in untold[..told].chunks(PARALLEL_WRITES) {
            let writes = some.iter().map(async |(challenge, reason)| {
                fault(challenge, self.record_reason(challenge, reason).await)
            });
            faults.extend(join_all(writes).await.into_iter().flatten());
        }
        if faults.is_empty() {
            Ok(told < untold.len())
        } else {
            Err(ReconcileFailure::Others(faults))
        }
    }

    /// Starts each of these challenges, even if others fail; returns the faults.
    async fn start_all(
        &self,
        admitted: impl IntoIterator<Item = &Challenge>,
        now: Timestamp,
    ) -> BTreeMap<Key, ReconcileError> {
        let starts = admitted.into_iter().map(async |challenge| {
            let started = self.start(challenge, now).await;
            if started.as_ref().is_err_and(StoreError::may_pass) {
                self.doubtful.lock().insert(challenge.name());
            }
            fault(challenge, started)
        });
        join_all(starts).await.into_iter().flatten().collect()
    }

    /// Reads again the challenges that may have been started unnoticed: a started one has a slot and its name.
    async fn settle_doubts(&self) -> Result<(), StoreError> {
        let doubtful = self.doubtful.lock().clone();
        for name in doubtful {
            match self.challenges.get_anew(&name).await {
                Err(error) if error.may_pass() => return Err(error),
                // An unreadable challenge is an obstacle of its own.
                _ => self.doubtful.lock().remove(&name),
            };
        }
        Ok(())
    }

    async fn record_reason(&self, challenge: &Challenge, reason: &str) -> Result<(), StoreError> {
        let status = ChallengeStatus { reason: reason.to_owned(), ..challenge.status.clone() };
        self.challenges.replace_status(challenge, &status).await?;
        Ok(())
    }

    async fn ours(&self) -> Result<Vec<Arc<Challenge>>, StoreError> {
        let mut ours = Vec::new();
        for challenge in self.challenges.list_shared(&Scope::all()).await? {
            let key = Key::new(Kind::Challenge, challenge.name());
            if self.selection.covers(&**self.recorder.store(), &key).await? {
                ours.push(challenge);
            }
        }
        Ok(ours)
    }

    async fn start(&self, challenge: &Challenge, now: Timestamp) -> Result<(), StoreError> {
        let state = match challenge.status.state {
            Some(state) => Some(state),
            None => self.pending(challenge).await?,
        };
        let status = ChallengeStatus {
            processing: true,
            reason: String::new(),
            state,
            ..challenge.status.clone()
        };
        let message = "Challenge scheduled for processing";
        let note = Note::normal(source::CHALLENGES, reason::STARTED, message);
        // Recorded first: the write wakes the Challenge's controller, whose events come after this one.
        self.recorder.note(&reference(challenge), &note, now).await?;
        self.challenges.replace_status(challenge, &status).await?;
        Ok(())
    }

    /// Returns the first state of a challenge that has something to prove, as its Order has read it, for the same
    /// write. Any other first state needs an event, which the challenge's own machine records.
    async fn pending(&self, challenge: &Challenge) -> Result<Option<State>, StoreError> {
        let Some(owner) = challenge.metadata.controller() else { return Ok(None) };
        let name = ObjectName::new(&challenge.metadata.namespace, &owner.name);
        let order = match self.orders.get_known(&name).await {
            // The challenge's own machine reports that.
            Err(StoreError::Unreadable { .. }) => None,
            read => read?,
        };
        let order = order.filter(|order| order.metadata.uid == owner.uid);
        Ok(first_state(challenge, order.as_ref()).filter(|state| *state == State::Pending))
    }
}

/// Returns the fault of one challenge, if there is one.
fn fault(challenge: &Challenge, outcome: Result<(), StoreError>) -> Option<(Key, ReconcileError)> {
    Some((Key::new(Kind::Challenge, challenge.name()), outcome.err()?.into()))
}

#[async_trait]
impl Controller for Scheduler {
    fn watches(&self) -> &'static [Kind] {
        &[Kind::Challenge]
    }

    /// Wakes the only pass for every change that matters; changes that come meanwhile are taken together.
    async fn wakes(&self, changed: &Record) -> Result<Vec<Key>, StoreError> {
        let uid = changed.uid();
        let before = self.standings.lock().get(uid).copied().unwrap_or(Standing::Out);
        let mut standing = Standing::of(changed);
        if standing != Standing::Out {
            // A deleted challenge comes with its last state.
            let known = self.recorder.store().get_known(&changed.key).await?;
            if known.is_none_or(|known| known.uid() != uid) {
                standing = Standing::Out;
            }
        }
        if standing == before {
            return Ok(Vec::new());
        }
        let mut standings = self.standings.lock();
        match standing {
            Standing::Out => standings.remove(uid),
            standing => standings.insert(uid.to_owned(), standing),
        };
        Ok(vec![Key::new(Kind::Challenge, ObjectName::default())])
    }

    async fn reconcile(&self, _key: &Key, now: Timestamp) -> Result<Wake, ReconcileFailure> {
        let rest = *self.rest.lock();
        if now < rest {
            return Ok(Wake::At(rest));
        }
        let is_unfinished = self.pass(now).await?;
        Ok(if is_unfinished { Wake::Now } else { Wake::OnChange })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::cause::Guard;
    use crate::reconcile::testing::challenge;
    use crate::store::memory::MemoryStore;
    use crate::store::testing::Front;
    use crate::store::{Part, Store};

    /// A store with an Order, and with these Challenges of it.
    async fn store(order: Value, names: &[&str]) -> (Arc<dyn Store>, ObjectName) {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let order = store.create(Record::new(order).unwrap()).await.unwrap();
        let challenges = Resources::<Challenge>::new(Arc::clone(&store), Kind::Challenge);
        for name in names {
            let mut one = challenge(name).build();
            let owner = json!({
                "apiVersion": "acme.cert-manager.io/v1", "kind": "Order", "name": order.key.name.name, "uid": order.uid(),
                "controller": true,
            });
            one.metadata.owner_references = serde_json::from_value(json!([owner])).unwrap();
            challenges.create(&one).await.unwrap();
        }
        (store, order.key.name)
    }

    fn order(spec: &Value) -> Value {
        json!({
            "apiVersion": "acme.cert-manager.io/v1", "kind": "Order",
            "metadata": {"name": "web-1", "namespace": "default"}, "spec": spec,
        })
    }

    fn scheduler(store: Arc<dyn Store>, limits: Limits) -> Scheduler {
        Scheduler::new(Recorder::new(store), limits, Selection::all(), SharedContention::default())
    }

    #[tokio::test]
    async fn an_order_that_cannot_be_read_keeps_no_challenge_from_starting() {
        let spec = json!({"request": "", "issuerRef": {"name": "ca"}, "duration": "for ever"});
        let (store, name) = store(order(&spec), &["a.example.com"]).await;
        Resources::<Order>::new(Arc::clone(&store), Kind::Order).get(&name).await.unwrap_err();
        let scheduler = scheduler(store, Limits { max_in_flight: 10 });
        assert!(!scheduler.pass(Timestamp::UNIX_EPOCH).await.unwrap());
        let all = scheduler.ours().await.unwrap();
        assert_eq!(all.iter().map(|c| c.status.processing).collect::<Vec<_>>(), [true]);
    }

    #[tokio::test]
    async fn what_stands_in_the_way_of_one_challenge_is_its_own() {
        let spec = json!({"request": "", "issuerRef": {"name": "ca"}});
        let (store, _) = store(order(&spec), &["a.example.com", "b.example.com"]).await;
        let scheduler = scheduler(store, Limits { max_in_flight: 10 });
        let all = scheduler.ours().await.unwrap();
        // Somebody else writes after the list.
        scheduler.record_reason(&all[0], "busy").await.unwrap();
        let faults = scheduler
            .start_all(all.iter().map(|challenge| &**challenge), Timestamp::UNIX_EPOCH)
            .await;
        let [(key, error)] = &faults.iter().collect::<Vec<_>>()[..] else { panic!("{faults:?}") };
        assert_eq!(key.name, all[0].name());
        assert!(error.is_race());
        let all = scheduler.ours().await.unwrap();
        assert_eq!(all.iter().map(|c| c.status.processing).collect::<Vec<_>>(), [false, true]);
    }

    #[tokio::test]
    async fn a_change_wakes_only_where_it_counts_for_those_that_wait() {
        let spec = json!({"request": "", "issuerRef": {"name": "ca"}});
        let (store, _) = store(order(&spec), &["a.example.com"]).await;
        let scheduler = scheduler(Arc::clone(&store), Limits { max_in_flight: 1 });
        let read = async || store.list(Kind::Challenge, &Scope::all()).await.unwrap().remove(0);
        let wakes = async |record: &Record| !scheduler.wakes(record).await.unwrap().is_empty();
        let waiting = read().await;
        assert!(wakes(&waiting).await, "it is new");
        assert!(!wakes(&waiting).await, "nothing has changed");
        let mut running = waiting.clone();
        running.object["status"] = json!({"processing": true});
        let running = store.replace(running, Part::Status).await.unwrap();
        assert!(wakes(&running).await, "it runs");
        let mut presented = running.clone();
        presented.object["status"]["presented"] = true.into();
        let presented = store.replace(presented, Part::Status).await.unwrap();
        assert!(!wakes(&presented).await, "its slot is taken as before");
        store.delete(&presented.key).await.unwrap();
        assert!(wakes(&presented).await, "it is gone, and its slot is free");
        assert!(!wakes(&presented).await, "and stays so");
        store.create(waiting.clone()).await.unwrap();
        let another = read().await;
        assert!(another.uid() != waiting.uid() && wakes(&another).await, "it only has the name");
    }

    #[tokio::test]
    async fn slots_are_filled_between_telling_many_what_they_wait_for() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
        let challenges = Resources::<Challenge>::new(Arc::clone(&store), Kind::Challenge);
        for number in 0..=REASONS_PER_PASS + 1 {
            let waiting = challenge(&format!("n{number}.example.com")).build();
            challenges.create(&waiting).await.unwrap();
        }
        let limits = Limits { max_in_flight: 1 };
        let scheduler = scheduler(store, limits);
        let told = async || {
            let all = challenges.list(&Scope::all()).await.unwrap();
            let running = all.iter().filter(|c| c.status.processing).count();
            (running, all.iter().filter(|c| !c.status.reason.is_empty()).count())
        };
        assert!(scheduler.pass(Timestamp::UNIX_EPOCH).await.unwrap(), "one is left");
        assert_eq!(told().await, (1, REASONS_PER_PASS));
        assert!(!scheduler.pass(Timestamp::UNIX_EPOCH).await.unwrap(), "none is left");
        assert_eq!(told().await, (1, REASONS_PER_PASS + 1));
    }

    /// A store in memory that refuses to write the status of Challenges.
    #[derive(Debug)]
    struct Refusing(Arc<dyn Store>);

    #[async_trait]
    impl Front for Refusing {
        fn behind(&self) -> &dyn Store {
            &*self.0
        }
        async fn replace(&self, record: Record, part: Part) -> Result<Record, StoreError> {
            match record.key.kind {
                Kind::Challenge => Err(StoreError::Denied {
                    key: record.key,
                    why: "no".into(),
                    guard: Guard::Unknown,
                }),
                _ => self.0.replace(record, part).await,
            }
        }
    }

    #[tokio::test]
    async fn everything_that_cannot_be_started_or_told_is_named() {
        let spec = json!({"request": "", "issuerRef": {"name": "ca"}});
        let names = ["a.example.com", "b.example.com", "c.example.com"];
        let (store, _) = store(order(&spec), &names).await;
        let scheduler = scheduler(Arc::new(Refusing(store)), Limits { max_in_flight: 2 });
        let stopped = scheduler.pass(Timestamp::UNIX_EPOCH).await.unwrap_err();
        let ReconcileFailure::Others(faults) = stopped else { panic!("{stopped:?}") };
        assert_eq!(faults.keys().map(|key| key.name.name.as_str()).collect::<Vec<_>>(), names);
    }
}
