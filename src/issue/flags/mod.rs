//! Flags of commands that order certificates or answer challenges.

pub mod certificates;
pub mod dns01;
pub mod drive;
pub mod ingress_shim;
pub mod on_issued;
pub mod probe_pod;
pub mod solver_pods;
