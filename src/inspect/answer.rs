//! Probe of the answer of a challenge, in the way the CA would do it, and the state of the challenge at the CA.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::authority::{self, AuthorityState};
use super::check_report::CheckReport;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::words::facts;
use crate::dns::zone::Zones;
use crate::fetch::Fetcher;
use crate::hints::invocation;
use crate::hints::reproduce::ProbeMeans;
use crate::model::observation::Observation;
use crate::model::{Answer, Challenge, ChallengeType};
use crate::probes::Probe;
use crate::probes::cluster::{PodProbe, ProbePlace};
use crate::probes::dns::{DnsProbe, zones_of};
use crate::probes::http::HttpProbe;
use crate::probes::tls_alpn::TlsAlpnProbe;
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{dns01_visible, http01_visible, shown};
use crate::store::Store;

/// Inspector of answers: the means of its probes.
pub struct AnswerInspector {
    /// Store with the account keys.
    pub store: Arc<dyn Store>,
    /// Namespace of the Secrets of ClusterIssuers.
    pub cluster_resource_namespace: String,
    /// Client of HTTP and TLS servers.
    pub fetcher: Fetcher,
    /// Resolvers for records.
    pub zones: Zones,
    /// Address of the `--dns` server, for commands that repeat the probes.
    pub dns: Option<SocketAddr>,
    /// Probe from inside the cluster, if the user asked for it.
    pub inside: Option<PodProbe>,
    /// Cancels probes from inside the cluster.
    pub stop: CancellationToken,
    /// Current time.
    pub now: Timestamp,
}

impl fmt::Debug for AnswerInspector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerInspector").finish_non_exhaustive()
    }
}

/// Challenge whose answer was probed.
#[derive(Debug)]
pub struct InspectedAnswer {
    /// Challenge.
    pub challenge: Challenge,
    /// Answer that the CA must see.
    pub answer: Answer,
    /// Observations of the probes.
    pub observations: Vec<Observation>,
    /// Judgment by the CA's rules.
    pub verdict: Readiness,
    /// Means of the probes, to write commands that repeat them.
    pub(crate) means: ProbeMeans,
    /// State of the challenge at the CA.
    pub held: AuthorityState,
}

impl InspectedAnswer {
    /// Borrows the parts that reports need.
    pub(crate) fn sight(&self) -> CheckReport<'_> {
        CheckReport {
            challenge: &self.challenge,
            answer: &self.answer,
            observations: &self.observations,
            verdict: &self.verdict,
            means: &self.means,
            held: &self.held,
        }
    }
}

impl AnswerInspector {
    /// Probes the answer once. An interruption ends a probe from inside the cluster after its Pod is removed.
    ///
    /// # Errors
    /// Fails when the challenge has no answer, or a signal interrupts.
    pub async fn look(
        &self,
        challenge: Challenge,
        interrupted: &Interrupted,
    ) -> Result<InspectedAnswer, Failure> {
        let answer = Answer::of(&challenge).map_err(|why| {
            let what = format!("cannot check challenge {}: {why}", challenge.metadata.name);
            Failure::new(FailureKind::Solver, what)
        })?;
        let kind = challenge.spec.kind;
        let inside = self.inside.as_ref().filter(|_| kind == ChallengeType::Http01);
        let (fetcher, zones) = (self.fetcher.clone(), self.zones.clone());
        let probe: Box<dyn Probe> = match kind {
            ChallengeType::Http01 => Box::new(HttpProbe { fetcher }),
            ChallengeType::TlsAlpn01 => Box::new(TlsAlpnProbe { fetcher }),
            ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
                Box::new(DnsProbe { zones })
            }
        };
        let (resolver, namespace) = (&self.fetcher.resolver, &self.cluster_resource_namespace);
        let (mut observations, held) = tokio::join!(
            probe.probe(&challenge, &answer),
            authority::read(&challenge, &self.store, resolver, namespace),
        );
        if let Some(inside) = inside {
            let mut look = inside.probe(&challenge, &answer);
            tokio::select! {
                seen = &mut look => observations.extend(seen),
                kind = interrupted.wait() => {
                    self.stop.cancel();
                    // The probe removes its Pod first.
                    look.await;
                    return Err(Failure::new(kind, "interrupted"));
                }
            }
        }
        for observation in &mut observations {
            observation.at = self.now;
        }
        let verdict = match kind {
            ChallengeType::Http01 => match http01_visible::judge(&answer, &observations) {
                // The controller that answers has recorded the requests to its listener.
                Readiness::NotYet { reason, cause } => {
                    let cause = facts::sighting_of_listener(&challenge).or(cause);
                    Readiness::NotYet { reason, cause }
                }
                Readiness::Ready => Readiness::Ready,
            },
            ChallengeType::TlsAlpn01 => shown::judge(&answer, &observations),
            ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01 => {
                dns01_visible::judge(&challenge, &answer, &observations)
            }
        };
        let named = zones_of(&challenge, &self.zones).unwrap_or_else(|_| self.zones.clone());
        let inside = inside.map(|probe| probe.words(ProbePlace::of(&challenge), &answer));
        let means = ProbeMeans {
            hosts: self.dns,
            zones: named.resolvers().to_vec(),
            inside: inside.map(|words| invocation::current().kubectl(&words)),
        };
        Ok(InspectedAnswer { challenge, answer, observations, verdict, means, held })
    }
}
