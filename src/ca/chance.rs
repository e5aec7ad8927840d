//! Random decisions about the CA's objects. The seed and the object's number decide, so that an
//! object looks the same each time that a client reads the object, and a run can be repeated.

use super::state::Id;

/// Kind of random decision; an object has several.
#[derive(Clone, Copy, Debug)]
pub(super) enum Choice {
    Identifiers = 1,
    Authorizations,
    Challenges,
    OrderReuse,
    AuthorizationReuse,
}

/// Random decisions by a seed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chance {
    seed: u64,
}

impl Chance {
    /// Decides by this seed.
    pub(super) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Puts a list of an object into another order.
    pub(super) fn shuffle<T>(self, items: &mut [T], (choice, id): (Choice, Id)) {
        let mut numbers = self.numbers(choice, id);
        for last in (1..items.len()).rev() {
            let count = u64::try_from(last + 1).unwrap_or(u64::MAX);
            let with = usize::try_from(numbers.next() % count).unwrap_or_default();
            items.swap(last, with);
        }
    }

    /// Returns whether an event with a chance of `percent` happens to an object.
    pub(super) fn happens(self, percent: u8, (choice, id): (Choice, Id)) -> bool {
        self.numbers(choice, id).next() % 100 < u64::from(percent)
    }

    fn numbers(self, choice: Choice, id: Id) -> Numbers {
        let mut numbers = Numbers(self.seed ^ id.rotate_left(24) ^ (choice as u64).rotate_left(56));
        // One step apart, the states of neighbours have little in common.
        numbers.next();
        numbers
    }
}

/// Numbers that follow from a state (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shuffled(seed: u64, choice: Choice, id: Id) -> [u8; 4] {
        let mut items = [1, 2, 3, 4];
        Chance::new(seed).shuffle(&mut items, (choice, id));
        items
    }

    #[test]
    fn an_object_looks_the_same_each_time_and_others_look_otherwise() {
        let all: BTreeSet<_> = (0..500).map(|id| shuffled(1, Choice::Challenges, id)).collect();
        assert_eq!(all.len(), 24, "every order comes up");
        for id in 0..50 {
            let one = shuffled(1, Choice::Challenges, id);
            assert_eq!(one, shuffled(1, Choice::Challenges, id));
            let mut sorted = one;
            sorted.sort_unstable();
            assert_eq!(sorted, [1, 2, 3, 4]);
        }
        let differ = |other: fn(Id) -> [u8; 4]| {
            (0..50).any(|id| shuffled(1, Choice::Challenges, id) != other(id))
        };
        assert!(differ(|id| shuffled(2, Choice::Challenges, id)));
        assert!(differ(|id| shuffled(1, Choice::Authorizations, id)));
    }

    #[test]
    fn so_many_of_a_hundred_are_about_that_many() {
        for percent in [0, 30, 50, 100] {
            let chance = Chance::new(7);
            let happened =
                (0..10_000).filter(|id| chance.happens(percent, (Choice::OrderReuse, *id))).count();
            assert!(happened.abs_diff(usize::from(percent) * 100) < 300, "{percent}: {happened}");
        }
    }
}
