//! Faults of the cluster itself: who works there, its webhooks, rights and definitions. There is no kubelet: Deployments and Pods are
//! objects whose status a test writes; everything else is real.

use axum::Json;
use axum::routing::get;
use serde_json::{Value, json};

use super::peer::{Scene, condition};
use crate::support::cluster::{Arena, Kubectl, eventually};
use crate::support::lab;
use crate::support::tls_server::TlsServer;

/// Objects of the whole cluster that a test has made; they go with it.
pub(super) struct Made<'a> {
    kubectl: Kubectl,
    names: Vec<String>,
    arena: &'a Arena,
}

impl<'a> Made<'a> {
    pub(super) fn new(arena: &'a Arena) -> Self {
        arena.kubectl().try_run(&["create", "namespace", "cert-manager"]).ok();
        Self { kubectl: arena.kubectl(), names: Vec::new(), arena }
    }

    pub(super) fn apply(&mut self, object: &Value) {
        self.kubectl.apply(&object.to_string());
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let namespace = match text("/metadata/namespace") {
            "" => String::new(),
            namespace => format!("--namespace={namespace}"),
        };
        self.names.push(format!("{}/{} {namespace}", text("/kind"), text("/metadata/name")));
    }

    /// A Deployment of cert-manager's controller with one ready Pod, as its chart makes it.
    pub(super) fn controller(&mut self, namespace: &str, args: &[&str], tag: &str, env: &Value) {
        let labels = json!({"app.kubernetes.io/name": "cert-manager", "app.kubernetes.io/component": "controller"});
        let container = json!({
            "name": "controller", "image": format!("quay.io/jetstack/cert-manager-controller:{tag}"), "args": args, "env": env,
        });
        let template = json!({
            "metadata": {"labels": labels}, "spec": {"serviceAccountName": "cert-manager", "containers": [container]},
        });
        let metadata = json!({"name": "cert-manager", "namespace": namespace, "labels": labels});
        self.apply(&json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": template},
        }));
        let status = json!({"status": {"replicas": 1, "readyReplicas": 1}}).to_string();
        let patch = [
            "patch",
            "deployment",
            "cert-manager",
            "--subresource=status",
            "--type=merge",
            "-p",
            &status,
        ];
        self.kubectl.run(&[&patch[..], &["--namespace", namespace]].concat());
    }

    /// cert-manager as its chart makes it, with these arguments, and with all rights.
    pub(super) fn usual(&mut self, args: &[&str]) {
        self.controller("cert-manager", args, "v1.21.2", &json!([]));
        self.grant("lab-controller", "cert-manager", "cert-manager");
    }

    /// Lets that account do everything, or nothing any more.
    pub(super) fn grant(&mut self, name: &str, namespace: &str, account: &str) {
        self.apply(&json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        }));
        let who = format!("--as=system:serviceaccount:{namespace}:{account}");
        let asked = ["auth", "can-i", "create", "orders.acme.cert-manager.io", &who];
        eventually("the right", || self.arena.kubectl().try_run(&asked).ok());
    }
}

impl Drop for Made<'_> {
    fn drop(&mut self) {
        for name in self.names.iter().rev() {
            let words: Vec<&str> = ["delete", "--ignore-not-found", "--wait=false"]
                .into_iter()
                .chain(name.split_whitespace())
                .collect();
            self.kubectl.try_run(&words).ok();
        }
    }
}

/// cert-manager at work on a Certificate that waits for its challenge, as its Deployment says.
fn at_work<'c>(arena: &'c Arena, made: &mut Made<'_>, name: &str) -> Scene<'c> {
    let scene = Scene::new(arena, name, &["--leave-out=challenges"]);
    made.controller("cert-manager", &["--enable-gateway-api"], "v1.21.2", &json!([]));
    made.grant("lab-controller", "cert-manager", "cert-manager");
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("challenges", |_| true);
    scene
}

/// The causes that are named, but for what the name itself shows: nothing answers while a challenge is not begun.
pub(super) fn causes(report: &Value) -> Vec<String> {
    let all = report["findings"].as_array().unwrap().iter();
    all.map(|finding| finding["cause"].as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn a_cluster_that_is_well_has_no_fault() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = at_work(&arena, &mut made, "well");
    let webhook = admission(&scene, "aGVsbG8=");
    made.apply(&webhook);
    made.apply(&endpoints(true));
    let (output, report) = scene.diagnose(&["issuer/pebble"]);
    lab::names_none(&report, "a cluster with cert-manager as its chart makes it");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    let (_, report) = scene.diagnose(&["web"]);
    let own = causes(&report);
    assert!(own.iter().all(|cause| cause.starts_with("HTTP-")), "{report:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_02_two_controllers_lead_with_leases_of_their_own() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    arena.kubectl().try_run(&["create", "namespace", "second"]).ok();
    let scene = at_work(&arena, &mut made, "two");
    let place = "--leader-election-namespace=second";
    made.controller("second", &[place], "v1.20.0", &json!([]));
    let second = arena.peer(&[place, "--leave-out=challenges"]);
    second.wait_until_at_work();
    scene.names_first("CTL-02");
}

/// cert-manager's admission webhook for one namespace, as its chart makes it.
fn admission(scene: &Scene<'_>, bundle: &str) -> Value {
    let mut client = json!({"service": {"name": "cert-manager-webhook", "namespace": "cert-manager", "path": "/validate"}});
    if !bundle.is_empty() {
        // The API server takes no bundle that is none.
        client["caBundle"] = base64(scene.bench.pebble.tls_ca_pem()).into();
    }
    let labels =
        json!({"app.kubernetes.io/name": "webhook", "app.kubernetes.io/component": "webhook"});
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "cert-manager-webhook", "labels": labels},
        "webhooks": [{
            "name": "webhook.cert-manager.io", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail",
            // Nothing is written there in a test.
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "nowhere"}},
            "clientConfig": client,
            "rules": [{"apiGroups": ["cert-manager.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["*/*"]}],
        }],
    })
}

fn base64(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(text)
}

fn endpoints(ready: bool) -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {
            "name": "cert-manager-webhook-1", "namespace": "cert-manager", "labels": {"kubernetes.io/service-name": "cert-manager-webhook"},
        },
        "endpoints": [{"addresses": ["10.244.1.9"], "conditions": {"ready": ready}}],
        "ports": [{"port": 10250}],
    })
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_03_the_webhook_has_no_bundle_or_no_endpoint() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = at_work(&arena, &mut made, "webhook");
    made.apply(&admission(&scene, ""));
    made.apply(&endpoints(true));
    let first = scene.names_first("CTL-03");
    assert!(first["message"].as_str().unwrap().contains("empty"), "{first:#}");
    made.apply(&admission(&scene, "a"));
    made.apply(&endpoints(false));
    let first = scene.names_first("CTL-03");
    assert!(first["message"].as_str().unwrap().contains("no endpoint"), "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_07_the_account_of_the_controller_lacks_a_right() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = Scene::new(&arena, "rights", &["--leave-out=challenges"]);
    made.controller("cert-manager", &["--enable-gateway-api"], "v1.21.2", &json!([]));
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("challenges", |_| true);
    let first = scene.names_first("CTL-07");
    assert_eq!(first["subject"], "system:serviceaccount:cert-manager:cert-manager", "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_08_an_old_release_has_ended_an_order_for_a_passing_error() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let mut scene = at_work(&arena, &mut made, "defect");
    made.controller("cert-manager", &["--enable-gateway-api"], "v1.20.2", &json!([]));
    scene.peer.freeze();
    // What that release writes (cert-manager#8760).
    let status = json!({"status": {"state": "errored", "reason": "unexpected non-ACME API error: Post \"https://ca/\": EOF"}});
    let challenge = scene.until("challenges", |_| true);
    let name = challenge["metadata"]["name"].as_str().unwrap();
    let patch = [
        "patch",
        "challenge",
        name,
        "--subresource=status",
        "--type=merge",
        "-p",
        &status.to_string(),
    ];
    scene.bench.namespace.kubectl().run(&patch);
    let (_, report) = scene.diagnose(&["web"]);
    lab::names_first(&report, "CTL-08");
    scene.peer.thaw();
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn cfg_08_a_field_is_lost_that_the_definitions_do_not_know() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = at_work(&arena, &mut made, "field");
    let mut certificate = scene.certificate();
    certificate["spec"]["fieldOfTomorrow"] = json!({"a": 1});
    let file = scene.bench.folder().join("tomorrow.json");
    std::fs::write(&file, certificate.to_string()).unwrap();
    scene.bench.namespace.kubectl().run(&[
        "apply",
        "--validate=false",
        "-f",
        file.to_str().unwrap(),
    ]);
    let first = scene.names_first("CFG-08");
    assert!(first["message"].as_str().unwrap().contains("spec.fieldOfTomorrow"), "{first:#}");
    assert_eq!(first["grade"], "certain", "{first:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn ctl_09_the_definitions_are_of_an_older_line() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = at_work(&arena, &mut made, "definitions");
    let labels = ["app.kubernetes.io/name=cert-manager", "app.kubernetes.io/version=v1.17.0"];
    let kubectl = arena.kubectl();
    kubectl.run(&[&["label", "crd", "issuers.cert-manager.io"][..], &labels].concat());
    let (output, report) = scene.diagnose(&["issuer/pebble", "--fail-on=warning"]);
    kubectl.run(&[
        "label",
        "crd",
        "issuers.cert-manager.io",
        "app.kubernetes.io/name-",
        "app.kubernetes.io/version-",
    ]);
    lab::names_first(&report, "CTL-09");
    assert_eq!(output.status.code(), Some(11), "{report:#}");
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn http_33_the_self_check_goes_through_a_proxy_that_refuses() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let proxy = super::refusing_proxy();
    let scene = Scene::through(&arena, "proxy", proxy, &[]);
    let env = json!([{"name": "HTTP_PROXY", "value": "http://user:password@proxy:3128"}, {"name": "NO_PROXY", "value": ".svc"}]);
    made.controller("cert-manager", &["--enable-gateway-api"], "v1.21.2", &env);
    made.grant("lab-controller", "cert-manager", "cert-manager");
    scene.apply(&[scene.issuer(|_| ()), scene.certificate()]);
    scene.until("challenges", |challenge| {
        challenge["status"]["presented"] == true
            && challenge["status"]["reason"].as_str().is_some_and(|reason| reason.contains("403"))
    });
    // The solver's Pod needs a moment to answer, here too.
    eventually("the answer of the solver", || {
        let (_, report) = scene.diagnose(&["web"]);
        (causes(&report).first().map(String::as_str) == Some("HTTP-33")).then_some(())
    });
    let first = scene.names_first("HTTP-33");
    assert!(!first.to_string().contains("password"), "{first:#}");
}

const GROUP: &str = "acme.lab.example.com";

/// What an API server asks to learn what is served.
async fn discover() -> Json<Value> {
    let resource = json!({
        "name": "hook", "singularName": "hook", "namespaced": false, "kind": "ChallengePayload", "verbs": ["create"],
    });
    Json(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/v1alpha1"), "resources": [resource],
    }))
}

#[test]
#[ignore = "needs a cluster: run by just cluster"]
fn prv_08_to_11_a_webhook_for_dns_is_refused_closed_unknown_or_away() {
    let arena = Arena::enter();
    let mut made = Made::new(&arena);
    let scene = Scene::new(&arena, "hook", &["--leave-out=challenges"]);
    let namespace = scene.bench.namespace.name().to_owned();
    made.controller("cert-manager", &["--enable-gateway-api"], "v1.21.2", &json!([]));
    let path = format!("/apis/{GROUP}/v1alpha1");
    let server = TlsServer::start(axum::Router::new().route(&path, get(discover)));
    let place = json!({"name": "hook", "namespace": namespace});
    made.apply(&json!({
        "apiVersion": "v1", "kind": "Service", "metadata": place,
        "spec": {"type": "ExternalName", "externalName": "localhost", "selector": {"app": "hook"}},
    }));
    made.apply(&json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hook", "namespace": namespace, "labels": {"app": "hook"}},
        "spec": {"serviceAccountName": "hook", "containers": [{"name": "hook", "image": "hook"}]},
    }));
    let service = |port: u16| {
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": format!("v1alpha1.{GROUP}")},
            "spec": {
                "group": GROUP, "version": "v1alpha1", "groupPriorityMinimum": 1000, "versionPriority": 15,
                "insecureSkipTLSVerify": true, "service": {"name": "hook", "namespace": namespace, "port": port},
            },
        })
    };
    made.apply(&service(server.port));
    eventually("the webhook", || arena.kubectl().try_run(&["get", "--raw", &path]).ok());
    let with = |solver: &str| {
        let config = json!({"tokenSecretRef": {"name": "token", "key": "token"}});
        let webhook = json!({"groupName": GROUP, "solverName": solver, "config": config});
        scene.issuer(|acme| acme["solvers"] = json!([{"dns01": {"webhook": webhook}}]))
    };
    let token = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"token": "t"}});
    scene.apply(&[token, with("hook")]);
    scene.until_issuer("True");
    let first = |cause: &str| {
        eventually(cause, || {
            let (_, report) = scene.diagnose(&["issuer/pebble"]);
            (causes(&report).first().map(String::as_str) == Some(cause)).then_some(())
        });
        let (_, report) = scene.diagnose(&["issuer/pebble"]);
        lab::names_first(&report, cause);
    };
    first("PRV-09");
    made.grant("lab-controller", "cert-manager", "cert-manager");
    first("PRV-11");
    made.grant("lab-webhook", &namespace, "hook");
    let (output, report) = scene.diagnose(&["issuer/pebble"]);
    lab::names_none(&report, "a webhook for DNS-01 that is reached and may read its Secret");
    assert_eq!(output.status.code(), Some(0), "{report:#}");
    scene.apply(&[with("hooc")]);
    first("PRV-10");
    scene.apply(&[with("hook")]);
    drop(server);
    eventually("the end of the webhook", || {
        let found =
            arena.kubectl().run(&["get", "apiservice", &format!("v1alpha1.{GROUP}"), "-o", "json"]);
        let found: Value = serde_json::from_str(&found).unwrap();
        (condition(&found, "Available") == Some("False")).then_some(())
    });
    first("PRV-08");
}
