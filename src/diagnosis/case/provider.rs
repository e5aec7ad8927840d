//! Answer of a DNS provider to a request that only reads.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Key;
use crate::model::provider_refusal::ProviderRefusal;
use crate::model::solver::Dns01Solver;

/// One question to the provider of one solver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCase {
    /// Issuer that has the solver.
    pub issuer: Key,
    /// The solver; it names Secrets, and holds none.
    pub solver: Dns01Solver,
    /// Name that the question was about, a wildcard with its `*.`.
    pub domain: String,
    /// Time of the question.
    pub at: Timestamp,
    /// Refusal of the provider; `None` if all is well.
    pub refusal: Option<ProviderRefusal>,
}
