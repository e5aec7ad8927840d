//! One look at the answer of a challenge, as the CA would look, and what the CA itself holds of it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::authority::{self, HeldByCa};
use super::check_report::Sight;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::verdict::failure_kind::FailureKind;
use crate::diagnosis::words::facts;
use crate::dns::zone::Zones;
use crate::fetch::Fetcher;
use crate::hints::invocation;
use crate::hints::reproduce::Instruments;
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

/// What looks at answers.
pub struct AnswerInspector {
    /// Where the keys of accounts are.
    pub store: Arc<dyn Store>,
    /// Namespace with the Secrets of ClusterIssuers.
    pub cluster_resource_namespace: String,
    /// What asks HTTP and TLS servers.
    pub fetcher: Fetcher,
    /// Who is asked about records.
    pub zones: Zones,
    /// Where `--dns` is, for the commands that look the same way.
    pub dns: Option<SocketAddr>,
    /// What looks from inside the cluster, where that is wanted.
    pub inside: Option<PodProbe>,
    /// Ends looks from inside.
    pub stop: CancellationToken,
    /// When it is.
    pub now: Timestamp,
}

impl fmt::Debug for AnswerInspector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AnswerInspector").finish_non_exhaustive()
    }
}

/// A challenge that was looked at.
#[derive(Debug)]
pub struct InspectedAnswer {
    /// The challenge.
    pub challenge: Challenge,
    /// What the CA must see.
    pub answer: Answer,
    /// What was seen.
    pub observations: Vec<Observation>,
    /// What the CA would make of it.
    pub verdict: Readiness,
    /// How to look the same way.
    pub(crate) means: Instruments,
    /// What the CA holds.
    pub held: HeldByCa,
}

impl InspectedAnswer {
    /// The same as it is shown.
    pub(crate) fn sight(&self) -> Sight<'_> {
        Sight {
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
    /// Looks once. An interruption ends a look from inside the cluster after its Pod is removed.
    ///
    /// # Errors
    /// Fails when nothing can be looked for, or by being interrupted.
    pub async fn look(
        &self,
        challenge: Challenge,
        interrupted: &Interrupted,
    ) -> Result<InspectedAnswer, Failure> {
        let answer = Answer::of(&challenge).map_err(|why| {
            let what = format!("cannot look at challenge {}: {why}", challenge.metadata.name);
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
            probe.look(&challenge, &answer),
            authority::read(&challenge, &self.store, resolver, namespace),
        );
        if let Some(inside) = inside {
            let mut look = inside.look(&challenge, &answer);
            tokio::select! {
                seen = &mut look => observations.extend(seen),
                kind = interrupted.wait() => {
                    self.stop.cancel();
                    // Its Pod is removed first.
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
                // Whoever answers has noted what came to its listener.
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
        let means = Instruments {
            hosts: self.dns,
            zones: named.resolvers().to_vec(),
            inside: inside.map(|words| invocation::current().kubectl(&words)),
        };
        Ok(InspectedAnswer { challenge, answer, observations, verdict, means, held })
    }
}
