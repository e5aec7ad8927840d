//! What stands in the way of which object, and which look found it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::agenda::Job;
use super::driver::Obstacle;
use crate::model::Key;

/// What each job found when it was last looked at, by the object in whose way it is: an object is told of without a look at all
/// others.
#[derive(Debug, Default)]
pub(super) struct Standing {
    /// In whose way it is what stopped a job.
    jobs: HashMap<Job, BTreeSet<Key>>,
    /// What stands in the way of an object, by the job that found it.
    objects: HashMap<Key, BTreeMap<Job, Obstacle>>,
}

impl Standing {
    /// What a job found in the way of an object.
    pub(super) fn get(&self, job: &Job, about: &Key) -> Option<&Obstacle> {
        self.objects.get(about)?.get(job)
    }

    /// Replaces what a job has found; returns the objects of which something else is to be told.
    pub(super) fn found(&mut self, job: &Job, found: BTreeMap<Key, Obstacle>) -> BTreeSet<Key> {
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
    pub(super) fn first(&self, about: &Key) -> Option<&Obstacle> {
        let all = self.objects.get(about)?.iter();
        all.min_by_key(|(job, it)| (!it.stays(), it.since, *job)).map(|(_, obstacle)| obstacle)
    }
}
