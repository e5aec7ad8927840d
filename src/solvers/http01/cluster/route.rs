//! The solver HTTPRoute of the Gateway API.

use serde_json::{Value, json};

use super::names;
use super::options::{Options, PORT};
use crate::model::Challenge;
use crate::model::pod_template::overlay;
use crate::model::solver::GatewaySolver;

/// Builds the HTTPRoute.
pub fn route(
    challenge: &Challenge,
    solver: &GatewaySolver,
    service: &str,
    options: &Options,
) -> Value {
    let mut metadata = names::metadata(challenge, options);
    overlay(&mut metadata, "labels", &solver.labels);
    let backend = json!({
        "group": "",
        "kind": "Service",
        "name": service,
        "namespace": challenge.metadata.namespace,
        "port": PORT,
        "weight": 1,
    });
    let path = json!({"type": "Exact", "value": names::path(challenge)});
    let mut spec = json!({
        "parentRefs": solver.parent_refs,
        "rules": [{"matches": [{"path": path}], "backendRefs": [backend]}],
    });
    if let Some(host) = names::host(challenge) {
        spec["hostnames"] = json!([host]);
    }
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1",
        "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": spec,
    })
}

/// Updates an existing route to the wanted state; returns whether anything changed. Defaults filled in by the server stay.
pub(super) fn bring_up_to_date(stored: &mut Value, wanted: &Value) -> bool {
    let labels = &wanted["metadata"]["labels"];
    if covers(&stored["spec"], &wanted["spec"]) && covers(&stored["metadata"]["labels"], labels) {
        return false;
    }
    stored["spec"] = wanted["spec"].clone();
    stored["metadata"]["labels"] = labels.clone();
    true
}

/// Returns whether a stored value has all wanted values, beside defaults of the server.
fn covers(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, value)| stored.get(name).is_some_and(|found| covers(found, value))),
        (Value::Array(stored), Value::Array(wanted)) => {
            stored.len() == wanted.len()
                && stored.iter().zip(wanted).all(|(found, value)| covers(found, value))
        }
        _ => stored == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvers::testing::challenge_with;

    /// The route that a solver makes for a name.
    fn made(name: &str, solver: Value) -> Value {
        let challenge = challenge_with(name, &json!({"gatewayHTTPRoute": solver}));
        let solver = serde_json::from_value(solver).unwrap();
        route(&challenge, &solver, "service", &Options::default())
    }

    #[test]
    fn an_address_has_no_hostname() {
        assert_eq!(made("a.example", json!({}))["spec"]["hostnames"], json!(["a.example"]));
        assert_eq!(made("10.0.0.1", json!({}))["spec"].get("hostnames"), None);
    }

    #[test]
    fn a_route_is_written_only_when_it_says_something_else() {
        let wanted = made("a.example", json!({"parentRefs": [{"name": "edge"}]}));
        let mut stored = wanted.clone();
        stored["spec"]["parentRefs"][0]["kind"] = "Gateway".into();
        stored["metadata"]["labels"]["theirs"] = "stays".into();
        assert!(!bring_up_to_date(&mut stored, &wanted), "defaults are no difference");

        let other = made("a.example", json!({"parentRefs": [{"name": "inner"}]}));
        assert!(bring_up_to_date(&mut stored, &other));
        assert_eq!(stored["spec"], other["spec"]);
        let labelled =
            made("a.example", json!({"parentRefs": [{"name": "inner"}], "labels": {"a": "b"}}));
        assert!(bring_up_to_date(&mut stored, &labelled));
        assert_eq!(stored["metadata"]["labels"]["a"], "b");
    }
}
