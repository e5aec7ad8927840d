//! Where a probe Pod is made.

use crate::model::Challenge;

/// Where a Pod looks from, and what gives it its shape.
#[derive(Clone, Copy, Debug)]
pub struct ProbePlace<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// The Challenge whose answer is looked for: it owns the Pod, and its solver has the template.
    pub challenge: Option<&'a Challenge>,
}

impl<'a> ProbePlace<'a> {
    /// That of the answer of a Challenge.
    pub fn of(challenge: &'a Challenge) -> Self {
        Self { namespace: &challenge.metadata.namespace, challenge: Some(challenge) }
    }
}
