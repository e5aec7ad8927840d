//! How the wait for an object ends badly.

use jiff::Timestamp;

use super::caa::CaaRefusal;
use super::failure_kind::FailureKind;
use super::next_step::NextStep;
use crate::model::Problem;

/// Why only a change helps.
#[derive(Debug)]
pub struct Failed {
    /// Sort.
    pub kind: FailureKind,
    /// What failed for which object, and why.
    pub message: String,
    /// What helps, if that is known.
    pub next_steps: Vec<NextStep>,
    /// The CA's own words, where it has refused something.
    pub problem: Option<Box<Problem>>,
    /// The order that failed, if one did.
    pub order: Option<Tried>,
    /// Set where CAA records keep the CA from issuing: it may know more.
    pub excluded: Option<Box<CaaRefusal>>,
}

impl Failed {
    /// A failure against which nothing is known to help.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        let (message, next_steps) = (message.into(), Vec::new());
        Self { kind, message, next_steps, problem: None, order: None, excluded: None }
    }

    /// The same failure with what the CA said, if that is known.
    #[must_use]
    pub fn told_by(mut self, problem: Option<Problem>) -> Self {
        self.problem = problem.map(Box::new);
        self
    }

    /// The same failure with something more that helps, where there is any.
    #[must_use]
    pub fn helped_by(mut self, step: impl Into<Option<NextStep>>) -> Self {
        self.next_steps.extend(step.into());
        self
    }
}

/// An order that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// UID.
    pub uid: String,
    /// Name, in the namespace of its Certificate.
    pub name: String,
    /// When the CA was last given an answer or a signing request of it, as far as is known.
    pub last_deed: Option<Timestamp>,
}
