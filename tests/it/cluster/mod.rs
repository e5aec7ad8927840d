//! What needs a Kubernetes API server.

mod approval;
mod bed;
mod challenge_types;
mod conformance;
mod diagnose;
mod dns01;
pub(crate) mod faults;
mod handover;
mod ingress;
mod kubectl;
mod order;
mod outage;
mod own_csr;
mod permissions;
mod plugin;
mod probe;
mod rehearse;
pub(crate) mod side_by_side;
mod solver;
mod storm;
mod takeover;
mod upkeep;
