//! Journal for watchers: each line in the database is read and parsed once for all watchers of a process.
//!
//! A process has a dozen watchers and more, and all of them follow every commit: each would read and parse equal lines.
//! A watcher that has fallen behind gets each changed object once, as it is now, some at a time: to read all of a kind
//! anew takes so long, with thousands of objects, that the watcher falls behind again.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::reader::Reader;
use super::rows::Line;
use crate::model::{Kind, Record};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::watch::{Journal, Lines};

/// Lines that are kept in memory; a watcher further behind reads the database by itself.
const MAX_RECENT_LINES: usize = 256;
/// Most objects that a watcher further behind reads at once.
const PAGE: usize = 256;

/// The journal, shared by the watchers of this process.
#[derive(Clone)]
pub(super) struct Feed {
    reader: Reader,
    /// Newest revision that is known.
    revisions: watch::Receiver<i64>,
    /// Locked while the first watcher that woke reads on, so that the others find the lines that it read.
    recent: Arc<Mutex<Option<Recent>>>,
}

impl Feed {
    /// Makes a feed with no lines in memory.
    pub(super) fn new(reader: Reader, revisions: watch::Receiver<i64>) -> Self {
        Self { reader, revisions, recent: Arc::default() }
    }
}

impl Journal for Feed {
    async fn snapshot(&self, kind: Kind, scope: &Scope) -> Result<(i64, Vec<Record>), StoreError> {
        self.reader.list(kind, scope).await
    }

    async fn since(&self, kind: Kind, revision: i64) -> Result<(i64, Option<Lines>), StoreError> {
        if let Some(found) = self.since_lately(kind, revision).await? {
            return Ok(found);
        }
        // A watcher of Events wants each occurrence of an Event.
        let page = match kind {
            Kind::Event => self.read(revision).await?,
            _ => self.read_changed(kind, revision).await?,
        };
        let JournalPage { reached, lines } = page;
        let logged = lines.map(|lines| self.of_kind(kind, lines.iter())).transpose()?;
        Ok((reached, logged))
    }
}

impl Feed {
    /// Returns the changes in memory since a revision; `None` if the lines do not reach back so far.
    async fn since_lately(
        &self,
        kind: Kind,
        revision: i64,
    ) -> Result<Option<(i64, Option<Lines>)>, StoreError> {
        let mut recent = self.recent.lock().await;
        let recent = recent.get_or_insert_with(|| Recent::starting_at(revision));
        if recent.reached < *self.revisions.borrow() {
            let page = self.read(recent.reached).await?;
            recent.read_on(page);
        }
        let Some(lines) = recent.since(revision) else { return Ok(None) };
        Ok(Some((recent.reached.max(revision), Some(self.of_kind(kind, lines)?))))
    }

    /// Reads some of the objects of a kind that have changed, or gone, since a revision: the first changes first.
    async fn read_changed(&self, kind: Kind, revision: i64) -> Result<JournalPage, StoreError> {
        let read = self.reader.ask(move |rows| {
            let (now, lines) = (rows.revision()?, rows.changed(kind, revision, PAGE)?);
            let last = lines.as_ref().filter(|lines| lines.len() == PAGE).and_then(|l| l.last());
            Ok(JournalPage { reached: last.map_or(now, |line| line.revision), lines })
        });
        read.await
    }

    async fn read(&self, revision: i64) -> Result<JournalPage, StoreError> {
        let read = self.reader.ask(move |rows| {
            Ok(JournalPage { reached: rows.revision()?, lines: rows.since(revision)? })
        });
        read.await
    }

    fn of_kind<'a>(
        &self,
        kind: Kind,
        lines: impl Iterator<Item = &'a Line>,
    ) -> Result<Lines, StoreError> {
        let lines = lines.filter(|line| line.kind == kind.as_str());
        lines.map(|line| line.logged().ok_or_else(|| self.reader.damaged(&line.kind))).collect()
    }
}

/// Result of one read of the journal.
struct JournalPage {
    /// Revision of the read.
    reached: i64,
    /// Lines; `None` if some of them have been removed.
    lines: Option<Vec<Line>>,
}

/// The newest lines of the journal, without a gap.
struct Recent {
    /// Revision after which every line is here.
    after: i64,
    /// Revision up to which every line is here.
    reached: i64,
    lines: VecDeque<Line>,
}

impl Recent {
    fn starting_at(revision: i64) -> Self {
        Self { after: revision, reached: revision, lines: VecDeque::new() }
    }

    fn read_on(&mut self, page: JournalPage) {
        let Some(lines) = page.lines else {
            *self = Self::starting_at(page.reached);
            return;
        };
        self.reached = page.reached;
        self.lines.extend(lines);
        let surplus = self.lines.len().saturating_sub(MAX_RECENT_LINES);
        if let Some(last) = self.lines.drain(..surplus).next_back() {
            self.after = last.revision;
        }
    }

    /// Returns the lines after a revision; `None` if some of them are not here.
    fn since(&self, revision: i64) -> Option<impl Iterator<Item = &Line>> {
        let first = self.lines.partition_point(|line| line.revision <= revision);
        (revision >= self.after).then(|| self.lines.range(first..))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::OnceLock;

    fn page(revisions: std::ops::RangeInclusive<i64>) -> JournalPage {
        let line = |revision| Line {
            revision,
            kind: "Order".into(),
            gone: false,
            body: String::new(),
            parsed: OnceLock::new(),
        };
        JournalPage { reached: *revisions.end(), lines: Some(revisions.map(line).collect()) }
    }

    /// The revisions that are told after one.
    fn check(recent: &Recent, revision: i64) -> Option<Vec<i64>> {
        recent.since(revision).map(|lines| lines.map(|line| line.revision).collect())
    }

    #[test]
    fn lines_are_told_without_a_gap_or_not_at_all() {
        let mut recent = Recent::starting_at(10);
        recent.read_on(page(11..=14));
        assert_eq!(check(&recent, 9), None);
        assert_eq!(check(&recent, 10), Some(vec![11, 12, 13, 14]));
        assert_eq!(check(&recent, 12), Some(vec![13, 14]));
        assert_eq!(check(&recent, 20), Some(vec![]), "a watcher that started later");
    }

    #[test]
    fn the_oldest_lines_are_forgotten() {
        let mut recent = Recent::starting_at(0);
        recent.read_on(page(1..=300));
        assert_eq!(check(&recent, 43), None);
        assert_eq!(check(&recent, 44).map(|lines| lines.len()), Some(MAX_RECENT_LINES));
    }

    #[test]
    fn nothing_is_kept_when_the_journal_has_a_gap() {
        let mut recent = Recent::starting_at(0);
        recent.read_on(page(1..=3));
        recent.read_on(JournalPage { reached: 9_000, lines: None });
        assert_eq!((check(&recent, 3), check(&recent, 9_000)), (None, Some(vec![])));
    }
}
