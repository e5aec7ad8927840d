//! Decision logic: one pure state machine per resource.
//!
//! Every machine has the same five names: `Observed`, `Action`, `Outcome`, `next_action` and `record`.
//! `next_action(resource, observed, now)` returns one action as a value; a controller performs it;
//! `record(resource, outcome, now)` folds its outcome into new status, memory and notes. No other code decides.
#![deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::wildcard_enum_match_arm)]

pub mod certificate;
pub mod challenge;
pub mod challenge_outcome;
pub mod differences;
pub mod dns01_visible;
pub mod facts;
pub mod http01_visible;
pub mod ingress_shim;
pub mod issuer;
pub mod lingering;
pub mod order;
pub mod pauses;
pub mod policy;
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

use std::borrow::Cow;

use jiff::Timestamp;

use crate::model::memory::Memory;
use crate::model::{Problem, Severity};

/// Time at which an object is reconciled again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Immediate wake: this step is done, and another may follow.
    Now,
    /// Wake at this moment, or earlier if something changes.
    At(Timestamp),
    /// Wake when something changes.
    OnChange,
}

impl Wake {
    /// Returns the earlier of this wake and the given moment.
    #[must_use]
    pub fn or_at(self, at: Timestamp) -> Self {
        match self {
            Self::Now => Self::Now,
            Self::At(known) => Self::At(known.min(at)),
            Self::OnChange => Self::At(at),
        }
    }
}

/// Result of `record`: the values that a controller writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded<S> {
    /// The whole new status.
    pub status: S,
    /// The whole new memory; written before the status.
    pub memory: Memory,
    /// Notes of what happened, for the timeline.
    pub notes: Vec<Note>,
}

/// Occurrence worth recording; becomes an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Severity of the occurrence.
    pub severity: Severity,
    /// Reason from [`crate::model::event::reason`], or the free word with which a request was denied.
    pub reason: Cow<'static, str>,
    /// Human-readable sentence.
    pub message: String,
    /// Source from [`crate::model::event::source`].
    pub source: &'static str,
}

impl Note {
    /// Builds a note of normal severity.
    pub fn normal(source: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Normal,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            source,
        }
    }

    /// Builds a warning: a note that needs attention.
    pub fn warning(source: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::normal(source, reason, message) }
    }
}

/// Text between a reason and the moment of the next try that a CA has named.
const NEXT_TRY: &str = "; next try at ";

/// Returns a reason without the moment of the next try at its end, which changes with each try.
pub fn without_moment(reason: &str, next_try: Option<Timestamp>) -> &str {
    let end = next_try.map(|at| format!("{NEXT_TRY}{at:.0}"));
    end.and_then(|end| reason.strip_suffix(&end)).unwrap_or(reason)
}

/// A request that the CA did not carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Permanent refusal: only a change helps.
    Final(Box<Problem>),
    /// Temporary refusal: the CA named the moment from which another try makes sense.
    Until(Box<Problem>, Timestamp),
}
