//! Failure: how a command ends badly: kind, message, hints, exit code.

use std::fmt;

use super::{hints, invocation};
use crate::diagnosis::failed::Failed;
use crate::diagnosis::failure_kind::FailureKind;
use crate::diagnosis::next_step::NextStep;
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;
use crate::store::error::StoreError;

/// How a command ends badly. `Display` is the message, without `error: `.
#[derive(Debug)]
pub struct Failure {
    /// Sort.
    pub kind: FailureKind,
    /// `<what failed for which object>: <why>`; empty when everything has been said already.
    pub message: String,
    /// What to do next, one line each.
    pub hints: Vec<String>,
}

impl Failure {
    /// Makes a failure.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Wrong usage, or a manifest that cannot be.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// A failure of which everything has been said already.
    pub fn silent(kind: FailureKind) -> Self {
        Self::new(kind, "")
    }

    /// Interrupted with the state kept: the same command goes on.
    pub fn interrupted(kind: FailureKind) -> Self {
        Self::new(kind, "interrupted; everything so far is kept")
            .hint(invocation::current().go_on())
    }

    /// What a store refused, and what helps.
    pub fn of(error: &StoreError) -> Self {
        let failure = Self::new(FailureKind::of_store(error), error.to_string());
        hints::store::lines(error).into_iter().fold(failure, Self::hint)
    }

    /// Adds what helps.
    #[must_use]
    pub fn step(self, step: &NextStep) -> Self {
        hints::lines(step).into_iter().fold(self, Self::hint)
    }

    /// Adds what removes the cause of a solver's fault, where that is known.
    #[must_use]
    pub fn helped_by(self, remedy: Option<&Remedy>) -> Self {
        remedy.into_iter().flat_map(hints::solver::lines).fold(self, Self::hint)
    }

    /// Adds a line that says what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<Failed> for Failure {
    fn from(failed: Failed) -> Self {
        let failure = Self::new(failed.kind, failed.message);
        failed.next_steps.iter().fold(failure, Self::step)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::of(&error)
    }
}

impl From<SolveError> for Failure {
    fn from(error: SolveError) -> Self {
        Self::new(FailureKind::Solver, error.to_string()).helped_by(error.remedy.as_deref())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::new(FailureKind::Unexpected, format!("cannot write the output: {error}"))
    }
}
