//! What is seen while objects are followed: whom a change concerns, and how far each challenge is.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::Supervision;
use crate::commands::claim::Other;
use crate::commands::verdict::waits::{Step, Wait};
use crate::model::{Challenge, Key, Kind, Record, State, Time};
use crate::print::progress;
use crate::store::Change;
use crate::store::resources::typed;

/// So long nothing has to move before that is said, where somebody else drives.
const STANDSTILL: Duration = Duration::from_secs(30);

impl Supervision {
    /// Says once that nothing moves while somebody else drives, and what to do.
    pub(super) fn look_whether_it_moves(&mut self, other: &Other, now: Timestamp) {
        if self.stands || self.moved.elapsed() < STANDSTILL {
            return;
        }
        self.stands = true;
        let seconds = STANDSTILL.as_secs();
        self.progress
            .line(&format!("nothing has moved for {seconds} s; driver: {}", other.driver), now);
        self.progress.line(&other.next_step, now);
    }

    /// Shows what a Certificate waits for, unless its challenges do.
    pub(super) fn show_step(&mut self, key: &Key, step: Option<Step>, now: Timestamp) {
        let (since, until) = (self.started, Some(self.deadline));
        let state = "on its way".to_owned();
        let Some(step) = step else {
            self.steps.remove(key);
            self.progress.forget(&key.to_string(), now);
            return;
        };
        let waits_for = format!("waiting for {}", step.waits_for);
        let wait = progress::Wait { state, waits_for, since, until };
        self.progress.waiting(&key.to_string(), wait, now);
        self.steps.insert(key.clone(), step);
    }

    /// Notes which followed objects a change concerns, and shows challenges.
    pub(super) fn saw(&mut self, change: Change) {
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
                self.notes_movement_of(&record.key);
                self.relatives.insert(record.uid().to_owned(), record.key.clone());
                self.dirty.insert(record.key.clone());
            }
            Kind::CertificateRequest | Kind::Order | Kind::Challenge => {
                let metadata = record.metadata();
                let owner = metadata.controller().map(|o| o.uid.clone()).unwrap_or_default();
                match self.relatives.get(&owner).cloned() {
                    Some(certificate) => {
                        self.notes_movement_of(&certificate);
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
        if let Some(hand) = &mut self.by_hand {
            hand.saw(&challenge);
        }
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
            (true, _) => Wait::of_running(&challenge).sentence(),
            (false, "") => "waiting for the scheduler".to_owned(),
            (false, reason) => reason.to_owned(),
        };
        let state = if status.processing { State::Pending.as_str() } else { "queued" }.to_owned();
        let since = challenge.metadata.creation_timestamp.map_or(now, Time::timestamp);
        let until = Some(self.deadline);
        self.progress.waiting(&name, progress::Wait { state, waits_for, since, until }, now);
    }

    /// Whether a Challenge was seen below that Certificate.
    pub(super) fn is_below(&self, challenge: &Challenge, certificate: &Key) -> bool {
        let owner = challenge.metadata.controller();
        owner.and_then(|owner| self.relatives.get(&owner.uid)) == Some(certificate)
    }

    fn notes_movement_of(&mut self, certificate: &Key) {
        if self.open.contains_key(certificate) {
            self.moved = Instant::now();
        }
    }
}
