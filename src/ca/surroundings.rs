//! What the CA takes from around it: the time, and what is drawn by lot.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand;
use jiff::Timestamp;

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Fills octets by lot; tells whether that could be done.
pub type Draw = Arc<dyn Fn(&mut [u8]) -> bool + Send + Sync>;

/// What the CA takes from around it; the default is this machine's. Keys are made by the crypto library, whatever stands
/// here.
#[derive(Clone)]
pub struct Surroundings {
    /// The time.
    pub now: Now,
    /// What nonces, tokens and serial numbers are drawn from.
    pub draw: Draw,
}

impl Default for Surroundings {
    fn default() -> Self {
        Self { now: Arc::new(Timestamp::now), draw: Arc::new(|octets| rand::fill(octets).is_ok()) }
    }
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Surroundings(..)")
    }
}
