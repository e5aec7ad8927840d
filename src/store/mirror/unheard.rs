//! Objects that we have written and that a list of everything lacks: made after the list, or gone since. The watch
//! reports nothing more of an object that has gone, and has yet to report the other; until then another list may lack
//! it, too. So the object is read, until the store answers.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::model::Record;

/// Pause after the first read without an answer; each pause is twice as long, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Objects of one kind that the last list of everything lacked, and for which the store has not answered yet.
pub(super) struct Unheard {
    records: Vec<Record>,
    pause: Duration,
    next_read: Instant,
}

impl Unheard {
    /// Makes the set of objects that a list lacks, to be read at once.
    pub(super) fn new(records: Vec<Record>) -> Self {
        Self { records, pause: FIRST_PAUSE, next_read: Instant::now() }
    }

    /// Waits for the next read; for ever if no object is left.
    pub(super) async fn due(&self) {
        if self.records.is_empty() {
            return std::future::pending().await;
        }
        sleep_until(self.next_read).await;
    }

    /// Takes the objects that are to be read now.
    pub(super) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Keeps the objects for which the store did not answer, until the next read.
    pub(super) fn keep(&mut self, unanswered: Vec<Record>) {
        self.records = unanswered;
        self.next_read = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }
}
