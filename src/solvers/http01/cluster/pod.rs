//! The solver Pod, one small web server with one answer, and the Service before it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names;
use super::options::{Options, PORT};
use crate::model::Challenge;
use crate::model::solver::PodTemplate;

/// Builds the Pod.
pub fn pod(challenge: &Challenge, template: Option<&PodTemplate>, options: &Options) -> Value {
    let spec = &challenge.spec;
    let mut metadata = names::metadata(challenge, options);
    metadata["annotations"] = json!({
        "sidecar.istio.io/inject": "false",
        "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
    });
    let container = json!({
        "name": "acmesolver",
        "image": options.image,
        "imagePullPolicy": "IfNotPresent",
        "args": [
            format!("--listen-port={PORT}"),
            format!("--domain={}", spec.dns_name),
            format!("--token={}", spec.token),
            format!("--key={}", spec.key),
        ],
        "ports": [{"name": "http", "containerPort": PORT}],
        "resources": {
            "requests": {"cpu": options.request_cpu, "memory": options.request_memory},
            "limits": {"cpu": options.limit_cpu, "memory": options.limit_memory},
        },
        "securityContext": {
            "readOnlyRootFilesystem": true,
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
        },
    });
    let mut pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "nodeSelector": {"kubernetes.io/os": "linux"},
            "restartPolicy": "OnFailure",
            "securityContext": {
                "runAsNonRoot": options.run_as_non_root,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    });
    if let Some(class) = &options.runtime_class_name {
        pod["spec"]["runtimeClassName"] = class.as_str().into();
    }
    if let Some(template) = template {
        template.shape(&mut pod);
    }
    pod
}

/// Builds the Service before the Pod; an empty type means `NodePort`, as some ingress controllers need it.
pub fn service(challenge: &Challenge, service_type: &str, options: &Options) -> Value {
    let mut metadata = names::metadata(challenge, options);
    metadata["annotations"] = json!({"auth.istio.io/8089": "NONE"});
    let service_type = if service_type.is_empty() { "NodePort" } else { service_type };
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": {
            "type": service_type,
            "ports": [{"name": "http", "port": PORT, "targetPort": PORT}],
            "selector": BTreeMap::from_iter(names::labels(challenge)),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvers::testing::challenge;

    /// Compares one place in the Pod that a template and options make with what is expected there.
    fn check(template: Value, options: &Options, place: &str, expected: &Value) {
        let template: PodTemplate = serde_json::from_value(template).unwrap();
        let pod = pod(&challenge(), Some(&template), options);
        assert_eq!(pod.pointer(place).cloned().unwrap_or_default(), *expected, "{place}");
    }

    #[test]
    fn a_template_shapes_the_pod() {
        let spec = |spec: Value| json!({"spec": spec});
        for (template, place, expected) in [
            (
                json!({"metadata": {"labels": {"team": "web", "acme.cert-manager.io/http01-solver": "no"}}}),
                "/metadata/labels",
                json!({
                    "acme.cert-manager.io/http-domain": "810681837",
                    "acme.cert-manager.io/http-token": "108921378",
                    "acme.cert-manager.io/http01-solver": "no",
                    "team": "web",
                }),
            ),
            (
                json!({"metadata": {"annotations": {"sidecar.istio.io/inject": "true"}}}),
                "/metadata/annotations",
                json!({
                    "cluster-autoscaler.kubernetes.io/safe-to-evict": "true",
                    "sidecar.istio.io/inject": "true",
                }),
            ),
            (
                spec(json!({"nodeSelector": {"disk": "ssd", "kubernetes.io/os": "plan9"}})),
                "/spec/nodeSelector",
                json!({"disk": "ssd", "kubernetes.io/os": "plan9"}),
            ),
            (
                spec(json!({"tolerations": [{"key": "spot"}]})),
                "/spec/tolerations",
                json!([{"key": "spot"}]),
            ),
            (
                spec(json!({"imagePullSecrets": [{"name": "registry"}]})),
                "/spec/imagePullSecrets",
                json!([{"name": "registry"}]),
            ),
            (spec(json!({"priorityClassName": "high"})), "/spec/priorityClassName", json!("high")),
            (spec(json!({"serviceAccountName": "a"})), "/spec/serviceAccountName", json!("a")),
            (
                spec(json!({"affinity": {"nodeAffinity": {}}})),
                "/spec/affinity",
                json!({"nodeAffinity": {}}),
            ),
            // The whole of it is replaced (conformance case 76).
            (
                spec(json!({"securityContext": {"runAsUser": 7}})),
                "/spec/securityContext",
                json!({"runAsUser": 7}),
            ),
            (
                spec(json!({"resources": {"limits": {"cpu": "1", "example.com/port": 1}}})),
                "/spec/containers/0/resources",
                json!({
                    "requests": {"cpu": "10m", "memory": "64Mi"},
                    "limits": {"cpu": "1", "memory": "64Mi", "example.com/port": 1},
                }),
            ),
        ] {
            check(template, &Options::default(), place, &expected);
        }
    }

    #[test]
    fn flags_shape_the_pod() {
        let options = Options {
            image: "registry.example/solver:2".to_owned(),
            run_as_non_root: false,
            runtime_class_name: Some("gvisor".to_owned()),
            request_cpu: "1m".to_owned(),
            limit_memory: "8Mi".to_owned(),
            ..Options::default()
        };
        let container = "/spec/containers/0";
        for (place, expected) in [
            (format!("{container}/image"), json!("registry.example/solver:2")),
            ("/spec/securityContext/runAsNonRoot".to_owned(), json!(false)),
            ("/spec/runtimeClassName".to_owned(), json!("gvisor")),
            (format!("{container}/resources/requests/cpu"), json!("1m")),
            (format!("{container}/resources/limits/memory"), json!("8Mi")),
        ] {
            check(json!({}), &options, &place, &expected);
        }
    }
}
