//! Cells of a timeline: moments, lengths, and repetitions of events.

use jiff::{SignedDuration, Timestamp};

use super::{Entry, Repeats};
use crate::model::event_times::Grain;
use crate::model::{Duration, Time};

/// Describes the repetitions of an event: `(x3)` for repetitions at once, `(first of 3)` and `(last of 3,
/// over 2m59s)` for later repetitions, `(said by 5 controllers)` for an event that several controllers wrote.
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

/// Writes a length of time as measured: `412ms`, `5.9s`, `16m40s`.
pub(super) fn length(length: SignedDuration) -> String {
    Duration(length).to_string()
}

/// Writes a length of time in whole seconds.
fn whole(length: SignedDuration) -> String {
    Duration::from_secs(length.as_secs()).to_string()
}
