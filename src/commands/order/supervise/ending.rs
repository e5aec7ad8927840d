//! How what is followed comes to its end: done, failed, held up for too long, or out of time.

use jiff::Timestamp;

use super::Supervision;
use crate::commands::advice;
use crate::commands::failure::{Failure, Kind as FailureKind};
use crate::commands::order::followed::End;
use crate::commands::renewal::try_mark_for_renewal;
use crate::commands::verdict::{Failed, Holdup};
use crate::model::{Key, Kind};
use crate::print::progress;
use crate::store::StoreError;

impl Supervision {
    /// A failure ends the Certificate, save one of an order that an earlier run had made: that is tried anew, once.
    pub(super) async fn failed(
        &mut self,
        key: &Key,
        failed: Failed,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(followed) = self.open.get_mut(key) else { return Ok(()) };
        let tried = failed.order.as_ref().map(|order| &order.uid);
        if followed.inherited.is_some() && followed.inherited.as_ref() == tried {
            try_mark_for_renewal(&self.store, &key.name, now).await?;
            followed.inherited = None;
            self.progress.line(&format!("{key}: trying again after: {}", failed.failure), now);
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
    pub(super) fn held_up(&mut self, key: &Key, holdup: Holdup, now: Timestamp) {
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

    pub(super) fn out_of_time(&self, key: &Key) -> Failure {
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

    pub(super) fn end(&mut self, key: &Key, end: End, now: Timestamp) {
        match &end {
            End::Done if key.kind == Kind::Certificate => {
                self.progress.done(&key.to_string(), "issued", now);
            }
            End::Done => self.progress.done(&key.to_string(), "ready", now),
            End::Failed(_) => self.progress.done(&key.to_string(), "not issued", now),
            End::ByHand(..) => self.progress.done(&key.to_string(), "waits for a person", now),
        }
        self.open.remove(key);
        self.ends.insert(key.clone(), end);
    }
}
