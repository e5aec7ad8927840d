//! Facts of this process about validations under way, which are not stored; another process starts anew.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::by_object::ByObject;
use crate::model::{Challenge, ObjectName};
use crate::reconcile::challenge::{Followed, Outcome, polled};
use crate::reconcile::pauses::Polled;

/// Last reply of the CA for each challenge, and the moments of acceptance.
#[derive(Debug, Default)]
pub(super) struct Validations {
    /// Last reading of each: readings without news are not stored, and a write may fail.
    heard: ByObject<Polled>,
    /// Whether the CA said then that it is at work on the validation.
    at_work: ByObject<bool>,
    /// Moment at which each was first seen accepted.
    accepted: ByObject<Timestamp>,
    /// Moment of the last acceptance of each Order, by UID.
    accepted_last: Mutex<HashMap<String, Timestamp>>,
}

impl Validations {
    /// Records the outcome of an action.
    pub(super) fn note(&self, challenge: &Challenge, outcome: &Outcome, now: Timestamp) {
        let metadata = &challenge.metadata;
        if let Some(polled) = polled(outcome, now) {
            self.heard.note(metadata, polled);
        }
        if let Outcome::Accepted(said) | Outcome::StateFetched(said) = outcome {
            self.at_work.note(metadata, said.is_at_work);
        }
        if let (Outcome::Accepted(_), Some(owner)) = (outcome, metadata.controller()) {
            self.accepted_last.lock().insert(owner.uid.clone(), now);
        }
    }

    /// Returns the last reading of a challenge.
    pub(super) fn polled(&self, challenge: &Challenge) -> Option<Polled> {
        self.heard.of(&challenge.metadata)
    }

    /// Returns the facts about an accepted challenge's validation; `is_ended_by_ca`: its CA ends each by itself.
    pub(super) fn followed(
        &self,
        challenge: &Challenge,
        is_ended_by_ca: bool,
        now: Timestamp,
    ) -> Followed {
        let metadata = &challenge.metadata;
        let known = self.accepted.of(metadata);
        let since = known.unwrap_or_else(|| {
            self.accepted.note(metadata, now);
            now
        });
        let owner = metadata.controller();
        Followed {
            accepted_since: Some(since),
            order_accepted_last: owner.and_then(|o| self.accepted_last.lock().get(&o.uid).copied()),
            is_at_work: self.at_work.of(metadata).unwrap_or_default(),
            is_ended_by_ca,
        }
    }

    /// Forgets a challenge that is gone.
    pub(super) fn forget(&self, name: &ObjectName) {
        self.heard.forget(name);
        self.at_work.forget(name);
        self.accepted.forget(name);
    }

    /// Forgets an Order, by UID, that has ended or is gone.
    pub(super) fn forget_order(&self, uid: &str) {
        self.accepted_last.lock().remove(uid);
    }
}
