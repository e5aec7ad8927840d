//! What we have written and a list of everything lacks: it was made after the list, or has gone since. Of what has gone
//! the watch tells nothing any more, and of the other it has yet to tell, and until then another list may lack it, too. So
//! it is read, until the store answers.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::Room;
use crate::model::{Key, Record};

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

    /// Reads what the watch has not told of meanwhile.
    pub(super) async fn read(&mut self, room: &Room) {
        for known in std::mem::take(&mut self.records) {
            let Key { kind, ref name } = known.key;
            if room.change(kind, |cache| cache.is_unheard(&known)) != Some(true) {
                continue;
            }
            match room.store.get(&known.key).await {
                Ok(Some(read)) => {
                    room.change(kind, |cache| cache.written(&read));
                }
                Ok(None) => {
                    room.change(kind, |cache| cache.lost(name, known.uid()));
                }
                Err(_) => self.records.push(known),
            }
        }
        self.next_read = Instant::now() + self.pause;
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
    }
}
