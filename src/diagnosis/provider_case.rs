//! What a DNS provider said when it was asked by reading alone.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::Key;
use crate::model::provider_refusal::ProviderRefusal;
use crate::model::solver::Dns01Solver;

/// One question to the provider of one solver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCase {
    /// The issuer that has the solver.
    pub issuer: Key,
    /// The solver; it names Secrets, and has none.
    pub solver: Dns01Solver,
    /// The name that it was asked about, a wildcard as such.
    pub domain: String,
    /// When.
    pub at: Timestamp,
    /// What it refused; nothing where all is well.
    pub refusal: Option<ProviderRefusal>,
}
