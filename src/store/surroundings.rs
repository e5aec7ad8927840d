//! What a store takes from around it beside its objects: the time, and what is drawn by lot.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand;
use jiff::Timestamp;

use super::error::StoreError;

/// Tells the time.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;
/// Fills octets by lot; tells whether that could be done.
pub type Draw = Arc<dyn Fn(&mut [u8]) -> bool + Send + Sync>;

/// What a store takes from around it; the default is this machine's.
#[derive(Clone)]
pub struct Surroundings {
    /// The time.
    pub now: Now,
    /// What is drawn.
    pub draw: Draw,
}

impl Surroundings {
    /// The moment it is.
    pub(super) fn now(&self) -> Timestamp {
        (self.now)()
    }

    /// Fills octets by lot.
    pub(super) fn draw(&self, octets: &mut [u8]) -> Result<(), StoreError> {
        if (self.draw)(octets) {
            return Ok(());
        }
        Err(StoreError::Unusable {
            place: "this machine".into(),
            why: "its random number generator failed".into(),
        })
    }
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
