//! Self-checks: a probe's view of a Challenge's answer, judged, and logged.

use tokio::time::Instant;
use tracing::info;

use super::resolver_cache::Published;
use super::solver_set::SolverSet;
use crate::model::observation::Observation;
use crate::model::{Answer, Challenge, ChallengeType};
use crate::reconcile::challenge::Readiness;
use crate::reconcile::{dns01_visible, http01_visible, shown};
use crate::solvers::SolveError;

/// Checks once the answer of a Challenge, and those of others that must stand beside it at one record. Without an
/// answer, the verdict says why there is none.
pub(super) async fn self_check(
    solvers: &SolverSet,
    challenge: &Challenge,
    answer: Result<&Answer, &String>,
    others: &[&Challenge],
) -> (Readiness, Published) {
    let began = Instant::now();
    let (readiness, published) = probe(solvers, challenge, answer, others).await;
    let (domain, kind) = (&challenge.spec.dns_name, challenge.spec.kind);
    let took = format!("{}ms", began.elapsed().as_millis());
    match &readiness {
        Readiness::Ready => info!(domain, %kind, took, "the self-check sees the answer"),
        Readiness::NotYet { reason, .. } => {
            info!(domain, %kind, took, reason, "the self-check does not see the answer");
        }
    }
    (readiness, published)
}

async fn probe(
    solvers: &SolverSet,
    challenge: &Challenge,
    answer: Result<&Answer, &String>,
    others: &[&Challenge],
) -> (Readiness, Published) {
    let mut published = Published::default();
    let readiness = match (challenge.spec.kind, answer) {
        (_, Err(why)) => Readiness::NotYet { reason: why.clone(), cause: None },
        (ChallengeType::Http01, Ok(answer)) => {
            let looks = solvers.http01_probe.probe(challenge, answer).await;
            let arrivals = looks.first().map(|look| solvers.http01.came_since(answer, look.at));
            let judged = http01_visible::judge(answer, &looks);
            http01_visible::with_arrivals(judged, &arrivals.unwrap_or_default())
        }
        (ChallengeType::TlsAlpn01, Ok(answer)) => {
            shown::judge(answer, &solvers.tls_alpn01_probe.probe(challenge, answer).await)
        }
        (
            ChallengeType::Dns01 | ChallengeType::DnsAccount01 | ChallengeType::DnsPersist01,
            Ok(answer),
        ) => {
            let seen = solvers.dns01_probe.probe(challenge, answer).await;
            published = Published::of(&seen);
            let mut readiness = judge_record(solvers, challenge, answer, &seen).await;
            for other in others {
                if readiness == Readiness::Ready
                    && let Ok(answer) = Answer::of(other)
                {
                    readiness = judge_record(solvers, other, &answer, &seen).await;
                }
            }
            readiness
        }
    };
    (readiness, published)
}

/// Judges the observations of a record for one of its values.
async fn judge_record(
    solvers: &SolverSet,
    challenge: &Challenge,
    answer: &Answer,
    seen: &[Observation],
) -> Readiness {
    match dns01_visible::judge(challenge, answer, seen) {
        Readiness::Ready => {
            let solver = solvers.solver(challenge);
            judge_settled(challenge, solver.is_everywhere(challenge, answer).await)
        }
        unseen @ Readiness::NotYet { .. } => unseen,
    }
}

/// Judges the provider's report on a record that every server already has.
fn judge_settled(challenge: &Challenge, said: Result<bool, SolveError>) -> Readiness {
    match said {
        Ok(false) => dns01_visible::under_way(challenge),
        Err(error) if !error.needs_person => {
            Readiness::NotYet { reason: error.to_string(), cause: None }
        }
        // A provider that may not be asked leaves the observations to decide.
        Ok(true) | Err(_) => Readiness::Ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reconcile::testing;

    #[test]
    fn a_record_that_is_seen_waits_for_the_provider_as_far_as_it_can_be_asked() {
        let challenge = testing::challenge("www.example.com").dns01().build();
        let error = |needs_person| {
            let (what, why) = ("cannot ask".to_owned(), "no answer".to_owned());
            Err(SolveError::new(what, why, needs_person))
        };
        for (said, waits_for) in [
            (Ok(true), None),
            (Ok(false), Some("the provider is not done elsewhere")),
            (error(false), Some("cannot ask: no answer")),
            (error(true), None),
        ] {
            match judge_settled(&challenge, said) {
                Readiness::Ready => assert_eq!(waits_for, None),
                Readiness::NotYet { reason, .. } => {
                    assert!(waits_for.is_some_and(|text| reason.ends_with(text)), "{reason}");
                }
            }
        }
    }
}
