//! Follows Certificates to their end while the controllers work, and shows what each one waits for.
//!
//! An obstacle shows at once. The obstacle ends the command when only a person can remove it, or when the CA names a
//! moment after `--timeout`.

mod by_hand;
mod judging;
mod seen;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt as _, pending, ready};
use futures_util::stream::{BoxStream, SelectAll, select_all};
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

pub use self::by_hand::ManualRecords;
pub use self::by_hand::ManualWatch;
pub use self::by_hand::removable;
use crate::acme::Clients;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::verdict::blocker::Blocker;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::may_end;
use crate::diagnosis::verdict::waits::{CertificateWait, step_beside_challenges};
use crate::engine::Engine;
use crate::issue::tracked::{End, Tracked};
use crate::lead::Other;
use crate::lead::takeover::Inherited;
use crate::model::{Issuer, Key, Kind, Record};
use crate::print::progress::Progress;
use crate::reconcile::issuer::{is_ready, is_ready_to_cert_manager};
use crate::reconcile::request::Approval;
use crate::store::error::StoreError;
use crate::store::{Change, Scope, Store};

/// Kinds whose changes may bring a Certificate nearer to its end.
const WATCHED_KINDS: [Kind; 6] = [
    Kind::Certificate,
    Kind::CertificateRequest,
    Kind::Order,
    Kind::Challenge,
    Kind::Issuer,
    Kind::ClusterIssuer,
];
/// Shortest time in which changes are gathered to be judged together, unless one may have ended a Certificate. The time is
/// longer if judging takes long.
const GATHER_TIME_MIN: Duration = Duration::from_millis(20);
/// Longest time in which changes are gathered.
const GATHER_TIME_MAX: Duration = Duration::from_millis(200);
/// Most objects that are judged before changes are read again: a watch that is not read for long reports every object anew,
/// and thousands of Certificates would be judged again and again.
const MAX_JUDGED_AT_ONCE: usize = 128;
/// Interval at which spinners turn.
const SPINNER_INTERVAL: Duration = Duration::from_millis(200);
/// Pause before an unreachable store is read again.
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Objects to follow, and the terms of following.
pub struct SupervisionSetup {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Display of the progress.
    pub progress: Progress,
    /// Signals.
    pub interrupted: Interrupted,
    /// Start of this run, and its deadline.
    pub times: (Timestamp, Timestamp),
    /// Time without a change after which that is printed if another process drives; also the time for which a CA that never
    /// answered is tried. After half of this time, hints against obstacles are printed.
    pub standstill: Duration,
    /// Whether the store outlives this process, so that another command can show more.
    pub is_kept: bool,
    /// Watcher of DNS-01 records that a person makes, if any.
    pub by_hand: Option<ManualWatch>,
    /// Approver of requests while our controllers work.
    pub approval: Approval,
    /// Certificates and Issuers whose end is awaited.
    pub open: BTreeMap<Key, Tracked>,
}

/// Follows objects until each has ended.
pub struct Supervision {
    store: Arc<dyn Store>,
    progress: Progress,
    interrupted: Interrupted,
    started: Timestamp,
    deadline: Timestamp,
    standstill: Duration,
    is_kept: bool,
    by_hand: Option<ManualWatch>,
    approval: Approval,
    /// Certificates and Issuers that are followed and have not ended.
    open: BTreeMap<Key, Tracked>,
    /// Function that returns whether the driver has made an Issuer ready.
    is_ready: fn(&Issuer) -> bool,
    /// Clients of the CAs, shared with the controllers; `None` while another process drives, which alone talks with CAs.
    clients: Option<Arc<Clients>>,
    /// Controllers that work on the objects.
    workers: Workers,
    /// Certificate of every object that was seen below a Certificate, by the UID of the object.
    relatives: HashMap<String, Key>,
    /// Certificate of every object that was seen below a Certificate, by the key of the object.
    certificates: HashMap<Key, Key>,
    /// Last changes of objects whose owner has not been seen yet, by the owner's UID, and whether the objects exist.
    early: HashMap<String, BTreeMap<Key, (Record, bool)>>,
    /// Obstacles as last reported.
    obstacles: Obstacles,
    dirty: BTreeSet<Key>,
    /// UIDs of Challenges whose end was shown.
    told: BTreeSet<String>,
    blockers: BTreeMap<Key, Blocker>,
    /// Since when each of the blocked objects has an obstacle.
    blocked: BTreeMap<Key, Instant>,
    /// Objects that were judged again because their CA was never reached.
    given_up: BTreeSet<Key>,
    /// Hints that were printed.
    hinted: BTreeSet<String>,
    /// UIDs of Challenges that were seen.
    seen: BTreeSet<String>,
    /// Challenges whose reason an earlier run has written, until a new self-check.
    unconfirmed: BTreeMap<Key, Record>,
    /// Since when controllers, ours or those of another process, work.
    looking: Instant,
    /// Steps that objects without an obstacle wait for.
    steps: BTreeMap<Key, CertificateWait>,
    ends: BTreeMap<Key, End>,
    /// Objects that failed and whose remains are being removed, and since when.
    clearing: BTreeMap<Key, Timestamp>,
    /// When the store was last found to be unreachable.
    away: Option<Instant>,
    /// When a followed object changed last.
    moved: Instant,
    /// Whether the lack of changes was printed.
    stands: bool,
}

/// Controllers that work on followed objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workers {
    /// Our controllers.
    Ours,
    /// Our controllers, which have ended by themselves: no remains are removed any more.
    Gone,
    /// Controllers of another process.
    Theirs,
}

/// Other process that drives while this process watches.
pub struct OtherDriver<'a> {
    /// The other process.
    pub other: &'a Other,
    /// Future that ends when this process has the turn.
    pub turn: BoxFuture<'a, Result<Inherited, Failure>>,
}

/// Why following came to a halt.
#[derive(Debug)]
pub enum FollowEnd {
    /// Every object has ended.
    Ended(BTreeMap<Key, End>),
    /// A signal came.
    Interrupted(FailureKind),
    /// No other process drives any more: follow again, with controllers.
    Inherited(Inherited),
    /// Our turn was lost: follow again when it is settled which process has the turn.
    Lost,
}

impl Supervision {
    /// Builds a supervision; no object is read yet.
    pub fn new(followed: SupervisionSetup) -> Self {
        let SupervisionSetup { store, progress, interrupted, times: (started, deadline), .. } =
            followed;
        let SupervisionSetup { standstill, is_kept, by_hand, approval, open, .. } = followed;
        let dirty = open.keys().cloned().collect();
        Self {
            store,
            progress,
            interrupted,
            started,
            deadline,
            standstill,
            is_kept,
            by_hand,
            approval,
            open,
            is_ready,
            clients: None,
            workers: Workers::Ours,
            relatives: HashMap::new(),
            certificates: HashMap::new(),
            early: HashMap::new(),
            obstacles: Obstacles::new(),
            dirty,
            told: BTreeSet::new(),
            blockers: BTreeMap::new(),
            blocked: BTreeMap::new(),
            given_up: BTreeSet::new(),
            hinted: BTreeSet::new(),
            seen: BTreeSet::new(),
            unconfirmed: BTreeMap::new(),
            looking: Instant::now(),
            steps: BTreeMap::new(),
            ends: BTreeMap::new(),
            clearing: BTreeMap::new(),
            away: None,
            moved: Instant::now(),
            stands: false,
        }
    }

    /// Returns the step that a Certificate waits for before it has challenges and after they have ended.
    fn step_beside(&self, chain: &Chain) -> Option<CertificateWait> {
        let is_ours = self.workers != Workers::Theirs;
        let approval = if is_ours { self.approval } else { Approval::Theirs };
        step_beside_challenges(chain, approval)
    }

    /// Objects that are followed and have not ended.
    pub fn open(&self) -> &BTreeMap<Key, Tracked> {
        &self.open
    }

    /// Takes the ends of the objects that have ended.
    pub fn take_ends(&mut self) -> BTreeMap<Key, End> {
        std::mem::take(&mut self.ends)
    }

    /// Goes on with another view of the store, and with the sign of readiness of the process that has the turn.
    pub fn begin_turn(&mut self, store: &Arc<dyn Store>, is_cert_managers: bool) {
        self.store = Arc::clone(store);
        self.is_ready = if is_cert_managers { is_ready_to_cert_manager } else { is_ready };
    }

    /// Returns the DNS records that a person may remove, one line each.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn removable(&self) -> Result<Vec<String>, StoreError> {
        match &self.by_hand {
            Some(hand) => hand.removable(&self.store).await,
            None => Ok(Vec::new()),
        }
    }

    /// Ends an object that is not ours to follow.
    pub fn leave(&mut self, key: &Key, failure: Failure) {
        self.end(key, End::Failed(failure), Timestamp::now());
    }

    /// Follows every object to its end, with our controllers or beside those of another process. Waits for a store that is
    /// unreachable for a while.
    ///
    /// # Errors
    /// Fails when the store does for good.
    pub async fn run(
        &mut self,
        engine: Option<&Engine>,
        beside: Option<OtherDriver<'_>>,
    ) -> Result<FollowEnd, Failure> {
        let streams = WATCHED_KINDS.map(|kind| self.store.watch(kind, Scope::all()));
        let mut changes = select_all(streams);
        let (_nobody, nothing) = watch::channel(Obstacles::new());
        let mut obstacles = engine.map_or(nothing, Engine::obstacles);
        let has_ended = || engine.is_some_and(Engine::has_ended);
        let interrupted = self.interrupted.clone();
        self.workers = if engine.is_some() { Workers::Ours } else { Workers::Theirs };
        self.clients = engine.map(|engine| Arc::clone(engine.clients()));
        let (other, mut turn) = match beside {
            Some(OtherDriver { other, turn }) => (Some(other), turn),
            None => (None, pending().boxed()),
        };
        let mut tick = tokio::time::interval(SPINNER_INTERVAL);
        self.dirty.extend(self.open.keys().cloned());
        self.moved = Instant::now();
        self.looking = Instant::now();
        while !self.open.is_empty() {
            let began = Instant::now();
            self.judge(&obstacles, has_ended()).await?;
            let together = (began.elapsed() * 3).clamp(GATHER_TIME_MIN, GATHER_TIME_MAX);
            if self.open.is_empty() {
                break;
            }
            tokio::select! {
                change = changes.next() => match change {
                    Some(Ok(change)) => self.gather(change, &mut changes, together).await?,
                    Some(Err(error)) => passing(error)?,
                    None => break,
                },
                moved = obstacles.changed() => {
                    if moved.is_err() && has_ended() {
                        break;
                    }
                    let now = obstacles.borrow_and_update().clone();
                    self.saw_obstacles(now);
                }
                inherited = &mut turn => match inherited {
                    Ok(inherited) => return Ok(FollowEnd::Inherited(inherited)),
                    Err(failure) => {
                        let text = format!("cannot take over: {failure}");
                        self.progress.line(&text, Timestamp::now());
                        turn = pending().boxed();
                    }
                },
                () = ready(()), if self.has_more_to_judge() => {}
                _ = tick.tick() => {
                    let now = Timestamp::now();
                    self.confirm_old_reasons();
                    self.hint(now);
                    self.give_up_silent_cas();
                    self.progress.heartbeat(now);
                    self.dirty.extend(self.clearing.keys().cloned());
                    if let Some(other) = other {
                        self.look_whether_it_moves(other, now);
                    }
                }
                kind = interrupted.wait() => {
                    self.progress.finish();
                    return Ok(FollowEnd::Interrupted(kind));
                }
            }
        }
        self.progress.finish();
        Ok(FollowEnd::Ended(std::mem::take(&mut self.ends)))
    }

    /// Returns whether an object is left to be judged at once.
    fn has_more_to_judge(&self) -> bool {
        !self.dirty.is_empty() && !self.is_away()
    }

    fn is_away(&self) -> bool {
        self.away.is_some_and(|since| since.elapsed() < STORE_RETRY_PAUSE)
    }

    /// Takes in the changes that come within some time, or until a Certificate may have ended.
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
            change = loop {
                match timeout_at(end, changes.next()).await {
                    Ok(Some(Ok(next))) => break next,
                    Ok(Some(Err(error))) => passing(error)?,
                    Ok(None) | Err(_) => return Ok(()),
                }
            };
        }
    }
}

/// Returns a fault as a failure, unless the fault may pass by itself: then the store is read again later.
fn passing(error: StoreError) -> Result<(), Failure> {
    if !error.may_pass() {
        return Err(error.into());
    }
    tracing::debug!(%error, "the store is away; it is looked at again");
    Ok(())
}

/// Builds the setup of a supervision without flags.
#[cfg(test)]
fn followed(
    store: Arc<dyn Store>,
    progress: Progress,
    times: (Timestamp, Timestamp),
    open: BTreeMap<Key, Tracked>,
) -> SupervisionSetup {
    use crate::context::flags::lease::Terms;

    SupervisionSetup {
        store,
        progress,
        interrupted: Interrupted::default(),
        times,
        standstill: Terms::default().standstill(),
        is_kept: true,
        by_hand: None,
        approval: Approval::Ours,
        open,
    }
}
