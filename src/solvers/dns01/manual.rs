//! Person in place of a provider, who makes the records and removes them again.
//!
//! Records that are left to a person are marked on the Challenge (annotation
//! `kubectl-acme/challenge-by-hand`), so that no later run asks a provider to remove the records.

use std::sync::Arc;

use async_trait::async_trait;

use crate::model::memory::{Holder, Memory};
use crate::model::{Answer, Challenge};
use crate::solvers::{SolveError, Solver};

/// Leaves every record to a person, who also removes the record; a provider removes records that it published.
#[derive(Clone, Debug)]
pub struct Manual {
    /// Solver that answered before a person did.
    pub provider: Arc<dyn Solver>,
}

/// Returns whether a person makes the record of a Challenge, whichever controller drives the Challenge now.
pub fn is_a_persons(challenge: &Challenge) -> bool {
    Memory::read(Holder::Challenge, &challenge.metadata.annotations).by_hand
}

#[async_trait]
impl Solver for Manual {
    async fn present(&self, _: &Challenge, _: &Answer) -> Result<(), SolveError> {
        Ok(())
    }

    async fn clean_up(&self, challenge: &Challenge, answer: &Answer) -> Result<(), SolveError> {
        if is_a_persons(challenge) || !challenge.status.presented {
            return Ok(());
        }
        self.provider.clean_up(challenge, answer).await
    }

    /// Returns true: only a lookup can show whether the record is there.
    fn stands(&self, _: &Challenge, _: &Answer) -> bool {
        true
    }

    fn is_by_hand(&self) -> bool {
        true
    }
}
