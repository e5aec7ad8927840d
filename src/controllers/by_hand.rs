//! Answer of one Challenge, put up or taken down at a person's wish; the rest of the Challenge is not worked on.

use std::sync::Arc;

use jiff::Timestamp;

use super::ReconcileError;
use super::challenge_records::{ChallengeRecords, present_failed, refused};
use super::recorder::Recorder;
use crate::model::{Answer, Challenge};
use crate::reconcile::challenge::Outcome;
use crate::solvers::Solver;
use crate::store::Store;

/// Puts answers up and takes them down, and records that as controllers do, for the next controller to go on from.
#[derive(Debug)]
pub struct ManualAnswer {
    challenges: ChallengeRecords,
    solver: Arc<dyn Solver>,
}

impl ManualAnswer {
    /// Builds the value with this solver.
    pub fn new(store: &Arc<dyn Store>, solver: Arc<dyn Solver>) -> Self {
        Self { challenges: ChallengeRecords::new(Recorder::new(Arc::clone(store))), solver }
    }

    /// Puts the answer up; the finalizer is on the object first, so that no deletion forgets it. Safe to repeat.
    ///
    /// # Errors
    /// Fails if the solver does, which is recorded, or the store.
    pub async fn put_up(
        &self,
        challenge: &Challenge,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let mut challenge = self.challenges.mark(challenge).await?;
        if let Some(placed) = self.challenges.place(&challenge, answer, &*self.solver).await? {
            self.challenges.keep(&challenge, placed, now).await?;
            let Some(current) = self.challenges.resources.get(&challenge.name()).await? else {
                return Ok(());
            };
            challenge = current;
        }
        if let Err(error) = self.solver.present(&challenge, answer).await {
            let why = present_failed(&error);
            self.challenges.keep(&challenge, why, now).await?;
            return Err(error.into());
        }
        let presented = Outcome::Presented(self.solver.listens_at());
        Ok(self.challenges.keep(&challenge, presented, now).await?)
    }

    /// Takes the answer down. A Challenge that is over loses its finalizer, too; another one goes back to the queue,
    /// and its next controller presents it again. Safe to repeat.
    ///
    /// # Errors
    /// Fails if the solver does, which is recorded, or the store.
    pub async fn take_down(
        &self,
        challenge: &Challenge,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        if let Err(error) = self.solver.clean_up(challenge, answer).await {
            let why = Outcome::CleanUpFailed(error.to_string(), refused(&error));
            self.challenges.keep(challenge, why, now).await?;
            return Err(error.into());
        }
        self.challenges.keep(challenge, Outcome::CleanedUp, now).await?;
        let is_over = challenge.has_ended();
        if !is_over && !challenge.metadata.is_deleted() {
            return Ok(());
        }
        if let Some(current) = self.challenges.resources.get(&challenge.name()).await? {
            self.challenges.unmark(&current).await?;
        }
        Ok(())
    }
}
