//! The answer of one Challenge, put up or taken down at a person's wish; nothing else of it is driven.

use std::sync::Arc;

use jiff::Timestamp;

use super::ReconcileError;
use super::recorder::Recorder;
use crate::model::challenge::{FINALIZER, LEGACY_FINALIZER};
use crate::model::event::source;
use crate::model::memory::Holder;
use crate::model::{Answer, Challenge, Kind, State};
use crate::reconcile::challenge::{self, Outcome};
use crate::solvers::Solver;
use crate::store::resources::Resources;
use crate::store::{Store, StoreError};

/// Puts answers up and takes them down, and records it as the controllers do, so that whoever drives next goes on from there.
#[derive(Debug)]
pub struct Answering {
    challenges: Resources<Challenge>,
    recorder: Recorder,
    solver: Arc<dyn Solver>,
}

impl Answering {
    /// Answers by that solver.
    pub fn new(store: &Arc<dyn Store>, solver: Arc<dyn Solver>) -> Self {
        let challenges = Resources::new(Arc::clone(store), Kind::Challenge);
        let recorder = Recorder::new(Arc::clone(store));
        Self { challenges: challenges.written_by(source::CHALLENGES), recorder, solver }
    }

    /// Puts the answer up; the finalizer is on the object first, so that no deletion forgets it. Safe to repeat.
    ///
    /// # Errors
    /// Fails when the solver does, which is recorded, or the store.
    pub async fn put_up(
        &self,
        challenge: &Challenge,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        let marked = with_our_finalizer(challenge);
        let challenge = if marked.metadata.finalizers == challenge.metadata.finalizers {
            marked
        } else {
            self.challenges.replace_finalizers(&marked).await?
        };
        if let Err(error) = self.solver.present(&challenge, answer).await {
            self.keep(&challenge, Outcome::PresentFailed(error.to_string()), now).await?;
            return Err(error.into());
        }
        Ok(self.keep(&challenge, Outcome::Presented, now).await?)
    }

    /// Takes the answer down. A Challenge that is over loses its finalizer, too; another one goes back to the queue, and is
    /// presented again by whoever drives it. Safe to repeat.
    ///
    /// # Errors
    /// Fails when the solver does, which is recorded, or the store.
    pub async fn take_down(
        &self,
        challenge: &Challenge,
        answer: &Answer,
        now: Timestamp,
    ) -> Result<(), ReconcileError> {
        if let Err(error) = self.solver.clean_up(challenge, answer).await {
            self.keep(challenge, Outcome::CleanUpFailed(error.to_string()), now).await?;
            return Err(error.into());
        }
        self.keep(challenge, Outcome::CleanedUp, now).await?;
        let is_over = challenge.status.state.is_some_and(State::is_final);
        if !is_over && !challenge.metadata.is_deleted() {
            return Ok(());
        }
        if let Some(current) = self.challenges.get(&challenge.name()).await? {
            self.challenges.replace_finalizers(&without_finalizer(&current)).await?;
        }
        Ok(())
    }

    async fn keep(
        &self,
        challenge: &Challenge,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let recorded = challenge::record(challenge, outcome, now);
        let holder = Some(Holder::Challenge);
        self.recorder.keep(&self.challenges, challenge, holder, recorded, now).await
    }
}

/// The same with our finalizer, in place of an old one.
pub(super) fn with_our_finalizer(challenge: &Challenge) -> Challenge {
    let mut marked = without_finalizer(challenge);
    marked.metadata.finalizers.push(FINALIZER.to_owned());
    marked
}

/// The same without the finalizer of those who answer.
pub(super) fn without_finalizer(challenge: &Challenge) -> Challenge {
    let mut bare = challenge.clone();
    bare.metadata.finalizers.retain(|f| f != LEGACY_FINALIZER && f != FINALIZER);
    bare
}
