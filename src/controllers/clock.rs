//! The time: the system's, or a test's.

use std::fmt;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::time::Instant;

/// Tells the time and waits for it.
#[async_trait]
pub trait Clock: fmt::Debug + Send + Sync {
    /// The moment it is.
    fn now(&self) -> Timestamp;

    /// Returns when that moment has come.
    async fn sleep_until(&self, at: Timestamp);
}

/// The system's clock; waits are measured anew at least once a minute, so that a suspended machine or a changed clock is noticed.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep_until(&self, at: Timestamp) {
        loop {
            let left = at.duration_since(self.now());
            if left.is_negative() || left.is_zero() {
                return;
            }
            let minute = std::time::Duration::from_mins(1);
            tokio::time::sleep(left.unsigned_abs().min(minute)).await;
        }
    }
}

/// A clock that follows tokio's: with a paused runtime, days pass in no time.
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: Timestamp,
    start: Instant,
}

impl TokioClock {
    /// Starts the clock at that moment.
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
