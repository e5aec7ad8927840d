//! The path to solvers, hop by hop: each fault is made on a real API server with the objects that a real order has left. What writes
//! the status of Ingresses and Gateways in a cluster is missing here, so the test writes it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::Output;
use std::thread;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::cluster::{Arena, Bench, Cluster, Kubectl, eventually};
use crate::support::lab;
use crate::support::program;

/// A name whose answer is up and is not taken, as nobody who looks finds it.
pub(super) struct Stuck {
    pub(super) bench: Bench<'static>,
    /// Where whoever looks is led.
    pub(super) port: u16,
}

/// The label of what solvers make.
const SOLVER: &str = "acme.cert-manager.io/http01-solver=true";

/// The page of an Ingress controller that knows no such host, or that reaches nobody behind it.
pub(super) fn default_page(status: &'static str) -> u16 {
    page_at("127.0.0.1:0", status).port()
}

/// The same at another address.
pub(super) fn page_at(address: &str, status: &'static str) -> SocketAddr {
    let listener = TcpListener::bind(address).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            // Whoever asks may be gone.
            let _read = stream.read(&mut [0; 2048]);
            let page =
                format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nsorry");
            let _written = stream.write_all(page.as_bytes());
        }
    });
    address
}

impl Stuck {
    /// Nothing but an Issuer and a Certificate, and somebody who drives.
    pub(super) fn before(name: &str, http01: &Value) -> Self {
        // Nobody else drives.
        let _arena = Arena::enter();
        let bench = Bench::new(Cluster::shared(), name);
        let objects = [
            bench.issuer("Issuer", "pebble", http01),
            bench.certificate("web", "Issuer", "pebble"),
        ];
        bench.write("web.yaml", &objects);
        let stuck = Self { bench, port: default_page("404 Not Found") };
        stuck.hold_lease();
        stuck
    }

    /// Orders by this program until the Challenge is as wanted; then that is killed, and everything stays where it was.
    pub(super) fn ordered(
        name: &str,
        http01: &Value,
        flags: &[&str],
        is_there: impl Fn(&Kubectl, &Value) -> bool,
    ) -> Self {
        let stuck = Self::before(name, http01);
        stuck.order(flags, is_there);
        stuck
    }

    pub(super) fn order(&self, flags: &[&str], is_there: impl Fn(&Kubectl, &Value) -> bool) {
        let kubectl = self.kubectl();
        kubectl.run(&["delete", "lease", "cert-manager-controller"]);
        let (resolve, lease) = (self.resolve(), self.lease_flag());
        let words = ["order", "-f", "web.yaml", "--timeout=3m", &resolve, &lease];
        let mut running = self.bench.start(&kubectl, &[&words[..], flags].concat());
        eventually("the Challenge", || {
            let challenges = kubectl.items("challenges");
            let challenge = challenges.first()?;
            is_there(&kubectl, challenge).then_some(())
        });
        running.kill();
        self.hold_lease();
    }

    /// Somebody who drives, as far as can be seen.
    fn hold_lease(&self) {
        let kubectl = self.kubectl();
        kubectl.run(&["delete", "lease", "cert-manager-controller", "--ignore-not-found"]);
        let now = format!("{:.6}", Timestamp::now());
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "cert-manager-controller"},
            "spec": {
                "holderIdentity": "node-a-external-cert-manager-controller", "leaseDurationSeconds": 36_000,
                "acquireTime": now, "renewTime": now,
            },
        });
        kubectl.apply(&lease.to_string());
    }

    pub(super) fn kubectl(&self) -> Kubectl {
        self.bench.namespace.kubectl()
    }

    pub(super) fn host(&self) -> String {
        format!("web.{}.example.com", self.bench.namespace.name())
    }

    pub(super) fn resolve(&self) -> String {
        format!("--http01-resolve=*=127.0.0.1:{}", self.port)
    }

    pub(super) fn lease_flag(&self) -> String {
        format!("--leader-election-namespace={}", self.bench.namespace.name())
    }

    /// The name of the solver's object of a kind.
    pub(super) fn solver(&self, kind: &str) -> String {
        let items = self.kubectl().items(kind);
        items[0]["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// Writes a part of a status.
    pub(super) fn patch_status(&self, object: &str, status: &Value) {
        let patch = json!({"status": status}).to_string();
        let deed = ["patch", object, "--subresource=status", "--type=merge", "-p", &patch];
        self.kubectl().run(&deed);
    }

    /// An event of whoever serves Ingresses.
    fn warn(&self, ingress: &str, reason: &str, message: &str) {
        let kubectl = self.kubectl();
        let object = kubectl.object(&format!("ingress/{ingress}"));
        let namespace = self.bench.namespace.name();
        let event = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "warning", "namespace": namespace},
            "involvedObject": {
                "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": ingress, "namespace": namespace,
                "uid": object["metadata"]["uid"],
            },
            "type": "Warning", "reason": reason, "message": message, "source": {"component": "ingress-controller"},
        });
        kubectl.apply(&event.to_string());
    }

    /// What `diagnose` says some minutes from now.
    pub(super) fn diagnose_in(&self, minutes: i64, words: &[&str]) -> (Output, Value) {
        self.diagnose_by(&self.resolve(), minutes, words)
    }

    /// The same, where another flag says where names lead.
    pub(super) fn diagnose_by(
        &self,
        resolve: &str,
        minutes: i64,
        words: &[&str],
    ) -> (Output, Value) {
        let mut command = program::command();
        let later = Timestamp::now() + SignedDuration::from_mins(minutes);
        command
            .args(["diagnose", "-o", "json", resolve, &self.lease_flag()])
            .args(["--namespace", self.bench.namespace.name()])
            .args(words)
            .env("KUBECTL_ACME_NOW", format!("{later:.0}"))
            .env("KUBECONFIG", self.kubectl().kubeconfig());
        let output = command.output().unwrap();
        let report = serde_json::from_slice(&output.stdout);
        (output.clone(), report.unwrap_or_else(|_| panic!("{output:?}")))
    }

    /// The finding that is named first.
    #[track_caller]
    pub(super) fn names_first(&self, cause: &str) -> Value {
        let (_, report) = self.diagnose_in(0, &["certificate/web"]);
        lab::names_first(&report, cause).clone()
    }
}

pub(super) fn is_presented(_: &Kubectl, challenge: &Value) -> bool {
    challenge["status"]["presented"] == true
}

/// It cannot be presented, and says so in these words.
fn says(words: &'static str) -> impl Fn(&Kubectl, &Value) -> bool {
    move |_, challenge| {
        challenge["status"]["reason"].as_str().is_some_and(|reason| reason.contains(words))
    }
}

pub(super) fn through(class: &str) -> Value {
    json!({"ingress": {"ingressClassName": class}})
}

/// A class of this test alone, which the cluster has.
pub(super) fn make_class(stuck: &Stuck, name: &str) {
    let class = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "IngressClass", "metadata": {"name": name},
        "spec": {"controller": "example.com/ingress"},
    });
    stuck.kubectl().apply(&class.to_string());
}

pub(super) fn through_gateway() -> Value {
    json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}]}})
}

fn gateway(listener: &Value) -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "edge"},
        "spec": {"gatewayClassName": "bed", "listeners": [listener]},
    })
}

pub(super) fn http() -> Value {
    json!({"name": "http", "port": 80, "protocol": "HTTP"})
}

pub(super) fn said(kind: &str, status: &str, reason: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": "the Gateway says so",
        "lastTransitionTime": "2026-11-24T10:00:00Z",
    })
}

/// The guide's item "the ACME solver pod is up and running".
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_got_404_and_the_solver_pod_does_not_run() {
    let image = "--acme-http01-solver-image=registry.invalid/acmesolver:v1";
    let stuck =
        Stuck::ordered("path-image", &through("path-image"), &[image], |kubectl, challenge| {
            let waits =
                |pod: &Value| !pod["status"]["containerStatuses"][0]["state"]["waiting"].is_null();
            is_presented(kubectl, challenge) && kubectl.items("pods").iter().any(waits)
        });
    make_class(&stuck, "path-image");
    let finding = stuck.names_first("CTL-12");
    assert_eq!(finding["grade"], "certain", "{finding:#}");
    let text = finding.to_string();
    assert!(text.contains("ImagePullBackOff") && text.contains("registry.invalid"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_class_that_the_cluster_does_not_have_is_named_before_and_after_the_order() {
    let stuck = Stuck::before("path-class", &through("path-absent"));
    make_class(&stuck, "path-there");
    stuck.kubectl().run(&["apply", "-f", stuck.bench.folder().join("web.yaml").to_str().unwrap()]);
    stuck.names_first("HTTP-10");
    stuck.order(&[], is_presented);
    let finding = stuck.names_first("HTTP-10");
    assert_eq!(finding["grade"], "certain", "{finding:#}");
    assert!(
        finding["message"].as_str().unwrap().contains("path-absent does not exist"),
        "{finding:#}"
    );
    assert!(finding["evidence"].to_string().contains("path-there"), "{finding:#}");
}

/// The guide's item "check the status of the HTTP01 solver ingress".
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_got_404_and_nobody_takes_the_ingress_of_the_solver() {
    let stuck = Stuck::ordered("path-taken", &through("path-taken"), &[], is_served);
    make_class(&stuck, "path-taken");
    let other = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "other"},
        "spec": {
            "ingressClassName": "path-taken",
            "defaultBackend": {"service": {"name": "other", "port": {"number": 80}}},
        },
    });
    stuck.kubectl().apply(&other.to_string());
    stuck.patch_status(
        "ingress/other",
        &json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
    );
    let (_, report) = stuck.diagnose_in(10, &["certificate/web"]);
    let finding = lab::names_first(&report, "HTTP-10");
    assert!(finding["message"].as_str().unwrap().contains("has no address"), "{finding:#}");
}

/// The guide's item "your ingress controller handling multiple resources for the same hostname".
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_several_resources_have_the_same_hostname() {
    let stuck = Stuck::ordered("path-told", &through("path-told"), &[], is_presented);
    make_class(&stuck, "path-told");
    let ingress = stuck.solver("ingresses");
    stuck.warn(&ingress, "Rejected", "All hosts are taken by other resources");
    let finding = stuck.names_first("HTTP-12");
    assert!(finding["evidence"].to_string().contains("All hosts are taken"), "{finding:#}");
    stuck.kubectl().run(&["delete", "event", "warning"]);
    let message = "Translation failed: service \"cm-acme-http-solver\" is type \"ClusterIP\", expected \"NodePort\" or \"LoadBalancer\"";
    stuck.warn(&ingress, "Translate", message);
    let finding = stuck.names_first("HTTP-26");
    assert!(finding["evidence"].to_string().contains("NodePort"), "{finding:#}");
}

/// The guide's item "prevent GKE from assigning a 2nd IP address".
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_gke_assigns_a_second_address_for_the_challenge() {
    let stuck = Stuck::ordered("path-second", &through("path-second"), &[], is_presented);
    let host = stuck.host();
    let site = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "site"},
        "spec": {"rules": [{"host": host, "http": {"paths": [{
            "path": "/", "pathType": "Prefix", "backend": {"service": {"name": "site", "port": {"number": 80}}},
        }]}}]},
    });
    stuck.kubectl().apply(&site.to_string());
    let items = stuck.kubectl().items("ingresses");
    let names = items.iter().map(|ingress| ingress["metadata"]["name"].as_str().unwrap());
    for name in names {
        let ip = if name == "site" { "192.0.2.1" } else { "192.0.2.2" };
        let status = json!({"loadBalancer": {"ingress": [{"ip": ip}]}});
        stuck.patch_status(&format!("ingress/{name}"), &status);
    }
    let finding = stuck.names_first("HTTP-24");
    let text = finding["evidence"].to_string();
    assert!(text.contains("192.0.2.1") && text.contains("192.0.2.2"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_ingress_that_somebody_removed_is_missed() {
    let stuck = Stuck::ordered("path-gone", &through("path-gone"), &[], is_presented);
    stuck.kubectl().run(&["delete", "ingress", "-l", SOLVER]);
    let finding = stuck.names_first("CTL-10");
    assert!(finding["message"].as_str().unwrap().contains("Ingress"), "{finding:#}");
}

/// The guide's item "the service and pod cert-manager created": labels that do not fit leave the Service without endpoints.
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_the_service_of_the_solver_leads_nowhere() {
    let stuck = Stuck::ordered("path-labels", &through("path-labels"), &[], is_served);
    make_class(&stuck, "path-labels");
    let kubectl = stuck.kubectl();
    let label = "acme.cert-manager.io/http-token=0";
    kubectl.run(&["label", "pods", "-l", SOLVER, "--overwrite", label]);
    eventually("the endpoint to go", || (endpoints(&kubectl) == 0).then_some(()));
    let finding = stuck.names_first("CTL-15");
    assert_eq!(finding["grade"], "certain", "{finding:#}");
    assert!(finding["message"].as_str().unwrap().contains("http-token"), "{finding:#}");
}

/// The guide's item "check your Ingress and firewall configuration": a NetworkPolicy.
#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn guide_a_firewall_of_the_cluster_lets_nobody_in() {
    let mut stuck = Stuck::ordered("path-policy", &through("path-policy"), &[], is_running);
    make_class(&stuck, "path-policy");
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"]},
    });
    stuck.kubectl().apply(&policy.to_string());
    stuck.port = default_page("504 Gateway Timeout");
    let finding = stuck.names_first("CTL-14");
    assert!(finding["message"].as_str().unwrap().contains("/deny"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_quota_that_keeps_the_pod_out_is_named() {
    let stuck = Stuck::before("path-quota", &through("path-quota"));
    make_class(&stuck, "path-quota");
    let kubectl = stuck.kubectl();
    kubectl.run(&["create", "quota", "none", "--hard=pods=0"]);
    // The quota counts from when its status is written, by a controller that this cluster lacks.
    stuck.patch_status("quota/none", &json!({"hard": {"pods": "0"}, "used": {"pods": "0"}}));
    eventually("the quota to count", || {
        let pod = ["run", "probe", "--image=none", "--restart=Never", "--dry-run=server"];
        kubectl.try_run(&pod).is_err().then_some(())
    });
    stuck.order(&[], says("exceeded quota"));
    let finding = stuck.names_first("CTL-11");
    assert!(finding["message"].as_str().unwrap().contains("exceeded quota: none"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn pod_security_that_refuses_the_pod_is_named() {
    let spec = json!({"spec": {"securityContext": {"runAsNonRoot": false}}});
    let stuck = Stuck::before(
        "path-security",
        &json!({"ingress": {"ingressClassName": "path-security", "podTemplate": spec}}),
    );
    make_class(&stuck, "path-security");
    let label = "pod-security.kubernetes.io/enforce=restricted";
    stuck.kubectl().run(&["label", "namespace", stuck.bench.namespace.name(), label]);
    stuck.order(&[], says("violates PodSecurity"));
    let finding = stuck.names_first("CTL-13");
    assert!(finding["message"].as_str().unwrap().contains("restricted"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_listener_that_does_not_take_the_route_is_named_before_the_gateway_says_so_and_after() {
    let stuck = Stuck::before("path-route", &through_gateway());
    let kubectl = stuck.kubectl();
    let mut listener = http();
    listener["hostname"] = "other.example.com".into();
    kubectl.apply(&gateway(&listener).to_string());
    stuck.order(&[], is_presented);
    let finding = stuck.names_first("GW-02");
    assert!(
        finding["message"].as_str().unwrap().contains("is for other.example.com only"),
        "{finding:#}"
    );
    let parents = json!([{
        "parentRef": {"name": "edge"}, "controllerName": "example.com/gateway",
        "conditions": [said("Accepted", "False", "NoMatchingListenerHostname")],
    }]);
    stuck.patch_status(
        &format!("httproute/{}", stuck.solver("httproutes")),
        &json!({"parents": parents}),
    );
    let finding = stuck.names_first("GW-02");
    assert!(finding["evidence"].to_string().contains("NoMatchingListenerHostname"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_listener_that_waits_for_the_secret_is_named() {
    let stuck = Stuck::before("path-secret", &through_gateway());
    let listener = json!({
        "name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "web-tls"}]},
    });
    stuck.kubectl().apply(&gateway(&listener).to_string());
    let listeners = json!([{
        "name": "https", "attachedRoutes": 0, "supportedKinds": [],
        "conditions": [said("ResolvedRefs", "False", "InvalidCertificateRef")],
    }]);
    stuck.patch_status("gateway/edge", &json!({"listeners": listeners}));
    stuck.order(&[], is_presented);
    let finding = stuck.names_first("GW-03");
    assert!(finding["message"].as_str().unwrap().contains("web-tls"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_parent_that_is_named_twice_is_refused_by_the_definitions_and_named() {
    let solver = json!({"gatewayHTTPRoute": {"parentRefs": [{"name": "edge"}, {"name": "edge"}]}});
    let stuck = Stuck::before("path-twice", &solver);
    stuck.kubectl().apply(&gateway(&http()).to_string());
    stuck.order(&[], says("parentRefs"));
    let finding = stuck.names_first("GW-04");
    assert!(finding["evidence"].to_string().contains("same parent"), "{finding:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cert_manager_without_gateway_api_is_named() {
    let stuck = Stuck::before("path-off", &through_gateway());
    let kubectl = stuck.kubectl();
    kubectl.apply(&gateway(&http()).to_string());
    kubectl.run(&["delete", "lease", "cert-manager-controller"]);
    let peer = stuck.bench.namespace.peer(&["--enable-gateway-api=false"]);
    peer.wait_until_at_work();
    kubectl.run(&["apply", "-f", stuck.bench.folder().join("web.yaml").to_str().unwrap()]);
    eventually("cert-manager to say so", || {
        let challenges = kubectl.items("challenges");
        let reason = challenges.first()?["status"]["reason"].as_str()?.to_owned();
        reason.contains("gateway api is not enabled").then_some(())
    });
    let finding = stuck.names_first("GW-01");
    assert_eq!(finding["grade"], "certain", "{finding:#}");
}

/// Objects of a Challenge that nobody knows.
fn left_over(stuck: &Stuck) -> (String, String) {
    let labels = json!({"acme.cert-manager.io/http01-solver": "true"});
    let host = format!("old.{}.example.com", stuck.bench.namespace.name());
    let ingress = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "old", "labels": labels},
        "spec": {"rules": [{"host": host, "http": {"paths": [{
            "path": "/.well-known/acme-challenge/old", "pathType": "Exact",
            "backend": {"service": {"name": "old", "port": {"number": 8089}}},
        }]}}]},
    });
    let route = json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "old", "labels": labels},
        "spec": {"hostnames": [host], "parentRefs": [{"name": "edge"}]},
    });
    (ingress.to_string(), route.to_string())
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn an_ingress_at_work_is_well_and_what_is_left_of_old_challenges_is_told_beside() {
    let mut stuck = Stuck::ordered("path-well", &through("path-well"), &[], is_running);
    make_class(&stuck, "path-well");
    stuck.port = Cluster::shared().http_port();
    wait_for_answer(&stuck);
    let (output, report) = stuck.diagnose_in(0, &["certificate/web"]);
    lab::names_none(&report, "an Ingress in a cluster");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let (ingress, route) = left_over(&stuck);
    stuck.kubectl().apply(&route);
    let (_, report) = stuck.diagnose_in(20, &["certificate/web"]);
    lab::names_first(&report, "GW-05");
    stuck.kubectl().apply(&ingress);
    let (output, report) = stuck.diagnose_in(20, &["certificate/web"]);
    lab::names_first(&report, "HYG-02");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["cause"] == "GW-05"), "{report:#}");
    assert_eq!((output.status.code(), findings.len()), (Some(0), 2), "{report:#}");
}

pub(super) fn is_running(kubectl: &Kubectl, challenge: &Value) -> bool {
    let is_ready = |pod: &Value| pod["status"]["phase"] == "Running";
    is_presented(kubectl, challenge) && kubectl.items("pods").iter().any(is_ready)
}

/// How many endpoints solvers' Services have.
fn endpoints(kubectl: &Kubectl) -> usize {
    let listed = kubectl.run(&["get", "endpointslices", "-l", SOLVER, "-o", "json"]);
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let slices = listed["items"].as_array().unwrap().iter();
    slices.map(|slice| slice["endpoints"].as_array().map_or(0, Vec::len)).sum()
}

/// Its Pod runs, and its Service leads there.
fn is_served(kubectl: &Kubectl, challenge: &Value) -> bool {
    is_running(kubectl, challenge) && endpoints(kubectl) == 1
}

/// The answer is there for whoever looks.
pub(super) fn wait_for_answer(stuck: &Stuck) {
    let challenge = stuck.kubectl().items("challenges").remove(0);
    let text = |field: &str| challenge["spec"][field].as_str().unwrap().to_owned();
    let path = format!("/.well-known/acme-challenge/{}", text("token"));
    eventually("the answer", || {
        let said = crate::support::http::get(stuck.port, &text("dnsName"), &path).ok()?;
        (said == text("key")).then_some(())
    });
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_gateway_at_work_is_well() {
    let mut stuck = Stuck::before("path-gateway", &through_gateway());
    stuck.kubectl().apply(&gateway(&http()).to_string());
    stuck.order(&[], is_running);
    let parents = json!([{
        "parentRef": {"name": "edge"}, "controllerName": "example.com/gateway",
        "conditions": [said("Accepted", "True", "Accepted"), said("ResolvedRefs", "True", "ResolvedRefs")],
    }]);
    stuck.patch_status(
        &format!("httproute/{}", stuck.solver("httproutes")),
        &json!({"parents": parents}),
    );
    stuck.port = Cluster::shared().http_port();
    wait_for_answer(&stuck);
    let (_, report) = stuck.diagnose_in(0, &["certificate/web"]);
    lab::names_none(&report, "a Gateway in a cluster");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn what_is_to_be_solved_is_well_before_there_is_an_order() {
    for (name, solver) in
        [("path-soon", through("path-soon")), ("path-soon-gateway", through_gateway())]
    {
        let mut stuck = Stuck::before(name, &solver);
        make_class(&stuck, "path-soon");
        let kubectl = stuck.kubectl();
        kubectl.apply(&gateway(&http()).to_string());
        kubectl.run(&["apply", "-f", stuck.bench.folder().join("web.yaml").to_str().unwrap()]);
        let issuer = json!({"conditions": [said("Ready", "True", "ACMEAccountRegistered")]});
        stuck.patch_status("issuer/pebble", &issuer);
        stuck.port = Cluster::shared().http_port();
        let (_, report) = stuck.diagnose_in(0, &["certificate/web"]);
        let causes: Vec<&str> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["cause"].as_str().unwrap())
            // The account's key is made with the first order.
            .filter(|cause| !cause.starts_with("ACC-"))
            .collect();
        assert!(causes.is_empty(), "{name}: {report:#}");
    }
}
