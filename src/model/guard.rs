//! Guards of a cluster, which keep an object out although its maker has the permission.

use serde::{Deserialize, Serialize};

/// A guard of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// A webhook or an admission policy, which answers with a code of its choice.
    Policy,
    /// A quota that is full.
    Quota,
    /// Limits on the resources of a Pod, by a LimitRange or by a quota that requires the Pod to name its resources.
    Limits,
    /// Pod security: limits on what a Pod may do in its namespace.
    PodSecurity,
    /// A guard about which the server's message says no more.
    Unknown,
}

impl Guard {
    /// Reports whether the guard may admit the same object later with no change by anybody: a quota fills and empties.
    pub fn passes(self) -> bool {
        self == Self::Quota
    }
}
