//! Writes to Challenges: outcomes of actions, reasons for missing answers, and the finalizer of answers.

use std::sync::Arc;

use jiff::Timestamp;

use super::recorder::Recorder;
use crate::model::cause::{Cause, CheckFinding};
use crate::model::challenge::{FINALIZER, LEGACY_FINALIZER};
use crate::model::event::source;
use crate::model::memory::{Holder, Memory};
use crate::model::{Answer, Challenge, Kind};
use crate::reconcile::challenge::{self, Outcome};
use crate::solvers::remedy::Remedy;
use crate::solvers::{SolveError, Solver};
use crate::store::error::StoreError;
use crate::store::resources::Resources;

/// Challenges of a store, written in the name of their controller.
#[derive(Debug)]
pub(super) struct ChallengeRecords {
    pub(super) resources: Resources<Challenge>,
    recorder: Recorder,
}

impl ChallengeRecords {
    /// Builds the records over the recorder's store.
    pub(super) fn new(recorder: Recorder) -> Self {
        let resources = Resources::new(Arc::clone(recorder.store()), Kind::Challenge);
        Self { resources: resources.written_by(source::CHALLENGES), recorder }
    }

    /// Records the outcome of an action.
    pub(super) async fn keep(
        &self,
        challenge: &Challenge,
        outcome: Outcome,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let recorded = challenge::record(challenge, outcome, now);
        let holder = Some(Holder::Challenge);
        self.recorder.keep(&self.resources, challenge, holder, recorded, now).await
    }

    /// Puts our finalizer on the object, in place of an old one, unless it is there.
    pub(super) async fn mark(&self, challenge: &Challenge) -> Result<Challenge, StoreError> {
        let mut marked = without_finalizer(challenge);
        marked.metadata.finalizers.push(FINALIZER.to_owned());
        if marked.metadata.finalizers == challenge.metadata.finalizers {
            return Ok(marked);
        }
        self.resources.replace_finalizers(&marked).await
    }

    /// Returns the document root of the coming answer, unless the Challenge remembers it already: it must before the
    /// file exists, or the file would be lost after a kill. An earlier process's file elsewhere is removed first.
    ///
    /// # Errors
    /// Fails if that file cannot be removed.
    pub(super) async fn place(
        &self,
        challenge: &Challenge,
        answer: &Answer,
        solver: &dyn Solver,
    ) -> Result<Option<Outcome>, SolveError> {
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        let webroot = solver.webroot().filter(|path| memory.webroot.as_deref() != Some(path));
        let Some(webroot) = webroot else { return Ok(None) };
        if memory.webroot.is_some() {
            solver.clean_up(challenge, answer).await?;
        }
        Ok(Some(Outcome::Placed(webroot.to_owned())))
    }

    /// Takes the finalizer off.
    pub(super) async fn unmark(&self, challenge: &Challenge) -> Result<Challenge, StoreError> {
        self.resources.replace_finalizers(&without_finalizer(challenge)).await
    }
}

/// Returns the Challenge without the finalizer of answers.
fn without_finalizer(challenge: &Challenge) -> Challenge {
    let mut bare = challenge.clone();
    bare.metadata.finalizers.retain(|f| f != LEGACY_FINALIZER && f != FINALIZER);
    bare
}

/// Returns the refusal of a DNS provider, if the error has one.
pub(super) fn refused(error: &SolveError) -> Option<Cause> {
    error.refusal.clone().map(Cause::Provider)
}

/// Returns the outcome for an answer that a solver could not put up.
pub(super) fn present_failed(error: &SolveError) -> Outcome {
    let cause = match error.remedy.as_deref() {
        _ if error.refusal.is_some() => refused(error),
        Some(Remedy::Ingress { .. }) => Some(Cause::NoIngress),
        Some(Remedy::Zone(symptom)) => Some(Cause::Seen(CheckFinding::from(*symptom))),
        Some(Remedy::Store(refusal)) => match **refusal {
            StoreError::Denied { guard, .. } => Some(Cause::Denied(guard)),
            StoreError::Cluster(ref fault) => fault.guard().map(Cause::Denied),
            _ => None,
        },
        _ => None,
    };
    Outcome::PresentFailed(error.to_string(), cause)
}
