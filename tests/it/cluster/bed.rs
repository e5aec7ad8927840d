//! The harness of the cluster: what the tests on it stand on holds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::cluster::{Arena, Cluster, Namespace, OUR_IMAGE, eventually};
use crate::support::http;
use crate::support::pebble::{Pebble, PebbleOptions};

const SOLVER: &str = "quay.io/jetstack/cert-manager-acmesolver:v1.21.2";
const PATH: &str = "/.well-known/acme-challenge/token";

/// Issues one certificate by cert-manager, from Pebble, with this HTTP-01 solver; nothing of the solver may stay.
fn check(solver: &Value) {
    let cluster = Cluster::shared();
    let pebble = pebble(cluster);
    let namespace = cluster.namespace("issue");
    let _peer = namespace.peer(&["--leader-elect=false"]);
    let kubectl = namespace.kubectl();
    let host = apply_certificate(&namespace, &pebble, solver);
    kubectl.wait_for("certificate/web", "Ready");

    let secret = kubectl.object("secret/web-tls");
    let chain = STANDARD.decode(secret["data"]["tls.crt"].as_str().unwrap()).unwrap();
    let (_, leaf) = x509_parser::pem::parse_x509_pem(&chain).unwrap();
    let leaf = leaf.parse_x509().unwrap();
    let names = leaf.subject_alternative_name().unwrap().unwrap();
    assert_eq!(names.value.general_names.len(), 1);
    assert_eq!(names.value.general_names[0].to_string(), format!("DNSName({host})"));
    assert_eq!(pebble.issued(), 1);
    eventually("the end of the solver", || {
        ["pods", "services", "ingresses", "httproutes", "challenges"]
            .iter()
            .all(|kind| kubectl.items(kind).is_empty())
            .then_some(())
    });
}

/// A CA that looks where the cluster serves.
fn pebble(cluster: &Cluster) -> Pebble {
    let options = PebbleOptions { http_port: Some(cluster.http_port()), ..PebbleOptions::calm() };
    Pebble::start(&options)
}

/// Applies a Certificate with its Issuer and a Gateway; returns the name it is for.
fn apply_certificate(namespace: &Namespace<'_>, pebble: &Pebble, solver: &Value) -> String {
    // Hosts are the cluster's, not the namespace's.
    let host = format!("{}.example.com", namespace.name());
    namespace.kubectl().apply(&list(&[gateway(), issuer(pebble, solver), certificate(&host)]));
    host
}

fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn issuer(pebble: &Pebble, solver: &Value) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": {"name": "pebble"},
        "spec": {"acme": {
            "server": pebble.directory(),
            "caBundle": STANDARD.encode(pebble.tls_ca_pem()),
            "privateKeySecretRef": {"name": "account"},
            "solvers": [{"http01": solver}],
        }},
    })
}

fn certificate(host: &str) -> Value {
    json!({
        "apiVersion": "cert-manager.io/v1", "kind": "Certificate", "metadata": {"name": "web"},
        "spec": {"secretName": "web-tls", "dnsNames": [host], "issuerRef": {"name": "pebble"}},
    })
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {
            "gatewayClassName": "bed",
            "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}],
        },
    })
}

/// Applies a Pod of this image that is told to solve for a host, and its Service.
fn apply_solver(namespace: &Namespace<'_>, image: &str, host: &str) {
    let arguments = ["--listen-port=8089", "--token=token", "--key=answer"];
    let arguments: Vec<_> =
        arguments.iter().map(ToString::to_string).chain([format!("--domain={host}")]).collect();
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "solver", "labels": {"app": "solver"}},
        "spec": {
            "restartPolicy": "OnFailure",
            "containers": [{"name": "solver", "image": image, "args": arguments}],
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "solver"},
        "spec": {"selector": {"app": "solver"}, "ports": [{"port": 8089}]},
    });
    namespace.kubectl().apply(&list(&[pod, service]));
}

fn ingress(host: &str) -> Value {
    let service = json!({"name": "solver", "port": {"number": 8089}});
    let path = json!({"path": PATH, "pathType": "Exact", "backend": {"service": service}});
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "solver"},
        "spec": {"rules": [{"host": host, "http": {"paths": [path]}}]},
    })
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn the_api_server_knows_cert_managers_kinds() {
    let kubectl = Cluster::shared().kubectl();
    for group in ["cert-manager.io", "acme.cert-manager.io", "gateway.networking.k8s.io"] {
        let kinds = kubectl.run(&["api-resources", "--api-group", group, "-o", "name"]);
        assert!(!kinds.trim().is_empty(), "{group} has no kinds");
    }
    let version: Value = serde_json::from_str(&kubectl.run(&["version", "-o", "json"])).unwrap();
    assert_eq!(version["serverVersion"]["minor"], "36");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn the_schema_is_checked_and_unknown_fields_of_a_status_are_pruned() {
    let namespace = Cluster::shared().namespace("schema");
    let kubectl = namespace.kubectl();
    kubectl.apply(&certificate("www.example.com").to_string());
    assert_eq!(kubectl.object("certificate/web")["spec"]["secretName"], "web-tls");
    let patch = r#"{"status": {"revision": 3, "ours": "yes"}}"#;
    let deed = ["patch", "certificate/web", "--subresource=status", "--type=merge", "-p", patch];
    kubectl.run(&deed);
    let status = kubectl.object("certificate/web")["status"].clone();
    assert_eq!(status, json!({"revision": 3}));

    let patch = r#"{"spec": {"dnsNames": "www.example.com"}}"#;
    let refused = kubectl.try_run(&["patch", "certificate/web", "--type=merge", "-p", patch]);
    assert!(refused.unwrap_err().contains("must be of type array"));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_account_may_do_what_its_role_says_and_no_more() {
    let namespace = Cluster::shared().namespace("roles");
    let rules = "[{apiGroups: [cert-manager.io], resources: [certificates], verbs: [get, list]}]";
    let reader = namespace.service_account("reader", rules);
    assert!(reader.items("certificates").is_empty());
    let refused = reader.try_run(&["get", "secrets"]).unwrap_err();
    assert!(refused.contains("forbidden") && refused.contains(":reader"), "{refused}");
    assert!(reader.try_run(&["get", "certificates", "-A"]).is_err());
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_solver_pod_answers_as_long_as_it_is_there() {
    let cluster = Cluster::shared();
    let namespace = cluster.namespace("pod");
    let kubectl = namespace.kubectl();
    let host = format!("{}.example.com", namespace.name());
    let look = || http::get(cluster.http_port(), &host, PATH);
    assert!(look().unwrap_err().to_string().starts_with("404"));
    kubectl.apply(&ingress(&host).to_string());
    eventually("the Ingress", || look().err()?.to_string().starts_with("503").then_some(()));
    apply_solver(&namespace, SOLVER, &host);
    kubectl.wait_for("pod/solver", "Ready");
    assert_eq!(eventually("the answer", || look().ok()), "answer");
    assert!(http::get(cluster.http_port(), &host, "/other").is_err());

    kubectl.run(&["delete", "pod", "solver"]);
    eventually("the end of it", || look().err()?.to_string().starts_with("503").then_some(()));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_pod_of_an_unknown_image_waits_and_says_why() {
    let namespace = Cluster::shared().namespace("image");
    apply_solver(&namespace, "registry.example/other:1", "www.example.com");
    let kubectl = namespace.kubectl();
    let reason = eventually("the reason", || {
        let pod = kubectl.object("pod/solver");
        let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
        waiting["reason"].as_str().map(str::to_owned)
    });
    assert_eq!(reason, "ImagePullBackOff");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_pod_of_our_image_runs_this_program_and_ends() {
    let namespace = Cluster::shared().namespace("ours");
    let kubectl = namespace.kubectl();
    let image = format!("--image={OUR_IMAGE}:latest");
    kubectl.run(&["run", "ours", &image, "--restart=Never", "--", "--version"]);
    eventually("the end of the Pod", || {
        (kubectl.object("pod/ours")["status"]["phase"] == "Succeeded").then_some(())
    });
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_issues_through_an_ingress() {
    check(&json!({"ingress": {"ingressClassName": "bed"}}));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_issues_through_an_http_route() {
    check(&json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}}));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_hands_its_lease_over_when_it_stops() {
    let namespace = Cluster::shared().namespace("lease");
    let kubectl = namespace.kubectl();
    let holder = || {
        let lease = kubectl.object("lease/cert-manager-controller");
        lease["spec"]["holderIdentity"].as_str().map(str::to_owned)
    };
    let first = namespace.peer(&["--host-name=node-a"]);
    first.wait_until_at_work();
    assert_eq!(holder().as_deref(), Some("node-a-external-cert-manager-controller"));
    first.stop();
    assert_eq!(holder().as_deref(), Some(""));

    let mut second = namespace.peer(&["--host-name=node-b"]);
    second.wait_until_at_work();
    second.freeze();
    assert!(second.is_running());
    second.thaw();
    second.kill();
    assert_eq!(holder().as_deref(), Some("node-b-external-cert-manager-controller"));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_goes_on_where_it_was_killed() {
    let cluster = Cluster::shared();
    let pebble = pebble(cluster);
    let namespace = cluster.namespace("killed");
    let kubectl = namespace.kubectl();
    let first = namespace.peer(&["--leader-elect=false"]);
    apply_certificate(&namespace, &pebble, &json!({"ingress": {"ingressClassName": "bed"}}));
    eventually("a solver", || kubectl.items("pods").first().cloned());
    first.kill();
    let orders = pebble.orders();
    let _second = namespace.peer(&["--leader-elect=false"]);
    kubectl.wait_for("certificate/web", "Ready");
    assert_eq!((pebble.accounts(), pebble.orders(), pebble.issued()), (1, orders, 1));
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn the_api_server_comes_back_with_all_it_had() {
    let cluster = Arena::enter();
    let namespace = cluster.namespace("power");
    let kubectl = namespace.kubectl();
    let host = "www.example.com";
    kubectl.apply(&ingress(host).to_string());
    apply_solver(&namespace, SOLVER, host);
    kubectl.wait_for("pod/solver", "Ready");
    cluster.stop_api_server();
    assert!(kubectl.try_run(&["get", "pods"]).is_err());
    cluster.start_api_server();
    assert_eq!(kubectl.items("pods").len(), 1);

    // What was never written has to be found out anew, and the controllers are still there.
    let look = || http::get(cluster.http_port(), host, PATH).ok();
    assert_eq!(eventually("the answer", look), "answer");
    cluster.stop_stand_in();
    assert_eq!(look(), None);
    cluster.start_stand_in();
    assert_eq!(eventually("the answer of the new process", look), "answer");
    kubectl.run(&["delete", "namespace", namespace.name(), "--timeout=120s"]);
}
