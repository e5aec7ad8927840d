//! Lots that are the same for the same seed: SplitMix64, for nothing here has to be secret.

use std::sync::Arc;

use parking_lot::Mutex;

/// A source of lots.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Another source that depends on this seed and a word only.
    pub(crate) fn of(seed: u64, word: &str) -> Self {
        let mut mixed = Self(seed ^ 0x5bd1_e995);
        for byte in word.bytes() {
            mixed.0 ^= u64::from(byte);
            mixed.next();
        }
        Self(mixed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below that one.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number from the first to the last.
    pub(crate) fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below(last - first + 1)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<T: Clone>(&mut self, among: &[T]) -> T {
        let index = usize::try_from(self.below(among.len() as u64)).unwrap();
        among[index].clone()
    }

    pub(crate) fn fill(&mut self, octets: &mut [u8]) {
        for octet in octets {
            *octet = self.next().to_le_bytes()[0];
        }
    }
}

/// A source for many.
#[derive(Clone, Debug)]
pub(crate) struct Lots(Arc<Mutex<Rng>>);

impl Lots {
    pub(crate) fn of(seed: u64, word: &str) -> Self {
        Self(Arc::new(Mutex::new(Rng::of(seed, word))))
    }

    pub(crate) fn with<T>(&self, draw: impl FnOnce(&mut Rng) -> T) -> T {
        draw(&mut self.0.lock())
    }
}
