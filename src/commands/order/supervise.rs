//! Follows Certificates to their end while the controllers work, and shows what each one waits for.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{BoxStream, select_all};
use futures_util::{FutureExt, StreamExt};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::commands::chain::Chain;
use crate::commands::context::Interrupted;
use crate::commands::drive::Engine;
use crate::commands::failure::{Failure, Kind as FailureKind};
use crate::commands::renewal::mark_for_renewal;
use crate::commands::verdict::{Failed, Holdup, Verdict, judge_issuer, verdict};
use crate::commands::waits::Wait;
use crate::controllers::driver::Obstacles;
use crate::model::common::is_true;
use crate::model::{Challenge, Issuer, Key, Kind, ObjectName, Record, State, Time};
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
/// Changes that come within this time are judged together.
const TOGETHER: Duration = Duration::from_millis(20);
/// How often spinners turn.
const TURN: Duration = Duration::from_millis(200);

/// How the work on one object ended.
#[derive(Debug)]
pub enum End {
    /// The Secret holds what was asked for, or the account is there.
    Done,
    /// Only a change helps, or time is up.
    Failed(Failure),
}

/// An object that is followed.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Its revision when this run began; nothing for an Issuer.
    pub since: Option<i64>,
    /// UID of an order that an earlier run had begun; should it fail, a fresh one is made.
    pub inherited: Option<String>,
}

impl Followed {
    /// A Certificate that is due and has this revision.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn due(
        store: &Arc<dyn Store>,
        name: &ObjectName,
        revision: i64,
    ) -> Result<Self, StoreError> {
        let chain = Chain::read(store, name).await?;
        let begun = chain.as_ref().and_then(Chain::order).filter(|o| !o.status.url.is_empty());
        let inherited = begun.map(|order| order.metadata.uid.clone());
        Ok(Self { since: Some(revision), inherited })
    }
}

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
            self.judge(&obstacles).await?;
            if self.open.is_empty() {
                break;
            }
            tokio::select! {
                change = changes.next() => {
                    let Some(change) = change else { break };
                    self.saw(change?);
                    tokio::time::sleep(TOGETHER).await;
                    self.drain(&mut changes)?;
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

    fn drain(
        &mut self,
        changes: &mut futures_util::stream::SelectAll<
            BoxStream<'static, Result<Change, StoreError>>,
        >,
    ) -> Result<(), Failure> {
        while let Some(Some(change)) = changes.next().now_or_never() {
            self.saw(change?);
        }
        Ok(())
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
        let verdict = match key.kind {
            Kind::Certificate => match Chain::read(&self.store, &key.name).await? {
                Some(chain) => {
                    let since = self.open.get(key).and_then(|f| f.since);
                    Some(verdict(&chain, obstacles, since))
                }
                None => None,
            },
            _ => self.issuer_verdict(key, obstacles).await?,
        };
        let Some(verdict) = verdict else {
            let message = format!("{key} was deleted while it was worked on");
            self.end(key, End::Failed(Failure::new(FailureKind::Unexpected, message)), now);
            return Ok(());
        };
        match verdict {
            Verdict::Issued => self.end(key, End::Done, now),
            Verdict::Failed(failed) => self.failed(key, failed, now).await?,
            Verdict::Waiting(None) => {
                self.holdups.remove(key);
            }
            Verdict::Waiting(Some(holdup)) => self.held_up(key, holdup, now),
        }
        Ok(())
    }

    async fn issuer_verdict(
        &self,
        key: &Key,
        obstacles: &Obstacles,
    ) -> Result<Option<Verdict>, StoreError> {
        let issuers = Resources::<Issuer>::new(Arc::clone(&self.store), key.kind);
        let Some(issuer) = issuers.get(&key.name).await? else { return Ok(None) };
        if is_true(&issuer.status.conditions, "Ready") {
            return Ok(Some(Verdict::Issued));
        }
        if let Some(obstacle) = obstacles.get(key) {
            let what = format!("{key}: {}", obstacle.error);
            let kind = FailureKind::of_error(&obstacle.error);
            return Ok(Some(match obstacle.next_try {
                None => {
                    let failure = Failure::new(kind, what);
                    Verdict::Failed(Failed { failure, order: None })
                }
                until => Verdict::Waiting(Some(Holdup { kind, what, until })),
            }));
        }
        Ok(Some(judge_issuer(key, &issuer).unwrap_or(Verdict::Waiting(None))))
    }

    /// A failure ends the Certificate, save one of an order that an earlier run had made: that is tried anew, once.
    async fn failed(&mut self, key: &Key, failed: Failed, now: Timestamp) -> Result<(), Failure> {
        let Some(followed) = self.open.get_mut(key) else { return Ok(()) };
        if followed.inherited.take_if(|order| failed.order.as_ref() == Some(order)).is_some() {
            self.progress.line(&format!("{key}: trying again after: {}", failed.failure), now);
            mark_for_renewal(&self.store, &key.name, now).await?;
            return Ok(());
        }
        self.end(key, End::Failed(failed.failure), now);
        Ok(())
    }

    /// An obstacle is shown; one that lasts beyond the deadline ends the Certificate at once.
    fn held_up(&mut self, key: &Key, holdup: Holdup, now: Timestamp) {
        if let Some(until) = holdup.until.filter(|until| *until > self.deadline) {
            let failure = Failure::new(holdup.kind, holdup.what).hint(format!(
                "the next try makes sense at {until:.0}, after this command's --timeout"
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
        if holdup.kind != FailureKind::Timeout {
            self.progress.waiting(&name, wait, now);
        }
        self.holdups.insert(key.clone(), holdup);
    }

    fn out_of_time(&self, key: &Key) -> Failure {
        let wait = self.deadline.duration_since(self.started);
        match self.holdups.get(key) {
            Some(holdup) => Failure::new(
                holdup.kind,
                format!("{key} is not done after {wait:#}: {}", holdup.what),
            ),
            None => Failure::new(FailureKind::Timeout, format!("{key} is not done after {wait:#}")),
        }
        .hint("run the same command again: it goes on where it stopped")
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
