//! Probes of names from inside the cluster: one Pod for each name, which sends one request and is removed again. A
//! diagnosis writes no other objects.

use futures_util::future::join_all;
use tokio_util::sync::CancellationToken;

use super::investigator::{DiagnosisTarget, Investigator};
use super::names::looked_for;
use crate::context::blocking::Interrupted;
use crate::context::failure::Failure;
use crate::diagnosis::case::name::{InsideProbe, NameCase};
use crate::diagnosis::case::{Case, Unobserved};
use crate::model::observation::{CheckResult, Vantage};
use crate::model::{Answer, ChallengeType};
use crate::probes::cluster::{PodProbe, ProbePlace};
use crate::reconcile::challenge::Readiness;
use crate::reconcile::http01_visible;

/// Largest number of Pods that one diagnosis creates.
const MAX_PODS: usize = 5;

impl Investigator {
    /// Reads the evidence on the targets, with probes from inside the cluster if the user asked for those. A signal ends
    /// the reading; probes from inside end after their Pods are removed.
    ///
    /// # Errors
    /// Fails when an object does not exist, the store cannot be read at all, or a signal interrupts.
    pub async fn look_all(
        &self,
        targets: &[DiagnosisTarget],
        stop: &CancellationToken,
        interrupted: &Interrupted,
    ) -> Result<Case, Failure> {
        let mut case = tokio::select! {
            looked = Box::pin(self.investigate(targets)) => looked?,
            kind = interrupted.wait() => return Err(Failure::silent(kind)),
        };
        let mut looked = Box::pin(self.look_inside(&mut case));
        let interruption = tokio::select! {
            () = &mut looked => None,
            kind = interrupted.wait() => Some(kind),
        };
        let Some(kind) = interruption else {
            drop(looked);
            return Ok(case);
        };
        stop.cancel();
        looked.await;
        Err(Failure::silent(kind))
    }

    /// Probes the names of a case from inside the cluster too, if the user asked for that. The future ends soon after
    /// its probe is canceled, and must be awaited to the end: only then every Pod is gone.
    async fn look_inside(&self, case: &mut Case) {
        let Some(probe) = &self.inside else { return };
        let is_asked = |name: &NameCase| {
            !name.wildcard && name.kind.is_none_or(|kind| kind == ChallengeType::Http01)
        };
        let asked: Vec<usize> =
            (0..case.names.len()).filter(|at| is_asked(&case.names[*at])).collect();
        let left_out = asked.len().saturating_sub(MAX_PODS);
        let looks = asked.into_iter().take(MAX_PODS).filter_map(|at| {
            let name = &case.names[at];
            let (answer, _) = looked_for(name)?;
            let challenge = name.pending.as_ref();
            let own = case.cluster_path.iter().flat_map(|path| &path.wanted);
            let own = own.filter(|wanted| wanted.domain == name.shown());
            let namespace = own.map(|wanted| wanted.namespace.as_str()).next();
            let place =
                ProbePlace { namespace: namespace.unwrap_or(&self.namespace), challenge: None };
            let place = challenge.map_or(place, ProbePlace::of);
            Some(async move { (at, look(probe, place, &answer).await) })
        });
        for (at, look) in join_all(looks).await {
            let name = &mut case.names[at];
            if let CheckResult::NoLook { why, .. } = &look.observation.seen {
                let what = format!("{} from inside the cluster", name.name);
                let is_forbidden = false;
                case.unseen.push(Unobserved { what, why: why.clone(), is_forbidden });
            }
            name.inside = Some(look);
        }
        if left_out > 0 {
            let what = format!("{left_out} more names from inside the cluster");
            let why = format!("at most {MAX_PODS} Pods are created");
            case.unseen.push(Unobserved { what, why, is_forbidden: false });
        }
    }
}

async fn look(probe: &PodProbe, place: ProbePlace<'_>, answer: &Answer) -> InsideProbe {
    let observation = probe.look_from(place, answer).await;
    // Judged by the CA's rules, as if the Pod were a vantage of the CA.
    let mut as_outside = observation.clone();
    as_outside.vantage = Vantage::ThisMachine;
    let (is_answer, sighting) = match http01_visible::judge(answer, &[as_outside]) {
        Readiness::Ready => (true, None),
        Readiness::NotYet { cause, .. } => (false, cause),
    };
    InsideProbe { observation, is_answer, sighting }
}
