//! How long to pause before another look.

use jiff::{SignedDuration, Timestamp};

use crate::model::{Challenge, Time};

/// The longest that we pause between two polls when the CA does not say.
pub const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(2);

/// Returns the moment of the next self-check after one that failed: 1, 2 and 5 s after the first failure, then every
/// `period` (product.md 5). Computed from when the answer was put up, so that a restart forgets nothing.
pub fn next_self_check(challenge: &Challenge, period: SignedDuration, now: Timestamp) -> Timestamp {
    let presented_at = challenge.status.presented_at.map_or(now, Time::timestamp);
    let pause = match now.duration_since(presented_at).as_secs() {
        ..1 => SignedDuration::from_secs(1),
        1..3 => SignedDuration::from_secs(2),
        3..8 => SignedDuration::from_secs(5),
        _ => period,
    };
    now.saturating_add(pause.min(period)).unwrap_or(now)
}

/// Returns the moment of the next poll of something that began at `since`, or none when it is due: Retry-After where the CA
/// gave one, else from 50 ms growing to 2 s.
pub fn poll_at(
    since: Timestamp,
    retry_after: Option<Timestamp>,
    now: Timestamp,
) -> Option<Timestamp> {
    retry_after.filter(|at| *at > now).or_else(|| {
        // The first poll comes 50 ms after the start; each pause is half of the time gone by.
        let first = since.saturating_add(SignedDuration::from_millis(50)).unwrap_or(since);
        (first > now).then_some(first)
    })
}

/// Returns how long to pause after a poll that found nothing new.
pub fn poll_pause(since: Timestamp, now: Timestamp) -> SignedDuration {
    let gone = now.duration_since(since);
    (gone / 2).clamp(SignedDuration::from_millis(50), LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing::{at, challenge};

    #[test]
    fn self_checks_come_quickly_at_first() {
        let presented =
            challenge("www.example.com").change(|c| c.status.presented_at = Some(at(10).into()));
        let (presented, period) = (presented.build(), SignedDuration::from_secs(10));
        for (second, expected) in [(10, 11), (11, 13), (13, 18), (18, 28), (100, 110)] {
            assert_eq!(next_self_check(&presented, period, at(second)), at(expected));
        }
    }
}
