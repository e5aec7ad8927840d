//! Pace of requests to one CA: how many are in flight at once, and how many go out a second.
//!
//! A request waits here for its turn and no longer: for a place among the requests in flight and, at a CA that
//! publishes its rates, for the moment at which the CA's front takes one more. The wait is part of sending, as is the
//! turn to fetch a nonce; pauses after a refusal are up to the caller. A request that waits behind requests that a CA
//! leaves unanswered is not sent after them: their fault is also the fault of the waiting request.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep_until};

use super::error::AcmeError;
use crate::http::exchange::Reply;
use crate::model::request_rates::{Endpoint, Rate, RequestRates};

/// Most signed requests in flight at one CA. The store of Pebble 2.10 locks up at some 250.
pub(super) const IN_FLIGHT_MAX: usize = 32;
/// Rate of newNonce at a CA that publishes no rates, while no answer brings a nonce. A CA that refuses many nonces
/// would be asked for nonces without end.
const NONCES_OF_ANY_CA: Rate = Rate { per_second: 20, burst: 10 };
/// Time after an answer of the CA within which a fault counts as that of one request, not of the CA.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The pace of one CA.
pub(super) struct Pace {
    places: Semaphore,
    rates: Option<&'static RequestRates>,
    buckets: [TokenBucket; Endpoint::ALL.len()],
    last: Mutex<LastOutcomes>,
}

/// The last outcomes of requests that had a place.
#[derive(Default)]
struct LastOutcomes {
    answered_at: Option<Instant>,
    fault: Option<(Instant, AcmeError)>,
}

/// The place of one request among those in flight.
pub(super) struct RequestPlace<'a> {
    pace: &'a Pace,
    _permit: Option<SemaphorePermit<'a>>,
}

impl Pace {
    /// Makes the pace of a CA with these rates; `None` if the CA publishes no rates.
    pub(super) fn new(rates: Option<&'static RequestRates>) -> Self {
        Self {
            places: Semaphore::new(IN_FLIGHT_MAX),
            rates,
            buckets: Default::default(),
            last: Mutex::default(),
        }
    }

    /// Waits for a place, in order of arrival.
    ///
    /// # Errors
    /// Fails as the last request did if the CA has answered no request since the wait began.
    pub(super) async fn place(&self) -> Result<RequestPlace<'_>, AcmeError> {
        let began = Instant::now();
        // The semaphore is never closed.
        let permit = self.places.acquire().await.ok();
        match &self.last.lock().fault {
            Some((at, error)) if *at > began => Err(error.clone()),
            Some(_) | None => Ok(RequestPlace { pace: self, _permit: permit }),
        }
    }

    /// Takes a place if one is free.
    pub(super) fn free_place(&self) -> Option<RequestPlace<'_>> {
        let permit = self.places.try_acquire().ok()?;
        Some(RequestPlace { pace: self, _permit: Some(permit) })
    }

    /// Waits until the CA's front takes one more request of an endpoint; a wait that is broken off takes nothing.
    pub(super) async fn turn(&self, endpoint: Endpoint) {
        let rate = match self.rates {
            Some(rates) => Some(rates.of(endpoint)),
            None => (endpoint == Endpoint::NewNonce).then_some(NONCES_OF_ANY_CA),
        };
        if let Some(rate) = rate {
            self.buckets[endpoint as usize].turn(rate).await;
        }
    }
}

impl RequestPlace<'_> {
    /// Notes the outcome of the request.
    pub(super) fn ended(&self, outcome: &Result<Reply, AcmeError>) {
        let mut last = self.pace.last.lock();
        match outcome {
            Ok(_) => *last = LastOutcomes { answered_at: Some(Instant::now()), fault: None },
            Err(error @ AcmeError::Transport { .. }) => {
                let now = Instant::now();
                let is_recent = last.answered_at.is_some_and(|at| now - at < ANSWERS_WITHIN);
                last.fault = (!is_recent).then(|| (now, error.clone()));
            }
            Err(_) => {}
        }
    }
}

/// Bucket of tokens, one per request (GCRA: the moment at which the next request would fall if requests came evenly).
#[derive(Default)]
struct TokenBucket {
    /// Moment of the next request if requests came evenly; the holder of the lock is next.
    even: tokio::sync::Mutex<Option<Instant>>,
}

impl TokenBucket {
    async fn turn(&self, rate: Rate) {
        let mut even = self.even.lock().await;
        let (due, next) = due(*even, rate, Instant::now());
        sleep_until(due).await;
        *even = Some(next);
    }
}

/// Returns when a request may go out, and when the next would if requests came evenly: a burst at once, then evenly.
fn due(even: Option<Instant>, rate: Rate, now: Instant) -> (Instant, Instant) {
    let interval = Duration::from_secs(1) / rate.per_second;
    let even = even.map_or(now, |even| even.max(now));
    let due = even.checked_sub(interval * rate.burst.saturating_sub(1)).unwrap_or(now).max(now);
    (due, even + interval)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acme::error::Fault;

    #[test]
    fn a_burst_goes_out_at_once_and_the_others_evenly() {
        let began = Instant::now();
        let rate = Rate { per_second: 20, burst: 5 };
        let (mut even, mut now, mut went) = (None, began, Vec::new());
        for _ in 0..8 {
            let (due, next) = due(even, rate, now);
            (even, now) = (Some(next), due);
            went.push((due - began).as_millis());
        }
        assert_eq!(went, [0, 0, 0, 0, 0, 50, 100, 150]);
        // Whoever paused for long has no more than the burst.
        now += Duration::from_mins(1);
        let later = (0..7).map(|_| {
            let (due, next) = due(even, rate, now);
            even = Some(next);
            (due - now).as_millis()
        });
        assert_eq!(later.collect::<Vec<_>>(), [0, 0, 0, 0, 0, 50, 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn endpoints_have_buckets_of_their_own_and_a_wait_that_is_broken_off_takes_nothing() {
        let pace = Pace::new(RequestRates::of_server(crate::model::acme_server::LETS_ENCRYPT));
        let Rate { burst, .. } = pace.rates.unwrap().of(Endpoint::NewNonce);
        let began = Instant::now();
        for _ in 0..burst {
            pace.turn(Endpoint::NewNonce).await;
        }
        pace.turn(Endpoint::Other).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..9 {
            let broken =
                tokio::time::timeout(Duration::from_millis(1), pace.turn(Endpoint::NewNonce));
            broken.await.unwrap_err();
        }
        pace.turn(Endpoint::NewNonce).await;
        assert_eq!(began.elapsed(), Duration::from_millis(50));
    }

    #[tokio::test(start_paused = true)]
    async fn a_ca_that_publishes_nothing_is_asked_without_a_pause_but_for_nonces() {
        let pace = Pace::new(RequestRates::of_server("https://ca.internal/acme/directory"));
        let began = Instant::now();
        for _ in 0..1000 {
            pace.turn(Endpoint::Other).await;
            pace.turn(Endpoint::NewOrder).await;
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
        for _ in 0..30 {
            pace.turn(Endpoint::NewNonce).await;
        }
        assert_eq!(began.elapsed(), Duration::from_secs(1));
    }

    fn silence() -> Result<Reply, AcmeError> {
        let (deed, url, why) = ("read", "https://ca.example/".to_owned(), "no answer".to_owned());
        Err(AcmeError::Transport { deed, url, why, fault: Fault::Passing })
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_behind_requests_that_nobody_answers_fails_with_them() {
        let pace = Pace::new(None);
        let ask = async || {
            let held = pace.place().await?;
            tokio::time::sleep(Duration::from_secs(90)).await;
            let outcome = silence();
            held.ended(&outcome);
            outcome
        };
        let began = Instant::now();
        let all = futures_util::future::join_all((0..IN_FLIGHT_MAX * 8).map(|_| ask())).await;
        assert!(all.iter().all(Result::is_err));
        assert_eq!(began.elapsed().as_secs(), 90);
        // Who comes later asks anew.
        ask().await.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), 180);
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_had_by_so_many_at_once() {
        let pace = Pace::new(None);
        let mut held = Vec::new();
        for _ in 0..IN_FLIGHT_MAX {
            held.push(pace.place().await.ok().unwrap());
        }
        assert!(pace.free_place().is_none());
        let waits = tokio::time::timeout(Duration::from_secs(1), pace.place()).await;
        assert!(waits.is_err());
        held.pop();
        assert!(pace.free_place().is_some());
    }
}
