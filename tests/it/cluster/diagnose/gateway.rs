//! The way of an HTTPRoute, hop by hop, judged by what the objects ask for: nobody serves Gateways here, and nobody writes a status.

use serde_json::{Value, json};

use super::diagnose;
use super::path::{Stuck, http, is_presented, said};
use crate::support::cluster::{Cluster, Namespace};

/// A Gateway of a namespace beside that of the Certificate.
fn gateway(listener: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "public"},
        "spec": {"gatewayClassName": "bed", "listeners": [listener]},
    })
}

/// A listener that takes routes of these namespaces, and of these kinds.
fn listener(namespaces: &Value, kinds: &Value) -> Value {
    let mut listener = http();
    listener["allowedRoutes"] = json!({"namespaces": namespaces, "kinds": kinds});
    listener
}

fn edge(name: &str) -> Namespace<'static> {
    Cluster::shared().namespace(name)
}

/// The first finding is that the route stops there.
#[track_caller]
fn stops(stuck: &Stuck, at: &str) {
    let finding = stuck.names_first("GW-02");
    let message = finding["message"].as_str().unwrap();
    assert!(message.contains(at), "{at}: {finding:#}");
}

/// It does not stop any more.
#[track_caller]
fn goes_on(stuck: &Stuck) {
    let (_, report) = stuck.diagnose_in(0, &["certificate/web"]);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|finding| finding["cause"] != "GW-02"), "{report:#}");
}

fn by_parent(parent: &Value) -> Value {
    json!({"gatewayHTTPRoute": {"parentRefs": [parent]}})
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn gw_02_the_namespaces_the_kinds_and_the_hosts_of_a_listener_decide() {
    let edge = edge("route-edge");
    let parent = json!({"name": "public", "namespace": edge.name()});
    let stuck = Stuck::before("route-own", &by_parent(&parent));
    let own = stuck.bench.namespace.name();
    let offers = |namespaces: &Value, kinds: &Value| {
        edge.kubectl().apply(&gateway(&listener(namespaces, kinds)).to_string());
    };
    let all = json!({"from": "All"});
    offers(&json!({"from": "Same"}), &json!([]));
    stuck.order(&[], is_presented);
    stops(&stuck, &format!("accepts routes of namespace {} only", edge.name()));
    // The same asked of the Gateway, by the Challenge that is solved through it.
    let (_, report) = diagnose(&edge, &edge.kubectl(), &["gateway/public"]);
    assert_eq!(report["findings"][0]["cause"], "GW-02", "{report:#}");
    let teams = json!({"from": "Selector", "selector": {"matchExpressions": [{"key": "team", "operator": "In", "values": ["web"]}]}});
    offers(&teams, &json!([]));
    stops(
        &stuck,
        &format!(
            "accepts routes of namespaces with team In (web) only, which {own} does not match"
        ),
    );
    stuck.kubectl().run(&["label", "namespace", own, "team=web"]);
    goes_on(&stuck);
    offers(&all, &json!([{"kind": "GRPCRoute"}]));
    stops(&stuck, "accepts GRPCRoute only");
    offers(&all, &json!([{"kind": "HTTPRoute"}]));
    goes_on(&stuck);
    let mut other = listener(&all, &json!([]));
    other["hostname"] = "*.example.net".into();
    edge.kubectl().apply(&gateway(&other).to_string());
    stops(&stuck, "is for *.example.net only");
    edge.kubectl().run(&["delete", "gateway", "public"]);
    stops(&stuck, &format!("Gateway {}/public: does not exist", edge.name()));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn gw_02_a_gateway_that_takes_no_listener_sets_is_named() {
    let edge = edge("set-edge");
    let parent =
        json!({"group": "gateway.networking.k8s.io", "kind": "ListenerSet", "name": "own"});
    let stuck = Stuck::before("set-own", &by_parent(&parent));
    let set = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "ListenerSet", "metadata": {"name": "own"},
        "spec": {"parentRef": {"name": "public", "namespace": edge.name()}, "listeners": [http()]},
    });
    let mut gateway = gateway(&http());
    edge.kubectl().apply(&gateway.to_string());
    stuck.order(&[], is_presented);
    stops(&stuck, "ListenerSet set-own-");
    stuck.kubectl().apply(&set.to_string());
    stops(&stuck, "spec.allowedListeners: the Gateway accepts no ListenerSets");
    gateway["spec"]["allowedListeners"] = json!({"namespaces": {"from": "All"}});
    edge.kubectl().apply(&gateway.to_string());
    goes_on(&stuck);
    edge.kubectl().run(&["delete", "gateway", "public"]);
    stops(&stuck, &format!("spec.parentRef: there is no Gateway {}/public", edge.name()));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn gw_02_a_back_end_of_another_namespace_needs_a_grant() {
    let apps = edge("grant-apps");
    let stuck = Stuck::before("grant-own", &by_parent(&json!({"name": "public"})));
    stuck.kubectl().apply(&gateway(&http()).to_string());
    stuck.order(&[], is_presented);
    let route = stuck.solver("httproutes");
    let patch = json!([{"op": "add", "path": "/spec/rules/0/backendRefs/0/namespace", "value": apps.name()}]);
    stuck.kubectl().run(&["patch", "httproute", &route, "--type=json", "-p", &patch.to_string()]);
    stops(&stuck, &format!("no ReferenceGrant of namespace {} lets a HTTPRoute of ", apps.name()));
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": "solvers"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": stuck.bench.namespace.name()}],
            "to": [{"group": "", "kind": "Service"}],
        },
    });
    apps.kubectl().apply(&grant.to_string());
    goes_on(&stuck);
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn gw_03_the_secret_of_a_listener_is_in_another_namespace() {
    let edge = edge("secret-edge");
    let parent = json!({"name": "public", "namespace": edge.name()});
    let stuck = Stuck::before("secret-own", &by_parent(&parent));
    let own = stuck.bench.namespace.name();
    let listener = json!({
        "name": "https", "port": 443, "protocol": "HTTPS",
        "allowedRoutes": {"namespaces": {"from": "All"}},
        "tls": {"certificateRefs": [{"name": "web-tls", "namespace": own}]},
    });
    edge.kubectl().apply(&gateway(&listener).to_string());
    stuck.order(&[], is_presented);
    let refused = |reason: &str| {
        let listeners = json!([{
            "name": "https", "attachedRoutes": 0, "supportedKinds": [],
            "conditions": [said("ResolvedRefs", "False", reason)],
        }]);
        let patch = json!({"status": {"listeners": listeners}}).to_string();
        let deed =
            ["patch", "gateway/public", "--subresource=status", "--type=merge", "-p", &patch];
        edge.kubectl().run(&deed);
        stuck.names_first("GW-03")["message"].as_str().unwrap().to_owned()
    };
    let message = refused("RefNotPermitted");
    let lacks = format!("no ReferenceGrant of namespace {own} lets a Gateway of {}", edge.name());
    assert!(message.contains(&lacks) && message.contains("web-tls"), "{message}");
    let grant = json!({
        "apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": "edge"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "namespace": edge.name()}],
            "to": [{"group": "", "kind": "Secret"}],
        },
    });
    stuck.kubectl().apply(&grant.to_string());
    let message = refused("InvalidCertificateRef");
    assert!(message.contains("Secret web-tls, which does not exist yet"), "{message}");
}
