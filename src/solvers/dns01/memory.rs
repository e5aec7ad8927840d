//! Memory of the process for providers, which are built anew for every step: tokens that are still good.
//!
//! Tokens are kept under a digest of the credentials that obtained them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{Context, SHA256};
use parking_lot::Mutex as Lock;
use tokio::sync::Mutex;

/// Time for which an unused place is kept: about as long as tokens are good.
const MAX_IDLE: Duration = Duration::from_hours(1);

/// Places for values of one kind, each found by a digest of its owner.
pub(super) struct SharedCache<T>(Lock<BTreeMap<Digest, Kept<T>>>);

/// Place, with the time of its last use.
struct Kept<T> {
    place: CachePlace<T>,
    used: Instant,
}

/// Place of one value. The holder of the lock may fetch the value; others wait for the result.
pub(super) type CachePlace<T> = Arc<Mutex<Option<T>>>;

/// Digest of an owner.
type Digest = Vec<u8>;

impl<T> SharedCache<T> {
    /// Creates an empty memory.
    pub(super) const fn new() -> Self {
        Self(Lock::new(BTreeMap::new()))
    }

    /// Returns the place that belongs to these texts, which include the credentials: other
    /// credentials have another place. Idle places are dropped meanwhile.
    pub(super) fn place<'a>(&self, owner: impl IntoIterator<Item = &'a str>) -> CachePlace<T> {
        self.place_at(owner, Instant::now())
    }

    fn place_at<'a>(
        &self,
        owner: impl IntoIterator<Item = &'a str>,
        now: Instant,
    ) -> CachePlace<T> {
        let mut digest = Context::new(&SHA256);
        for part in owner {
            digest.update(&part.len().to_be_bytes());
            digest.update(part.as_bytes());
        }
        let key = digest.finish().as_ref().to_vec();
        let mut places = self.0.lock();
        let in_use = |kept: &Kept<T>| {
            Arc::strong_count(&kept.place) > 1
                || now.saturating_duration_since(kept.used) < MAX_IDLE
        };
        places.retain(|_, kept| in_use(kept));
        let kept =
            places.entry(key).or_insert_with(|| Kept { place: CachePlace::default(), used: now });
        kept.used = now;
        Arc::clone(&kept.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_belongs_to_others_lies_elsewhere() {
        let memory = SharedCache::new();
        *memory.place(["ab", "c"]).lock().await = Some(1);
        assert_eq!(*memory.place(["ab", "c"]).lock().await, Some(1));
        assert_eq!(*memory.place(["a", "bc"]).lock().await, None);
    }

    #[tokio::test]
    async fn what_nobody_asks_for_is_forgotten() {
        let memory = SharedCache::new();
        let start = Instant::now();
        let held = memory.place_at(["held"], start);
        *held.lock().await = Some(1);
        *memory.place_at(["idle"], start).lock().await = Some(2);
        *memory.place_at(["asked for"], start).lock().await = Some(3);
        memory.place_at(["asked for"], start + MAX_IDLE / 2);
        memory.place_at(["another"], start + MAX_IDLE);
        assert_eq!(memory.0.lock().len(), 3, "the idle one is gone");
        for (owner, expected) in [("held", Some(1)), ("asked for", Some(3)), ("idle", None)] {
            assert_eq!(
                *memory.place_at([owner], start + MAX_IDLE).lock().await,
                expected,
                "{owner}"
            );
        }
    }
}
