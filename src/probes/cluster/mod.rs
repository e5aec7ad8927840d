//! Probes from inside a cluster: a Pod of ours makes the request and reports.
//!
//! The report of such a Pod is added to the reason and decides nothing: the CA is outside, and split DNS and hairpin
//! connections deceive. The Pod is shaped by the solver's podTemplate.

mod pod;

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

pub use self::pod::ProbePlace;
use self::pod::{POD_LIFE_SECONDS, PodProgress, pod, progress};
use super::Probe;
use super::http::{HttpProbe, address};
use crate::model::observation::{CheckResult, Observation, Vantage};
use crate::model::{Answer, Challenge};
use crate::store::Manager;
use crate::store::cluster::raw_objects::{RawObjects, Resource};
use crate::store::cluster::{ClusterStore, temporary};
use crate::store::cluster_fault::ClusterFault;
use crate::store::error::StoreError;

/// Marks probe Pods; the value is the UID of the Challenge, if there is one.
pub const PROBE_LABEL: &str = "kubectl-acme/probe";

const PODS: Resource = Resource { api_version: "v1", kind: "Pod", plural: "pods" };
/// Seconds beyond its life for which we wait for a Pod, and for which the Pod may stay if we are killed.
const POD_GRACE_SECONDS: u32 = 15;
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Number of probes in vain from here after which a Pod probes, too.
const MISSES_BEFORE_POD: u32 = 3;
/// Pause before the next probe by a Pod, if the answer is still not seen from here.
const POD_INTERVAL: Duration = Duration::from_mins(1);
/// Most Challenges whose misses are kept.
const MAX_CHALLENGES: usize = 1000;

/// Probe by a Pod, which lives for one probe.
#[derive(Debug)]
pub struct PodProbe {
    /// Cluster in which the Pod runs.
    pub cluster: ClusterStore,
    /// Image of the Pod: this program.
    pub image: String,
    /// Whether the Challenges are in the cluster, too, so that they can own the Pod.
    pub is_owned: bool,
    /// Token that ends a probe early.
    pub stop: CancellationToken,
}

#[async_trait]
impl Probe for PodProbe {
    async fn probe(&self, challenge: &Challenge, answer: &Answer) -> Vec<Observation> {
        vec![self.look_from(ProbePlace::of(challenge), answer).await]
    }
}

impl PodProbe {
    /// Probes once for an answer. The future has to be awaited to its end, soon after `stop`: only then no Pod is left.
    pub async fn look_from(&self, place: ProbePlace<'_>, answer: &Answer) -> Observation {
        let pods = self.pods(place.namespace);
        let url = address(answer);
        match self.make(&pods, place, &url).await {
            Err(error) => no_look("", url, format!("no Pod can be made: {error}")),
            Ok(made) => {
                let name = made["metadata"]["name"].as_str().unwrap_or_default();
                let report = tokio::select! {
                    report = report(&pods, name) => report,
                    () = self.stop.cancelled() => Err("interrupted".to_owned()),
                };
                if let Err(error) = pods.delete(&made).await {
                    tracing::warn!(%error, pod = name, "cannot remove the probe Pod");
                }
                match report {
                    Ok(observation) => Observation {
                        vantage: Vantage::Pod { name: name.to_owned() },
                        ..observation
                    },
                    Err(why) => no_look(name, url, why),
                }
            }
        }
    }

    /// Returns the arguments of `kubectl` that make an equal probe, and show it.
    pub fn words(&self, place: ProbePlace<'_>, answer: &Answer) -> Vec<String> {
        let mut pod = pod(place, &self.image, &address(answer), false);
        // kubectl makes up no names.
        if let Some(metadata) = pod["metadata"].as_object_mut() {
            metadata.remove("generateName");
        }
        vec![
            "run".to_owned(),
            "kubectl-acme-probe".to_owned(),
            format!("--namespace={}", place.namespace),
            "--rm".to_owned(),
            "--attach".to_owned(),
            "--restart=Never".to_owned(),
            format!("--image={}", self.image),
            format!("--overrides={pod}"),
        ]
    }

    async fn make(
        &self,
        pods: &RawObjects,
        place: ProbePlace<'_>,
        url: &str,
    ) -> Result<Value, StoreError> {
        let stay = SignedDuration::from_secs((POD_LIFE_SECONDS + 2 * POD_GRACE_SECONDS).into());
        let until = self.cluster.clock().await?.saturating_add(stay).unwrap_or(Timestamp::MAX);
        let mut wanted = pod(place, &self.image, url, self.is_owned);
        let uid = place.challenge.map_or("", |challenge| &challenge.metadata.uid);
        temporary::mark(&mut wanted, PROBE_LABEL, uid, until);
        pods.create(&wanted).await
    }

    fn pods(&self, namespace: &str) -> RawObjects {
        self.cluster.foreign(PODS, namespace, Manager::Person)
    }
}

/// Reads the observation of a Pod, once the Pod has ended.
async fn report(pods: &RawObjects, name: &str) -> Result<Observation, String> {
    let mut waits_for = String::new();
    let ended = async {
        loop {
            let pod = pods.get(name).await.map_err(|error| error.to_string())?;
            match pod.map(|pod| progress(&pod)) {
                None => return Err("somebody removed it".to_owned()),
                Some(PodProgress::Ended(words)) => return Ok(words),
                Some(PodProgress::Stuck(why)) => return Err(format!("it does not start: {why}")),
                Some(PodProgress::Waits(what)) => waits_for = what,
            }
            sleep(POLL_INTERVAL).await;
        }
    };
    let Ok(words) =
        timeout(Duration::from_secs((POD_LIFE_SECONDS + POD_GRACE_SECONDS).into()), ended).await
    else {
        return Err(format!("it has not ended after {POD_LIFE_SECONDS} s: {waits_for}"));
    };
    let words = words?;
    serde_json::from_str(&words).map_err(|_| match words.trim() {
        "" => "it says nothing: is its image this program?".to_owned(),
        words => format!("it does not say what it saw: {words}"),
    })
}

fn no_look(pod: &str, url: String, why: String) -> Observation {
    Observation {
        vantage: Vantage::Pod { name: pod.to_owned() },
        at: Timestamp::now(),
        url,
        hops: Vec::new(),
        seen: CheckResult::NoLook { why, symptom: None },
    }
}

/// Removes probe Pods that a killed process left in a namespace, or in all (an empty one); returns their names.
///
/// # Errors
/// Fails if the server does not answer, or does not let us remove a Pod that was found.
pub async fn sweep(
    cluster: &ClusterStore,
    namespace: &str,
    now: Timestamp,
) -> Result<Vec<String>, StoreError> {
    let pods = cluster.foreign(PODS, namespace, Manager::Person);
    let left = match temporary::outstayed(&pods, PROBE_LABEL, now).await {
        Err(StoreError::Cluster(fault)) if matches!(*fault, ClusterFault::Forbidden { .. }) => {
            return Ok(Vec::new());
        }
        found => found?,
    };
    let mut removed = Vec::new();
    for pod in left {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default();
        cluster.foreign(PODS, text("namespace"), Manager::Person).delete(&pod).await?;
        removed.push(format!("Pod {}/{}", text("namespace"), text("name")));
    }
    Ok(removed)
}

/// Probe from here; if the answer is not seen for a while, from inside the cluster, too.
#[derive(Debug)]
pub struct CombinedProbe {
    here: HttpProbe,
    inside: PodProbe,
    is_seen: fn(&Answer, &[Observation]) -> bool,
    /// Probes in vain, by the UID of the Challenge.
    misses: Mutex<HashMap<String, Misses>>,
}

#[derive(Debug, Default)]
struct Misses {
    count: u32,
    inside: Option<(Instant, Vec<Observation>)>,
}

impl Misses {
    /// Returns whether a Pod is to probe; a Pod that could not probe is not tried again.
    fn is_due(&self) -> bool {
        let may_again = |(at, seen): &(Instant, Vec<Observation>)| {
            let has_looked = |o: &Observation| !matches!(o.seen, CheckResult::NoLook { .. });
            at.elapsed() >= POD_INTERVAL && seen.iter().all(has_looked)
        };
        self.count >= MISSES_BEFORE_POD && self.inside.as_ref().is_none_or(may_again)
    }
}

impl CombinedProbe {
    /// Makes a probe of both; `is_seen` judges the observations from here.
    pub fn new(
        here: HttpProbe,
        inside: PodProbe,
        is_seen: fn(&Answer, &[Observation]) -> bool,
    ) -> Self {
        Self { here, inside, is_seen, misses: Mutex::default() }
    }

    fn misses(&self) -> MutexGuard<'_, HashMap<String, Misses>> {
        self.misses.lock()
    }
}

#[async_trait]
impl Probe for CombinedProbe {
    async fn probe(&self, challenge: &Challenge, answer: &Answer) -> Vec<Observation> {
        let uid = &challenge.metadata.uid;
        let mut seen = self.here.probe(challenge, answer).await;
        if (self.is_seen)(answer, &seen) {
            self.misses().remove(uid);
            return seen;
        }
        let is_due = {
            let mut misses = self.misses();
            if misses.len() >= MAX_CHALLENGES {
                misses.clear();
            }
            let own = misses.entry(uid.clone()).or_default();
            own.count += 1;
            own.is_due()
        };
        if is_due {
            let inside = self.inside.probe(challenge, answer).await;
            self.misses().entry(uid.clone()).or_default().inside = Some((Instant::now(), inside));
        }
        let misses = self.misses();
        if let Some((_, inside)) = misses.get(uid).and_then(|own| own.inside.as_ref()) {
            seen.extend(inside.iter().cloned());
        }
        seen
    }
}
