//! Field managers: the names under which a cluster records writes.
//!
//! Controllers use cert-manager's names, and people's commands ours. Three things are applied server-side, as by
//! cert-manager: the finalizers of Challenges, issued Secrets, and manifests. A finalizer is removed by a patch,
//! whichever manager has put it on.

/// Writer of fields. A cluster records the manager of every field; the other stores do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// One of cert-manager's controllers, by its name in [`crate::model::event::source`]: either controller can then
    /// finish the work that the other began. A field that it applies is its own, whichever manager had it before.
    Controller(&'static str),
    /// A person, with our commands: a field that another manager holds is not taken over.
    Person,
    /// A person who insists (`--force-conflicts`).
    PersonByForce,
}

impl Manager {
    /// Name that the cluster records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Controller(name) => name,
            Self::Person | Self::PersonByForce => "kubectl-acme",
        }
    }

    /// Returns whether an apply takes fields over from other managers.
    pub fn takes_over(self) -> bool {
        self != Self::Person
    }
}
