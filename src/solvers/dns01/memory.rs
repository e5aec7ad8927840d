//! What the process remembers of providers, which are built anew for every step: tokens that are still good.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Lock, PoisonError};

use aws_lc_rs::digest::{Context, SHA256};
use tokio::sync::Mutex;

/// Places for things of one kind, each found by a digest of whom it belongs to.
pub(super) struct Memory<T>(Lock<BTreeMap<Digest, Place<T>>>);

/// The place of one thing. Whoever holds it may fetch the thing; others wait for what comes.
pub(super) type Place<T> = Arc<Mutex<Option<T>>>;

/// Of whom it belongs to.
type Digest = Vec<u8>;

impl<T> Memory<T> {
    /// Remembers nothing yet.
    pub(super) const fn new() -> Self {
        Self(Lock::new(BTreeMap::new()))
    }

    /// The place that belongs to these texts, among them the credentials: with others it is another place.
    pub(super) fn place<'a>(&self, owner: impl IntoIterator<Item = &'a str>) -> Place<T> {
        let mut digest = Context::new(&SHA256);
        for part in owner {
            digest.update(&part.len().to_be_bytes());
            digest.update(part.as_bytes());
        }
        let key = digest.finish().as_ref().to_vec();
        let mut places = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(places.entry(key).or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_belongs_to_others_lies_elsewhere() {
        let memory = Memory::new();
        *memory.place(["ab", "c"]).lock().await = Some(1);
        assert_eq!(*memory.place(["ab", "c"]).lock().await, Some(1));
        assert_eq!(*memory.place(["a", "bc"]).lock().await, None);
    }
}
