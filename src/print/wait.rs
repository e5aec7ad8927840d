//! Waits and their ends, as [`Progress`](super::progress::Progress) shows them.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::model::{Kind, ObjectName, Time};

/// Most names listed of many.
pub(super) const MAX_NAMES_LISTED: usize = 3;

/// State of an object, and its reason for waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Kind of the object.
    pub kind: Kind,
    /// Name of the object, if the wait has one.
    pub object: Option<ObjectName>,
    /// Name that people use: `www.example.com`.
    pub label: String,
    /// The state in one word: `pending`.
    pub state: String,
    /// Reason for waiting, `waiting for a free slot`, or the obstacle, in its own words.
    pub waits_for: String,
    /// Reason for waiting in few words, without details of this object alone, by which many waits are summed up.
    pub in_short: String,
    /// Whether there is an obstacle, which is reported however short it lasts.
    pub is_obstacle: bool,
    /// Start of the wait.
    pub since: Timestamp,
    /// Time before which nothing will happen, if known.
    pub until: Option<Timestamp>,
}

impl Wait {
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.state == other.state && self.waits_for == other.waits_for
    }

    /// Describes the time before which nothing will happen; empty if unknown.
    pub(super) fn until(&self) -> String {
        let until = self.until.map(|until| format!(" until {}", Time::new(until)));
        until.unwrap_or_default()
    }

    /// Returns the reason without the words `waiting for`; cert-manager's reasons begin with a capital.
    pub(super) fn bare(&self) -> &str {
        let starts = ["Waiting for ", "waiting for "];
        let bare = starts.iter().find_map(|start| self.waits_for.strip_prefix(start));
        bare.unwrap_or(&self.waits_for)
    }
}

/// End of a wait.
#[derive(Clone, Copy, Debug)]
pub struct WaitEnd<'a> {
    /// Kind of the object.
    pub kind: Kind,
    /// Name of the object, if the wait has one.
    pub object: Option<&'a ObjectName>,
    /// Name that people use.
    pub label: &'a str,
    /// State in which the wait ended.
    pub state: &'a str,
    /// Reason for the end; empty if the reason is reported elsewhere.
    pub why: &'a str,
    /// Whether the wait ended well.
    pub is_good: bool,
}

/// Waits with the same reason.
pub(super) struct Group<'a> {
    pub(super) waits_for: &'a str,
    pub(super) labels: Vec<&'a str>,
}

impl Group<'_> {
    /// Describes the group: `connection refused: a.example, b.example, c.example and 34 more`.
    pub(super) fn in_words(&self) -> String {
        let mut names =
            self.labels.iter().take(MAX_NAMES_LISTED).copied().collect::<Vec<_>>().join(", ");
        if self.labels.len() > MAX_NAMES_LISTED {
            let _written = write!(names, " and {} more", self.labels.len() - MAX_NAMES_LISTED);
        }
        format!("{}: {names}", self.waits_for)
    }
}
