//! One run's world: its time, what has happened, which faults strike, and where a process may be killed.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use jiff::Timestamp;
use kubectl_acme::ca::without_socket::CalledCa;
use kubectl_acme::model::{Key, Kind, Record};
use kubectl_acme::store::memory::MemoryStore;
use kubectl_acme::store::{Scope, Store as _};
use kubectl_acme::surroundings::Environment;
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep};

use super::answers::Answers;
use super::events::Event;
use super::invariants::{self, Observer};
use super::lease::LeaseServer;
use super::plan::{Fault, Setting, Side};
use super::rng::Lots;

/// When every run begins.
const EPOCH: &str = "2026-11-25T00:00:00Z";

/// Everything outside the processes.
pub(crate) struct World {
    pub(crate) setting: Setting,
    pub(crate) faults: Vec<Fault>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) answers: Mutex<Answers>,
    pub(crate) lease: LeaseServer,
    pub(crate) ca: OnceLock<CalledCa>,
    pub(crate) lots: Lots,
    /// Requests that are still to be refused for their nonces.
    pub(crate) bad_nonces: AtomicU32,
    /// Until when what may not be done, in seconds.
    pub(crate) forbidden: Mutex<BTreeMap<String, u64>>,
    epoch: Timestamp,
    start: Instant,
    counts: Mutex<BTreeMap<String, u32>>,
    log: Mutex<Vec<(u64, String)>>,
    observer: Mutex<Observer>,
    violation: Mutex<Option<String>>,
    /// Told when something was wrong.
    pub(crate) broken: Notify,
    /// Told when somebody has written to the store.
    pub(crate) written: Notify,
    lives: AtomicU32,
    numbers: AtomicU64,
    /// Steps of all lives, see [`Life::step`].
    steps: watch::Sender<u64>,
}

impl World {
    pub(crate) fn new(setting: Setting, faults: Vec<Fault>) -> Arc<Self> {
        let epoch: Timestamp = EPOCH.parse().unwrap();
        let start = Instant::now();
        let seed = setting.seed;
        let drawn = Lots::of(seed, "store");
        let surroundings = Environment {
            now: Arc::new(move || epoch + start.elapsed()),
            draw: Arc::new(move |octets| {
                drawn.with(|lots| lots.fill(octets));
                Ok(())
            }),
        };
        let answers = Mutex::new(Answers::new(&setting));
        Arc::new(Self {
            store: Arc::new(MemoryStore::new().within(surroundings)),
            answers,
            lease: LeaseServer::default(),
            ca: OnceLock::new(),
            lots: Lots::of(seed, "world"),
            bad_nonces: AtomicU32::new(0),
            forbidden: Mutex::default(),
            epoch,
            start,
            counts: Mutex::default(),
            log: Mutex::default(),
            observer: Mutex::new(Observer::new(&setting)),
            violation: Mutex::default(),
            broken: Notify::new(),
            written: Notify::new(),
            lives: AtomicU32::new(0),
            numbers: AtomicU64::new(0),
            steps: watch::Sender::new(0),
            setting,
            faults,
        })
    }

    pub(crate) fn ca(&self) -> &CalledCa {
        self.ca.get().unwrap()
    }

    /// True time.
    pub(crate) fn now(&self) -> Timestamp {
        self.epoch + self.start.elapsed()
    }

    /// Milliseconds since the beginning.
    pub(crate) fn elapsed(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap()
    }

    /// Whether no fault strikes any more.
    pub(crate) fn is_calm(&self) -> bool {
        self.elapsed() >= self.setting.calm * 1000
    }

    /// Time as a process has it.
    pub(crate) fn now_at(&self, place: usize) -> Timestamp {
        let seconds = self.elapsed() / 1000;
        let jumps = self.faults.iter().filter_map(|fault| match fault {
            Fault::Clock { place: whose, at, by } if *whose == place && *at <= seconds => Some(*by),
            _ => None,
        });
        let ahead: i64 = jumps.sum::<i64>() + self.setting.skews[place];
        self.now() + jiff::SignedDuration::from_secs(ahead)
    }

    /// The fault that strikes at a point that is passed now.
    pub(crate) fn strikes(&self, point: &str) -> Option<Fault> {
        let nth = {
            let mut counts = self.counts.lock();
            let count = counts.entry(point.to_owned()).or_default();
            *count += 1;
            *count - 1
        };
        if self.is_calm() {
            return None;
        }
        let found = self.faults.iter().find(|fault| match fault {
            Fault::Ca { point: at, nth: when, .. }
            | Fault::Store { point: at, nth: when, .. }
            | Fault::Watch { point: at, nth: when, .. }
            | Fault::Solver { point: at, nth: when, .. } => at == point && *when == nth,
            _ => false,
        })?;
        self.tell(Event::Strikes { fault: found.clone() });
        Some(found.clone())
    }

    /// Whether somebody is out of reach now.
    pub(crate) fn is_out(&self, side: Side) -> bool {
        let seconds = self.elapsed() / 1000;
        let is_out = |fault: &Fault| match *fault {
            Fault::Outage { of, at, seconds: long } => {
                of == side && (at..at + long).contains(&seconds)
            }
            _ => false,
        };
        !self.is_calm() && self.faults.iter().any(is_out)
    }

    /// Until which second watches of a kind tell nothing, if so.
    pub(crate) fn is_deaf(&self, kind: Kind) -> Option<u64> {
        let now = self.elapsed() / 1000;
        let until = |fault: &Fault| match *fault {
            Fault::Deaf { kind: of, at, seconds } if of == kind.as_str() => Some((at, seconds)),
            Fault::Outage { of: Side::ApiServer, at, seconds } => Some((at, seconds)),
            _ => None,
        };
        let all = self.faults.iter().filter_map(until);
        let all = all.filter(|(at, seconds)| (*at..at + seconds).contains(&now));
        all.map(|(at, seconds)| at + seconds).max().filter(|_| !self.is_calm())
    }

    /// Notes what happens, and whether it may.
    pub(crate) fn tell(&self, event: Event) {
        let at = self.elapsed();
        if let Some(line) = event.line() {
            self.log.lock().push((at, line));
        }
        let found = self.observer.lock().saw(self, at, event);
        if let Err(why) = found {
            self.violated(why);
        }
    }

    /// Notes that something is wrong; the first counts.
    pub(crate) fn violated(&self, why: String) {
        let mut violation = self.violation.lock();
        if violation.is_none() {
            self.log.lock().push((self.elapsed(), format!("!! {why}")));
            *violation = Some(why);
            self.broken.notify_one();
        }
    }

    pub(crate) fn violation(&self) -> Option<String> {
        self.violation.lock().clone()
    }

    /// What has to hold at the end.
    pub(crate) fn at_the_end(&self) {
        let found = invariants::at_the_end(self);
        if let Err(why) = found {
            self.violated(why);
        }
    }

    pub(crate) fn is_done(&self) -> bool {
        invariants::is_done(self)
    }

    pub(crate) fn log(&self) -> Vec<String> {
        let line = |(at, line): &(u64, String)| format!("{:>9}.{:03} {line}", at / 1000, at % 1000);
        self.log.lock().iter().map(line).collect()
    }

    pub(crate) fn requests(&self) -> (u64, u64) {
        self.observer.lock().spent()
    }

    /// A pause as the way to a server takes it.
    pub(crate) async fn latency(&self) {
        let most = self.setting.latency;
        if most > 0 {
            let pause = self.lots.with(|lots| lots.below(most + 1));
            sleep(Duration::from_millis(pause)).await;
        }
    }

    pub(crate) fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn next_life(self: &Arc<Self>, place: usize, incarnation: u32) -> Arc<Life> {
        let number = self.lives.fetch_add(1, Ordering::Relaxed);
        let ends = self.faults.iter().filter_map(|fault| match fault {
            Fault::Kill { place: whose, life, step } if (*whose, *life) == (place, incarnation) => {
                Some(*step)
            }
            _ => None,
        });
        Arc::new(Life {
            world: Arc::clone(self),
            number,
            place,
            identity: OnceLock::new(),
            ends: ends.min(),
            steps: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            over: Notify::new(),
        })
    }

    /// Waits until the processes have come to that step.
    pub(crate) async fn reaches(&self, step: u64) {
        self.steps.subscribe().wait_for(|done| *done >= step).await.unwrap();
    }

    /// An object as it is, read past every fault.
    pub(crate) fn peek(&self, key: &Key) -> Option<Record> {
        self.store.get(key).now_or_never().unwrap().unwrap()
    }

    /// All objects of a kind, likewise.
    pub(crate) fn peek_all(&self, kind: Kind) -> Vec<Record> {
        self.store.list(kind, &Scope::all()).now_or_never().unwrap().unwrap()
    }

    /// The same, typed.
    pub(crate) fn typed<T: DeserializeOwned>(&self, kind: Kind) -> Vec<T> {
        let all = self.peek_all(kind).into_iter();
        all.map(|record| serde_json::from_value(record.object).unwrap()).collect()
    }
}

/// One process from its start to its end.
pub(crate) struct Life {
    pub(crate) world: Arc<World>,
    pub(crate) number: u32,
    pub(crate) place: usize,
    /// Its name in the Lease.
    pub(crate) identity: OnceLock<String>,
    ends: Option<u64>,
    steps: AtomicU64,
    is_over: AtomicBool,
    pub(crate) over: Notify,
}

impl Life {
    /// A place in the process where it may be killed: before something is done outside, and before it hears of it. Nothing
    /// outside is reached by one that is dead.
    pub(crate) async fn step(&self) {
        if !self.is_over.load(Ordering::Relaxed) {
            self.world.steps.send_modify(|steps| *steps += 1);
            let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
            if self.ends == Some(step) && !self.world.is_calm() {
                self.is_over.store(true, Ordering::Relaxed);
                self.world.tell(Event::Killed { place: self.place, life: self.number });
                self.over.notify_one();
            }
        }
        if self.is_over.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
    }

    /// Ends it in good order: what it has left running reaches nothing any more.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Life {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "p{}.{}", self.place, self.number)
    }
}
