//! What we have written and a list of everything lacks: it was made after the list, or has gone since. Of what has gone
//! the watch tells nothing any more, and of the other it has yet to tell, and until then another list may lack it, too. So
//! it is read, until the store answers.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::model::Record;

/// How long after a read without an answer the next one comes; twice as long after each.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// Objects of one kind that the last list of everything lacked, and for which the store has not answered yet.
pub(super) struct Unheard {
    records: Vec<Record>,
    pause: Duration,
    next_read: Instant,
}

impl Unheard {
    /// What a list lacks, to be read at once.
    pub(super) fn new(records: Vec<Record>) -> Self {
        Self { records, pause: FIRST_PAUSE, next_read: Instant::now() }
    }

    /// Waits for the next read; for ever where none is left.
    pub(super) async fn due(&self) {
        if self.records.is_empty() {
            return std::future::pending().await;
        }
        sleep_until(self.next_read).await;
    }

    /// What is to be read now.
    pub(super) fn take(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// Keeps those for which the store did not answer, until the next read.
    pub(super) fn keep(&mut self, unanswered: Vec<Record>) {
        self.records = unanswered;
        self.next_read = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }
}
