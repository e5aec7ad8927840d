//! Nonces: one pool per CA, which every answer feeds (RFC 8555 §6.5).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep_until};

use super::error::AcmeError;

/// What Let's Encrypt grants one address: new-nonce is its scarcest endpoint (20 a second, 10 at once).
const INTERVAL: Duration = Duration::from_millis(50);
const BURST: u32 = 10;
/// More than that many requests are never under way; what an odd server sends beyond it is dropped.
const CAPACITY: usize = 1000;
/// So many pooled nonces refused in a row mean that the CA has forgotten all of them, as after its restart.
const STALE: u32 = 3;

/// The pool. Newest first, since CAs forget the oldest.
pub(super) struct Nonces {
    stock: Mutex<Vec<String>>,
    /// Counts the stock, so that waiting requests are served in turn.
    available: Semaphore,
    refused: AtomicU32,
    /// When the next fetch would fall if fetches came evenly; whoever holds it is next to fetch.
    next_fetch: tokio::sync::Mutex<Instant>,
}

impl Nonces {
    /// An empty pool.
    pub(super) fn new() -> Self {
        Self {
            stock: Mutex::default(),
            available: Semaphore::new(0),
            refused: AtomicU32::new(0),
            next_fetch: tokio::sync::Mutex::new(Instant::now()),
        }
    }

    /// Keeps a nonce for later.
    pub(super) fn put(&self, nonce: String) {
        let mut stock = self.stock.lock();
        if stock.len() < CAPACITY {
            stock.push(nonce);
            self.available.add_permits(1);
        }
    }

    /// Takes a nonce from the pool, if there is one for which nobody waits.
    pub(super) fn at_hand(&self) -> Option<String> {
        while let Ok(permit) = self.available.try_acquire() {
            permit.forget();
            // A cleared pool leaves its permits behind.
            let nonce = self.stock.lock().pop();
            if nonce.is_some() {
                return nonce;
            }
        }
        None
    }

    /// Takes a nonce: from the pool, from an answer that comes in meanwhile, or by a fetch when one is due.
    pub(super) async fn take(
        &self,
        fetch: impl Future<Output = Result<String, AcmeError>>,
    ) -> Result<String, AcmeError> {
        tokio::select! {
            biased;
            nonce = self.pooled() => Ok(nonce),
            () = self.turn() => fetch.await,
        }
    }

    /// Notes how a pooled nonce fared.
    pub(super) fn judged(&self, verdict: NonceUse) {
        match verdict {
            NonceUse::Taken => self.refused.store(0, Ordering::Relaxed),
            NonceUse::Refused => {
                if self.refused.fetch_add(1, Ordering::Relaxed) + 1 >= STALE {
                    self.refused.store(0, Ordering::Relaxed);
                    self.stock.lock().clear();
                }
            }
        }
    }

    async fn pooled(&self) -> String {
        loop {
            match self.available.acquire().await {
                Ok(permit) => permit.forget(),
                // The semaphore is never closed.
                Err(_) => std::future::pending().await,
            }
            // A cleared pool leaves its permits behind: then there is nothing yet.
            let nonce = self.stock.lock().pop();
            if let Some(nonce) = nonce {
                return nonce;
            }
        }
    }

    /// Waits until a fetch is due: a burst at once, then evenly.
    async fn turn(&self) {
        let mut next = self.next_fetch.lock().await;
        let now = Instant::now();
        let even = (*next).max(now);
        if let Some(due) = even.checked_sub(INTERVAL * (BURST - 1))
            && due > now
        {
            sleep_until(due).await;
        }
        *next = even + INTERVAL;
    }
}

/// How the CA took a nonce from the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NonceUse {
    /// As good.
    Taken,
    /// With badNonce.
    Refused,
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{Ready, ready};

    use super::*;

    fn none() -> Ready<Result<String, AcmeError>> {
        ready(Ok("fetched".to_owned()))
    }

    #[tokio::test]
    async fn the_newest_nonce_goes_first() {
        let nonces = Nonces::new();
        nonces.put("old".to_owned());
        nonces.put("new".to_owned());
        for expected in ["new", "old", "fetched"] {
            assert_eq!(nonces.take(none()).await.unwrap(), expected);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn fetches_are_spread_as_the_ca_wants() {
        let nonces = Nonces::new();
        let start = Instant::now();
        for number in 0..30 {
            nonces.take(none()).await.unwrap();
            let expected = INTERVAL * u32::saturating_sub(number + 1, BURST);
            assert_eq!(start.elapsed().as_millis() / 10, expected.as_millis() / 10, "{number}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_nonce_that_comes_in_is_taken_before_a_fetch_is_due() {
        let nonces = Nonces::new();
        for _ in 0..BURST {
            nonces.take(none()).await.unwrap();
        }
        let fetches = Cell::new(0);
        let fetch = async {
            fetches.set(1);
            none().await
        };
        let (nonce, ()) = tokio::join!(nonces.take(fetch), async {
            tokio::task::yield_now().await;
            nonces.put("came in".to_owned());
        });
        assert_eq!((nonce.unwrap().as_str(), fetches.get()), ("came in", 0));
    }

    #[tokio::test]
    async fn a_pool_that_the_ca_forgot_is_dropped() {
        let nonces = Nonces::new();
        for _ in 0..50 {
            nonces.put("stale".to_owned());
        }
        for verdict in [NonceUse::Refused, NonceUse::Taken, NonceUse::Refused, NonceUse::Refused] {
            nonces.judged(verdict);
        }
        assert_eq!(nonces.take(none()).await.unwrap(), "stale");
        nonces.judged(NonceUse::Refused);
        assert_eq!(nonces.take(none()).await.unwrap(), "fetched");
        nonces.put("fresh".to_owned());
        assert_eq!(nonces.take(none()).await.unwrap(), "fresh");
    }
}
