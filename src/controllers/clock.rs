//! Clocks: the system's, or a test's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Clock that returns the time and waits.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the present moment.
    fn now(&self) -> Timestamp;

    /// Returns when this moment has come.
    async fn sleep_until(&self, at: Timestamp);
}

/// Largest lag of the system's clock behind this one; a clock that is further behind was set right.
const LAG_MAX: SignedDuration = SignedDuration::from_mins(1);

/// Clock of the system. Within a process it goes on even if the system's clock stands still or is set back a little: a
/// wait takes the intended time, and no longer. Waits are measured anew at least once a minute, so that a suspended
/// machine or a changed clock is noticed.
pub struct SystemClock {
    says: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    told: Mutex<Option<(Timestamp, Instant)>>,
}

impl SystemClock {
    /// Builds a clock over another source than the system's clock.
    pub fn over(says: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { says: Arc::new(says), told: Mutex::default() }
    }

    /// Returns the moment to report when the source says `says`, so long after the last report.
    fn after(told: Timestamp, elapsed: Duration, says: Timestamp) -> Timestamp {
        let goes_on = told.checked_add(elapsed).unwrap_or(says);
        if goes_on.duration_since(says) > LAG_MAX { says } else { says.max(goes_on) }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::over(Timestamp::now)
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemClock(..)")
    }
}

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let mut told = self.told.lock();
        // In this order: otherwise each call would advance the clock by the duration of a call.
        let instant = Instant::now();
        let says = (self.says)();
        let now = told.map_or(says, |(told, then)| Self::after(told, instant - then, says));
        *told = Some((now, instant));
        now
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.duration_since(self.now());
            if left.is_negative() || left.is_zero() {
                return;
            }
            let minute = Duration::from_mins(1);
            tokio::time::sleep(left.unsigned_abs().min(minute)).await;
        }
    }
}

/// Clock that follows tokio's: with a paused runtime, days pass in no time.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
    /// Builds a clock that starts at this moment.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now() }
    }
}

#[async_trait]
impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        self.epoch + self.start.elapsed()
    }

    async fn sleep_until(&self, at: Timestamp) {
        let left = at.duration_since(self.now());
        if !left.is_negative() {
            tokio::time::sleep(left.unsigned_abs()).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_when_the_clock_stands_still_or_is_set_back_a_little() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let told = at("2026-11-23T06:00:10Z");
        let check = |elapsed: u64, says: &str, expected: &str| {
            let now = SystemClock::after(told, Duration::from_secs(elapsed), at(says));
            assert_eq!(now, at(expected), "{elapsed} s later, {says}");
        };
        check(5, "2026-11-23T06:00:15Z", "2026-11-23T06:00:15Z");
        check(5, "2026-11-23T06:00:10Z", "2026-11-23T06:00:15Z");
        check(5, "2026-11-23T06:00:05Z", "2026-11-23T06:00:15Z");
        check(5, "2026-11-23T07:00:15Z", "2026-11-23T07:00:15Z");
        check(5, "2026-11-23T05:00:15Z", "2026-11-23T05:00:15Z");
    }
}
