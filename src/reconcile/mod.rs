//! What to do next: one pure machine per resource.
//!
//! Every machine has the same five names: `Observed`, `Action`, `Outcome`, `next_action` and `record`.
//! `next_action(resource, observed, now)` returns one action as a value; a controller performs it;
//! `record(resource, outcome, now)` folds what came of it into a new status, memory and notes. Nothing else decides.
#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

pub mod certificate;
pub mod challenge;
mod challenge_facts;
pub mod challenge_outcome;
pub mod differences;
pub mod facts;
pub mod ingress_shim;
pub mod issuer;
pub mod lingering;
pub mod order;
pub mod pauses;
pub mod policy;
pub mod published;
pub mod record_values;
pub mod renewal;
pub mod renewal_info;
pub mod request;
pub mod schedule;
pub mod secret_content;
pub mod shown;
pub mod solver_choice;
#[cfg(test)]
pub(crate) mod testing;
mod validation_retry;
pub mod visible;

use std::borrow::Cow;

use jiff::Timestamp;

use crate::model::memory::Memory;
use crate::model::{Problem, Severity};

/// When to look at an object again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// At once: this step is done, there may be another.
    Now,
    /// At that moment, or when something changes before.
    At(Timestamp),
    /// When something changes.
    OnChange,
}

impl Wake {
    /// The same, or that moment if it comes first.
    #[must_use]
    pub fn or_at(self, at: Timestamp) -> Self {
        match self {
            Self::Now => Self::Now,
            Self::At(known) => Self::At(known.min(at)),
            Self::OnChange => Self::At(at),
        }
    }
}

/// What a machine folds an outcome into.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded<S> {
    /// The whole new status.
    pub status: S,
    /// The whole new memory; written before the status.
    pub memory: Memory,
    /// What happened, for the timeline.
    pub notes: Vec<Note>,
}

/// Something that happened; becomes an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// How bad it is.
    pub severity: Severity,
    /// One of [`crate::model::event::reason`], or the free word of whoever denied a request.
    pub reason: Cow<'static, str>,
    /// A sentence.
    pub message: String,
    /// One of [`crate::model::event::source`].
    pub source: &'static str,
}

impl Note {
    /// As it should be.
    pub fn normal(source: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Normal,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            source,
        }
    }

    /// Somebody should look.
    pub fn warning(source: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::normal(source, reason, message) }
    }
}

/// Before the moment that a CA has named, at the end of a reason.
const NEXT_TRY: &str = "; next try at ";

/// A reason but for the moment of the next try at its end, which is another one after each try.
pub fn without_moment(reason: &str, next_try: Option<Timestamp>) -> &str {
    let end = next_try.map(|at| format!("{NEXT_TRY}{at:.0}"));
    end.and_then(|end| reason.strip_suffix(&end)).unwrap_or(reason)
}

/// A request that the CA did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It will not: only a change helps.
    Final(Box<Problem>),
    /// Not now: it named the moment from which another try makes sense.
    Until(Box<Problem>, Timestamp),
}
