//! Inputs that a store and this program's CA take from their environment: time and randomness.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use jiff::Timestamp;

/// Clock that returns the current time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Source of random octets; fails if there is no randomness.
pub type Random = Arc<dyn Fn(&mut [u8]) -> Result<(), Unspecified> + Send + Sync>;

/// Clock and source of randomness; the default is this machine's. Keys always come from the crypto library.
#[derive(Clone)]
pub struct Environment {
    /// Clock.
    pub now: Now,
    /// Source of UIDs, names, nonces, tokens and serial numbers.
    pub draw: Random,
}

impl Environment {
    /// Returns the current time.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Returns the given number of random octets.
    ///
    /// # Errors
    /// Fails if there is no randomness.
    pub fn draw<const OCTETS: usize>(&self) -> Result<[u8; OCTETS], Unspecified> {
        let mut octets = [0; OCTETS];
        (self.draw)(&mut octets)?;
        Ok(octets)
    }
}

impl Default for Environment {
    fn default() -> Self {
        Self { now: Arc::new(Timestamp::now), draw: Arc::new(rand::fill) }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surroundings(..)")
    }
}
