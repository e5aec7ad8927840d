//! Field managers: under whose name a cluster keeps what is written.
//!
//! Controllers use cert-manager's names, and people's commands ours. Three things are applied server-side, as by
//! cert-manager: the finalizers of Challenges, issued Secrets, and manifests. A finalizer is taken off by a patch,
//! whoever put it on.

/// Who writes. A cluster notes it beside every field; the other stores do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manager {
    /// One of cert-manager's controllers, by its name in [`crate::model::event::source`]: either controller can then
    /// finish what the other began. What it applies is its own, whoever had it before.
    Controller(&'static str),
    /// A person, with our commands: a field that another manager holds is not taken over.
    Person,
    /// A person who insists (`--force-conflicts`).
    PersonByForce,
}

impl Manager {
    /// The name that the cluster notes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Controller(name) => name,
            Self::Person | Self::PersonByForce => "kubectl-acme",
        }
    }

    /// Tells whether applying takes fields over from other managers.
    pub fn takes_over(self) -> bool {
        self != Self::Person
    }
}
