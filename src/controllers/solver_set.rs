//! How challenges are answered and looked at, by their types.

use std::sync::Arc;

use jiff::SignedDuration;

use super::scheduler::SharedContention;
use crate::model::{Challenge, ChallengeType};
use crate::probes::Probe;
use crate::solvers::Solver;

/// How challenges are answered and looked at.
#[derive(Clone, Debug)]
pub struct SolverSet {
    /// Answers HTTP-01.
    pub http01: Arc<dyn Solver>,
    /// Answers DNS-01, and the other types by record.
    pub dns01: Arc<dyn Solver>,
    /// Leaves records that stay to a person, where no provider is named.
    pub by_person: Arc<dyn Solver>,
    /// Answers TLS-ALPN-01.
    pub tls_alpn01: Arc<dyn Solver>,
    /// Looks at HTTP-01 answers as the CA does.
    pub http01_probe: Arc<dyn Probe>,
    /// Looks at the records of DNS-01 as the CA does.
    pub dns01_probe: Arc<dyn Probe>,
    /// Makes the handshake of TLS-ALPN-01 as the CA does.
    pub tls_alpn01_probe: Arc<dyn Probe>,
    /// Who waits for whom.
    pub contention: SharedContention,
    /// Longest pause between self-checks (`--dns01-check-retry-period`).
    pub check_period: SignedDuration,
}

impl SolverSet {
    /// What answers a challenge.
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
