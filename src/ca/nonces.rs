//! Nonces (RFC 8555 §6.5): each is good once; some good nonces are refused on purpose, if a test asks for refusals.

use std::collections::{HashSet, VecDeque};

use aws_lc_rs::error::Unspecified;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parking_lot::Mutex;

use crate::surroundings::Environment;

/// Most nonces in memory; beyond this number the oldest nonce is forgotten, so that a client cannot fill the memory.
const MAX_NONCES: usize = 100_000;

/// Nonces given out and not yet spent.
#[derive(Debug)]
pub(super) struct Nonces {
    given: Mutex<Given>,
    refuse_percent: u8,
    surroundings: Environment,
}

#[derive(Debug, Default)]
struct Given {
    good: HashSet<String>,
    /// Nonces in the order in which they were given, with nonces that are already spent.
    ages: VecDeque<String>,
}

impl Nonces {
    /// Starts without nonces; refuses `refuse_percent` of a hundred good nonces.
    pub(super) fn new(refuse_percent: u8, surroundings: Environment) -> Self {
        Self { given: Mutex::default(), refuse_percent, surroundings }
    }

    /// Gives a new nonce.
    pub(super) fn give(&self) -> Result<String, Unspecified> {
        let nonce = random_text::<16>(&self.surroundings)?;
        let mut given = self.given.lock();
        given.good.insert(nonce.clone());
        given.ages.push_back(nonce.clone());
        if given.ages.len() > MAX_NONCES
            && let Some(oldest) = given.ages.pop_front()
        {
            given.good.remove(&oldest);
        }
        Ok(nonce)
    }

    /// Spends a nonce; returns whether the nonce was good.
    pub(super) fn spend(&self, nonce: &str) -> bool {
        let known = self.given.lock().good.remove(nonce);
        known && !self.refuses_anyway()
    }

    fn refuses_anyway(&self) -> bool {
        self.refuse_percent > 0
            && self
                .surroundings
                .draw()
                .is_ok_and(|dice| u32::from_le_bytes(dice) % 100 < u32::from(self.refuse_percent))
    }
}

/// Returns random octets as base64url text: nonces and tokens (RFC 8555 §8.1 asks for 128 bits).
pub(super) fn random_text<const OCTETS: usize>(from: &Environment) -> Result<String, Unspecified> {
    Ok(BASE64_URL_SAFE_NO_PAD.encode(from.draw::<OCTETS>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_good_once() {
        let nonces = Nonces::new(0, Environment::default());
        let nonce = nonces.give().unwrap();
        assert!(!nonces.spend("made up"));
        assert!(nonces.spend(&nonce));
        assert!(!nonces.spend(&nonce));
    }

    #[test]
    fn all_are_refused_when_a_hundred_percent_are() {
        let nonces = Nonces::new(100, Environment::default());
        assert!(!nonces.spend(&nonces.give().unwrap()));
    }
}
