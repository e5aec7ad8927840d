//! What a store and our CA take from around them: the time, and what is drawn by lot.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::error::Unspecified;
use aws_lc_rs::rand;
use jiff::Timestamp;

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Fills octets by lot; fails when there is no randomness.
pub type Draw = Arc<dyn Fn(&mut [u8]) -> Result<(), Unspecified> + Send + Sync>;

/// The time, and what is drawn; the default is this machine's. Keys are made by the crypto library, whatever stands here.
#[derive(Clone)]
pub struct Surroundings {
    /// The time.
    pub now: Now,
    /// What UIDs, names, nonces, tokens and serial numbers are drawn from.
    pub draw: Draw,
}

impl Surroundings {
    /// The moment it is.
    pub fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// So many octets, drawn by lot.
    ///
    /// # Errors
    /// Fails when there is no randomness.
    pub fn draw<const OCTETS: usize>(&self) -> Result<[u8; OCTETS], Unspecified> {
        let mut octets = [0; OCTETS];
        (self.draw)(&mut octets)?;
        Ok(octets)
    }
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { now: Arc::new(Timestamp::now), draw: Arc::new(rand::fill) }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surroundings(..)")
    }
}
