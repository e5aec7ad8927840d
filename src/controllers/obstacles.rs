//! Obstacles: errors that stopped the last reconcile of an object.
//!
//! Obstacles are kept by job and published by object, because two controllers reconcile one Challenge, and thousands of
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

/// Error that stopped the last reconcile of an object.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// Error, with its whole text.
    pub error: Arc<ReconcileError>,
    /// Moment at which the error first occurred.
    pub since: Timestamp,
    /// Moment of the next try.
    pub next_try: Timestamp,
    /// Number of tries so far.
    pub tries: u32,
}

impl Obstacle {
    /// Returns whether the obstacle stays until something is changed.
    pub fn stays(&self) -> bool {
        // A quota may empty by itself, but most do not.
        let is_denied = matches!(&*self.error, ReconcileError::Store(StoreError::Denied { .. }));
        // So many orders cannot be right: their cause goes on, too.
        let is_too_many = matches!(
            &*self.error,
            ReconcileError::OverBudget(over) if matches!(over.denial, Denial::TooMany { .. })
        );
        self.error.is_race()
            || self.error.retry() == Retry::Never
            || is_too_many
            || is_denied && self.tries >= LASTING_DENIAL_TRIES
    }
}

/// Present obstacle of each object.
pub type Obstacles = BTreeMap<Key, Obstacle>;

/// Number of tries after which a denial counts as lasting.
pub(crate) const LASTING_DENIAL_TRIES: u32 = 5;

/// Obstacles found by the last reconcile of each job, by the object concerned: one object is reported without a scan of
/// all others.
#[derive(Debug, Default)]
pub(crate) struct ObstacleIndex {
    /// Objects that each job's obstacles concern.
    jobs: HashMap<Job, BTreeSet<Key>>,
    /// Obstacles of each object, by the job that found them.
    objects: HashMap<Key, BTreeMap<Job, Obstacle>>,
}

impl ObstacleIndex {
    /// Returns the obstacle that a job found for an object.
    pub(crate) fn get(&self, job: &Job, about: &Key) -> Option<&Obstacle> {
        self.objects.get(about)?.get(job)
    }

    /// Replaces the obstacles found by a job; returns the objects whose reported obstacle may change.
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

    /// Returns the obstacle to report for an object: one that stays comes first, since a wait for the others would be
    /// in vain, then the oldest.
    pub(crate) fn first(&self, about: &Key) -> Option<&Obstacle> {
        let all = self.objects.get(about)?.iter();
        all.min_by_key(|(job, it)| (!it.stays(), it.since, *job)).map(|(_, obstacle)| obstacle)
    }
}
