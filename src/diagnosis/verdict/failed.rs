//! Failed outcome of the wait for an object.

use jiff::Timestamp;

use super::caa_refusal::CaaRefusal;
use super::failure_kind::FailureKind;
use super::next_step::NextStep;
use crate::model::Problem;

/// Failure that only a change can end.
#[derive(Debug)]
pub struct Failed {
    /// Kind of the failure.
    pub kind: FailureKind,
    /// Message that names the object, the fault and the reason.
    pub message: String,
    /// Steps that help, if any is known.
    pub next_steps: Vec<NextStep>,
    /// Problem that the CA sent, if the CA has refused something.
    pub problem: Option<Box<Problem>>,
    /// Order that failed, if any.
    pub order: Option<Tried>,
    /// Refusal because of CAA records, if that is the cause: the CA can be asked for more.
    pub excluded: Option<Box<CaaRefusal>>,
}

impl Failed {
    /// Builds a failure without a step that helps.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let (message, next_steps) = (message.into(), Vec::new());
        Self { kind, message, next_steps, problem: None, order: None, excluded: None }
    }

    /// Adds the CA's problem to the failure, if there is a problem.
    #[must_use]
    pub fn told_by(mut self, problem: Option<Problem>) -> Self {
        self.problem = problem.map(Box::new);
        self
    }

    /// Adds a step that helps to the failure, if there is a step.
    #[must_use]
    pub fn helped_by(mut self, step: impl Into<Option<NextStep>>) -> Self {
        self.next_steps.extend(step.into());
        self
    }
}

/// Order that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// UID.
    pub uid: String,
    /// Name, in the namespace of the order's Certificate.
    pub name: String,
    /// Time when the CA was last sent an answer or a signing request of the order, if known.
    pub last_deed: Option<Timestamp>,
}
