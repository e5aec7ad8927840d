//! The probe Pod: the place where it is made, this program, one probe, and its report as termination message.

use serde_json::{Value, json};

use crate::model::Challenge;

/// Longest life of the Pod, in seconds.
pub(super) const POD_LIFE_SECONDS: u32 = 60;
/// Path at which a container leaves its termination message; the kubelet copies the message into the status.
const LAST_WORDS: &str = "/dev/termination-log";

/// Builds the Pod that probes a URL, hardened like a solver Pod and shaped by the same template. A Pod that is left
/// goes with its owner; the Challenge of a rehearsal cannot be the owner.
pub(super) fn pod(place: ProbePlace<'_>, image: &str, url: &str, is_owner: bool) -> Value {
    let container = json!({
        "name": "probe",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": ["probe", format!("--report={LAST_WORDS}"), url],
        "terminationMessagePath": LAST_WORDS,
        "resources": {
            "requests": {"cpu": "10m", "memory": "64Mi"},
            "limits": {"cpu": "100m", "memory": "64Mi"},
        },
        "securityContext": {
            "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    let mut metadata = json!({
        "generateName": "kubectl-acme-probe-",
        "namespace": place.namespace,
        "annotations": {"sidecar.istio.io/inject": "false"},
    });
    if let Some(challenge) = place.challenge.filter(|_| is_owner) {
        let mut owner = challenge.owner_reference();
        // Blocking the owner's deletion takes permission for its finalizers, and it does not manage this Pod.
        (owner.controller, owner.block_owner_deletion) = (None, None);
        metadata["ownerReferences"] = json!([owner]);
    }
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "activeDeadlineSeconds": POD_LIFE_SECONDS,
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "restartPolicy": "Never",
            "securityContext": {
                "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    });
    let template = place.challenge.and_then(|challenge| challenge.spec.solver.pod_template());
    if let Some(template) = template {
        template.shape(&mut pod);
    }
    pod
}

/// State of a Pod.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PodProgress {
    /// The Pod has ended with this message.
    Ended(String),
    /// The Pod will not start, for this reason.
    Stuck(String),
    /// The Pod goes on; the field says what it waits for.
    Waits(String),
}

/// Reads the state of a Pod from its status.
pub(super) fn progress(pod: &Value) -> PodProgress {
    let status = &pod["status"];
    let state = &status["containerStatuses"][0]["state"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let phase = text(&status["phase"]);
    if ["Succeeded", "Failed"].contains(&phase.as_str()) {
        let words = text(&state["terminated"]["message"]);
        let words = if words.is_empty() { text(&status["message"]) } else { words };
        return PodProgress::Ended(words);
    }
    let waiting = &state["waiting"];
    let reason = text(&waiting["reason"]);
    if ["ImagePull", "ErrImage", "InvalidImage", "CreateContainer"]
        .iter()
        .any(|start| reason.starts_with(start))
    {
        return PodProgress::Stuck(format!("{reason}: {}", text(&waiting["message"])));
    }
    let conditions = status["conditions"].as_array();
    let unscheduled = conditions
        .into_iter()
        .flatten()
        .find(|condition| condition["type"] == "PodScheduled" && condition["status"] == "False");
    PodProgress::Waits(match unscheduled {
        Some(condition) => text(&condition["message"]),
        None if phase.is_empty() => "Pending".to_owned(),
        None => phase,
    })
}

/// Place from which a Pod probes, and the Challenge that shapes the Pod.
#[derive(Clone, Copy, Debug)]
pub struct ProbePlace<'a> {
    /// Namespace.
    pub namespace: &'a str,
    /// The Challenge whose answer is probed: it owns the Pod, and its solver has the template.
    pub challenge: Option<&'a Challenge>,
}

impl<'a> ProbePlace<'a> {
    /// Makes the place for the answer of a Challenge.
    pub fn of(challenge: &'a Challenge) -> Self {
        Self { namespace: &challenge.metadata.namespace, challenge: Some(challenge) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Challenge;

    #[test]
    fn the_template_of_the_solver_shapes_the_probe_pod() {
        let template = json!({
            "metadata": {"labels": {"team": "web"}},
            "spec": {"tolerations": [{"key": "spot"}], "imagePullSecrets": [{"name": "registry"}]},
        });
        for solver in [
            json!({"ingress": {"podTemplate": template}}),
            json!({"gatewayHTTPRoute": {"podTemplate": template}}),
        ] {
            let spec = json!({
                "url": "", "authorizationURL": "", "dnsName": "www.example.com", "wildcard": false, "type": "HTTP-01",
                "token": "token", "key": "token.thumbprint", "issuerRef": {"name": "ca"}, "solver": {"http01": solver},
            });
            let challenge =
                json!({"metadata": {"name": "a", "namespace": "web", "uid": "u"}, "spec": spec});
            let challenge: Challenge = serde_json::from_value(challenge).unwrap();
            let place = ProbePlace::of(&challenge);
            let pod = pod(place, "registry.example/probe", "http://www.example.com/", true);
            assert_eq!(pod["metadata"]["labels"], json!({"team": "web"}));
            assert_eq!(pod["spec"]["tolerations"], json!([{"key": "spot"}]));
            assert_eq!(pod["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
            assert_eq!(pod["spec"]["restartPolicy"], "Never");
        }
    }

    #[track_caller]
    fn check(status: &Value, expected: &PodProgress) {
        assert_eq!(progress(&json!({"status": status})), *expected);
    }

    #[test]
    fn a_status_tells_how_a_pod_stands() {
        let state = |phase: &str, state: Value| json!({"phase": phase, "containerStatuses": [{"state": state}]});
        let ended = |words: &str| PodProgress::Ended(words.to_owned());
        let waits = |what: &str| PodProgress::Waits(what.to_owned());
        let condition = json!({"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"});
        for (status, expected) in [
            (json!({}), waits("Pending")),
            (state("Running", json!({"running": {}})), waits("Running")),
            (state("Succeeded", json!({"terminated": {"message": "seen"}})), ended("seen")),
            (
                json!({"phase": "Failed", "message": "active longer than specified deadline"}),
                ended("active longer than specified deadline"),
            ),
            (
                state(
                    "Pending",
                    json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}}),
                ),
                PodProgress::Stuck("ErrImagePull: not found".to_owned()),
            ),
            (
                state("Pending", json!({"waiting": {"reason": "ContainerCreating"}})),
                waits("Pending"),
            ),
            (
                json!({"phase": "Pending", "conditions": [condition]}),
                waits("0/3 nodes are available"),
            ),
        ] {
            check(&status, &expected);
        }
    }
}
