//! Place at which a probe Pod is made.

use crate::model::Challenge;

/// Place from which a Pod probes, and the Challenge that shapes the Pod.
#[derive(Clone, Copy, Debug)]
pub struct ProbePlace<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// The Challenge whose answer is probed: it owns the Pod, and its solver has the template.
    pub challenge: Option<&'a Challenge>,
}

impl<'a> ProbePlace<'a> {
    /// Makes the place for the answer of a Challenge.
    pub fn of(challenge: &'a Challenge) -> Self {
        Self { namespace: &challenge.metadata.namespace, challenge: Some(challenge) }
    }
}
