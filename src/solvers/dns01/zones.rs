//! The zone of a name, for providers whose API wants to be told it.

use crate::dns::FindZone;
use crate::solvers::SolveError;

/// Absolute name of the zone, with the final dot. That there is none is told in the words of the self-check.
pub(super) async fn zone_of(zones: &dyn FindZone, name: &str) -> Result<String, SolveError> {
    zones.zone_of(name).await.map_err(|error| SolveError {
        what: format!("Could not determine the zone for \"{name}\""),
        why: error.to_string(),
        needs_person: false,
        hint: None,
        until: None,
    })
}
