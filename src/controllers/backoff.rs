//! When a look that failed is tried again.
//!
//! An obstacle that only a person can remove is looked at again after ten minutes, since `run` hears nothing of a name
//! that was mended in DNS; a missing permission, port or Ingress after 30 s, because that look asks nobody outside.

use jiff::{SignedDuration, Timestamp};

use super::ReconcileError;
use super::work_queue::{Heard, SHORT_PAUSE};
use crate::acme::error::Retry;

/// When an obstacle is looked at again that only a person can remove.
const PERSON_PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// When such an obstacle is looked at again where looking costs the world nothing: a permission, a port, an Ingress that is missing.
const PERSON_NEARBY_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// Shortest pause before a moment that somebody has named.
const LEAST_NAMED_PAUSE: SignedDuration = SignedDuration::from_millis(100);
/// The pause when somebody else was quicker.
const LOST_RACE_PAUSE: SignedDuration = SignedDuration::from_millis(5);
/// So often in a row somebody else may be quicker; more often than that is an obstacle.
const MOST_LOST_RACES: u32 = 10;
/// Longest pause that nobody has named.
const LONGEST: SignedDuration = SignedDuration::from_secs(30);

/// When the next try comes, after so many that failed.
pub(super) fn next_try(
    error: &ReconcileError,
    tries: u32,
    heard: Heard,
    now: Timestamp,
) -> Timestamp {
    match error.retry() {
        // Whoever deletes an object does not wait until the CA can be asked again.
        _ if heard == Heard::Wish => now,
        Retry::At(at) => at.max(now + LEAST_NAMED_PAUSE),
        Retry::Backoff => now + doubling(SHORT_PAUSE, tries),
        // Whatever changed while we looked may be just what was missing, or an answer to what we did; each look may change it.
        Retry::Never if heard > Heard::Nothing => now + doubling(SHORT_PAUSE, tries),
        // A person may mend what no change here tells of: a name in DNS, the server itself.
        Retry::Never => match error {
            ReconcileError::Solve(_)
            | ReconcileError::Store(_)
            | ReconcileError::Annotation(_)
            | ReconcileError::Keystore(_)
            | ReconcileError::NameConflict(_) => now + PERSON_NEARBY_PAUSE,
            ReconcileError::Acme(_)
            | ReconcileError::Missing(_)
            | ReconcileError::OverBudget(_)
            | ReconcileError::Panicked => now + PERSON_PAUSE,
        },
    }
}

/// The pause after somebody else was quicker so many times in a row, and whether that is an obstacle by now.
pub(super) fn race(times: u32) -> (SignedDuration, bool) {
    match times.saturating_sub(MOST_LOST_RACES) {
        0 => (LOST_RACE_PAUSE, false),
        more => (doubling(LOST_RACE_PAUSE, more), true),
    }
}

/// That pause, doubled with each time.
fn doubling(first: SignedDuration, times: u32) -> SignedDuration {
    (first * (1 << times.saturating_sub(1).min(16))).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::at;
    use crate::store::cluster::ClusterFault;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let seconds = |tries| doubling(SHORT_PAUSE, tries).as_secs();
        assert_eq!([1, 2, 5, 6, u32::MAX].map(seconds), [1, 2, 16, 30, 30]);
    }

    #[test]
    fn what_a_look_changes_itself_does_not_bring_the_next_one_each_second() {
        let (resource, said) = ("orders.acme.cert-manager.io".to_owned(), "no".to_owned());
        let denied = ClusterFault::Forbidden { verb: "update", resource, namespace: None, said };
        let error = ReconcileError::Store(denied.into());
        let pause = |heard, tries| (next_try(&error, tries, heard, at(0)) - at(0)).get_seconds();
        assert_eq!([1, 2, 9].map(|tries| pause(Heard::Progress, tries)), [1, 2, 30]);
        assert_eq!(pause(Heard::Wish, 9), 0);
        assert_eq!(pause(Heard::Nothing, 9), 30);
    }

    #[test]
    fn whoever_is_outrun_again_and_again_waits_longer_and_says_so() {
        assert_eq!([1, MOST_LOST_RACES].map(race), [(LOST_RACE_PAUSE, false); 2]);
        assert_eq!(race(MOST_LOST_RACES + 1), (LOST_RACE_PAUSE, true));
        assert_eq!(race(MOST_LOST_RACES + 3), (LOST_RACE_PAUSE * 4, true));
        assert_eq!(race(u32::MAX), (LONGEST, true));
    }
}
