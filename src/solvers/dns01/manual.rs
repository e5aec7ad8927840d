//! A person in place of a provider: makes the records, and takes them away again.
//!
//! Records that are left to a person are marked on the Challenge (annotation `kubectl-acme/challenge-by-hand`), so that
//! no later run asks a provider to take them away.

use std::sync::Arc;

use async_trait::async_trait;

use crate::model::memory::{Holder, Memory};
use crate::model::{Answer, Challenge};
use crate::solvers::{SolveError, Solver};

/// Leaves every record to a person. What a person made is a person's; what a provider published before is taken away by it.
#[derive(Clone, Debug)]
pub struct Manual {
    /// Whoever answered before a person did.
    pub provider: Arc<dyn Solver>,
}

/// Tells whether a person makes the record of a Challenge, whoever drives it now.
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

    /// Whether the record is there, only a look can tell.
    fn stands(&self, _: &Challenge, _: &Answer) -> bool {
        true
    }

    fn is_by_hand(&self) -> bool {
        true
    }
}
