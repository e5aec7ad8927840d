//! Watching: a journal of changes turned into the stream that [`Store::watch`](super::Store::watch) promises.

use std::collections::{HashSet, VecDeque};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use tokio::sync::watch::Receiver;

use super::error::StoreError;
use super::{Change, Scope};
use crate::model::{Key, Kind, Record};

/// Changes that a journal keeps; a watcher further behind gets everything anew.
pub(super) const JOURNAL_LENGTH: i64 = 2_000;
/// Pause of a watcher after a failure of the store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// One line of a journal.
pub(super) struct JournalEntry {
    /// The object, or its last state.
    pub record: Record,
    /// Whether the object is gone.
    pub gone: bool,
}

/// Lines of a journal, oldest first; watchers share them.
pub(super) type Lines = Vec<Arc<JournalEntry>>;

/// Source of a watcher's changes.
pub(super) trait Journal: Send + Sync + 'static {
    /// Reads all objects of a scope, and the revision of that state.
    fn snapshot(
        &self,
        kind: Kind,
        scope: &Scope,
    ) -> impl Future<Output = Result<(i64, Vec<Record>), StoreError>> + Send;

    /// Reads the changes of a kind after a revision, oldest first, and the revision up to which they are complete; the
    /// last change of an object may stand for all of them. `None` if the journal does not reach back so far.
    fn since(
        &self,
        kind: Kind,
        revision: i64,
    ) -> impl Future<Output = Result<(i64, Option<Lines>), StoreError>> + Send;
}

/// Makes the stream of changes. `revisions` announces each new revision; the stream ends with its sender.
pub(super) fn changes(
    journal: impl Journal,
    revisions: Receiver<i64>,
    kind: Kind,
    scope: Scope,
) -> BoxStream<'static, Result<Change, StoreError>> {
    let watcher = JournalWatcher {
        journal,
        revisions,
        kind,
        scope: Scope { brief: false, ..scope },
        told: HashSet::new(),
        reached: None,
        waiting: VecDeque::new(),
        failed: false,
    };
    stream::unfold(watcher, |mut watcher| async {
        watcher.next().await.map(|change| (change, watcher))
    })
    .boxed()
}

struct JournalWatcher<J> {
    journal: J,
    revisions: Receiver<i64>,
    kind: Kind,
    scope: Scope,
    /// Objects that the watcher believes to be in the scope; kept only if they can leave it without being deleted.
    told: HashSet<Key>,
    /// Revision up to which all changes have been sent.
    reached: Option<i64>,
    waiting: VecDeque<Untold>,
    failed: bool,
}

/// Change to send next. Lines stay shared until then: a watcher that is far behind has thousands of them.
enum Untold {
    All(Vec<Record>),
    Applied(Arc<JournalEntry>),
    Deleted(Arc<JournalEntry>),
}

impl Untold {
    fn change(self) -> Change {
        match self {
            Self::All(records) => Change::Resynced(records),
            Self::Applied(line) => Change::Applied(line.record.clone()),
            Self::Deleted(line) => Change::Deleted(line.record.clone()),
        }
    }
}

impl<J: Journal> JournalWatcher<J> {
    async fn next(&mut self) -> Option<Result<Change, StoreError>> {
        loop {
            if let Some(untold) = self.waiting.pop_front() {
                return Some(Ok(untold.change()));
            }
            if std::mem::take(&mut self.failed) {
                tokio::time::sleep(RETRY_PAUSE).await;
            } else if let Some(reached) = self.reached
                && *self.revisions.borrow_and_update() <= reached
            {
                self.revisions.changed().await.ok()?;
            }
            if let Err(error) = self.catch_up().await {
                self.failed = true;
                return Some(Err(error));
            }
        }
    }

    async fn catch_up(&mut self) -> Result<(), StoreError> {
        if let Some(reached) = self.reached {
            let (revision, logged) = self.journal.since(self.kind, reached).await?;
            if let Some(logged) = logged {
                self.reached = Some(revision);
                for line in logged {
                    self.take(line);
                }
                return Ok(());
            }
        }
        let (revision, records) = self.journal.snapshot(self.kind, &self.scope).await?;
        self.reached = Some(revision);
        self.told.clear();
        if self.scope.can_be_left() {
            self.told.extend(records.iter().map(|record| record.key.clone()));
        }
        self.waiting.push_back(Untold::All(records));
        Ok(())
    }

    fn take(&mut self, line: Arc<JournalEntry>) {
        let JournalEntry { record, gone } = &*line;
        let fits = self.scope.fits(record);
        let is_there = fits && !gone;
        let was_told = if is_there && self.scope.can_be_left() {
            self.told.insert(record.key.clone())
        } else {
            self.told.remove(&record.key)
        };
        if is_there {
            self.waiting.push_back(Untold::Applied(line));
        } else if fits || was_told {
            self.waiting.push_back(Untold::Deleted(line));
        }
    }
}
