//! Nonces: one pool per CA, to which every answer adds (RFC 8555 §6.5).

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::error::AcmeError;

/// Most nonces that are kept, as never more requests are under way; further nonces of an odd server are dropped.
const POOL_CAPACITY: usize = 1000;
/// Number of pooled nonces refused in a row that means: the CA has forgotten all nonces, as after its restart.
const STALE_REFUSALS: u32 = 3;

/// Pool of nonces, newest first, since CAs forget the oldest.
pub(super) struct Nonces {
    stock: Mutex<Vec<String>>,
    /// Counts the stock, so that waiting requests are served in turn.
    available: Semaphore,
    refused: AtomicU32,
}

impl Nonces {
    /// Makes an empty pool.
    pub(super) fn new() -> Self {
        Self { stock: Mutex::default(), available: Semaphore::new(0), refused: AtomicU32::new(0) }
    }

    /// Keeps a nonce for later.
    pub(super) fn put(&self, nonce: String) {
        let mut stock = self.stock.lock();
        if stock.len() < POOL_CAPACITY {
            stock.push(nonce);
            self.available.add_permits(1);
        }
    }

    /// Takes a nonce from the pool, if the pool holds a nonce for which no request waits.
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

    /// Takes a nonce: from the pool, from an answer that comes in meanwhile, or by a fetch once `turn` has come.
    pub(super) async fn take(
        &self,
        turn: impl Future<Output = ()>,
        fetch: impl Future<Output = Result<String, AcmeError>>,
    ) -> Result<String, AcmeError> {
        tokio::select! {
            biased;
            nonce = self.wait_for_nonce() => Ok(nonce),
            () = turn => fetch.await,
        }
    }

    /// Notes the outcome of a pooled nonce; several refusals in a row empty the pool.
    pub(super) fn judged(&self, verdict: NonceUse) {
        match verdict {
            NonceUse::Taken => self.refused.store(0, Ordering::Relaxed),
            NonceUse::Refused => {
                if self.refused.fetch_add(1, Ordering::Relaxed) + 1 >= STALE_REFUSALS {
                    self.refused.store(0, Ordering::Relaxed);
                    self.stock.lock().clear();
                }
            }
        }
    }

    async fn wait_for_nonce(&self) -> String {
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
}

/// Outcome of a nonce from the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NonceUse {
    /// The CA took the nonce.
    Taken,
    /// The CA answered badNonce.
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
            assert_eq!(nonces.take(ready(()), none()).await.unwrap(), expected);
        }
    }

    #[tokio::test]
    async fn a_nonce_that_comes_in_is_taken_before_the_turn_to_fetch_comes() {
        let nonces = Nonces::new();
        let fetches = Cell::new(0);
        let fetch = async {
            fetches.set(1);
            none().await
        };
        let (nonce, ()) = tokio::join!(nonces.take(std::future::pending(), fetch), async {
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
        let take = || nonces.take(ready(()), none());
        assert_eq!(take().await.unwrap(), "stale");
        nonces.judged(NonceUse::Refused);
        assert_eq!(take().await.unwrap(), "fetched");
        nonces.put("fresh".to_owned());
        assert_eq!(take().await.unwrap(), "fresh");
    }
}
