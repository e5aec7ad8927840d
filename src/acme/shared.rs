//! One request for all callers that wait for its answer.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use super::error::AcmeError;

/// Last outcome of a request. A good outcome is kept; a bad outcome is shared by the callers that waited for it, so
/// that a hundred requests to a dead CA do not each wait their own time-out in line.
pub(super) struct Shared<T>(Mutex<Option<(Instant, Result<T, AcmeError>)>>);

impl<T: Clone> Shared<T> {
    /// Makes a cell without an outcome.
    pub(super) fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Returns the answer if it is younger than `good_for` and came after `since` (if given); else awaits `ask`.
    pub(super) async fn get(
        &self,
        good_for: Duration,
        since: Option<Instant>,
        ask: impl Future<Output = Result<T, AcmeError>>,
    ) -> Result<T, AcmeError> {
        let waiting_since = Instant::now();
        let mut last = self.0.lock().await;
        match last.as_ref() {
            Some((at, Ok(answer)))
                if at.elapsed() < good_for && since.is_none_or(|since| *at > since) =>
            {
                return Ok(answer.clone());
            }
            Some((at, Err(error))) if *at > waiting_since => return Err(error.clone()),
            Some(_) | None => {}
        }
        let outcome = ask.await;
        *last = Some((Instant::now(), outcome.clone()));
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::acme::error::Fault;

    const DAY: Duration = Duration::from_hours(24);

    /// Asks five times at once, then once more after a while; counts how often the question was put.
    async fn check(outcome: Result<u8, AcmeError>, later: Duration, asked: u32) {
        let shared = Shared::new();
        let count = Cell::new(0);
        let ask = || async {
            count.set(count.get() + 1);
            tokio::time::sleep(Duration::from_secs(10)).await;
            outcome.clone()
        };
        let answers =
            futures_util::future::join_all((0..5).map(|_| shared.get(DAY, None, ask()))).await;
        assert!(answers.iter().all(|answer| answer.is_ok() == outcome.is_ok()));
        tokio::time::sleep(later).await;
        assert_eq!(shared.get(DAY, None, ask()).await.is_ok(), outcome.is_ok());
        assert_eq!(count.get(), asked);
    }

    #[tokio::test(start_paused = true)]
    async fn a_good_answer_is_kept_and_a_bad_one_only_shared() {
        let error = AcmeError::Transport {
            deed: "read",
            url: String::new(),
            why: String::new(),
            fault: Fault::Passing,
        };
        check(Ok(1), Duration::from_secs(1), 1).await;
        check(Ok(1), DAY, 2).await;
        check(Err(error), Duration::from_secs(1), 2).await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_from_before_is_asked_for_again_by_one_for_all() {
        let shared = Shared::new();
        let count = Cell::new(0);
        let ask = || async {
            count.set(count.get() + 1);
            tokio::time::sleep(Duration::from_secs(10)).await;
            Ok(count.get())
        };
        shared.get(DAY, None, ask()).await.unwrap();
        let since = Some(Instant::now());
        let answers = (0..5).map(|_| shared.get(DAY, since, ask()));
        for answer in futures_util::future::join_all(answers).await {
            assert_eq!(answer.unwrap(), 2);
        }
    }
}
