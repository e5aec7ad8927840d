//! Solvers and probes of challenges, by challenge type.

use std::sync::Arc;

use jiff::SignedDuration;

use super::scheduler::SharedContention;
use crate::model::{Challenge, ChallengeType};
use crate::probes::Probe;
use crate::solvers::Solver;

/// Solvers and probes of challenges.
#[derive(Clone, Debug)]
pub struct SolverSet {
    /// Solver for HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// Solver for DNS-01, and the other types by record.
    pub dns01: Arc<dyn Solver>,
    /// Solver that leaves persistent records to a person if no provider is named.
    pub by_person: Arc<dyn Solver>,
    /// Solver for TLS-ALPN-01.
    pub tls_alpn01: Arc<dyn Solver>,
    /// Probe that checks HTTP-01 answers as the CA does.
    pub http01_probe: Arc<dyn Probe>,
    /// Probe that checks DNS-01 records as the CA does.
    pub dns01_probe: Arc<dyn Probe>,
    /// Probe that makes the TLS-ALPN-01 handshake as the CA does.
    pub tls_alpn01_probe: Arc<dyn Probe>,
    /// Contention between challenges.
    pub contention: SharedContention,
    /// Longest pause between self-checks (`--dns01-check-retry-period`).
    pub check_period: SignedDuration,
}

impl SolverSet {
    /// Returns the solver for a challenge.
    pub fn solver(&self, challenge: &Challenge) -> &dyn Solver {
        match challenge.spec.kind {
            ChallengeType::Http01 => &*self.http01,
            ChallengeType::TlsAlpn01 => &*self.tls_alpn01,
            ChallengeType::DnsPersist01 if challenge.spec.solver.dns01.is_none() => {
                &*self.by_person
            }
            ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
                &*self.dns01
            }
        }
    }
}
