//! What watchers read: the journal in the database, each line of it read and parsed once for all watchers of a process.
//!
//! A process has a dozen watchers and more, and all of them look at every commit: each would read and parse the same
//! lines. One that has fallen behind is told of each object that has changed once, as it is now, some at a time: to read all of a
//! kind anew takes so long, where there are thousands of objects, that it falls behind again.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::{Mutex, watch};

use super::reader::Reader;
use super::rows::Line;
use crate::model::{Kind, Record};
use crate::store::Scope;
use crate::store::error::StoreError;
use crate::store::watch::{Journal, Lines};

/// Lines that are kept in memory; a watcher further behind than that reads the database by itself.
const REMEMBERED: usize = 256;
/// Most objects that such a watcher reads at once.
const PAGE: usize = 256;

/// The journal, as the watchers of this process share it.
#[derive(Clone)]
pub(super) struct Feed {
    reader: Reader,
    /// The newest revision we heard of.
    revisions: watch::Receiver<i64>,
    /// Held while the first watcher that woke reads on, so that the others find what it read.
    recent: Arc<Mutex<Option<Recent>>>,
}

impl Feed {
    /// Remembers nothing yet.
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
        // Whoever watches Events wants each time that one was told.
        let page = match kind {
            Kind::Event => self.read(revision).await?,
            _ => self.changed(kind, revision).await?,
        };
        let JournalPage { reached, lines } = page;
        let logged = lines.map(|lines| self.of_kind(kind, lines.iter())).transpose()?;
        Ok((reached, logged))
    }
}

impl Feed {
    /// What the lines in memory tell; nothing when they do not reach back so far.
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

    /// Reads some of the objects of a kind that have changed, or gone, since a revision: those that have changed first.
    async fn changed(&self, kind: Kind, revision: i64) -> Result<JournalPage, StoreError> {
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

/// What one look at the journal brought.
struct JournalPage {
    /// Revision of the look.
    reached: i64,
    /// Nothing when some of the lines have been forgotten.
    lines: Option<Vec<Line>>,
}

/// The newest lines of the journal, without a gap.
struct Recent {
    /// Every line after this revision is here…
    after: i64,
    /// …up to this one.
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
        let surplus = self.lines.len().saturating_sub(REMEMBERED);
        if let Some(last) = self.lines.drain(..surplus).next_back() {
            self.after = last.revision;
        }
    }

    /// The lines after a revision; nothing when some of them are not here.
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
        assert_eq!(check(&recent, 44).map(|lines| lines.len()), Some(REMEMBERED));
    }

    #[test]
    fn nothing_is_kept_when_the_journal_has_a_gap() {
        let mut recent = Recent::starting_at(0);
        recent.read_on(page(1..=3));
        recent.read_on(JournalPage { reached: 9_000, lines: None });
        assert_eq!((check(&recent, 3), check(&recent, 9_000)), (None, Some(vec![])));
    }
}
