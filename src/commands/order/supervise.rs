//! Follows Certificates to their end while the controllers work, and shows what each one waits for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::{BoxStream, SelectAll, select_all};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::followed::{End, Followed};
use crate::commands::advice;
use crate::commands::chain::Chain;
use crate::commands::context::Interrupted;
use crate::commands::drive::Engine;
use crate::commands::failure::{Failure, Kind as FailureKind};
use crate::commands::renewal::mark_for_renewal;
use crate::commands::verdict::{
    Failed, Holdup, Verdict, judge_issuer, may_end, of_obstacle, verdict,
};
use crate::commands::waits::{self, Wait};
use crate::controllers::driver::Obstacles;
use crate::model::common::is_true;
use crate::model::{Challenge, Issuer, Key, Kind, Record, State, Time};
use crate::print::progress::{self, Progress};
use crate::store::resources::{Resources, typed};
use crate::store::{Change, Scope, Store, StoreError};

/// Kinds whose changes may bring a Certificate nearer to its end.
const KINDS: [Kind; 6] = [
    Kind::Certificate,
    Kind::CertificateRequest,
    Kind::Order,
    Kind::Challenge,
    Kind::Issuer,
    Kind::ClusterIssuer,
];
/// Changes that come within this time are judged together, save those by which a Certificate may have ended. It is longer
/// where judging takes long.
const TOGETHER: Duration = Duration::from_millis(20);
/// Longest such time.
const LONGEST: Duration = Duration::from_millis(200);
/// How often spinners turn.
const TURN: Duration = Duration::from_millis(200);

/// Follows objects until each has ended.
pub struct Supervision<'a> {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The controllers, if we drive.
    pub engine: Option<&'a Engine>,
    /// Where progress is shown.
    pub progress: Progress,
    /// Signals.
    pub interrupted: Interrupted,
    /// When this run began.
    pub started: Timestamp,
    /// When it gives up.
    pub deadline: Timestamp,
    /// Whether the store outlives this process, so that another command can show more.
    pub is_kept: bool,
    /// What is followed and has not ended: Certificates and Issuers.
    pub open: BTreeMap<Key, Followed>,
    relatives: HashMap<String, Key>,
    dirty: BTreeSet<Key>,
    /// Challenges whose end has been told, by UID.
    told: BTreeSet<String>,
    holdups: BTreeMap<Key, Holdup>,
    ends: BTreeMap<Key, End>,
}

impl<'a> Supervision<'a> {
    /// Begins to follow.
    pub fn new(
        store: Arc<dyn Store>,
        engine: Option<&'a Engine>,
        progress: Progress,
        interrupted: Interrupted,
        (started, deadline): (Timestamp, Timestamp),
        open: BTreeMap<Key, Followed>,
    ) -> Self {
        let dirty = open.keys().cloned().collect();
        Self {
            store,
            engine,
            progress,
            interrupted,
            started,
            deadline,
            is_kept: true,
            open,
            relatives: HashMap::new(),
            dirty,
            told: BTreeSet::new(),
            holdups: BTreeMap::new(),
            ends: BTreeMap::new(),
        }
    }

    /// Follows every object to its end; when interrupted, what has not ended is missing from the result.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn run(mut self) -> Result<(BTreeMap<Key, End>, Option<FailureKind>), Failure> {
        let streams = KINDS.map(|kind| self.store.watch(kind, Scope::all()));
        let mut changes = select_all(streams);
        let (_nobody, nothing) = watch::channel(Obstacles::new());
        let mut obstacles = self.engine.map_or(nothing, Engine::obstacles);
        let interrupted = self.interrupted.clone();
        let mut turn = tokio::time::interval(TURN);
        let mut signal = None;
        while !self.open.is_empty() {
            let began = Instant::now();
            self.judge(&obstacles).await?;
            let together = (began.elapsed() * 3).clamp(TOGETHER, LONGEST);
            if self.open.is_empty() {
                break;
            }
            tokio::select! {
                change = changes.next() => {
                    let Some(change) = change else { break };
                    self.gather(change?, &mut changes, together).await?;
                }
                moved = obstacles.changed() => {
                    if moved.is_err() && self.has_ended() {
                        break;
                    }
                    self.dirty.extend(self.open.keys().cloned());
                }
                _ = turn.tick() => self.progress.heartbeat(Timestamp::now()),
                kind = interrupted.wait() => {
                    signal = Some(kind);
                    break;
                }
            }
        }
        self.progress.finish();
        Ok((self.ends, signal))
    }

    /// Controllers that end by themselves have lost the store.
    fn has_ended(&self) -> bool {
        self.engine.is_some_and(Engine::has_ended)
    }

    /// Takes in what comes within some time, or until a Certificate may have ended.
    async fn gather(
        &mut self,
        first: Change,
        changes: &mut SelectAll<BoxStream<'static, Result<Change, StoreError>>>,
        within: Duration,
    ) -> Result<(), Failure> {
        let end = Instant::now() + within;
        let mut change = first;
        loop {
            let may_end = may_end(&change);
            self.saw(change);
            if may_end {
                return Ok(());
            }
            match timeout_at(end, changes.next()).await {
                Ok(Some(next)) => change = next?,
                Ok(None) | Err(_) => return Ok(()),
            }
        }
    }

    /// Notes which followed objects a change concerns, and shows challenges.
    fn saw(&mut self, change: Change) {
        match change {
            Change::Applied(record) => self.concerns(&record, true),
            Change::Deleted(record) => self.concerns(&record, false),
            Change::Resynced(records) => {
                for record in &records {
                    self.concerns(record, true);
                }
            }
        }
    }

    fn concerns(&mut self, record: &Record, exists: bool) {
        match record.key.kind {
            Kind::Issuer | Kind::ClusterIssuer => self.dirty.extend(self.open.keys().cloned()),
            Kind::Certificate => {
                self.relatives.insert(record.uid().to_owned(), record.key.clone());
                self.dirty.insert(record.key.clone());
            }
            Kind::CertificateRequest | Kind::Order | Kind::Challenge => {
                let metadata = record.metadata();
                let owner = metadata.controller().map(|o| o.uid.clone()).unwrap_or_default();
                match self.relatives.get(&owner).cloned() {
                    Some(certificate) => {
                        self.relatives.insert(metadata.uid, certificate.clone());
                        self.dirty.insert(certificate.clone());
                        if record.key.kind == Kind::Challenge
                            && self.open.contains_key(&certificate)
                        {
                            self.show(record, exists);
                        }
                    }
                    // Its owner has not been seen yet: kinds are watched side by side.
                    None => self.dirty.extend(self.open.keys().cloned()),
                }
            }
            Kind::Event | Kind::Secret => {}
        }
    }

    fn show(&mut self, record: &Record, exists: bool) {
        let Ok(challenge) = typed::<Challenge>(record.clone()) else { return };
        let now = Timestamp::now();
        let status = &challenge.status;
        let name = format!("challenge/{} ({})", challenge.metadata.name, challenge.spec.dns_name);
        if let Some(state) = status.state.filter(|state| state.is_final()) {
            // What an earlier run left is old news; the clean-up writes again, but the end is told once.
            let is_news = status.processing || self.progress.is_waiting(&name);
            if is_news && self.told.insert(challenge.metadata.uid.clone()) {
                let why = if state == State::Valid { "" } else { status.reason.as_str() };
                let gap = if why.is_empty() { "" } else { ": " };
                self.progress.done(&name, &format!("{state}{gap}{why}"), now);
            }
            return;
        }
        if !exists {
            self.progress.done(&name, "deleted", now);
            return;
        }
        let waits_for = match (status.processing, status.reason.as_str()) {
            (true, _) => Wait::of_running(&challenge).to_string(),
            (false, "") => "the scheduler".to_owned(),
            (false, reason) => reason.to_owned(),
        };
        let state = if status.processing { State::Pending.as_str() } else { "queued" }.to_owned();
        let since = challenge.metadata.creation_timestamp.map_or(now, Time::timestamp);
        let until = Some(self.deadline);
        self.progress.waiting(&name, progress::Wait { state, waits_for, since, until }, now);
    }

    /// Judges what changed; at the deadline everything that is still open ends.
    async fn judge(&mut self, obstacles: &watch::Receiver<Obstacles>) -> Result<(), Failure> {
        let now = Timestamp::now();
        let obstacles = obstacles.borrow().clone();
        for key in std::mem::take(&mut self.dirty) {
            if self.open.contains_key(&key) {
                self.judge_one(&key, &obstacles, now).await?;
            }
        }
        if now >= self.deadline || self.has_ended() {
            for key in self.open.keys().cloned().collect::<Vec<_>>() {
                let failure = self.out_of_time(&key);
                self.end(&key, End::Failed(failure), now);
            }
        }
        Ok(())
    }

    async fn judge_one(
        &mut self,
        key: &Key,
        obstacles: &Obstacles,
        now: Timestamp,
    ) -> Result<(), Failure> {
        let verdict = match self.verdict(key, obstacles).await {
            // The controllers wait until the server is back, and so do we.
            Err(error) if error.may_pass() => {
                self.dirty.insert(key.clone());
                self.held_up(key, Holdup::of_store(key, &error), now);
                return Ok(());
            }
            verdict => verdict?,
        };
        let Some((verdict, step)) = verdict else {
            let message = format!("{key} was deleted while it was worked on");
            self.end(key, End::Failed(Failure::new(FailureKind::Unexpected, message)), now);
            return Ok(());
        };
        match verdict {
            Verdict::Issued => self.end(key, End::Done, now),
            Verdict::Failed(failed) => self.failed(key, failed, now).await?,
            Verdict::Waiting(None) => {
                self.holdups.remove(key);
                self.stands(key, step, now);
            }
            Verdict::Waiting(Some(holdup)) => self.held_up(key, holdup, now),
        }
        Ok(())
    }

    /// Shows what a Certificate waits for, unless its challenges do.
    fn stands(&mut self, key: &Key, waits_for: Option<String>, now: Timestamp) {
        let (since, until) = (self.started, Some(self.deadline));
        let state = "on its way".to_owned();
        match waits_for {
            Some(waits_for) => {
                let wait = progress::Wait { state, waits_for, since, until };
                self.progress.waiting(&key.to_string(), wait, now);
            }
            None => self.progress.forget(&key.to_string(), now),
        }
    }

    /// Judges an object, and says what it waits for while somebody else drives; nothing when it is gone.
    async fn verdict(
        &self,
        key: &Key,
        obstacles: &Obstacles,
    ) -> Result<Option<(Verdict, Option<String>)>, StoreError> {
        if key.kind == Kind::Certificate {
            let since = self.open.get(key).and_then(|followed| followed.since);
            let chain = Chain::read(&self.store, &key.name).await?;
            // Our own steps take no time, or an obstacle says why.
            let step = |chain: &Chain| waits::step(chain).filter(|_| self.engine.is_none());
            return Ok(chain.map(|chain| (verdict(&chain, obstacles, since), step(&chain))));
        }
        let issuers = Resources::<Issuer>::new(Arc::clone(&self.store), key.kind);
        let Some(issuer) = issuers.get(&key.name).await? else { return Ok(None) };
        let verdict = match obstacles.get(key) {
            _ if is_true(&issuer.status.conditions, "Ready") => Verdict::Issued,
            Some(obstacle) => of_obstacle(key, obstacle, key),
            None => judge_issuer(key, &issuer).unwrap_or(Verdict::Waiting(None)),
        };
        Ok(Some((verdict, None)))
    }

    /// A failure ends the Certificate, save one of an order that an earlier run had made: that is tried anew, once.
    async fn failed(&mut self, key: &Key, failed: Failed, now: Timestamp) -> Result<(), Failure> {
        let Some(followed) = self.open.get_mut(key) else { return Ok(()) };
        let tried = failed.order.as_ref().map(|order| &order.uid);
        if followed.inherited.take_if(|order| tried == Some(order)).is_some() {
            self.progress.line(&format!("{key}: trying again after: {}", failed.failure), now);
            mark_for_renewal(&self.store, &key.name, now).await?;
            return Ok(());
        }
        let failure = match failed.order.filter(|_| self.is_kept) {
            Some(order) => advice::where_to_look(failed.failure, key, &order.name),
            None => failed.failure,
        };
        self.end(key, End::Failed(failure), now);
        Ok(())
    }

    /// An obstacle is shown; one that lasts beyond the deadline ends the Certificate at once.
    fn held_up(&mut self, key: &Key, holdup: Holdup, now: Timestamp) {
        let too_late = |until: &Timestamp| holdup.named_by_ca && *until > self.deadline;
        if let Some(until) = holdup.until.filter(too_late) {
            let failure = Failure::new(holdup.kind, holdup.what).hint(format!(
                "run the same command again after {until:.0}, or with a longer --timeout: it goes on where it stopped"
            ));
            self.end(key, End::Failed(failure), now);
            return;
        }
        let name = key.to_string();
        let wait = progress::Wait {
            state: "held up".to_owned(),
            waits_for: holdup.what.clone(),
            since: self.started,
            until: holdup.until,
        };
        // A challenge's own reason is shown with the challenge.
        if holdup.of != Kind::Challenge || holdup.kind != FailureKind::Timeout {
            self.progress.waiting(&name, wait, now);
        }
        self.holdups.insert(key.clone(), holdup);
    }

    fn out_of_time(&self, key: &Key) -> Failure {
        let wait = self.deadline.duration_since(self.started);
        let failure = match self.holdups.get(key) {
            Some(holdup) => {
                let message = format!("{key} is not done after {wait:#}: {}", holdup.what);
                holdup.hint.iter().fold(Failure::new(holdup.kind, message), Failure::hint)
            }
            None => Failure::new(FailureKind::Timeout, format!("{key} is not done after {wait:#}")),
        };
        if self.is_kept {
            failure.hint("run the same command again: it goes on where it stopped")
        } else {
            failure
        }
    }

    fn end(&mut self, key: &Key, end: End, now: Timestamp) {
        match &end {
            End::Done if key.kind == Kind::Certificate => {
                self.progress.done(&key.to_string(), "issued", now);
            }
            End::Done => self.progress.done(&key.to_string(), "ready", now),
            End::Failed(_) => self.progress.done(&key.to_string(), "not issued", now),
        }
        self.open.remove(key);
        self.ends.insert(key.clone(), end);
    }
}
