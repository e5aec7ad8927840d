//! Follows Certificates to their end while the controllers work, and shows what each one waits for.
//!
//! An obstacle shows at once. It ends the command when only a person can remove it, or when the CA names a moment after
//! `--timeout`.

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

pub use self::by_hand::ByHand;
pub use self::by_hand::Hands;
pub use self::by_hand::removable;
use crate::acme::Clients;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::controllers::obstacles::Obstacles;
use crate::diagnosis::case::chain::Chain;
use crate::diagnosis::verdict::blocker::Blocker;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::may_end;
use crate::diagnosis::verdict::waits::{Step, step_beside_challenges};
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
const LONGEST_TOGETHER: Duration = Duration::from_millis(200);
/// Most objects that are judged before changes are heard again: a watch that nobody reads for long tells everything anew, and of
/// thousands of Certificates all would be judged again and again.
const JUDGED_AT_ONCE: usize = 128;
/// How often spinners turn.
const TURN: Duration = Duration::from_millis(200);
/// How long a store that is away is left alone.
const STORE_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// What is followed, and on what terms.
pub struct SupervisionSetup {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where progress is shown.
    pub progress: Progress,
    /// Signals.
    pub interrupted: Interrupted,
    /// When this run began, and when it gives up.
    pub times: (Timestamp, Timestamp),
    /// So long nothing has to move before that is said, where somebody else drives; so long a CA is tried that never answered;
    /// after half of it, it is said what helps against what stands in the way.
    pub standstill: Duration,
    /// Whether the store outlives this process, so that another command can show more.
    pub is_kept: bool,
    /// Whoever makes the records of DNS-01, where a person does.
    pub by_hand: Option<ByHand>,
    /// Who approves requests while our controllers work.
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
    by_hand: Option<ByHand>,
    approval: Approval,
    /// What is followed and has not ended: Certificates and Issuers.
    open: BTreeMap<Key, Tracked>,
    /// Tells whether whoever drives has made an Issuer ready.
    is_ready: fn(&Issuer) -> bool,
    /// The CAs, as the controllers know them; none while somebody else drives, who alone talks with them.
    clients: Option<Arc<Clients>>,
    /// Who works on it.
    workers: Workers,
    /// The Certificate of every object seen below one, by its UID.
    relatives: HashMap<String, Key>,
    /// The Certificate of every object seen below one, by its key.
    certificates: HashMap<Key, Key>,
    /// Last changes of objects whose owner has not been seen yet, by its UID, and whether they are there.
    early: HashMap<String, BTreeMap<Key, (Record, bool)>>,
    /// What stood in the way at the last look.
    obstacles: Obstacles,
    dirty: BTreeSet<Key>,
    /// Challenges whose end has been told, by UID.
    told: BTreeSet<String>,
    blockers: BTreeMap<Key, Blocker>,
    /// Since when something stands in the way of those.
    blocked: BTreeMap<Key, Instant>,
    /// Those whose CA was never reached and that were judged for that.
    given_up: BTreeSet<Key>,
    /// What has been said to help.
    hinted: BTreeSet<String>,
    /// UIDs of Challenges that were seen.
    seen: BTreeSet<String>,
    /// Challenges whose reason an earlier run has written, until somebody has looked again.
    unconfirmed: BTreeMap<Key, Record>,
    /// Since when our controllers look, or somebody else's.
    looking: Instant,
    /// What those wait for that nothing holds up.
    steps: BTreeMap<Key, Step>,
    ends: BTreeMap<Key, End>,
    /// Those that failed and are cleared up after, and since when.
    clearing: BTreeMap<Key, Timestamp>,
    /// When the store was last found to be away.
    away: Option<Instant>,
    /// When something of what is followed moved last.
    moved: Instant,
    /// Whether it has been said that nothing moves.
    stands: bool,
}

/// Who works on what is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workers {
    /// Our controllers.
    Ours,
    /// Our controllers, which have ended by themselves: nothing is cleared up any more.
    Gone,
    /// Somebody else's.
    Theirs,
}

/// Somebody else who drives while we watch.
pub struct OtherDriver<'a> {
    /// Who.
    pub other: &'a Other,
    /// Ends when the work is ours.
    pub turn: BoxFuture<'a, Result<Inherited, Failure>>,
}

/// How following came to a halt.
#[derive(Debug)]
pub enum Halt {
    /// Everything has ended.
    Ended(BTreeMap<Key, End>),
    /// A signal came.
    Interrupted(FailureKind),
    /// Nobody else drives any more: follow again, with controllers.
    Inherited(Inherited),
    /// Our turn was lost: follow again when it is settled whose it is.
    Lost,
}

impl Supervision {
    /// Begins to follow.
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

    /// What a Certificate waits for before it has challenges and after they have ended.
    fn step_beside(&self, chain: &Chain) -> Option<Step> {
        let is_ours = self.workers != Workers::Theirs;
        let approval = if is_ours { self.approval } else { Approval::Theirs };
        step_beside_challenges(chain, approval)
    }

    /// What is followed and has not ended.
    pub fn open(&self) -> &BTreeMap<Key, Tracked> {
        &self.open
    }

    /// How what has ended came to its end.
    pub fn take_ends(&mut self) -> BTreeMap<Key, End> {
        std::mem::take(&mut self.ends)
    }

    /// Goes on with a store as whoever has the turn now reads it.
    pub fn begin_turn(&mut self, store: &Arc<dyn Store>, is_cert_managers: bool) {
        self.store = Arc::clone(store);
        self.is_ready = if is_cert_managers { is_ready_to_cert_manager } else { is_ready };
    }

    /// Records that a person may take away, a line each.
    ///
    /// # Errors
    /// Fails when the store does.
    pub async fn removable(&self) -> Result<Vec<String>, StoreError> {
        match &self.by_hand {
            Some(hand) => hand.removable(&self.store).await,
            None => Ok(Vec::new()),
        }
    }

    /// Ends what is not ours to follow.
    pub fn leave(&mut self, key: &Key, failure: Failure) {
        self.end(key, End::Failed(failure), Timestamp::now());
    }

    /// Follows every object to its end, with our controllers or beside somebody else's. A store that is away for a while is
    /// waited for.
    ///
    /// # Errors
    /// Fails when the store does for good.
    pub async fn run(
        &mut self,
        engine: Option<&Engine>,
        beside: Option<OtherDriver<'_>>,
    ) -> Result<Halt, Failure> {
        let streams = KINDS.map(|kind| self.store.watch(kind, Scope::all()));
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
        let mut tick = tokio::time::interval(TURN);
        self.dirty.extend(self.open.keys().cloned());
        self.moved = Instant::now();
        self.looking = Instant::now();
        while !self.open.is_empty() {
            let began = Instant::now();
            self.judge(&obstacles, has_ended()).await?;
            let together = (began.elapsed() * 3).clamp(TOGETHER, LONGEST_TOGETHER);
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
                    Ok(inherited) => return Ok(Halt::Inherited(inherited)),
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
                    return Ok(Halt::Interrupted(kind));
                }
            }
        }
        self.progress.finish();
        Ok(Halt::Ended(std::mem::take(&mut self.ends)))
    }

    /// Whether something is left to be judged at once.
    fn has_more_to_judge(&self) -> bool {
        !self.dirty.is_empty() && !self.is_away()
    }

    fn is_away(&self) -> bool {
        self.away.is_some_and(|since| since.elapsed() < STORE_RETRY_PAUSE)
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

/// Leaves a fault that passes by itself to the next look.
fn passing(error: StoreError) -> Result<(), Failure> {
    if !error.may_pass() {
        return Err(error.into());
    }
    tracing::debug!(%error, "the store is away; it is looked at again");
    Ok(())
}

/// What is followed as without flags.
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
