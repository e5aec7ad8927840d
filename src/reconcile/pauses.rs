//! Pauses between two polls and between two self-checks.
//!
//! A Retry-After counts if it names a future moment. Otherwise the first poll comes after 50 ms, and each pause is half
//! of the elapsed time, up to 2 s; after the first minute a pause is one thirtieth of the elapsed time, up to a minute.
//! After ten seconds a Retry-After shorter than that pause does not count. A Retry-After of 0 or in the past never
//! counts: it would cause a storm of requests.

/// Largest lead of `since` over `now` that [`poll_at`] accepts; a larger one means that a clock was set back.
const CLOCK_LEAD_MAX: SignedDuration = SignedDuration::from_secs(10);

use jiff::{SignedDuration, Timestamp};

use crate::model::{Challenge, Time};

/// Longest pause between two polls in the first minute, unless the CA names one.
pub const POLL_PAUSE_MAX: SignedDuration = SignedDuration::from_secs(2);
/// Elapsed time up to which a Retry-After is followed to the second; later only one longer than our own pause counts.
const RETRY_AFTER_EXACT_FOR: SignedDuration = SignedDuration::from_secs(10);
/// Divisor of the elapsed time that gives the pause of a long poll.
const ELAPSED_DIVISOR: i32 = 30;
/// Longest pause between two polls, however long the operation lasts.
const PAUSE_MAX: SignedDuration = SignedDuration::from_secs(60);

/// Speed at which an order or authorization is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Fastest: nothing else is waited for.
    Eager,
    /// The order, while one of its challenges is kept from the CA: results of the other challenges must be noticed.
    Beside,
    /// The order, while one of its challenges is on its way to the CA, as far as is known.
    Patient,
    /// One of many authorizations, while the order is polled.
    Spare,
    /// The authorization of a challenge that the CA should have settled by now, while the order is polled.
    Overdue,
}

impl Pace {
    /// Returns the first and the longest pause.
    fn bounds(self) -> (SignedDuration, SignedDuration) {
        let (first, longest) = match self {
            Self::Eager => (50, POLL_PAUSE_MAX),
            Self::Beside => (500, SignedDuration::from_secs(10)),
            Self::Patient => (5_000, SignedDuration::from_secs(10)),
            Self::Spare => (2_000, SignedDuration::from_secs(30)),
            Self::Overdue => (5_000, SignedDuration::from_secs(30)),
        };
        (SignedDuration::from_millis(first), longest)
    }

    /// Returns the pause after a poll that found nothing new: half of the elapsed time, within bounds.
    fn pause(self, gone: SignedDuration) -> SignedDuration {
        let (first, longest) = self.bounds();
        (gone / 2).clamp(first, longest.max((gone / ELAPSED_DIVISOR).min(PAUSE_MAX)))
    }
}

/// Last poll of an order or authorization by this process; another process starts anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Moment of the poll.
    pub at: Timestamp,
    /// Earliest moment at which the CA wants to be asked again.
    pub retry_after: Option<Timestamp>,
}

/// Returns the moment of the next self-check after a failed one: 1, 2 and 5 s after the first failure, then every
/// `period`; cert-manager checks every 10 s from the start. Computed from the moment of presentation, so that a restart
/// forgets nothing.
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

/// Returns the moment of the next poll of something that began at `since`; `None` if the poll is due. A Retry-After
/// counts if it names a future moment, otherwise our own pace.
pub fn poll_at(
    since: Timestamp,
    polled: Option<Polled>,
    pace: Pace,
    now: Timestamp,
) -> Option<Timestamp> {
    let (first, longest) = pace.bounds();
    let after = |at: Timestamp, pause| at.saturating_add(pause).unwrap_or(at);
    // An action done beside this reading, or stamped by another clock, may be later than `now`. A moment far ahead
    // comes from a clock that was set back, and means nothing.
    let since = Some(since).filter(|since| since.duration_since(now) < CLOCK_LEAD_MAX);
    let next = match (polled.filter(|polled| polled.at <= now), since) {
        (None, None) => now,
        (None, Some(since)) => after(since, first),
        (Some(polled), None) => {
            polled.future_retry_after().unwrap_or_else(|| after(polled.at, longest))
        }
        // The operation began anew after the last poll.
        (Some(polled), Some(since)) if since > polled.at => {
            let own = after(since, first);
            polled.future_retry_after().map_or(own, |named| named.max(own))
        }
        (Some(polled), Some(since)) => {
            let gone = polled.at.duration_since(since);
            let own = after(polled.at, pace.pause(gone));
            match polled.future_retry_after() {
                Some(named) if gone <= RETRY_AFTER_EXACT_FOR => named,
                Some(named) => named.max(own),
                None => own,
            }
        }
    };
    (next > now).then_some(next)
}

impl Polled {
    /// Returns the moment that the CA named; `None` if it is not after the poll, so that our own pace applies.
    fn future_retry_after(self) -> Option<Timestamp> {
        self.retry_after.filter(|at| *at > self.at)
    }
}

/// Returns a Retry-After worth storing for another process; `None` if our own pace is as slow.
pub fn worth_keeping(retry_after: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    retry_after.filter(|at| at.duration_since(now) > POLL_PAUSE_MAX)
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

    /// Counts the polls of something that never ends, if each reply names so many seconds: in the first ten seconds, in
    /// the next ten, and in an hour.
    fn polls(pace: Pace, named: impl Fn(Timestamp) -> Option<Timestamp>) -> [usize; 3] {
        let (mut now, mut polled) = (at(0), None);
        let mut moments = Vec::new();
        while now < at(3600) {
            if let Some(next) = poll_at(at(0), polled, pace, now) {
                now = next;
                continue;
            }
            moments.push(now);
            assert!(moments.len() < 10_000, "a storm");
            polled = Some(Polled { at: now, retry_after: named(now) });
        }
        let within = |from, to| moments.iter().filter(|m| (at(from)..at(to)).contains(m)).count();
        [within(0, 10), within(10, 20), within(0, 3600)]
    }

    #[test]
    fn polls_come_ever_more_slowly_whatever_the_ca_says() {
        let after = |seconds: i64| move |now| Some(now + SignedDuration::from_secs(seconds));
        let ours = polls(Pace::Eager, |_| None);
        assert_eq!(ours, [14, 5, 172]);
        // At once, an hour ago, and for ever in the past.
        assert_eq!(polls(Pace::Eager, after(0)), ours);
        assert_eq!(polls(Pace::Eager, after(-3600)), ours);
        assert_eq!(polls(Pace::Eager, |_| Some(at(-1_000_000))), ours);
        // A second is heeded for a while, more than we would wait always.
        assert_eq!(polls(Pace::Eager, after(1))[..2], [10, 5]);
        assert_eq!(polls(Pace::Eager, after(5))[..2], [2, 2]);
        assert_eq!(polls(Pace::Eager, after(600)), [1, 0, 6]);
        assert_eq!(polls(Pace::Beside, |_| None)[..2], [7, 2]);
        assert_eq!(polls(Pace::Patient, |_| None)[..2], [1, 2]);
        assert_eq!(polls(Pace::Spare, |_| None)[..2], [4, 1]);
        assert_eq!(polls(Pace::Overdue, |_| None)[..2], [1, 2]);
    }

    #[test]
    fn what_begins_anew_is_polled_soon() {
        let soon = |second| Some(at(second) + SignedDuration::from_millis(50));
        let polled = |second, retry_after| Some(Polled { at: at(second), retry_after });
        assert_eq!(poll_at(at(9), None, Pace::Eager, at(9)), soon(9));
        assert_eq!(poll_at(at(9), polled(8, None), Pace::Eager, at(9)), soon(9));
        // What lies ahead is waited for once, and not again and again for a moment.
        assert_eq!(poll_at(at(14), None, Pace::Eager, at(9)), soon(14));
        assert_eq!(poll_at(at(14), polled(8, None), Pace::Eager, at(9)), soon(14));
        // Save where the CA wants to be left alone.
        assert_eq!(poll_at(at(9), polled(8, Some(at(30))), Pace::Eager, at(9)), Some(at(30)));
        assert_eq!(poll_at(at(9), polled(8, Some(at(7))), Pace::Eager, at(9)), soon(9));
    }

    #[test]
    fn a_clock_that_is_set_back_neither_stops_the_polls_nor_makes_a_storm() {
        let polled = Some(Polled { at: at(100), retry_after: None });
        assert_eq!(poll_at(at(99), polled, Pace::Eager, at(0)), None);
        let polled = Some(Polled { at: at(0), retry_after: None });
        assert_eq!(poll_at(at(99), polled, Pace::Eager, at(1)), Some(at(2)));
    }

    #[test]
    fn what_we_would_wait_anyhow_is_not_kept() {
        for (named, kept) in [(None, None), (Some(0), None), (Some(2), None), (Some(3), Some(3))] {
            assert_eq!(worth_keeping(named.map(at), at(0)), kept.map(at));
        }
    }
}
