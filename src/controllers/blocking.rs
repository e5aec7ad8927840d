//! Computing that takes long enough for a thread of its own, such as making an RSA key.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;

use async_trait::async_trait;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

use crate::acme::{KeyError, KeyMaker, PrivateKey};
use crate::model::KeyAlgorithm;

/// Semaphore with one turn per core: a hundred keys made at once would leave nothing for the Lease's renewal.
static COMPUTE_TURNS: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(available_parallelism().map_or(1, NonZero::get)));

/// Computes on a thread of its own, once a turn is free.
///
/// # Errors
/// Fails if the computing panicked.
pub async fn compute<T: Send + 'static>(
    computing: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // The semaphore is never closed; without a turn the computing would be done all the same.
    let _turn = COMPUTE_TURNS.acquire().await;
    spawn_blocking(computing).await
}

/// Makes keys on threads of their own: an RSA key takes long.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeysAside;

#[async_trait]
impl KeyMaker for KeysAside {
    async fn make(&self, algorithm: KeyAlgorithm) -> Result<PrivateKey, KeyError> {
        let made = compute(move || PrivateKey::generate(algorithm)).await;
        made.unwrap_or(Err(KeyError::Unmakeable(algorithm, "making it failed")))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn no_more_is_computed_at_once_than_there_are_cores() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let all = (0..64).map(|number| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            compute(move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
                number
            })
        });
        let computed: Vec<usize> = join_all(all).await.into_iter().map(Result::unwrap).collect();
        assert_eq!(computed, (0..64).collect::<Vec<_>>());
        assert!(most.load(Ordering::SeqCst) <= available_parallelism().unwrap().get());
    }
}
