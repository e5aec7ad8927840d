//! How long to pause before another look.
//!
//! A Retry-After counts where it names a moment to come. Else the first poll comes after 50 ms, and each pause is half
//! of the time gone by, up to 2 s; after the first minute it is one part in thirty of that time, up to a minute. After
//! ten seconds a Retry-After that is shorter than this does not count. One of 0 or in the past never does: it would
//! make a storm of requests.

/// So much later than a look what is done beside it may be.
const BESIDE: SignedDuration = SignedDuration::from_secs(10);

use jiff::{SignedDuration, Timestamp};

use crate::model::{Challenge, Time};

/// The longest that we pause between two polls in the first minute, when the CA does not say.
pub const LONGEST_PAUSE: SignedDuration = SignedDuration::from_secs(2);
/// What the CA says is heeded to the second at first; after that time only where it asks for more patience than we have.
const AT_FIRST: SignedDuration = SignedDuration::from_secs(10);
/// What lasts is asked about after one part in so many of the time gone by.
const PART: i32 = 30;
/// The longest pause between two polls, however long it lasts.
const AT_LAST: SignedDuration = SignedDuration::from_secs(60);

/// How eagerly something is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Nothing else is waited for.
    Eager,
    /// The order, while one of its challenges is kept from the CA: what the CA says of the others must be heard.
    Beside,
    /// The order, while one of its challenges is on its way to the CA, as far as anybody knows.
    Patient,
    /// One of many authorizations, while the order is polled.
    Spare,
    /// The authorization of a challenge that the CA should have settled by now, while the order is polled.
    Overdue,
}

impl Pace {
    /// The first pause, and the longest.
    fn bounds(self) -> (SignedDuration, SignedDuration) {
        let (first, longest) = match self {
            Self::Eager => (50, LONGEST_PAUSE),
            Self::Beside => (500, SignedDuration::from_secs(10)),
            Self::Patient => (5_000, SignedDuration::from_secs(10)),
            Self::Spare => (2_000, SignedDuration::from_secs(30)),
            Self::Overdue => (5_000, SignedDuration::from_secs(30)),
        };
        (SignedDuration::from_millis(first), longest)
    }

    /// How long to pause after a poll that found nothing new: half of the time gone by.
    fn pause(self, gone: SignedDuration) -> SignedDuration {
        let (first, longest) = self.bounds();
        (gone / 2).clamp(first, longest.max((gone / PART).min(AT_LAST)))
    }
}

/// The last poll of something by this process; another one begins anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// When.
    pub at: Timestamp,
    /// Not before this moment does the CA want to be asked again.
    pub retry_after: Option<Timestamp>,
}

/// Returns the moment of the next self-check after one that failed: 1, 2 and 5 s after the first failure, then every
/// `period`, where cert-manager looks every 10 s from the start. Computed from when the answer was put up, so that a
/// restart forgets nothing.
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
/// named a moment to come, else at our own pace.
pub fn poll_at(
    since: Timestamp,
    polled: Option<Polled>,
    pace: Pace,
    now: Timestamp,
) -> Option<Timestamp> {
    let (first, longest) = pace.bounds();
    let after = |at: Timestamp, pause| at.saturating_add(pause).unwrap_or(at);
    // What was done beside this look may be later than it, as may what another clock tells; one that was set back has nothing to
    // say of what came before.
    let since = Some(since).filter(|since| since.duration_since(now) < BESIDE);
    let next = match (polled.filter(|polled| polled.at <= now), since) {
        (None, None) => now,
        (None, Some(since)) => after(since, first),
        (Some(polled), None) => polled.named().unwrap_or_else(|| after(polled.at, longest)),
        // It has begun anew.
        (Some(polled), Some(since)) if since > polled.at => {
            let own = after(since, first);
            polled.named().map_or(own, |named| named.max(own))
        }
        (Some(polled), Some(since)) => {
            let gone = polled.at.duration_since(since);
            let own = after(polled.at, pace.pause(gone));
            match polled.named() {
                Some(named) if gone <= AT_FIRST => named,
                Some(named) => named.max(own),
                None => own,
            }
        }
    };
    (next > now).then_some(next)
}

impl Polled {
    /// The moment that the CA named. None in the past is one: whatever it says, we ask at our own pace.
    fn named(self) -> Option<Timestamp> {
        self.retry_after.filter(|at| *at > self.at)
    }
}

/// What a CA's Retry-After is worth to another process: nothing where our own pace is as slow.
pub fn worth_keeping(retry_after: Option<Timestamp>, now: Timestamp) -> Option<Timestamp> {
    retry_after.filter(|at| at.duration_since(now) > LONGEST_PAUSE)
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

    /// How often something is polled that never comes to an end, from its first second on, when each answer names that
    /// many seconds: in the first ten seconds, in the ten after them, and in an hour.
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
