//! What something waits for, and how that ended: what [`Progress`](super::progress::Progress) shows.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::model::{Kind, ObjectName, Time};

/// Names that are told of many.
pub(super) const NAMED: usize = 3;

/// Where something stands and what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What kind of thing waits.
    pub kind: Kind,
    /// What the object is called, where it is one.
    pub object: Option<ObjectName>,
    /// What people call it: `www.example.com`.
    pub label: String,
    /// The state in one word: `pending`.
    pub state: String,
    /// What is waited for, `waiting for a free slot`, or what stands in the way, in its own words.
    pub waits_for: String,
    /// The same in few words and without what belongs to this thing alone, by which many are summed up.
    pub in_short: String,
    /// Whether something stands in the way, which is said however short it stands there.
    pub is_obstacle: bool,
    /// Since when.
    pub since: Timestamp,
    /// The moment before which nothing will happen, where somebody has named one.
    pub until: Option<Timestamp>,
}

impl Wait {
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.state == other.state && self.waits_for == other.waits_for
    }

    /// Until when nothing will happen, where that is known.
    pub(super) fn until(&self) -> String {
        let until = self.until.map(|until| format!(" until {}", Time::new(until)));
        until.unwrap_or_default()
    }

    /// What is waited for, without saying again that it is; cert-manager's reasons begin with a capital.
    pub(super) fn bare(&self) -> &str {
        let starts = ["Waiting for ", "waiting for "];
        let bare = starts.iter().find_map(|start| self.waits_for.strip_prefix(start));
        bare.unwrap_or(&self.waits_for)
    }
}

/// How something ended.
#[derive(Clone, Copy, Debug)]
pub struct WaitEnd<'a> {
    /// What kind of thing it is.
    pub kind: Kind,
    /// What the object is called, where it is one.
    pub object: Option<&'a ObjectName>,
    /// What people call it.
    pub label: &'a str,
    /// The state in which it ended.
    pub state: &'a str,
    /// Why, where that is not said elsewhere; else empty.
    pub why: &'a str,
    /// Whether it ended as it should.
    pub is_good: bool,
}

/// Things that wait for the same.
pub(super) struct Group<'a> {
    pub(super) waits_for: &'a str,
    pub(super) labels: Vec<&'a str>,
}

impl Group<'_> {
    /// `connection refused: a.example, b.example, c.example and 34 more`.
    pub(super) fn in_words(&self) -> String {
        let mut names = self.labels.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        if self.labels.len() > NAMED {
            let _written = write!(names, " and {} more", self.labels.len() - NAMED);
        }
        format!("{}: {names}", self.waits_for)
    }
}
