//! What stands in the cells of a timeline: moments, lengths, and how often something was told.

use jiff::{SignedDuration, Timestamp};

use super::{Entry, Repeats};
use crate::model::event_times::Grain;
use crate::model::{Duration, Time};

/// `(x3)` after an event that was told again at once, `(first of 3)` and `(last of 3, over 2m59s)` after one that was told again
/// later, `(said by 5 controllers)` after one that several wrote.
pub(super) fn again(entry: &Entry) -> String {
    match (entry.repeats, entry.sources.len()) {
        (Repeats::FirstOf(count), _) => format!(" (first of {count})"),
        (Repeats::LastOf(count), _) => {
            let over = whole(entry.at.duration_since(entry.first));
            format!(" (last of {count}, over {over})")
        }
        (Repeats::Times(count), _) if count > 1 => format!(" (x{count})"),
        (Repeats::Times(_), 0 | 1) => String::new(),
        (Repeats::Times(_), several) => format!(" (said by {several} controllers)"),
    }
}

pub(super) fn moment(at: Timestamp, measure: Grain) -> String {
    match measure {
        Grain::Fine => format!("{at:.3}"),
        Grain::Second => Time::new(at).to_string(),
    }
}

/// A length of time as it was measured: `412ms`, `5.9s`, `16m40s`.
pub(super) fn length(length: SignedDuration) -> String {
    Duration(length).to_string()
}

/// The same by whole seconds.
fn whole(length: SignedDuration) -> String {
    Duration::from_secs(length.as_secs()).to_string()
}
