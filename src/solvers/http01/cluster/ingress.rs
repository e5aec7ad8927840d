//! The solver Ingress: made for the Challenge, or a path of the Challenge in an existing Ingress.
//!
//! In a foreign Ingress a rule of the host without paths is left alone and a new rule is added: a rule
//! without paths sends the whole host to the default backend, and clean-up could not restore it.

use serde_json::{Map, Value, json};

use super::names;
use super::options::{Options, PORT};
use crate::model::Challenge;
use crate::model::pod_template::overlay;
use crate::model::solver::IngressSolver;
use crate::solvers::http01::PATH;

/// Annotation that admits all addresses if an Ingress is closed by default.
const OPEN_TO: &str = "nginx.ingress.kubernetes.io/whitelist-source-range";

/// Builds the Ingress.
///
/// # Errors
/// Fails if the solver names its class in both ways.
pub fn ingress(
    challenge: &Challenge,
    solver: &IngressSolver,
    service: &str,
    options: &Options,
) -> Result<Value, String> {
    let mut metadata = names::metadata(challenge, options);
    let template = solver.ingress_template.as_ref().map(|template| &template.metadata);
    let narrows = |name: &String| name.rsplit('/').next() == Some("whitelist-source-range");
    if !template.is_some_and(|template| template.annotations.keys().any(narrows)) {
        metadata["annotations"] = json!({OPEN_TO: "0.0.0.0/0,::/0"});
    }
    let mut spec = json!({"rules": [rule(challenge, service)]});
    match (&solver.ingress_class_name, &solver.class) {
        (Some(_), Some(_)) => {
            return Err(
                "the fields ingressClassName and class cannot be set at the same time".to_owned()
            );
        }
        (Some(class), None) => spec["ingressClassName"] = class.as_str().into(),
        (None, Some(class)) => {
            let class = ("kubernetes.io/ingress.class".to_owned(), class.clone());
            overlay(&mut metadata, "annotations", &[class].into());
        }
        (None, None) => {}
    }
    if let Some(template) = template {
        overlay(&mut metadata, "labels", &template.labels);
        overlay(&mut metadata, "annotations", &template.annotations);
    }
    Ok(json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": metadata,
        "spec": spec,
    }))
}

/// Returns whether a solver Ingress leads to that Service.
pub(super) fn leads_to(ingress: &Value, service: &str) -> bool {
    ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == service
}

/// Puts the challenge's path into an existing Ingress, before other paths of the host; returns whether anything changed.
pub fn add_path(ingress: &mut Value, challenge: &Challenge, service: &str) -> bool {
    let ours = path(challenge, service);
    let Some(rules) = list(&mut ingress["spec"], "rules") else { return false };
    // A rule without paths sends the whole host to the default backend, and must not be changed.
    let fitting = rules.iter_mut().find(|rule| is_for(rule, challenge) && rule["http"].is_object());
    let Some(paths) = fitting.and_then(|rule| list(&mut rule["http"], "paths")) else {
        rules.push(rule(challenge, service));
        return true;
    };
    match paths.iter_mut().find(|path| path["path"] == ours["path"]) {
        Some(path) if path["backend"] == ours["backend"] => false,
        Some(path) => {
            path["backend"] = ours["backend"].clone();
            true
        }
        None => {
            paths.insert(0, ours);
            true
        }
    }
}

/// Removes the challenge's path from an Ingress, and the rule if it has no other path; returns whether anything changed.
pub fn remove_path(ingress: &mut Value, challenge: &Challenge) -> bool {
    let ours = names::path(challenge);
    remove_paths(ingress, |rule| is_for(rule, challenge), |path| path["path"] == ours.as_str())
}

/// Removes the paths of challenges that lead to a Service, as [`remove_path`] does.
pub(super) fn remove_paths_to(ingress: &mut Value, service: &str) -> bool {
    let is_ours = |path: &Value| {
        path["backend"]["service"]["name"] == service
            && path["path"].as_str().is_some_and(|path| path.starts_with(PATH))
    };
    remove_paths(ingress, |_| true, is_ours)
}

fn remove_paths(
    ingress: &mut Value,
    concerns: impl Fn(&Value) -> bool,
    is_ours: impl Fn(&Value) -> bool,
) -> bool {
    let Some(Value::Array(rules)) = ingress.pointer_mut("/spec/rules") else { return false };
    let mut changed = false;
    rules.retain_mut(|rule| {
        if !concerns(rule) {
            return true;
        }
        let Some(Value::Array(paths)) = rule.pointer_mut("/http/paths") else { return true };
        let before = paths.len();
        paths.retain(|path| !is_ours(path));
        let has_shrunk = paths.len() < before;
        changed |= has_shrunk;
        !(has_shrunk && paths.is_empty())
    });
    changed
}

fn is_for(rule: &Value, challenge: &Challenge) -> bool {
    rule["host"].as_str().unwrap_or_default() == names::host(challenge).unwrap_or_default()
}

/// Returns the list in a field, made if missing; `None` if the field holds something else.
fn list<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Vec<Value>> {
    if object[field].is_null() {
        object[field] = json!([]);
    }
    object[field].as_array_mut()
}

fn rule(challenge: &Challenge, service: &str) -> Value {
    let mut rule = Map::new();
    if let Some(host) = names::host(challenge) {
        rule.insert("host".to_owned(), host.into());
    }
    rule.insert("http".to_owned(), json!({"paths": [path(challenge, service)]}));
    rule.into()
}

fn path(challenge: &Challenge, service: &str) -> Value {
    json!({
        "path": names::path(challenge),
        "pathType": "Exact",
        "backend": {"service": {"name": service, "port": {"number": PORT}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::solvers::testing::challenge_with;

    const HOST: &str = "www.example.com";

    /// Compares one place in the Ingress that a solver makes for a name with what is expected there.
    fn check(name: &str, solver: Value, place: &str, expected: &Value) {
        let challenge = challenge_with(name, &json!({"ingress": solver}));
        let solver: IngressSolver = serde_json::from_value(solver).unwrap();
        let made = ingress(&challenge, &solver, "service", &Options::default()).unwrap();
        assert_eq!(
            made.pointer(place).cloned().unwrap_or_default(),
            *expected,
            "{solver:?} {place}"
        );
    }

    #[test]
    fn the_solver_shapes_the_ingress() {
        let annotated = |annotations: Value| json!({"ingressTemplate": {"metadata": {"annotations": annotations}}});
        let open = ("nginx.ingress.kubernetes.io/whitelist-source-range", "0.0.0.0/0,::/0");
        for (solver, place, expected) in [
            (json!({}), "/spec/ingressClassName", json!(null)),
            (json!({}), "/metadata/annotations", json!({open.0: open.1})),
            (json!({"ingressClassName": "edge"}), "/spec/ingressClassName", json!("edge")),
            (
                json!({"class": "nginx"}),
                "/metadata/annotations",
                json!({"kubernetes.io/ingress.class": "nginx", open.0: open.1}),
            ),
            (
                annotated(json!({"a.example/b": "c"})),
                "/metadata/annotations",
                json!({"a.example/b": "c", open.0: open.1}),
            ),
            (
                annotated(json!({"haproxy.org/whitelist-source-range": "10.0.0.0/8"})),
                "/metadata/annotations",
                json!({"haproxy.org/whitelist-source-range": "10.0.0.0/8"}),
            ),
            (
                json!({"ingressTemplate": {"metadata": {"labels": {"team": "web"}}}}),
                "/metadata/labels/team",
                json!("web"),
            ),
        ] {
            check(HOST, solver, place, &expected);
        }
    }

    #[test]
    fn a_rule_has_a_name_and_no_address() {
        check(HOST, json!({}), "/spec/rules/0/host", &json!(HOST));
        for address in ["10.0.0.1", "2001:db8::1"] {
            check(address, json!({}), "/spec/rules/0/host", &json!(null));
        }
    }

    #[test]
    fn two_ways_to_name_a_class_are_one_too_many() {
        let solver = json!({"class": "nginx", "ingressClassName": "nginx"});
        let challenge = challenge_with(HOST, &json!({"ingress": solver}));
        let solver = serde_json::from_value(solver).unwrap();
        assert_eq!(
            ingress(&challenge, &solver, "service", &Options::default()).unwrap_err(),
            "the fields ingressClassName and class cannot be set at the same time"
        );
    }

    /// Adds our path to rules that are there, looks at them, and takes it out again: then all is as before.
    fn check_edit(rules: &Value, expected: &Value) {
        let challenge = challenge_with(HOST, &json!({"ingress": {"name": "shop"}}));
        let before = json!({"spec": {"rules": rules, "tls": [{"hosts": [HOST]}]}});
        let mut edited = before.clone();
        assert!(!remove_path(&mut edited, &challenge), "nothing of ours is there at first");
        assert!(add_path(&mut edited, &challenge, "service"));
        assert_eq!(&edited["spec"]["rules"], expected);
        assert!(!add_path(&mut edited, &challenge, "service"), "it is safe to repeat");
        assert!(add_path(&mut edited, &challenge, "another"), "a new Service takes the place");
        let mut swept = edited.clone();
        assert!(!remove_paths_to(&mut swept, "service"), "nothing leads there any more");
        assert!(remove_paths_to(&mut swept, "another"));
        assert!(remove_path(&mut edited, &challenge));
        assert_eq!(swept, edited, "whoever has only the Service finds the same path");
        let empty_as_missing = |rules: &Value| rules.as_array().cloned().unwrap_or_default();
        assert_eq!(empty_as_missing(&edited["spec"]["rules"]), empty_as_missing(rules));
        assert_eq!(edited["spec"]["tls"], before["spec"]["tls"]);
    }

    #[test]
    fn only_our_path_comes_and_goes() {
        let challenge = challenge_with(HOST, &json!({"ingress": {"name": "shop"}}));
        let ours = path(&challenge, "service");
        let shop = json!({
            "path": "/", "pathType": "Prefix",
            "backend": {"service": {"name": "shop", "port": {"number": 80}}},
        });
        let rule = |host: &str, paths: Value| json!({"host": host, "http": {"paths": paths}});
        let elsewhere = rule("mail.example.com", json!([shop]));
        check_edit(&json!(null), &json!([rule(HOST, json!([ours]))]));
        check_edit(
            &json!([elsewhere, rule(HOST, json!([shop]))]),
            &json!([elsewhere, rule(HOST, json!([ours, shop]))]),
        );
        check_edit(&json!([elsewhere]), &json!([elsewhere, rule(HOST, json!([ours]))]));
        // A host that goes to the default backend.
        check_edit(&json!([{"host": HOST}]), &json!([{"host": HOST}, rule(HOST, json!([ours]))]));
    }
}
