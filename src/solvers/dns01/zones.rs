//! Zone of a name, for providers whose API needs the zone.

use crate::dns::{FindZone, LookupError};
use crate::model::cause::Symptom;
use crate::solvers::SolveError;
use crate::solvers::remedy::Remedy;

/// Returns the absolute name of the zone, with the final dot. The error for a missing zone has the words of the self-check.
pub(super) async fn zone_of(zones: &dyn FindZone, name: &str) -> Result<String, SolveError> {
    zones.zone_of(name).await.map_err(|error| {
        let symptom = error.symptom().filter(|it| *it == Symptom::AliasLoop);
        let symptom = symptom.unwrap_or(Symptom::NotDelegated);
        let what = format!("Could not determine the zone for \"{name}\"");
        // If resolvers answer and know no zone, nothing changes by itself; a resolver that fails or is silent may be back soon.
        let needs_person =
            matches!(error, LookupError::NoZone { .. } | LookupError::AliasLoop { .. });
        SolveError::new(what, error.to_string(), needs_person).advised(Remedy::Zone(symptom))
    })
}
