//! Standby: checks who may drive, again and again, until the result is final, time is up, or a signal comes.

use std::time::Duration;

use jiff::Timestamp;

use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;

/// Result of one check.
#[derive(Debug)]
pub(super) enum StandbyState<T> {
    /// The result is final.
    Settled(T),
    /// Another process works, and its end is waited for.
    Held {
        /// Message to print once.
        line: String,
        /// Failure if time is up.
        refusal: Failure,
    },
    /// Another process was quicker; the next check shows which.
    Overtaken {
        /// Failure if time is up.
        refusal: Failure,
    },
}

/// Times and signals of a standby.
#[derive(Debug)]
pub(super) struct StandbyTimes<'a> {
    /// Time between two checks.
    pub gap: Duration,
    /// End of the standby; `None` if it has no end.
    pub deadline: Option<Timestamp>,
    /// Signals that end the standby.
    pub interrupted: &'a Interrupted,
}

impl StandbyTimes<'_> {
    /// Checks until the result is final. Every round without a final result ends with a pause, so that no answer of a server
    /// causes a storm of requests.
    ///
    /// # Errors
    /// Fails if a check fails, when time is up, or when interrupted.
    pub(super) async fn settle<T>(
        &self,
        tell: impl Fn(&str),
        mut look: impl AsyncFnMut() -> Result<StandbyState<T>, Failure>,
    ) -> Result<T, Failure> {
        let mut told = String::new();
        loop {
            let refusal = match look().await? {
                StandbyState::Settled(settled) => return Ok(settled),
                StandbyState::Overtaken { refusal } => refusal,
                StandbyState::Held { line, refusal } => {
                    if told != line {
                        tell(&line);
                        told = line;
                    }
                    refusal
                }
            };
            if self.deadline.is_some_and(|deadline| Timestamp::now() >= deadline) {
                return Err(refusal);
            }
            tokio::select! {
                () = tokio::time::sleep(self.gap) => {}
                kind = self.interrupted.wait() => return Err(Failure::interrupted(kind)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::diagnosis::verdict::failure_kind::FailureKind;

    fn held(who: &str) -> StandbyState<()> {
        StandbyState::Held { line: format!("{who} works"), refusal: refusal(who) }
    }

    fn overtaken() -> StandbyState<()> {
        StandbyState::Overtaken { refusal: refusal("another") }
    }

    fn refusal(who: &str) -> Failure {
        Failure::new(FailureKind::OwnedByAnother, format!("{who} does"))
    }

    /// Stands by until a signal comes after 10 s, which pass at once, with a check every second; the last result is repeated.
    async fn check(
        deadline: Option<Timestamp>,
        looks: &[fn() -> StandbyState<()>],
        (ended, told, count): (Result<(), &str>, &[&str], usize),
    ) {
        let interrupted = Interrupted::default();
        let patience =
            StandbyTimes { gap: Duration::from_secs(1), deadline, interrupted: &interrupted };
        let (lines, mut looked) = (RefCell::new(Vec::new()), 0);
        let standing_by = patience.settle(
            |line| lines.borrow_mut().push(line.to_owned()),
            async || {
                looked += 1;
                Ok(looks[(looked - 1).min(looks.len() - 1)]())
            },
        );
        let signal = async {
            tokio::time::sleep(Duration::from_millis(9_500)).await;
            interrupted.by_person.cancel();
            std::future::pending::<()>().await;
        };
        let result = tokio::select! {
            result = standing_by => result,
            () = signal => Ok(()),
        };
        let result = result.map_err(|failure| failure.message);
        assert_eq!(result.as_ref().copied().map_err(String::as_str), ended);
        assert_eq!(
            (lines.into_inner(), looked),
            (told.iter().map(|l| (*l).to_owned()).collect(), count)
        );
    }

    const INTERRUPTED: Result<(), &str> = Err("interrupted; everything so far is kept");

    #[tokio::test(start_paused = true)]
    async fn what_is_settled_ends_it() {
        check(None, &[overtaken, || StandbyState::Settled(())], (Ok(()), &[], 2)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_overtaken_every_time_pauses_and_heeds_a_signal() {
        check(None, &[overtaken], (INTERRUPTED, &[], 10)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_is_overtaken_every_time_heeds_the_deadline() {
        check(Some(Timestamp::MIN), &[overtaken], (Err("another does"), &[], 1)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn each_holder_is_told_once() {
        let looks: [fn() -> StandbyState<()>; 4] =
            [|| held("one"), || held("one"), overtaken, || held("two")];
        check(None, &looks, (INTERRUPTED, &["one works", "two works"], 10)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_is_told_before_time_is_up() {
        check(Some(Timestamp::MIN), &[|| held("one")], (Err("one does"), &["one works"], 1)).await;
    }
}
