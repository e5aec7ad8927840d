//! What this process knows of validations under way and does not write down; another process begins anew.

use std::collections::HashMap;

use jiff::Timestamp;
use parking_lot::Mutex;

use super::by_object::ByObject;
use crate::model::{Challenge, ObjectName};
use crate::reconcile::challenge::{Followed, Outcome, polled};
use crate::reconcile::pauses::Polled;

/// The last word of the CA on each challenge, and when answers were given to it.
#[derive(Debug, Default)]
pub(super) struct Validations {
    /// When the CA spoke last of each, and of the next time: no reading that brings nothing new is written down, and a write may fail.
    heard: ByObject<Polled>,
    /// Whether the CA said then that it is at work on it.
    at_work: ByObject<bool>,
    /// When each was first seen accepted.
    accepted: ByObject<Timestamp>,
    /// When the last answer of each Order was given to the CA, by UID.
    accepted_last: Mutex<HashMap<String, Timestamp>>,
}

impl Validations {
    /// Notes what came of a deed.
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

    /// When the CA spoke last of a challenge.
    pub(super) fn polled(&self, challenge: &Challenge) -> Option<Polled> {
        self.heard.of(&challenge.metadata)
    }

    /// What is known of the validation of an accepted challenge, by a CA that ends each by itself or not.
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
