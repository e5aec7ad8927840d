//! Flag for the number of challenges in flight at once.

use crate::reconcile::schedule::Limits;

/// Flag for the number of challenges in flight at once.
#[derive(Clone, Debug, clap::Args)]
pub struct SlotArgs {
    /// Most challenges in flight
    #[arg(
        long,
        hide_short_help = true,
        value_name = "N",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub max_concurrent_challenges: u32,
}

impl SlotArgs {
    /// Returns the limits of the scheduler.
    pub fn limits(&self) -> Limits {
        let slots = usize::try_from(self.max_concurrent_challenges);
        Limits { max_in_flight: slots.unwrap_or(usize::MAX) }
    }
}
