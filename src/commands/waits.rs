//! What a challenge waits for, in words: the same ones in the schedule and in the progress of whoever waits.

use std::fmt;

use crate::model::memory::{Holder, Memory};
use crate::model::{Challenge, State};
use crate::reconcile::schedule::Waits;

/// What a challenge waits for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wait<'a> {
    /// In the queue.
    Queue(Waits),
    /// Running, and its status says why.
    Reason(&'a str),
    /// Running: our answer has to be put up.
    Answer,
    /// Running: our own look at the answer.
    SelfCheck,
    /// Running: the CA's look.
    Authority,
    /// Running, and final: our answer has to be taken down.
    CleanUp,
}

impl fmt::Display for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(Waits::Slot { .. }) => f.write_str("a free slot"),
            Self::Queue(Waits::Lock { holder }) => write!(f, "challenge {holder}"),
            Self::Queue(Waits::Nothing) => f.write_str("nothing, it starts next"),
            Self::Reason(reason) => f.write_str(reason),
            Self::Answer => f.write_str("its answer to be put up"),
            Self::SelfCheck => f.write_str("its self-check"),
            Self::Authority => f.write_str("the CA's validation"),
            Self::CleanUp => f.write_str("its answer to be taken down"),
        }
    }
}

impl<'a> Wait<'a> {
    /// What a challenge that has its slot waits for.
    pub fn of_running(challenge: &'a Challenge) -> Self {
        let status = &challenge.status;
        let memory = Memory::read(Holder::Challenge, &challenge.metadata.annotations);
        if status.state.is_some_and(State::is_final) {
            return Self::CleanUp;
        }
        match status.reason.as_str() {
            "" if memory.accepted_at.is_some() => Self::Authority,
            "" if status.presented => Self::SelfCheck,
            "" => Self::Answer,
            reason => Self::Reason(reason),
        }
    }
}
