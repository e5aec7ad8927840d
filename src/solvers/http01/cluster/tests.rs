//! The objects we build are those that cert-manager made.

use serde_json::{Value, json};

use super::*;

/// The image in the recordings.
const RECORDED: &str = "quay.io/jetstack/cert-manager-acmesolver:v1.21.1";

/// Builds the objects of the recorded Challenge and compares them with the recorded ones, without what the server fills in.
fn check(recording: &str) {
    let recorded: Vec<Value> = serde_json::from_str(recording).unwrap();
    let challenge: Challenge = serde_json::from_value(recorded[0].clone()).unwrap();
    let options = Options { image: RECORDED.to_owned(), ..Options::default() };
    let service = objects::name(&recorded[2]);
    let http01 = challenge.spec.solver.http01.clone().unwrap();
    let (entrance, pod_template, service_type) = match (&http01.ingress, &http01.gateway_http_route)
    {
        (Some(solver), None) => {
            let ingress = ingress::ingress(&challenge, solver, service, &options).unwrap();
            (ingress, &solver.pod_template, &solver.service_type)
        }
        (None, Some(solver)) => {
            let route = route::route(&challenge, solver, service, &options);
            (route, &solver.pod_template, &solver.service_type)
        }
        _ => panic!("no solver was recorded"),
    };
    let built = [
        pod::pod(&challenge, pod_template.as_ref(), &options),
        pod::service(&challenge, service_type, &options),
        entrance,
    ];
    for (ours, theirs) in built.iter().zip(&recorded[1..]) {
        assert_eq!(filled_in(ours, theirs), *theirs);
    }
}

/// Adds the values that only the server knows: these fields of the recorded object, by place.
fn filled_in(ours: &Value, theirs: &Value) -> Value {
    let mut stored = ours.clone();
    for field in ["name", "uid", "resourceVersion", "creationTimestamp", "generation"] {
        if let Some(value) = theirs["metadata"].get(field) {
            stored["metadata"][field] = value.clone();
        }
    }
    let defaults = match theirs["kind"].as_str().unwrap() {
        "Pod" => json!({
            "dnsPolicy": "ClusterFirst",
            "preemptionPolicy": "PreemptLowerPriority",
            "priority": 0,
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "tolerations": theirs["spec"]["tolerations"],
        }),
        "Service" => json!({
            "clusterIP": theirs["spec"]["clusterIP"],
            "clusterIPs": theirs["spec"]["clusterIPs"],
            "externalTrafficPolicy": "Cluster",
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
        }),
        _ => json!({}),
    };
    for (field, value) in defaults.as_object().unwrap() {
        stored["spec"][field] = value.clone();
    }
    match theirs["kind"].as_str().unwrap() {
        "Pod" => {
            let container = &mut stored["spec"]["containers"][0];
            container["ports"][0]["protocol"] = "TCP".into();
            container["terminationMessagePath"] = "/dev/termination-log".into();
            container["terminationMessagePolicy"] = "File".into();
        }
        "Service" => {
            let port = &mut stored["spec"]["ports"][0];
            port["protocol"] = "TCP".into();
            port["nodePort"] = theirs["spec"]["ports"][0]["nodePort"].clone();
        }
        _ => {}
    }
    stored
}

#[test]
fn objects_for_an_ingress_are_those_of_cert_manager() {
    check(include_str!("../../../../tests/fixtures/solvers/ingress.json"));
}

#[test]
fn objects_for_a_route_are_those_of_cert_manager() {
    check(include_str!("../../../../tests/fixtures/solvers/gateway.json"));
}
