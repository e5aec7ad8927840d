//! What stands in the way of an object.
//!
//! Obstacles are kept by job and published by object, because two controllers look at one Challenge, and thousands of
//! objects may fail at once.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use jiff::Timestamp;

use super::ReconcileError;
use super::work_queue::Job;
use crate::acme::error::Retry;
use crate::model::Key;
use crate::model::order_budget::Denial;
use crate::store::error::StoreError;

/// Something that stands in the way of an object: what went wrong when it was last looked at.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// The fault, with its whole text.
    pub error: Arc<ReconcileError>,
    /// When it first showed.
    pub since: Timestamp,
    /// When the next try comes.
    pub next_try: Timestamp,
    /// Tries so far.
    pub tries: u32,
}

impl Obstacle {
    /// Tells whether it stands until somebody changes something.
    pub fn stays(&self) -> bool {
        // A quota may empty by itself, and most do not.
        let is_denied = matches!(&*self.error, ReconcileError::Store(StoreError::Denied { .. }));
        // So many orders cannot be right: what asks for them goes on, too.
        let is_too_many = matches!(
            &*self.error,
            ReconcileError::OverBudget(over) if matches!(over.denial, Denial::TooMany { .. })
        );
        self.error.is_race()
            || self.error.retry() == Retry::Never
            || is_too_many
            || is_denied && self.tries >= TRIES
    }
}

/// What stands in the way of which object, right now.
pub type Obstacles = BTreeMap<Key, Obstacle>;

/// After so many tries what is denied counts as lasting.
pub(crate) const TRIES: u32 = 5;

/// What each job found when it was last looked at, by the object in whose way it is: an object is told of without a look at all
/// others.
#[derive(Debug, Default)]
pub(crate) struct Standstills {
    /// In whose way it is what stopped a job.
    jobs: HashMap<Job, BTreeSet<Key>>,
    /// What stands in the way of an object, by the job that found it.
    objects: HashMap<Key, BTreeMap<Job, Obstacle>>,
}

impl Standstills {
    /// What a job found in the way of an object.
    pub(crate) fn get(&self, job: &Job, about: &Key) -> Option<&Obstacle> {
        self.objects.get(about)?.get(job)
    }

    /// Replaces what a job has found; returns the objects of which something else is to be told.
    pub(crate) fn found(&mut self, job: &Job, found: BTreeMap<Key, Obstacle>) -> BTreeSet<Key> {
        let mut concerned = self.jobs.remove(job).unwrap_or_default();
        for key in &concerned {
            let Some(all) = self.objects.get_mut(key) else { continue };
            all.remove(job);
            if all.is_empty() {
                self.objects.remove(key);
            }
        }
        if !found.is_empty() {
            self.jobs.insert(job.clone(), found.keys().cloned().collect());
        }
        for (about, obstacle) in found {
            self.objects.entry(about.clone()).or_default().insert(job.clone(), obstacle);
            concerned.insert(about);
        }
        concerned
    }

    /// What is told of an object. Of several obstacles, one that stays comes first: whoever waits for the others would wait in
    /// vain. Then the oldest.
    pub(crate) fn first(&self, about: &Key) -> Option<&Obstacle> {
        let all = self.objects.get(about)?.iter();
        all.min_by_key(|(job, it)| (!it.stays(), it.since, *job)).map(|(_, obstacle)| obstacle)
    }
}
