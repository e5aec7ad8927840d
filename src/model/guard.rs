//! What of a cluster keeps an object out although its maker has the permission.

use serde::{Deserialize, Serialize};

/// A guard of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guard {
    /// A webhook or an admission policy, which answers with a code of its choice.
    Policy,
    /// A quota that is full.
    Quota,
    /// What a Pod may ask for, by a LimitRange or by a quota that wants it said.
    Limits,
    /// What a Pod may do in its namespace.
    PodSecurity,
    /// One of which the server's words tell no more.
    Unknown,
}

impl Guard {
    /// Tells whether it may let the same in later with nobody changing anything: a quota fills and empties.
    pub fn passes(self) -> bool {
        self == Self::Quota
    }
}
