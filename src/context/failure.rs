//! Failure of a command: kind, message, hints, exit code.

use std::fmt;

use jiff::Timestamp;

use crate::diagnosis::verdict::blocker::Blocker;
use crate::diagnosis::verdict::failed::Failed;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::verdict::next_step::NextStep;
use crate::hints::{self, invocation};
use crate::model::order_report::{ErrorDocument, ErrorReport, InputFault, ReportedProblem};
use crate::model::{Key, Problem, Time};
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;
use crate::store::error::StoreError;

/// Failure of a command. `Display` is the message, without `error: `.
#[derive(Debug)]
pub struct Failure {
    /// Kind, which gives the exit code.
    pub kind: FailureKind,
    /// `<what failed for which object>: <why>`; empty if everything has been printed already.
    pub message: String,
    /// Next steps, one line each.
    pub hints: Vec<String>,
    /// Further facts, for programs.
    pub facts: Box<FailureFacts>,
}

/// Facts about a failure beyond its message.
#[derive(Debug, Default)]
pub struct FailureFacts {
    /// Problem document of the CA.
    pub problem: Option<Box<Problem>>,
    /// Time before which the CA wants no other try.
    pub retry_after: Option<Timestamp>,
    /// Whether only the time limit was reached, so that the same command can continue.
    pub is_late: bool,
    /// Every fault of the input.
    pub faults: Vec<InputFault>,
    /// Object that failed, if any.
    pub object: Option<Key>,
}

impl Failure {
    /// Makes a failure.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new(), facts: Box::default() }
    }

    /// Makes the failure for wrong usage, or for a manifest that cannot be right.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(FailureKind::Usage, message)
    }

    /// Makes a failure whose message has been printed already.
    pub fn silent(kind: FailureKind) -> Self {
        Self::new(kind, "")
    }

    /// Makes the failure of an interrupted command whose state is kept; the same command can continue.
    pub fn interrupted(kind: FailureKind) -> Self {
        Self::new(kind, "interrupted; everything so far is kept")
            .hint(invocation::current().go_on())
    }

    /// Makes the failure for an error of a store, with hints.
    pub fn of(error: &StoreError) -> Self {
        let mut failure = Self::new(FailureKind::of_store(error), error.to_string());
        failure.facts.object = error.key().cloned();
        hints::store::lines(error).into_iter().fold(failure, Self::hint)
    }

    /// Adds the hints for a next step.
    #[must_use]
    pub fn step(self, step: &NextStep) -> Self {
        hints::lines(step).into_iter().fold(self, Self::hint)
    }

    /// Adds the hints for the remedy of a solver's fault, if a remedy is known.
    #[must_use]
    pub fn helped_by(self, remedy: Option<&Remedy>) -> Self {
        remedy.into_iter().flat_map(hints::solver::lines).fold(self, Self::hint)
    }

    /// Names the object that failed.
    #[must_use]
    pub fn about(mut self, object: &Key) -> Self {
        self.facts.object = Some(object.clone());
        self
    }

    /// Marks the failure as a reached time limit: the same command can continue.
    #[must_use]
    pub fn late(mut self) -> Self {
        self.facts.is_late = true;
        self
    }

    /// Adds the CA's problem and its retry time from a blocker.
    #[must_use]
    pub fn held_up_by(mut self, blocker: &Blocker) -> Self {
        self.facts.problem.clone_from(&blocker.problem);
        self.facts.retry_after = blocker.until.filter(|_| blocker.named_by_ca);
        self
    }

    /// Makes the failure for faults of the input, each of which has been printed.
    pub fn of_faults(kind: FailureKind, faults: Vec<InputFault>) -> Self {
        let mut failure = Self::silent(kind);
        failure.facts.faults = faults;
        failure
    }

    /// Joins failures, each of which has been printed; a document lists all of them. `None` if there are none.
    pub fn of_all(failures: &[Self]) -> Option<Self> {
        let first = failures.first()?;
        let fault = |failure: &Self| InputFault {
            message: failure.message.clone(),
            hints: failure.hints.clone(),
            object: failure.facts.object.as_ref().map(Key::to_string).unwrap_or_default(),
            place: None,
        };
        let mut all = Self::of_faults(first.kind, failures.iter().map(fault).collect());
        all.facts.object = first.facts.object.clone().filter(|_| failures.len() == 1);
        Some(all)
    }

    /// Returns the error document for programs; `None` if the message has been printed already and is not known here.
    pub fn document(&self) -> Option<ErrorDocument> {
        let (faults, object) = (&self.facts.faults, self.facts.object.as_ref());
        let is_unknown = faults.is_empty() && self.message.is_empty();
        (!is_unknown).then(|| ErrorDocument::new(self.report(), object, faults.clone()))
    }

    /// Returns the error for programs; of faults that were printed one by one, the first fault and the number of others.
    pub fn report(&self) -> ErrorReport {
        let (mut message, mut hints) = (self.message.clone(), self.hints.clone());
        let faults = &self.facts.faults;
        if let ([first, more @ ..], true) = (&faults[..], message.is_empty()) {
            message = match more.len() {
                0 => first.message.clone(),
                more => format!("{}; and {more} more", first.message),
            };
            hints = faults.iter().flat_map(|fault| fault.hints.clone()).collect();
        }
        ErrorReport {
            kind: self.kind.word(),
            exit_code: self.kind.exit_code(),
            message,
            hints,
            problem: self.facts.problem.as_deref().map(ReportedProblem::from),
            retry_after: self.facts.retry_after.map(Time::new),
        }
    }

    /// Adds a hint: a line that says what to do next.
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
        let mut failure = failed.next_steps.iter().fold(failure, Self::step);
        failure.facts.problem = failed.problem;
        failure
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
