//! Pauses before a failed reconcile is tried again.
//!
//! An obstacle that only a person can remove is tried again after ten minutes, since `run` gets no event when a name is
//! mended in DNS; a missing permission, port or Ingress after 30 s, because that try sends no request outside.

use jiff::{SignedDuration, Timestamp};

use super::ReconcileError;
use super::work_queue::{News, SHORT_PAUSE};
use crate::acme::error::Retry;

/// Pause before another try at an obstacle that only a person can remove.
const PERSON_PAUSE: SignedDuration = SignedDuration::from_mins(10);
/// Pause before another try at such an obstacle without outside requests: a missing permission, port or Ingress.
const PERSON_NEARBY_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// Shortest pause before a moment that a CA or provider has named.
const NAMED_PAUSE_MIN: SignedDuration = SignedDuration::from_millis(100);
/// Pause after another writer was quicker.
const LOST_RACE_PAUSE: SignedDuration = SignedDuration::from_millis(5);
/// Number of lost races in a row that are tolerated; more are an obstacle.
const LOST_RACES_MAX: u32 = 10;
/// Longest pause that this program chooses by itself.
const PAUSE_MAX: SignedDuration = SignedDuration::from_secs(30);

/// Returns the moment of the next try, after `tries` failed ones.
pub(super) fn next_try(
    error: &ReconcileError,
    tries: u32,
    heard: News,
    now: Timestamp,
) -> Timestamp {
    match error.retry() {
        // The deletion of an object does not wait until the CA can be asked again.
        _ if heard == News::Wish => now,
        Retry::At(at) => at.max(now + NAMED_PAUSE_MIN),
        Retry::Backoff => now + doubling(SHORT_PAUSE, tries),
        // A change during the reconcile may be what was missing, or a reaction to it; each reconcile may change it.
        Retry::Never if heard > News::Nothing => now + doubling(SHORT_PAUSE, tries),
        // A person may mend what causes no change here: a name in DNS, the server itself.
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

/// Returns the pause after `times` lost races in a row, and whether the races are an obstacle by now.
pub(super) fn race(times: u32) -> (SignedDuration, bool) {
    match times.saturating_sub(LOST_RACES_MAX) {
        0 => (LOST_RACE_PAUSE, false),
        more => (doubling(LOST_RACE_PAUSE, more), true),
    }
}

/// Returns the first pause, doubled with each time.
fn doubling(first: SignedDuration, times: u32) -> SignedDuration {
    (first * (1 << times.saturating_sub(1).min(16))).min(PAUSE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::at;
    use crate::store::cluster_fault::ClusterFault;

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
        assert_eq!([1, 2, 9].map(|tries| pause(News::Progress, tries)), [1, 2, 30]);
        assert_eq!(pause(News::Wish, 9), 0);
        assert_eq!(pause(News::Nothing, 9), 30);
    }

    #[test]
    fn whoever_is_outrun_again_and_again_waits_longer_and_says_so() {
        assert_eq!([1, LOST_RACES_MAX].map(race), [(LOST_RACE_PAUSE, false); 2]);
        assert_eq!(race(LOST_RACES_MAX + 1), (LOST_RACE_PAUSE, true));
        assert_eq!(race(LOST_RACES_MAX + 3), (LOST_RACE_PAUSE * 4, true));
        assert_eq!(race(u32::MAX), (PAUSE_MAX, true));
    }
}
