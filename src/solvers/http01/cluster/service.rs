//! The Service before the solver Pod.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::names;
use super::options::{Options, PORT};
use crate::model::Challenge;

/// Builds the Service; an empty type means `NodePort`, as some ingress controllers need it.
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
