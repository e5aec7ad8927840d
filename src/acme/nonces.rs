//! Nonces: one pool per CA, which every answer feeds (RFC 8555 §6.5).

use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::error::AcmeError;

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
}

impl Nonces {
    /// An empty pool.
    pub(super) fn new() -> Self {
        Self { stock: Mutex::default(), available: Semaphore::new(0), refused: AtomicU32::new(0) }
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

    /// Takes a nonce: from the pool, from an answer that comes in meanwhile, or by a fetch once its turn comes.
    pub(super) async fn take(
        &self,
        turn: impl Future<Output = ()>,
        fetch: impl Future<Output = Result<String, AcmeError>>,
    ) -> Result<String, AcmeError> {
        tokio::select! {
            biased;
            nonce = self.pooled() => Ok(nonce),
            () = turn => fetch.await,
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
